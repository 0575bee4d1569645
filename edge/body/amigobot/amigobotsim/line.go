package amigobotsim

import (
	"math"
	"slices"
	"time"

	"kennel/edge/body/amigobot/flash"
)

// Faults are the faults of a robot and its link. The zero value has none.
type Faults struct {
	Loss        float64       // share of the packets that is lost, each way
	Delay       time.Duration // of the Control port, each way
	Range       float64       // m from the start, beyond which the radio link loses everything; 0: none (AMIGO-RF-18)
	Blocked     [2]bool       // a hand holds the left or the right wheel
	DeadEncoder [2]bool       // the left or the right encoder counts nothing
	Off         [2]bool       // the left or the right wheel has no grip, as one that came off: its axle turns and the floor gets nothing
}

// SetFaults sets the faults.
func (r *Robot) SetFaults(f Faults) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = f
}

// SetDrag loads the wheels: it takes this share of the full motor power, 0 to 1; a negative one pushes.
func (r *Robot) SetDrag(left, right float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drag = [2]float64{left, right}
}

// reach returns b, or nothing if the robot is out of radio range.
func (r *Robot) reach(b []byte) []byte {
	if r.faults.Range > 0 {
		at, from := r.world.State().Pose, r.world.Map().Start
		if x, y := at[0]-from[0], at[1]-from[1]; float64(x*x)+float64(y*y) > float64(r.faults.Range*r.faults.Range) {
			return nil
		}
	}
	return b
}

// delay is a line that takes time.
type delay []late

type late struct {
	due time.Duration
	b   []byte
}

// through puts b on the line and returns the bytes that leave it now.
func (d *delay) through(now, by time.Duration, b []byte) []byte {
	if by == 0 && len(*d) == 0 {
		return b
	}
	if len(b) > 0 {
		*d = append(*d, late{now + by, slices.Clone(b)})
	}
	var out []byte
	for len(*d) > 0 && (*d)[0].due <= now {
		out = append(out, (*d)[0].b...)
		*d = (*d)[1:]
	}
	return out
}

// transmit returns what leaves the Control port in this cycle, of b and earlier bytes: all, or with Config.Throttle as much as the line carries
// (AMIGO-LINK-08).
func (r *Robot) transmit(b []byte) []byte {
	b = r.reach(b)
	if !r.cfg.Throttle {
		return b
	}
	r.backlog = append(r.backlog, b...)
	r.credit = min(r.credit+r.bitsPerCycle(), 2*r.bitsPerCycle())
	n := min(r.credit/bitsPerByte, len(r.backlog))
	r.credit -= n * bitsPerByte
	out := r.backlog[:n]
	r.backlog = r.backlog[n:]
	return out
}

// room is how many more bytes the Control port carries until the next standard packet.
func (r *Robot) room() int {
	if !r.cfg.Throttle {
		return math.MaxInt
	}
	return r.bitsPerCycle()*r.cyclesPerReport()/bitsPerByte - len(r.backlog)
}

const bitsPerByte = 10 // with start and stop

// bitsPerCycle follows from HostBaud (AMIGO-LINK-02).
func (r *Robot) bitsPerCycle() int { return 96 << r.params.Int(flash.HostBaud) }
