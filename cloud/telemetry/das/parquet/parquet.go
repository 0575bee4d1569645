// Package parquet keeps events in the bucket for other programs to analyse, as a Parquet file for each hour in which events were received:
//
//	parquet/2006-01-02/15.parquet
//
// A file has what Postgres had of its hour (UTC), ten minutes after its end; an hour without events has none. Files are made from Postgres alone, so a file that is
// deleted is made again. Erasure relies on it: it deletes the files of the hours in which a person's robots sent anything, and they are made again without these
// events. Therefore no file may be kept for longer than events are.
package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math"
	"os"
	"sync"
	"time"

	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/dasfile"
	"kennel/infra/blob"
	"kennel/infra/thing"
)

// Root begins the keys of all files.
const Root = "parquet/"

const (
	layout  = Root + "2006-01-02/15.parquet"
	grace   = 10 * time.Minute // after the end of an hour, in which a commit of it may end
	endTime = 5 * time.Second  // before its end a run begins no further step
)

// Objects is the part of a blob.Store that the files need.
type Objects interface {
	Put(ctx context.Context, key string, body io.Reader, size int64, o blob.PutOptions) error
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error]
}

// Events is the storage that files are made from.
type Events interface {
	// Stream calls fn for records in the order in which they were received.
	Stream(ctx context.Context, f das.Filter, limit int, fn func(das.Record) error) error
	// Hours returns the beginnings of the hours of a stretch of which there are events.
	Hours(ctx context.Context, s thing.Stretch) ([]time.Time, error)
	// Locked runs fn while no other process is within Locked. held returns an error if the lock was lost.
	Locked(ctx context.Context, fn func(held func(context.Context) error) error) error
	// Erased returns the stretches of which nothing may be written any more.
	Erased(ctx context.Context) ([]thing.Stretch, error)
}

// Files is safe for concurrent use, by any number of processes.
type Files struct {
	objects Objects
	events  Events
	days    int // that a file is kept; 0: there are none
	log     *slog.Logger

	mu     sync.Mutex
	empty  map[string]bool // keys of hours without events
	failed map[string]bool // keys of hours whose last try failed
}

// New returns the files in a bucket, which are kept for some days; 0: none are made, and those that are there go.
func New(objects Objects, events Events, days int, log *slog.Logger) *Files {
	return &Files{objects: objects, events: events, days: days, log: log, empty: map[string]bool{}, failed: map[string]bool{}}
}

// Keep deletes files that are older than they may be and makes those that are missing, the latest first and those that failed before last, as far as its time
// allows. It is a periodic job. An hour that fails does not hold up the others.
func (f *Files) Keep(ctx context.Context, now time.Time) error {
	from, there := now.AddDate(0, 0, -f.days), map[string]bool{}
	for o, err := range f.objects.List(ctx, Root) {
		if err != nil {
			return err
		}
		at, err := time.Parse(layout, o.Key)
		if err != nil {
			continue // none of ours
		}
		if f.days > 0 && at.Add(time.Hour).After(from) {
			there[o.Key] = true
			continue
		}
		if err := f.objects.Delete(ctx, o.Key); err != nil {
			return err
		}
	}
	var missing, last []time.Time
	f.mu.Lock()
	for at := now.Add(-grace - time.Hour).UTC().Truncate(time.Hour); f.days > 0 && at.After(from); at = at.Add(-time.Hour) {
		switch key := at.Format(layout); {
		case there[key] || f.empty[key]:
		case f.failed[key]:
			last = append(last, at)
		default:
			missing = append(missing, at)
		}
	}
	f.mu.Unlock()
	var failed []error
	for _, at := range append(missing, last...) {
		if deadline, bounded := ctx.Deadline(); ctx.Err() != nil || bounded && time.Until(deadline) < endTime {
			break // the next run
		}
		key := at.Format(layout)
		err := f.write(ctx, at, key)
		if err != nil {
			failed = append(failed, fmt.Errorf("write %s: %w", key, err))
		}
		f.mu.Lock()
		if f.failed[key] = true; err == nil {
			delete(f.failed, key)
		}
		f.mu.Unlock()
	}
	return errors.Join(failed...)
}

// write makes the file of one hour. It is in the bucket whole or not at all.
func (f *Files) write(ctx context.Context, at time.Time, key string) error {
	file, err := os.CreateTemp("", "events-*.parquet")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // it is only temporary
	defer file.Close()
	return f.events.Locked(ctx, func(held func(context.Context) error) error {
		erased, err := f.events.Erased(ctx)
		if err != nil {
			return err
		}
		to, err := dasfile.New(dasfile.Parquet, file)
		if err != nil {
			return err
		}
		n := 0
		if err := f.events.Stream(ctx, das.Filter{Since: at, Until: at.Add(time.Hour)}, math.MaxInt32, func(r das.Record) error {
			for _, s := range erased {
				if s.Holds(r.Thing, r.Received) {
					return nil
				}
			}
			n++
			return to.Write(r)
		}); err != nil {
			return err
		}
		if n == 0 {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.empty[key] = true
			return nil
		}
		if err := to.Close(); err != nil {
			return err
		}
		size, err := file.Seek(0, io.SeekEnd)
		if err == nil {
			_, err = file.Seek(0, io.SeekStart)
		}
		if err == nil {
			err = held(ctx)
		}
		if err == nil {
			err = f.objects.Put(ctx, key, file, size, blob.PutOptions{ContentType: dasfile.Parquet.Media()})
		}
		if err == nil {
			f.log.InfoContext(ctx, "events exported", "key", key, "events", n, "bytes", size)
		}
		return err
	})
}

// Drop deletes the files that hold events of a stretch, and returns how many; they are made again without them. The stretch is to be noted as erased before, and its
// events to be deleted afterwards: they say which files these are.
func (f *Files) Drop(ctx context.Context, s thing.Stretch) (n int, err error) {
	times, err := f.events.Hours(ctx, s)
	if err != nil {
		return 0, err
	}
	err = f.events.Locked(ctx, func(func(context.Context) error) error { // no file is being written meanwhile
		there := map[string]bool{}
		for o, err := range f.objects.List(ctx, Root) {
			if err != nil {
				return err
			}
			there[o.Key] = true
		}
		for _, at := range times {
			if key := at.UTC().Format(layout); there[key] {
				if err := f.objects.Delete(ctx, key); err != nil {
					return err
				}
				n++
			}
		}
		return nil
	})
	return n, err
}
