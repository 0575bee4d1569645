package motion

import "math"

// Pose is a place on the floor and the direction of the front: m, m, rad. X forward, Y left, counter-clockwise positive.
type Pose struct{ X, Y, Theta float64 }

// wrap brings an angle to -pi to pi.
func wrap(a float64) float64 { return math.Remainder(a, 2*math.Pi) }

// Twist is a movement of the body: m/s forward, rad/s to the left.
type Twist struct{ V, W float64 }

// Drive is the geometry of two treads (VEC-MOT-10).
type Drive struct {
	Radius float64 // m, from the axle to the tread's outside
	Track  float64 // m, between the middles of the treads
}

// Treads returns the speeds of the treads in m/s that make the body move as t says (VEC-MCT-12): equal for straight, equal and opposite for a
// turn, w(r -/+ width/2) for an arc.
func (d Drive) Treads(t Twist) (left, right float64) {
	return t.V - t.W*d.Track/2, t.V + t.W*d.Track/2
}

// Twist is the way back: what the body does when the treads run so.
func (d Drive) Twist(left, right float64) Twist {
	return Twist{(left + right) / 2, (right - left) / d.Track}
}

// Arc returns the speeds of the treads on an arc of that radius (positive: its centre is on the left) at w rad/s.
func (d Drive) Arc(w, radius float64) (left, right float64) {
	return w * (radius - d.Track/2), w * (radius + d.Track/2)
}

// advance moves a pose along an arc of that length and turn.
func (p Pose) advance(length, turn float64) Pose {
	chord := length
	if h := turn / 2; math.Abs(h) > 1e-6 {
		chord = length * math.Sin(h) / h
	}
	sin, cos := math.Sincos(p.Theta + turn/2)
	return Pose{p.X + chord*cos, p.Y + chord*sin, wrap(p.Theta + turn)}
}
