package pleosim

import (
	"sync"

	"kennel/edge/body/pleo/lifeos"
)

// maxHeard bounds the signals that wait for a Robot's next Step; later ones are lost.
const maxHeard = 64

// Air is a room in which Pleos receive what the others send over infra-red. The zero value is an empty one. Safe for concurrent use.
type Air struct {
	mu     sync.Mutex
	robots []*Robot
}

// Join brings a Pleo into the room. It stays there.
func (a *Air) Join(r *Robot) {
	a.mu.Lock()
	a.robots = append(a.robots, r)
	a.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.air = a
}

// carry gives a signal to all others. Each takes it in its next Step, so that two Pleos never wait for each other.
func (a *Air) carry(from *Robot, s lifeos.Signal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.robots {
		if r == from {
			continue
		}
		r.heardMu.Lock()
		if len(r.heard) < maxHeard {
			r.heard = append(r.heard, s)
		}
		r.heardMu.Unlock()
	}
}

// hear gives LifeOS what has arrived.
func (r *Robot) hear() {
	r.heardMu.Lock()
	heard := r.heard
	r.heard = nil
	r.heardMu.Unlock()
	for _, s := range heard {
		r.os.Receive(s)
	}
}
