package plane

import "math"

func (v Vec) to(w Vec) Vec             { return Vec{w[0] - v[0], w[1] - v[1]} }
func (v Vec) plus(w Vec) Vec           { return Vec{v[0] + w[0], v[1] + w[1]} }
func (v Vec) times(f float64) Vec      { return Vec{float64(v[0] * f), float64(v[1] * f)} }
func (v Vec) dot(w Vec) float64        { return float64(v[0]*w[0]) + float64(v[1]*w[1]) }
func (v Vec) cross(w Vec) float64      { return float64(v[0]*w[1]) - float64(v[1]*w[0]) }
func (v Vec) norm() float64            { return math.Sqrt(v.dot(v)) }
func (v Vec) turned(theta float64) Vec { sin, cos := math.Sincos(theta); return v.rotated(sin, cos) }
func (v Vec) rotated(sin, cos float64) Vec {
	return Vec{float64(cos*v[0]) - float64(sin*v[1]), float64(sin*v[0]) + float64(cos*v[1])}
}

// At returns where a point of the body's frame is in the world.
func (p Pose) At(v Vec) Vec { return p.place().plus(v.turned(p[2])) }

// From returns where a point of the world is in the pose's own frame.
func (p Pose) From(v Vec) Vec { return p.place().to(v).turned(-p[2]) }

func (p Pose) place() Vec { return Vec{p[0], p[1]} }

// wrap brings an angle to -pi to pi.
func wrap(a float64) float64 { return math.Remainder(a, 2*math.Pi) }

// area returns the area of a polygon, positive if its corners run counter-clockwise.
func area(corners []Vec) float64 {
	var sum float64
	for i, v := range corners {
		sum += v.cross(corners[(i+1)%len(corners)])
	}
	return sum / 2
}

// inside reports whether v is in the polygon, by how often a line from it crosses the edge.
func inside(corners []Vec, v Vec) bool {
	in := false
	for i, a := range corners {
		b := corners[(i+1)%len(corners)]
		if (a[1] > v[1]) != (b[1] > v[1]) && v[0]-a[0] < (b[0]-a[0])*((v[1]-a[1])/(b[1]-a[1])) {
			in = !in
		}
	}
	return in
}

// shape is a point, a line or a box with a rounded edge of radius round: all that is in this world.
type shape struct {
	corner [4]Vec
	n      int // corners
	round  float64
	height float64

	middle Vec // of a disc around it all
	reach  float64
}

// bounded is s with the disc around it, which saves most of the work of gap.
func (s shape) bounded() shape {
	for _, v := range s.corner[:s.n] {
		s.middle = s.middle.plus(v.times(1 / float64(s.n)))
	}
	for _, v := range s.corner[:s.n] {
		s.reach = max(s.reach, s.middle.to(v).norm())
	}
	s.reach += s.round + 1e-9
	return s
}

// meet reports whether two shapes lie in each other.
func meet(a, b *shape) bool {
	if v, r := a.middle.to(b.middle), a.reach+b.reach; v.dot(v) > float64(r*r) {
		return false
	}
	d, _ := gap(a, b)
	return d < 0
}

func point(v Vec, round, height float64) shape {
	return shape{corner: [4]Vec{v}, n: 1, round: round, height: height}.bounded()
}
func line(a, b Vec, round, height float64) shape {
	return shape{corner: [4]Vec{a, b}, n: 2, round: round, height: height}.bounded()
}

func box(at Pose, size Vec, height float64) shape {
	x, y := size[0]/2, size[1]/2
	return shape{corner: [4]Vec{at.At(Vec{x, y}), at.At(Vec{-x, y}), at.At(Vec{-x, -y}), at.At(Vec{x, -y})}, n: 4, height: height}.bounded()
}

// edges is how many lines make the outline.
func (s *shape) edges() int {
	if s.n == 2 {
		return 1
	}
	return s.n
}

func (s *shape) edge(i int) (a, b Vec) { return s.corner[i], s.corner[(i+1)%s.n] }

// gap returns how far b is from a, and the direction from a to b. Where they lie in each other it is negative, as far as their round edges
// go; the direction is then the one in which b gets free.
func gap(a, b *shape) (float64, Vec) {
	best, from := math.Inf(1), Vec{}
	for i := range a.edges() {
		a1, a2 := a.edge(i)
		for j := range b.edges() {
			b1, b2 := b.edge(j)
			if d, v := apart(a1, a2, b1, b2); d < best {
				best, from = d, v
			}
		}
	}
	if best > 0 && (a.n > 2 && inside(a.corner[:a.n], b.corner[0]) || b.n > 2 && inside(b.corner[:b.n], a.corner[0])) {
		best, from = -best, from.times(-1)
	}
	if n := from.norm(); n > 0 {
		from = from.times(1 / n)
	}
	return best - a.round - b.round, from
}

// apart returns the distance between two lines with ends, and the way from the first to the second; lines that cross are less than none apart.
func apart(a1, a2, b1, b2 Vec) (float64, Vec) {
	da, db, r := a1.to(a2), b1.to(b2), a1.to(b1)
	if c := da.cross(db); c != 0 {
		if s, t := r.cross(db)/c, r.cross(da)/c; s > 0 && s < 1 && t > 0 && t < 1 {
			return -leastSize, Vec{}
		}
	}
	best, way := math.Inf(1), Vec{}
	try := func(v Vec) {
		if d := v.norm(); d < best {
			best, way = d, v
		}
	}
	try(b1.to(nearest(a1, a2, b1)).times(-1))
	try(b2.to(nearest(a1, a2, b2)).times(-1))
	try(a1.to(nearest(b1, b2, a1)))
	try(a2.to(nearest(b1, b2, a2)))
	return best, way
}

// nearest is the point of the line from a to b that is next to v.
func nearest(a, b, v Vec) Vec {
	d := a.to(b)
	l := d.dot(d)
	if l == 0 {
		return a
	}
	return a.plus(d.times(min(max(a.to(v).dot(d)/l, 0), 1)))
}

// hit returns how far along the unit vector dir a ray from origin meets s, +Inf: not at all, and the cosine of its angle from head on. A ray
// that begins inside meets it at once.
func (s *shape) hit(origin, dir Vec) (way, straight float64) {
	best, cos := math.Inf(1), 1.0
	if s.n > 2 && inside(s.corner[:s.n], origin) {
		return 0, 1
	}
	for i := range s.edges() {
		a, b := s.edge(i)
		if s.n > 1 {
			d, r := a.to(b), origin.to(a)
			if c := dir.cross(d); c != 0 {
				if t, u := r.cross(d)/c, r.cross(dir)/c; t >= 0 && u >= 0 && u <= 1 && t < best {
					best, cos = t, math.Abs(c)/d.norm()
				}
			}
		}
		if s.round > 0 { // round things are discs here: only the robot is a rounded line, and nothing looks at it
			r := origin.to(a)
			along, c := r.dot(dir), r.dot(r)-float64(s.round*s.round)
			if c <= 0 {
				return 0, 1
			}
			if q := float64(along*along) - c; q >= 0 && along >= 0 && along-math.Sqrt(q) < best {
				best, cos = along-math.Sqrt(q), math.Sqrt(q)/s.round
			}
		}
	}
	return best, cos
}
