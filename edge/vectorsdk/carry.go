package vectorsdk

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kennel/edge/core/corelink"
)

// The lift's hooks; own defaults.
const (
	hookFree   = 0.036 // m, of the lift: below it its hooks are in the holes of a cube on the floor
	steadyLift = 0.001 // m between two measurements, below which the lift does not move
	elsewhere  = 0.02  // m in height between a cube on the lift and one that was seen, which is another place
	offLift    = 0.05  // m ahead of where a cube on the lift is, likewise
)

// fallen are the postures in which nothing stays on the lift.
var fallen = []string{"OnBack", "OnFace", "OnLeftSide", "OnRightSide", "Falling"}

// carry knows which object the robot has on its lift: it was docked with, and the lift went up since. It follows the height of the lift, and ends when the lift is down, the object is
// seen somewhere else, or the robot is tipped over.
type carry struct {
	mu     sync.Mutex
	hooked int32  // the object in whose hole the hooks are; 0: none
	close  func() // of the feed, while one of the two is set

	height float64       // of the lift, m
	moved  time.Duration // when that changed last, CLOCK_MONOTONIC

	id   atomic.Int32 // of the object on the lift; 0: none
	busy atomic.Int32 // actions that dock with an object, lift it or put it down
}

// hook says that the hooks are in an object's hole, before the lift goes up. The measurements of the lift are then followed until drop.
func (x *carry) hook(id int32, open func() (<-chan struct{}, func())) {
	_, closed := open()
	x.mu.Lock()
	x.hooked, x.close = id, closed
	x.mu.Unlock()
}

// settle ends what hook began, with the lift at a height: it carries the object, or does not.
func (x *carry) settle(height float64) {
	if x.rise(height); x.id.Load() == 0 {
		x.drop()
	}
}

// rise takes in a height of the lift.
func (x *carry) rise(height float64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case height <= hookFree && x.id.Load() != 0:
		x.leave()
	case height > hookFree && x.hooked != 0:
		x.id.Store(x.hooked)
		x.hooked = 0
	}
}

// drop says that nothing is on the lift.
func (x *carry) drop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.leave()
}

// leave is drop with x.mu held.
func (x *carry) leave() {
	if x.close != nil {
		x.close()
	}
	x.hooked, x.close = 0, nil
	x.id.Store(0)
}

// feel takes in a measurement.
func (x *carry) feel(m *measured, now *corelink.Motion) {
	if m.known[liftPosition] {
		height := m.values[liftPosition]
		x.mu.Lock()
		if math.Abs(height-x.height) > steadyLift {
			x.height, x.moved = height, m.at
		}
		x.mu.Unlock()
		x.rise(height)
	}
	if now != nil && x.id.Load() != 0 && slices.Contains(fallen, now.Posture) {
		x.drop()
	}
}

// saw takes in where an object was seen, by a robot at now whose lift rested: one that is not where the lift has it has fallen from it, or was never on it.
func (x *carry) saw(o *object, now *corelink.Motion) {
	x.mu.Lock()
	height, rested := x.height, o.at > x.moved+mostLate
	x.mu.Unlock()
	if o.id != x.id.Load() || !rested {
		return
	}
	raised := cubeEdge/2 + height - hookFree
	if math.Abs(o.z-raised) > elsewhere || math.Hypot(o.x-now.X, o.y-now.Y) > docked+offLift {
		x.drop()
	}
}
