package vectorsdk

import (
	"sync"

	"kennel/infra/api/vectorpb"
)

// maxMoments is how many things that happened a stream may be behind with; it misses older ones. Own default.
const maxMoments = 64

// moments are the newest things that happened in the agent, for all event streams. None of them waits for a stream.
type moments struct {
	mu   sync.Mutex
	n    uint64 // that happened
	last [maxMoments]*vectorpb.Event
}

// add tells all streams of something that happened. It does not block.
func (x *moments) add(e *vectorpb.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last[x.n%maxMoments] = e
	x.n++
}

// now is the place of a stream that hears nothing of the past.
func (x *moments) now() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.n
}

// since returns what happened after a place, oldest first, and the place after it.
func (x *moments) since(at uint64) (happened []*vectorpb.Event, now uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.n-at > maxMoments {
		at = x.n - maxMoments
	}
	for ; at < x.n; at++ {
		happened = append(happened, x.last[at%maxMoments])
	}
	return happened, x.n
}
