package registry

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"kennel/certs/thing"
	"kennel/infra/logging"
)

const (
	sweepEvery = 250 * time.Millisecond // a lease ends at most this, and a query, late
	sweepBatch = 1000
	pollEvery  = time.Second // re-read without a hint
	readBatch  = 1000
	// overlap is re-read every time: a transaction stamped before our last read may commit after it.
	overlap   = 2 * time.Second
	trimEvery = time.Hour
	// subBuffer is how many changes a watcher may be behind before it is cut off: one second of a fleet of 10,000 that reports every 15 s,
	// and a wave of reconnects.
	subBuffer = 4096
)

// feed hands changes to watchers. One reader per process asks the database, however many watch.
type feed struct {
	mu   sync.Mutex
	subs map[*sub]struct{}
}

type sub struct{ ch chan Thing }

// Watch returns a channel of things as they change, from now until ctx ends; then it is closed. A watcher that falls too far behind is
// cut off the same way: it lists again and watches anew.
func (s *Service) Watch(ctx context.Context) <-chan Thing {
	w := &sub{make(chan Thing, subBuffer)}
	s.feed.mu.Lock()
	s.feed.subs[w] = struct{}{}
	s.feed.mu.Unlock()
	context.AfterFunc(ctx, func() { s.feed.drop(w) })
	return w.ch
}

func (f *feed) drop(w *sub) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.subs[w]; ok {
		delete(f.subs, w)
		close(w.ch)
	}
}

func (f *feed) publish(t Thing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.subs {
		select {
		case w.ch <- t:
		default:
			delete(f.subs, w)
			close(w.ch)
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
	wake := make(chan struct{}, 1) // one hint is as good as many
	wg.Go(func() { s.every(ctx, "end leases", sweepEvery, s.Sweep) })
	wg.Go(func() { s.every(ctx, "trim", trimEvery, s.store.Trim) })
	wg.Go(func() { s.listen(ctx, wake) })
	wg.Go(func() { s.read(ctx, wake) })
	wg.Wait()
	return nil
}

// Sweep turns every thing absent whose lease ran out, as of the end of its lease. Any number of processes may do so at once.
func (s *Service) Sweep(ctx context.Context) error {
	for {
		n, err := s.store.Expire(ctx, sweepBatch)
		if err != nil || n < sweepBatch {
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
			s.log.WarnContext(ctx, "registry work failed, trying on", "work", what, logging.Err, err)
		case err == nil && failing:
			s.log.InfoContext(ctx, "registry work goes on", "work", what)
		}
		failing = err != nil
		// Jitter keeps the processes of a fleet out of step.
		pause(ctx, period/2+rand.N(period/2+1))
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// listen turns the database's hints into wake-ups.
func (s *Service) listen(ctx context.Context, wake chan<- struct{}) {
	err := s.store.Listen(ctx, func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	if err != nil && ctx.Err() == nil {
		s.log.ErrorContext(ctx, "no hints of changes; reading each second alone", logging.Err, err)
	}
}

// read publishes what changed, at each hint and at least each second.
func (s *Service) read(ctx context.Context, wake <-chan struct{}) {
	var cursor time.Time
	seen := map[thing.ID]int64{} // revision published, of things changed within the overlap
	s.every(ctx, "read changes", 0, func(call context.Context) error {
		t := time.NewTimer(pollEvery)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-t.C:
		}
		return s.readOnce(call, &cursor, seen)
	})
}

// readOnce publishes what changed since *cursor and moves it on.
func (s *Service) readOnce(ctx context.Context, cursor *time.Time, seen map[thing.ID]int64) error {
	if !s.feed.watched() {
		*cursor = time.Time{} // nobody to tell: start over at the next watcher
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
		things, latest, err := s.store.Changed(ctx, from, readBatch)
		if err != nil {
			return err
		}
		for _, t := range things {
			if seen[t.ID] < t.Rev {
				seen[t.ID] = t.Rev
				s.feed.publish(t)
			}
		}
		if latest.After(*cursor) {
			*cursor = latest
		}
		if len(things) < readBatch || !latest.After(from) {
			break
		}
		from = latest
	}
	if len(seen) > 4*readBatch {
		clear(seen) // at worst some changes of the overlap are told twice
	}
	return nil
}
