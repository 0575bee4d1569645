package voice

import (
	"context"
	"slices"
	"sync"
	"time"

	"kennel/edge/body/monoclock"
)

// kept is how many events a program that looks late still gets; own default.
const kept = 256

// feed keeps the newest events for the programs on the robot. Safe for concurrent use.
type feed struct {
	mu   sync.Mutex
	all  []Event
	last uint64
	more chan struct{} // closed by the next event
}

func newFeed() *feed { return &feed{more: make(chan struct{})} }

// tell gives e its number and its time.
func (f *feed) tell(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	e.Seq, e.At, e.MonoUS = f.last, time.Now().UTC(), monoclock.Now().Microseconds()
	if len(f.all) == kept {
		f.all = slices.Delete(f.all, 0, 1)
	}
	f.all = append(f.all, e)
	close(f.more)
	f.more = make(chan struct{})
}

// since returns the events after seq, and waits for one until ctx ends. last is the number of the newest event there is.
func (f *feed) since(ctx context.Context, seq uint64) (out []Event, last uint64) {
	for {
		f.mu.Lock()
		for _, e := range f.all {
			if e.Seq > seq {
				out = append(out, e)
			}
		}
		more := f.more
		last = f.last
		f.mu.Unlock()
		if len(out) > 0 || seq > last { // else it looks for events of an agentd that has ended
			return out, last
		}
		select {
		case <-ctx.Done():
			return nil, last
		case <-more:
		}
	}
}
