package statics

import (
	"math"
	"slices"
)

// Own defaults.
const (
	near      = 0.0004              // m: a point that close to the floor touches it
	Tip       = 15 * math.Pi / 180  // rad: a body that turns by more than this while its joints hardly move has tipped
	most      = 64                  // turns over an edge until it lies: a body of 18 points needs a few
	balanced  = 1e-7                // m: a centre of mass so near to the edge is above it
	lowAt     = 0.030               // m: a belly nearer to the floor lies on it
	sittingAt = 20 * math.Pi / 180  // rad, the nose above the tail
	sideAt    = 50 * math.Pi / 180  // rad between the body's up and the world's: it lies on a side
	backAt    = 130 * math.Pi / 180 // rad, likewise on its back
)

// Upright is the direction up in the frame of a body whose trunk is level.
var Upright = Vec{0, 0, 1}

// Way is the side to which a body tips.
type Way int

// The ways.
const (
	Nowhere Way = iota
	Front
	Back
	Left
	Right
)

// String returns "front".
func (w Way) String() string { return [...]string{"nowhere", "front", "back", "left", "right"}[w] }

// Attitude is how a body rests.
type Attitude int

// The attitudes. Standing: only paws touch, and the trunk is nearly level and off the floor; Sitting: the nose is higher than the tail; Lying: all else while
// the back is up.
const (
	Lying Attitude = iota
	Standing
	Sitting
	OnSide
	OnBack
)

// String returns "standing".
func (a Attitude) String() string {
	return [...]string{"lying", "standing", "sitting", "on its side", "on its back"}[a]
}

// Stance is how a body rests on the floor.
type Stance struct {
	Up       Vec      // the world's up in the body's frame
	Touching uint32   // a bit for each point
	Margin   float64  // m from the centre of mass, seen from above, to the nearest edge of what carries the body
	Height   float64  // m of the origin above the floor
	Turned   float64  // rad that the body turned to get there
	Toward   Way      // the side to which it first turned
	Attitude Attitude // how it rests
}

// Tipped reports whether it fell rather than followed its joints.
func (s Stance) Tipped() bool { return s.Turned > Tip }

// Paws returns which paws touch: bit 0 front left, then front right, back left, back right.
func (s Stance) Paws() uint8 { return uint8(s.Touching & 15) }

// Pitch returns by how much the body looks down, rad.
func (s Stance) Pitch() float64 { return math.Asin(max(-1, min(1, -s.Up[0]))) }

// Roll returns by how much it leans to its right, rad, from -π to π.
func (s Stance) Roll() float64 { return math.Atan2(s.Up[1], s.Up[2]) }

// Settle puts the body on the floor with a direction up and lets it go: it turns over whatever edge its weight is beyond, until it rests.
func (f *Figure) Settle(up Vec) (s Stance) {
	begin := up.unit()
	s.Up = begin
	for range most {
		floor := f.touch(&s)
		nearest, inside := f.carry(&s)
		if inside || nearest.length() < balanced {
			break
		}
		if s.Toward == Nowhere {
			s.Toward = way(nearest.times(-1))
		}
		if !f.turn(&s, nearest, floor) {
			break
		}
	}
	s.Turned = begin.angle(s.Up)
	s.Attitude = f.attitude(&s)
	return s
}

// touch notes the points on the floor, and returns its height along up.
func (f *Figure) touch(s *Stance) float64 {
	floor := math.Inf(1)
	for _, p := range f.At {
		floor = min(floor, p.dot(s.Up))
	}
	s.Touching, s.Height = 0, -floor
	for i, p := range f.At {
		if p.dot(s.Up)-floor <= near {
			s.Touching |= 1 << i
		}
	}
	return floor
}

// carry returns the way along the floor from the point below the centre of mass to the nearest point of what carries the body, and whether that is around it.
func (f *Figure) carry(s *Stance) (nearest Vec, inside bool) {
	// Two directions along the floor.
	e := Vec{1, 0, 0}
	if math.Abs(s.Up[0]) > 0.9 {
		e = Vec{0, 1, 0}
	}
	e1 := e.minus(s.Up.times(e.dot(s.Up))).unit()
	e2 := s.Up.cross(e1)
	var flat [Points][2]float64
	n := 0
	for i, p := range f.At {
		if s.Touching>>i&1 != 0 {
			d := p.minus(f.Centre)
			flat[n] = [2]float64{d.dot(e1), d.dot(e2)}
			n++
		}
	}
	var ring [2 * Points][2]float64
	corners := hull(flat[:n], ring[:0])
	best, inside := math.Inf(1), len(corners) >= 3
	var at [2]float64
	for i, a := range corners {
		b := corners[(i+1)%len(corners)]
		dx, dy := b[0]-a[0], b[1]-a[1]
		if dx*-a[1]-dy*-a[0] < 0 { // the origin is to the right of an edge that goes counter-clockwise
			inside = false
		}
		t := 0.0
		if l := dx*dx + dy*dy; l > 0 {
			t = min(1, max(0, -(a[0]*dx+a[1]*dy)/l))
		}
		p := [2]float64{a[0] + t*dx, a[1] + t*dy}
		if d := math.Hypot(p[0], p[1]); d < best {
			best, at = d, p
		}
	}
	s.Margin = best
	if !inside {
		s.Margin = -best
	}
	return e1.times(at[0]).plus(e2.times(at[1])), inside
}

