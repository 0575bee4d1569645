package camera

import (
	"math"

	"kennel/edge/marker"
	"kennel/edge/sim/plane"
)

// Lens is the projection of a camera for one size of picture, in pixels: matrix [[FX,0,CX],[0,FY,CY],[0,0,1]] (part of VEC-VIS-02).
type Lens struct {
	Width, Height  int
	FX, FY, CX, CY float64
}

// Of returns the lens of a picture of w by h pixels with the fields of view of xfov and yfov radians: fov = 2 atan(size / 2f) (part of VEC-VIS-02).
func Of(w, h int, xfov, yfov float64) Lens {
	x, y := float64(w)/2, float64(h)/2
	return Lens{w, h, x / math.Tan(xfov/2), y / math.Tan(yfov/2), x, y}
}

// vec is a point or a direction in space, in metres.
type vec [3]float64

func (a vec) plus(b vec) vec    { return vec{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }
func (a vec) minus(b vec) vec   { return vec{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }
func (a vec) by(f float64) vec  { return vec{a[0] * f, a[1] * f, a[2] * f} }
func (a vec) dot(b vec) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }
func (a vec) norm() float64     { return math.Sqrt(a.dot(a)) }
func (a vec) unit() vec         { return a.by(1 / a.norm()) }
func (a vec) cross(b vec) vec {
	return vec{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

// View is where a camera is, in metres, and the directions of its axes in the world: ahead, to the left and up.
type View struct {
	At              [3]float64
	Ahead, Left, Up [3]float64
}

// turned are the axes of what is turned by yaw, then by pitch (nose down) and roll (left side up), in radians.
func turned(yaw, pitch, roll float64) (x, y, z vec) {
	sy, cy := math.Sincos(yaw)
	sp, cp := math.Sincos(pitch)
	sr, cr := math.Sincos(roll)
	x = vec{cy * cp, sy * cp, -sp}
	left, up := vec{-sy, cy, 0}, vec{cy * sp, sy * sp, cp}
	return x, left.by(cr).plus(up.by(sr)), up.by(cr).minus(left.by(sr))
}

// Mount is where a camera is in a head, and the head on a body, in metres ahead and up. Down is how far it looks below the head's front, in radians.
type Mount struct {
	Neck, Eye [2]float64
	Down      float64
}

// View returns where the camera of a body looks, with its head raised by so many radians (VEC-VIS-03).
func (m Mount) View(s *plane.State, head float64) View {
	x, y, z := turned(s.Pose[2], s.Pitch, s.Roll)
	at := vec{s.Pose[0], s.Pose[1], s.Height}.plus(x.by(m.Neck[0])).plus(z.by(m.Neck[1]))
	sin, cos := math.Sincos(head)
	hx, hz := x.by(cos).plus(z.by(sin)), z.by(cos).minus(x.by(sin))
	at = at.plus(hx.by(m.Eye[0])).plus(hz.by(m.Eye[1]))
	sin, cos = math.Sincos(m.Down)
	return View{At: at, Ahead: hx.by(cos).minus(hz.by(sin)), Left: y, Up: hz.by(cos).plus(hx.by(sin))}
}

// face is a convex part of a plane: the points from+a*u+b*v for the corners (a, b). Without corners it is all of the plane.
type face struct {
	from, u, v vec
	corners    [][2]float64
	look       look

	// In the picture: row i of inv times (x, y, 1) is a/w, b/w and 1/w for the distance w along the axis of the lens.
	inv         [3][3]float64
	outline     [][2]float64 // pixels
	top, bottom float64      // of the outline
}

// Distances in metres along the axis: nothing is seen nearer, and the floor ends in haze.
const (
	nearest  = 0.005
	farthest = 12
)

// place computes where f is in the picture; false: nowhere.
func (f *face) place(v *View, l *Lens) bool {
	project := func(p vec) vec {
		depth := p.dot(v.Ahead)
		return vec{l.CX*depth - l.FX*p.dot(v.Left), l.CY*depth - l.FY*p.dot(v.Up), depth}
	}
	o, u, w := project(f.from.minus(v.At)), project(f.u), project(f.v)
	n := u.cross(w)
	det := n.dot(o)
	if math.Abs(det) < 1e-9 {
		return false // seen from its edge
	}
	f.inv = [3][3]float64{w.cross(o).by(1 / det), o.cross(u).by(1 / det), n.by(1 / det)}
	if f.corners == nil {
		return true
	}
	f.outline = f.outline[:0]
	add := func(p vec) { f.outline = append(f.outline, [2]float64{p[0] / p[2], p[1] / p[2]}) }
	before := vec{}
	for i := range len(f.corners) + 1 {
		c := f.corners[i%len(f.corners)]
		p := o.plus(u.by(c[0])).plus(w.by(c[1]))
		if i > 0 && (p[2] < nearest) != (before[2] < nearest) { // it passes the lens
			add(before.plus(p.minus(before).by((nearest - before[2]) / (p[2] - before[2]))))
		}
		if before = p; i < len(f.corners) && p[2] >= nearest {
			add(p)
		}
	}
	if len(f.outline) < 3 {
		return false
	}
	f.top, f.bottom = math.Inf(1), math.Inf(-1)
	left, right := math.Inf(1), math.Inf(-1)
	for _, p := range f.outline {
		f.top, f.bottom = min(f.top, p[1]), max(f.bottom, p[1])
		left, right = min(left, p[0]), max(right, p[0])
	}
	return f.bottom > 0 && f.top < float64(l.Height) && right > 0 && left < float64(l.Width)
}

// span returns which pixels of a row are in f; none if to <= from.
func (f *face) span(y, width int) (from, to int) {
	row := float64(y) + 0.5
	a, b := math.Inf(1), math.Inf(-1)
	for i, p := range f.outline {
		q := f.outline[(i+1)%len(f.outline)]
		if (p[1] <= row) == (q[1] <= row) {
			continue
		}
		x := p[0] + (q[0]-p[0])*(row-p[1])/(q[1]-p[1])
		a, b = min(a, x), max(b, x)
	}
	if b <= a {
		return 0, 0
	}
	return int(math.Ceil(min(max(a, 0), float64(width)) - 0.5)), int(math.Ceil(min(max(b, 0), float64(width)) - 0.5))
}

// rectangle returns the corners of a by b metres, from the origin of a face.
func rectangle(a, b float64) [][2]float64 { return [][2]float64{{0, 0}, {a, 0}, {a, b}, {0, b}} }

// upright returns the face over the line from p to q, between two heights.
func upright(p, q plane.Vec, low, high float64, l look) face {
	d := vec{q[0] - p[0], q[1] - p[1], 0}
	n := d.norm()
	l.wide, l.high = n, high-low
	l.shade = slope(vec{d[1], -d[0], 0}.unit())
	return face{from: vec{p[0], p[1], low}, u: d.unit(), v: vec{0, 0, 1}, corners: rectangle(n, high-low), look: l}
}

// lamp is the direction of the light, from a window at the left behind the map.
var lamp = vec{-0.48, 0.6, 0.64}

// slope is how much light a surface gets by where it faces.
func slope(n vec) float32 { return float32(0.7 + 0.3*math.Abs(n.dot(lamp))) }

// lid returns the level face at a height, with corners in the world.
func lid(at float64, corners []plane.Vec, l look) face {
	f := face{from: vec{0, 0, at}, u: vec{1, 0, 0}, v: vec{0, 1, 0}, look: l}
	f.look.shade = slope(vec{0, 0, 1})
	for _, c := range corners {
		f.corners = append(f.corners, [2]float64{c[0], c[1]})
	}
	return f
}

// prism adds the sides of a thing between two heights, and its top; if it is not on the floor its bottom too. All sides of a box are alike.
func prism(all []face, corners []plane.Vec, low, height float64, l look) []face {
	for i, p := range corners {
		all = append(all, upright(p, corners[(i+1)%len(corners)], low, height, l))
	}
	if low > 0 {
		all = append(all, lid(low, corners, look{albedo: l.albedo, tint: l.tint}))
	}
	if len(corners) != 4 {
		return append(all, lid(height, corners, l))
	}
	p, ahead, aside := corners[2], corners[3], corners[1]
	du, dv := vec{ahead[0] - p[0], ahead[1] - p[1], 0}, vec{aside[0] - p[0], aside[1] - p[1], 0}
	l.wide, l.high, l.shade = du.norm(), dv.norm(), slope(vec{0, 0, 1})
	return append(all, face{from: vec{p[0], p[1], height}, u: du.unit(), v: dv.unit(), corners: rectangle(l.wide, l.high), look: l})
}

// sides is how many a round thing is drawn with.
const sides = 16

// still returns the faces that never move: walls, lines, the charger.
func still(m *plane.Map, width float64) (all []face) {
	for _, w := range m.Walls {
		all = append(all, upright(w.From, w.To, 0, w.Tall(), look{kind: panels, albedo: 0.72}))
	}
	for i := range m.Lines {
		l := &m.Lines[i]
		dx, dy := l.To[0]-l.From[0], l.To[1]-l.From[1]
		n := math.Hypot(dx, dy)
		ax, ay := dx/n*l.Wide()/2, dy/n*l.Wide()/2
		at := 1e-4 + 1e-5*float64(i)/float64(len(m.Lines)) // the later one is seen
		all = append(all, lid(at, []plane.Vec{{l.From[0] - ax + ay, l.From[1] - ay - ax}, {l.To[0] + ax + ay, l.To[1] + ay - ax},
			{l.To[0] + ax - ay, l.To[1] + ay + ax}, {l.From[0] - ax - ay, l.From[1] - ay + ax}}, look{albedo: floorAlbedo * l.Bright()}))
	}
	if c := m.Charger; c != nil {
		s := plane.ChargerShape(width)
		at := func(x, y float64) plane.Vec { return c.At.At(plane.Vec{x, y}) }
		dark := look{albedo: 0.12}
		all = append(all,
			upright(at(0, s.Half), at(0, -s.Half), 0, s.Back, look{kind: marked, albedo: 0.12, marker: marker.Named(marker.Charger)}),
			upright(at(0, -s.Half), at(s.Rail, -s.Half), 0, s.RailHeight, dark),
			upright(at(0, s.Half), at(s.Rail, s.Half), 0, s.RailHeight, dark),
			lid(2e-4, []plane.Vec{at(0, -s.Half), at(s.Rail, -s.Half), at(s.Rail, s.Half), at(0, s.Half)}, look{albedo: 0.2}))
	}
	return all
}

// moved returns the faces of things and people.
func moved(all []face, m *plane.Map, s *plane.State, v *View) []face {
	for i := range m.Objects {
		if s.Gone[i] {
			continue
		}
		o := &m.Objects[i]
		at, l := s.Objects[i], lookOf(o)
		var corners []plane.Vec
		if o.Shape == "disc" {
			for k := range sides {
				sin, cos := math.Sincos(2 * math.Pi * float64(k) / sides)
				corners = append(corners, at.At(plane.Vec{o.Radius * cos, o.Radius * sin}))
			}
		} else {
			x, y := o.Size[0]/2, o.Size[1]/2
			corners = []plane.Vec{at.At(plane.Vec{x, y}), at.At(plane.Vec{-x, y}), at.At(plane.Vec{-x, -y}), at.At(plane.Vec{x, -y})}
		}
		all = prism(all, corners, s.Raised[i], s.Raised[i]+o.Tall(), l)
	}
	for i := range m.People {
		p := &m.People[i]
		to := vec{p.At[0] - v.At[0], p.At[1] - v.At[1], 0}
		if to.norm() < 0.05 {
			continue // around the camera
		}
		aside := vec{to[1], -to[0], 0}.unit()
		wide := p.Tall() * personWidth
		all = append(all, face{from: vec{p.At[0], p.At[1], 0}.minus(aside.by(wide / 2)), u: aside, v: vec{0, 0, 1}, corners: rectangle(wide, p.Tall()),
			look: look{kind: person, albedo: 0.5, shade: 0.85, wide: wide, high: p.Tall(), seed: uint32(i)}})
	}
	return all
}
