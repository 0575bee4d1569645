package das

import (
	"context"
	"sync"
	"time"

	"kennel/infra/thing"
)

// Codes of pauses of one robot, which keeps its events meanwhile.
const (
	CodeQuota = "event_quota" // it has sent its bytes of today
	CodeShare = "event_share" // too many of its batches wait already
)

// Usage counts the bytes of inflated events that robots sent today (UTC), for all processes.
type Usage interface {
	// Add adds to some robots' day and returns what each has sent today.
	Add(ctx context.Context, sent map[thing.ID]int64) (today map[thing.ID]int64, err error)
}

// robots holds each robot to its share of the queue and to its day. Safe for concurrent use.
type robots struct {
	share int64 // wire bytes

	mu      sync.Mutex
	waiting map[thing.ID]int64     // wire bytes in the queue
	day     time.Time              // of over
	over    map[thing.ID]bool      // have sent what they may on that day
	told    map[thing.ID]time.Time // whose pause was told, and when
}

func newRobots(share int64) *robots {
	return &robots{share: share, waiting: map[thing.ID]int64{}, over: map[thing.ID]bool{}, told: map[thing.ID]time.Time{}}
}

// enter takes a place for a batch; false: the robot's share is taken.
func (r *robots) enter(id thing.ID, size int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if has := r.waiting[id]; has > 0 && has+size > r.share {
		return false
	}
	r.waiting[id] += size
	return true
}

func (r *robots) leave(id thing.ID, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[id] -= size; r.waiting[id] <= 0 {
		delete(r.waiting, id)
	}
}

// spend notes that a robot has sent what it may today.
func (r *robots) spend(id thing.ID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.today(now)[id] = true
}

func (r *robots) spent(id thing.ID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.today(now)[id]
}

func (r *robots) today(now time.Time) map[thing.ID]bool {
	if day := now.UTC().Truncate(24 * time.Hour); day != r.day {
		r.day = day
		clear(r.over)
	}
	return r.over
}

// tellEvery is the least time between two words about one robot.
const tellEvery = time.Hour

// tell reports whether it is time to say that a robot waits.
func (r *robots) tell(id thing.ID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.told[id]) < tellEvery {
		return false
	}
	for old, at := range r.told { // few robots are told to wait
		if now.Sub(at) >= tellEvery {
			delete(r.told, old)
		}
	}
	r.told[id] = now
	return true
}

// maxQuotaPause bounds a pause until tomorrow, so that a robot whose clock or whose cloud was wrong is not silent for a day.
const maxQuotaPause = time.Hour

func untilTomorrow(now time.Time) time.Duration {
	return min(maxQuotaPause, now.UTC().Truncate(24*time.Hour).Add(24*time.Hour).Sub(now))
}