// hull returns the corners of points counter-clockwise, in the room of ring, which holds twice as many; points is sorted.
func hull(points, ring [][2]float64) [][2]float64 {
	slices.SortFunc(points, func(a, b [2]float64) int {
		switch {
		case a[0] < b[0] || a[0] == b[0] && a[1] < b[1]:
			return -1
		case a == b:
			return 0
		}
		return 1
	})
	if len(points) < 3 {
		return append(ring, points...)
	}
	left := func(a, b, c [2]float64) bool { return (b[0]-a[0])*(c[1]-a[1])-(b[1]-a[1])*(c[0]-a[0]) > 1e-12 }
	half := func(floor int, p [2]float64) {
		for len(ring) >= floor+2 && !left(ring[len(ring)-2], ring[len(ring)-1], p) {
			ring = ring[:len(ring)-1]
		}
		ring = append(ring, p)
	}
	for _, p := range points {
		half(0, p)
	}
	floor := len(ring) - 1
	for _, p := range slices.Backward(points[:len(points)-1]) {
		half(floor, p)
	}
	return ring[:len(ring)-1] // the last corner is the first
}

// turn turns the body over the nearest point of what carries it, until another point touches the floor. It returns false if none can.
func (f *Figure) turn(s *Stance, nearest Vec, floor float64) bool {
	down := nearest.times(-1).unit() // where the weight pulls, along the floor
	// The pivot: below the centre, then along the floor.
	pivot := f.Centre.minus(s.Up.times(f.Centre.dot(s.Up) - floor)).plus(nearest)
	least := math.Inf(1)
	for i, p := range f.At {
		r := p.minus(pivot)
		ahead, high := r.dot(down), r.dot(s.Up)
		if s.Touching>>i&1 != 0 && ahead <= near {
			continue // it is on the edge, or lifts off
		}
		by := math.Atan2(max(high, 0), ahead)
		least = min(least, by)
	}
	if least < 1e-9 {
		least = 1e-6 // a point that touches beyond the edge by less than the tolerance
	}
	if least >= math.Pi {
		return false
	}
	// The body turns forward over the pivot, so in its frame up turns the other way.
	axis := s.Up.cross(down)
	s.Up = s.Up.turned(axis, -least).unit()
	return true
}

// way returns the side of the body that a direction points to.
func way(d Vec) Way {
	switch {
	case math.Abs(d[0]) >= math.Abs(d[1]) && d[0] > 0:
		return Front
	case math.Abs(d[0]) >= math.Abs(d[1]):
		return Back
	case d[1] > 0:
		return Left
	}
	return Right
}

func (f *Figure) attitude(s *Stance) Attitude {
	tilt := Upright.angle(s.Up)
	switch {
	case tilt > backAt:
		return OnBack
	case tilt > sideAt && math.Abs(s.Up[1]) > math.Abs(s.Up[0]):
		return OnSide
	case -s.Pitch() > sittingAt:
		return Sitting
	case s.Touching>>knee == 0 && tilt <= sittingAt && f.clearance(s) > lowAt:
		return Standing
	}
	return Lying
}

// clearance returns how far the belly is above the floor.
func (f *Figure) clearance(s *Stance) float64 {
	low := math.Inf(1)
	for _, p := range f.At[trunk : trunk+4] {
		low = min(low, p.dot(s.Up)+s.Height)
	}
	return low
}

// Efforts fills in what the floor asks of the joints of the legs while the body rests as s says, in N·m with the sign of their angle; out has an element for
// each joint of aibo.Joints. Only paws that touch pass a force to their leg; knees and the trunk carry their share without a joint's help.
func (b *Body) Efforts(f *Figure, s *Stance, out []float64) {
	clear(out)
	force := f.forces(s)
	for l, hinges := range b.legs {
		if force[Paw+l] == 0 {
			continue
		}
		push := s.Up.times(force[Paw+l])
		for i, h := range hinges {
			// The joint works against what the floor does.
			out[h.joint] = -f.axes[l][i].dot(f.At[Paw+l].minus(f.hips[l][i]).cross(push))
		}
	}
}

// forces shares the weight among the points that touch: the most even way that keeps the body in balance.
func (f *Figure) forces(s *Stance) (force [Points]float64) {
	e := Vec{1, 0, 0}
	if math.Abs(s.Up[0]) > 0.9 {
		e = Vec{0, 1, 0}
	}
	e1 := e.minus(s.Up.times(e.dot(s.Up))).unit()
	e2 := s.Up.cross(e1)
	// A force of a + b·x + c·y at each point: three sums, for the weight and for both moments.
	var n, x, y, xx, xy, yy float64
	for i, p := range f.At {
		if s.Touching>>i&1 != 0 {
			d := p.minus(f.Centre)
			u, v := d.dot(e1), d.dot(e2)
			n, x, y, xx, xy, yy = n+1, x+u, y+v, xx+u*u, xy+u*v, yy+v*v
		}
	}
	const soft = 1e-9 // keeps the sums solvable for points in a line
	xx, yy = xx+soft, yy+soft
	det := n*(xx*yy-xy*xy) - x*(x*yy-xy*y) + y*(x*xy-xx*y)
	if n == 0 || det == 0 {
		return force
	}
	a, b, c := (xx*yy-xy*xy)/det*f.Weight, (y*xy-x*yy)/det*f.Weight, (x*xy-y*xx)/det*f.Weight
	sum := 0.0
	for i, p := range f.At {
		if s.Touching>>i&1 != 0 {
			d := p.minus(f.Centre)
			force[i] = max(0, a+b*d.dot(e1)+c*d.dot(e2))
			sum += force[i]
		}
	}
	if sum > 0 {
		for i := range force {
			force[i] *= f.Weight / sum
		}
	}
	return force
}
