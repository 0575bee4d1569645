package registry

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/backoff"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

const (
	sweepEvery = 250 * time.Millisecond // a lease ends at most this, and a query, late
	sweepBatch = 1000
	pollEvery  = time.Second // re-read without a hint
	// readEvery is the least time from one read to the next: the first of a burst of changes is seen at once, the others together.
	readEvery = 150 * time.Millisecond
	readTime  = 5 * time.Second
	refitEach = 500
	readBatch = 1000
	// overlap is re-read every time: a transaction stamped before our last read may commit after it.
	overlap   = 2 * time.Second
	trimEvery = time.Hour
	// recountEvery is how late a crash may end as a problem of its robot.
	recountEvery = time.Minute
	maxSeen      = 20_000 // revisions remembered: more than change within the overlap
	// subBuffer is how many changes a watcher may be behind before it is cut off: one second of a fleet of 10,000 that reports every 15 s,
	// and a wave of reconnects.
	subBuffer = 4096
)

// feed hands changes to watchers. One reader per process asks the database, however many watch, and each change is made once for all.
type feed struct {
	mu   sync.Mutex
	subs map[*sub]struct{}
}

// sub is one watcher: one of the channels is its own.
type sub struct {
	things  chan Thing
	updates chan *Update
}

// Update is one change of a thing, shared by all who watch. It is not changed. Safe for concurrent use.
type Update struct {
	Thing Thing
	row   filter.Row

	once sync.Once
	json []byte
	err  error
}

// NewUpdate returns the change that a thing is now.
func NewUpdate(t Thing) *Update { return &Update{Thing: t, row: t.Row()} }

// JSON returns the thing as the API shows it; made at the first call, for all watchers.
func (u *Update) JSON() ([]byte, error) {
	u.once.Do(func() { u.json, u.err = json.Marshal(u.Thing) })
	return u.json, u.err
}

// Match reports whether a resolved filter selects the thing as it is now.
func (u *Update) Match(f filter.Filter, now time.Time) bool { return f.Match(&u.row, now) }

// Watch returns a channel of things as they change, from now until ctx ends; then it is closed. A watcher that falls too far behind is
// cut off the same way: it lists and watches again.
func (s *Service) Watch(ctx context.Context) <-chan Thing {
	w := &sub{things: make(chan Thing, subBuffer)}
	s.feed.add(ctx, w)
	return w.things
}

// Follow is Watch for many: what it hands out is shared.
func (s *Service) Follow(ctx context.Context) <-chan *Update {
	w := &sub{updates: make(chan *Update, subBuffer)}
	s.feed.add(ctx, w)
	return w.updates
}

// Resolve returns a filter as Update.Match wants it.
func (s *Service) Resolve(ctx context.Context, f filter.Filter) (filter.Filter, error) {
	return f.Resolve(ctx, s.src.Filter)
}

func (f *feed) add(ctx context.Context, w *sub) {
	f.mu.Lock()
	f.subs[w] = struct{}{}
	f.mu.Unlock()
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.drop(w)
	})
}

// drop ends a watcher; f.mu is held.
func (f *feed) drop(w *sub) {
	if _, ok := f.subs[w]; !ok {
		return
	}
	delete(f.subs, w)
	if w.things != nil {
		close(w.things)
		return
	}
	close(w.updates)
}

func (f *feed) publish(t Thing) {
	u := NewUpdate(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.subs {
		select {
		case w.things <- t: // nil for one that follows
		case w.updates <- u:
		default:
			f.drop(w)
		}
	}
}

func (f *feed) watched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subs) > 0
}

// Run ends leases, trims old rows and feeds watchers until ctx ends. Every process runs it. An unreachable database is logged once and
// tried again.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { s.every(ctx, "end leases", sweepEvery, s.Sweep) })
	wg.Go(func() { s.every(ctx, "trim", trimEvery, s.store.Trim) })
	wg.Go(func() { s.every(ctx, "end crashes", recountEvery, s.table.RecountCrashes) })
	wg.Go(func() { s.every(ctx, "reread statuses", trimEvery, s.Refit) })
	wg.Go(func() { s.follow(ctx) })
	wg.Wait()
	return nil
}

// Sweep marks every thing whose lease ran out as absent since the end of its lease. Any number of processes may do so at once.
func (s *Service) Sweep(ctx context.Context) error {
	for {
		n, err := s.store.Expire(ctx, sweepBatch)
		if err != nil || n < sweepBatch {
			return err
		}
	}
}

// Refit brings what the fleet is filtered by in step with the statuses kept, where this release reads more of them than the one that
// kept them did. Any number of processes may do so at once.
func (s *Service) Refit(ctx context.Context) error {
	for {
		n, err := s.table.Refit(ctx, refitEach)
		if err != nil || n == 0 {
			return err
		}
	}
}

// every calls f now and then, until ctx ends. A failure that lasts is logged when it begins and when it ends.
func (s *Service) every(ctx context.Context, what string, period time.Duration, f func(context.Context) error) {
	failing := false
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, max(4*period, 5*time.Second))
		err := f(call)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			s.log.WarnContext(ctx, "registry work failed; retrying", "work", what, logging.Err, err)
		case err == nil && failing:
			s.log.InfoContext(ctx, "registry work recovered", "work", what)
		}
		failing = err != nil
		// Jitter keeps the processes of a fleet out of step.
		_ = backoff.Sleep(ctx, backoff.Jitter(period*2/3)) // at most period; the loop looks at ctx
	}
}

// follow publishes what changed, at each hint and at least each second.
func (s *Service) follow(ctx context.Context) {
	var cursor time.Time
	seen := map[thing.ID]int64{}                                         // revision published, of things changed within the overlap
	_ = s.store.Follow(ctx, pollEvery, func(ctx context.Context) error { // nil by contract
		defer func() { _ = backoff.Sleep(ctx, readEvery) }() // the caller looks at ctx
		call, cancel := context.WithTimeout(ctx, readTime)
		defer cancel()
		return s.readOnce(call, &cursor, seen)
	})
}

// readOnce publishes what changed since *cursor and moves it on.
func (s *Service) readOnce(ctx context.Context, cursor *time.Time, seen map[thing.ID]int64) error {
	if !s.feed.watched() {
		*cursor = time.Time{} // no watcher: start over at the next one
		clear(seen)
		return nil
	}
	if cursor.IsZero() {
		// Ask for the clock alone: what changed since the watcher came lies within the overlap.
		_, now, err := s.store.Changed(ctx, time.Time{}, 0)
		if err != nil {
			return err
		}
		*cursor = now
	}
	for from := cursor.Add(-overlap); ; {
		marks, latest, err := s.store.Changed(ctx, from, readBatch)
		if err != nil {
			return err
		}
		// Changes in the overlap were told before: only new ones are read whole.
		var fresh []thing.ID
		for _, m := range marks {
			if seen[m.ID] < m.Rev {
				fresh = append(fresh, m.ID)
			}
		}
		if len(fresh) > 0 {
			things, err := s.store.ThingsByID(ctx, fresh)
			if err == nil {
				err = s.name(ctx, things)
			}
			if err != nil {
				return err
			}
			for _, t := range things {
				seen[t.ID] = t.Rev
				s.feed.publish(t)
			}
		}
		if latest.After(*cursor) {
			*cursor = latest
		}
		if len(marks) < readBatch || !latest.After(from) {
			break
		}
		from = latest
	}
	if len(seen) > maxSeen {
		clear(seen) // at worst some changes of the overlap are told twice
	}
	return nil
}
