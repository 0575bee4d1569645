package marker

import "math"

// Vec is a place or a direction before the camera: to the right, down and ahead, in metres.
type Vec [3]float64

// Lens is the camera's calibration in pixels (part of VEC-VIS-02).
type Lens struct{ FX, FY, CX, CY float64 }

// Pose says where the middle of a marker is, and which way it faces: Right and Up are along its edges, Out points away from what it is on.
type Pose struct{ At, Right, Up, Out Vec }

func (a Vec) by(f float64) Vec  { return Vec{a[0] * f, a[1] * f, a[2] * f} }
func (a Vec) minus(b Vec) Vec   { return Vec{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }
func (a Vec) dot(b Vec) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }
func (a Vec) norm() float64     { return math.Sqrt(a.dot(a)) }
func (a Vec) cross(b Vec) Vec {
	return Vec{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

// Pose returns where a marker is whose edge has so many metres (VEC-MRK-04); false: its corners are no picture of a square.
func (f *Found) Pose(l Lens, edge float64) (p Pose, ok bool) {
	h, ok := square(f.Corners)
	if !ok || !(l.FX > 0 && l.FY > 0 && edge > 0) {
		return p, false
	}
	// Columns of the homography without the lens, from the middle of the marker in metres.
	column := func(u, v, w float64) Vec {
		x := h[0][0]*u + h[0][1]*v + h[0][2]*w
		y := h[1][0]*u + h[1][1]*v + h[1][2]*w
		z := h[2][0]*u + h[2][1]*v + h[2][2]*w
		return Vec{(x - l.CX*z) / l.FX, (y - l.CY*z) / l.FY, z}
	}
	right, up, at := column(1/edge, 0, 0), column(0, 1/edge, 0), column(0.5, 0.5, 1)
	scale := 2 / (right.norm() + up.norm())
	if at[2] < 0 {
		scale = -scale
	}
	right, up, p.At = right.by(scale), up.by(scale), at.by(scale)
	p.Right = right.by(1 / right.norm())
	up = up.minus(p.Right.by(up.dot(p.Right)))
	if n := up.norm(); n < 0.3 || math.IsNaN(n) {
		return p, false
	}
	p.Up = up.by(1 / up.norm())
	p.Out = p.Right.cross(p.Up)
	return p, true
}
