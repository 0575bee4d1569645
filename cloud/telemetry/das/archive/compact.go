package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kennel/cloud/telemetry/das"
	"kennel/infra/thing"
)

// Report says what a run of Keep did.
type Report struct {
	Expired int // objects deleted for their age
	Joined  int // objects that were joined
	Made    int // parts that were written
}

// Keep deletes the objects whose hour ended before cutoff, and joins those of the hours that have ended, the oldest first. It is a periodic job:
// what one run does not finish within its time the next one does. It may run in several processes at once and be killed at any time. An hour that
// fails does not hold up the others.
func (a *Archive) Keep(ctx context.Context, now, cutoff time.Time) (r Report, err error) {
	places, err := a.list(ctx, Root)
	if err != nil {
		return r, err
	}
	var failed []error
	groups := map[time.Time][]place{} // of an hour, or of a former release's day, by its end
	for _, p := range places {
		switch {
		case !p.to().After(cutoff):
			if !enough(ctx) {
				return r, errors.Join(failed...)
			}
			if err := a.objects.Delete(ctx, p.key); err != nil {
				failed = append(failed, err)
				continue
			}
			r.Expired++
		case p.to().Add(grace).Before(now):
			groups[p.to()] = append(groups[p.to()], p)
		}
	}
	for _, end := range slices.SortedFunc(maps.Keys(groups), time.Time.Compare) {
		if !enough(ctx) {
			break
		}
		if err := a.join(ctx, groups[end], &r); err != nil {
			failed = append(failed, fmt.Errorf("merge raw objects of the hour into %s: %w", end.Format(time.RFC3339), err))
		}
	}
	return r, errors.Join(failed...)
}

// join joins the loose objects among places, some at a time, and parts of one hour and shard that are more than one.
func (a *Archive) join(ctx context.Context, places []place, r *Report) error {
	var loose []place
	small := map[hour]int{}
	for _, p := range places {
		switch {
		case p.shard < 0:
			loose = append(loose, p)
		case p.size < partBytes:
			small[hour{p.from, p.shard}]++
		}
	}
	for len(loose) > 0 && enough(ctx) {
		n, size := 0, int64(0)
		for ; n < len(loose) && (n == 0 || size+loose[n].size <= chunkBytes); n++ {
			size += loose[n].size
		}
		took, err := a.joinChunk(ctx, loose[:n], nil, r)
		if err != nil || took < n { // the next run
			return err
		}
		for h := range small { // the chunk joined them too, or the next run does
			small[h] = 0
		}
		loose = loose[n:]
	}
	var more []hour
	for h, n := range small {
		if n > 1 {
			more = append(more, h)
		}
	}
	if len(more) == 0 || !enough(ctx) {
		return nil
	}
	_, err := a.joinChunk(ctx, nil, more, r)
	return err
}

// joinChunk joins loose objects into parts, and the parts of the given hours with one another. It reads for a third of the time that ctx has left, so that the
// rest suffices to write and delete, and returns how many of the loose objects it took.
func (a *Archive) joinChunk(ctx context.Context, loose []place, more []hour, r *Report) (n int, err error) {
	err = a.ledger.Locked(ctx, func(held func(context.Context) error) error {
		erased, err := a.ledger.Erased(ctx)
		if err != nil {
			return err
		}
		batches := map[hour][]das.RawBatch{}
		for _, h := range more {
			batches[h] = nil
		}
		var (
			mu   sync.Mutex
			read []place
		)
		begun := left(ctx)
		reads, rctx := errgroup.WithContext(ctx)
		reads.SetLimit(atOnce)
		for ; n < len(loose) && (n == 0 || left(ctx) > begun/3*2) && rctx.Err() == nil; n++ {
			p := loose[n]
			reads.Go(func() error {
				in, ok, err := a.batches(rctx, p.key)
				if err != nil || !ok {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				for _, b := range in {
					batches[hourOf(b)] = append(batches[hourOf(b)], b)
				}
				read = append(read, p)
				return nil
			})
		}
		if err := reads.Wait(); err != nil {
			return err
		}
		for _, h := range slices.SortedFunc(maps.Keys(batches), func(x, y hour) int { return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.shard, y.shard)) }) {
			if err := a.joinShard(ctx, h, batches[h], erased, held, r); err != nil {
				return err
			}
		}
		deletes, dctx := errgroup.WithContext(ctx) // every batch of theirs is in a part now
		deletes.SetLimit(atOnce)
		for _, p := range read {
			deletes.Go(func() error { return a.objects.Delete(dctx, p.key) })
		}
		if err := deletes.Wait(); err != nil {
			return err
		}
		r.Joined += len(read)
		return nil
	})
	return n, err
}

// joinShard writes one part with batches and with what the shard's small parts of the hour hold, and deletes these.
func (a *Archive) joinShard(ctx context.Context, h hour, batches []das.RawBatch, erased []thing.Stretch, held func(context.Context) error, r *Report) error {
	parts, err := a.list(ctx, h.prefix())
	if err != nil {
		return err
	}
	seen, body := set{}, []byte(nil)
	keep := func(list []das.RawBatch) {
		for _, b := range list {
			if slices.ContainsFunc(erased, func(s thing.Stretch) bool { return s.Holds(b.Thing, b.Received) }) {
				continue
			}
			if line, fresh := seen.add(b); fresh {
				body = append(body, line...)
			}
		}
	}
	var old []place
	for _, p := range parts {
		if p.size >= partBytes || len(body) >= partBytes { // the rest is for another part
			continue
		}
		in, ok, err := a.batches(ctx, p.key)
		if err != nil {
			return err
		}
		if ok {
			keep(in)
			old = append(old, p)
		}
	}
	slices.SortFunc(batches, func(x, y das.RawBatch) int {
		return cmp.Or(x.Received.Compare(y.Received), strings.Compare(string(x.Thing), string(y.Thing)))
	})
	keep(batches)
	key := h.key(body)
	if len(body) > 0 {
		if err := held(ctx); err != nil {
			return err
		}
		if err := a.Put(ctx, key, body); err != nil {
			return err
		}
		r.Made++
	}
	for _, p := range old {
		if p.key == key {
			continue
		}
		if err := a.objects.Delete(ctx, p.key); err != nil {
			return err
		}
		r.Joined++
	}
	return nil
}
