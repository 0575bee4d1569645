package marker

import (
	"cmp"
	"math"
	"slices"
)

func cross(o, a, b Point) float64 { return (a.X-o.X)*(b.Y-o.Y) - (a.Y-o.Y)*(b.X-o.X) }

// quad returns the four corners around a shape and how many pixels are in them; false: it has no four corners. The order is the one of Found, for a marker that hangs upright.
func (f *Finder) quad(s *shape) (q [4]Point, covers float64, ok bool) {
	f.outlineOf(s)
	f.hullOf()
	if len(f.hull) < 4 {
		return q, 0, false
	}
	whole := area(f.hull)
	corners := slices.Clone(f.hull)
	for len(corners) > 4 { // the corner that matters least
		least, at := math.Inf(1), 0
		for i, p := range corners {
			if a := math.Abs(cross(corners[(i+len(corners)-1)%len(corners)], p, corners[(i+1)%len(corners)])); a < least {
				least, at = a, i
			}
		}
		corners = slices.Delete(corners, at, at+1)
	}
	copy(q[:], corners)
	if covers = area(q[:]); covers < leastSolid*whole {
		return q, 0, false
	}
	if q, ok = f.sharpen(q); !ok {
		return q, 0, false
	}
	// Counter-clockwise as seen, from the lower left.
	if signed(q[:]) > 0 {
		q[1], q[3] = q[3], q[1]
	}
	low := 0
	for i, p := range q {
		if p.Y-p.X > q[low].Y-q[low].X {
			low = i
		}
	}
	return [4]Point{q[low], q[(low+1)%4], q[(low+2)%4], q[(low+3)%4]}, whole, true
}

// outlineOf collects the ends of the shape's rows and columns.
func (f *Finder) outlineOf(s *shape) {
	f.edge = f.edge[:0]
	width := int(s.right - s.left)
	top, bottom := make([]int32, width), make([]int32, width)
	for i := range top {
		top[i], bottom[i] = math.MaxInt32, -1
	}
	left, right, y := int32(math.MaxInt32), int32(-1), s.first
	row := func() {
		if right >= 0 {
			f.edge = append(f.edge, Point{float64(left), float64(y) + 0.5}, Point{float64(right), float64(y) + 0.5})
		}
	}
	for _, i := range s.runs {
		r := &f.runs[i]
		if r.y != y {
			row()
			left, right, y = math.MaxInt32, -1, r.y
		}
		left, right = min(left, r.from), max(right, r.to)
		for x := r.from; x < r.to; x++ {
			top[x-s.left], bottom[x-s.left] = min(top[x-s.left], r.y), max(bottom[x-s.left], r.y)
		}
	}
	row()
	for i := range top {
		if bottom[i] >= 0 {
			x := float64(s.left) + float64(i) + 0.5
			f.edge = append(f.edge, Point{x, float64(top[i])}, Point{x, float64(bottom[i]) + 1})
		}
	}
}

// hullOf makes the convex outline of the edge points.
func (f *Finder) hullOf() {
	points := slices.Clone(f.edge)
	slices.SortFunc(points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y))
	})
	h := f.hull[:0]
	for range 2 { // there and back
		begin := len(h)
		for _, p := range points {
			for len(h) >= begin+2 && cross(h[len(h)-2], h[len(h)-1], p) <= 0 {
				h = h[:len(h)-1]
			}
			h = append(h, p)
		}
		h = h[:len(h)-1]
		slices.Reverse(points)
	}
	f.hull = h
}

// sharpen moves corners to where the lines through the edge points between them meet.
func (f *Finder) sharpen(q [4]Point) (out [4]Point, ok bool) {
	var lines [4]line
	for i := range q {
		a, b := q[i], q[(i+1)%4]
		l := math.Hypot(b.X-a.X, b.Y-a.Y)
		if l < leastEdge/2 {
			return q, false
		}
		dx, dy := (b.X-a.X)/l, (b.Y-a.Y)/l
		var fit fit
		for _, p := range f.edge {
			along, off := (p.X-a.X)*dx+(p.Y-a.Y)*dy, (p.Y-a.Y)*dx-(p.X-a.X)*dy
			if along > 0.1*l && along < 0.9*l && math.Abs(off) < max(1.5, 0.03*l) {
				fit.add(p)
			}
		}
		lines[i] = line{a, Point{dx, dy}}
		if fit.n >= 4 {
			lines[i] = fit.line()
		}
	}
	for i := range q {
		if out[i], ok = lines[(i+3)%4].meet(lines[i]); !ok || math.Hypot(out[i].X-q[i].X, out[i].Y-q[i].Y) > 6 {
			return q, false
		}
	}
	return out, true
}

// line goes through a point in a direction.
type line struct{ at, way Point }

func (a line) meet(b line) (Point, bool) {
	det := a.way.X*b.way.Y - a.way.Y*b.way.X
	if math.Abs(det) < 0.1 {
		return Point{}, false
	}
	t := ((b.at.X-a.at.X)*b.way.Y - (b.at.Y-a.at.Y)*b.way.X) / det
	return Point{a.at.X + t*a.way.X, a.at.Y + t*a.way.Y}, true
}

// fit is the line nearest to points.
type fit struct{ n, x, y, xx, xy, yy float64 }

func (f *fit) add(p Point) {
	f.n++
	f.x, f.y, f.xx, f.xy, f.yy = f.x+p.X, f.y+p.Y, f.xx+p.X*p.X, f.xy+p.X*p.Y, f.yy+p.Y*p.Y
}

func (f *fit) line() line {
	mx, my := f.x/f.n, f.y/f.n
	sxx, sxy, syy := f.xx/f.n-mx*mx, f.xy/f.n-mx*my, f.yy/f.n-my*my
	sin, cos := math.Sincos(math.Atan2(2*sxy, sxx-syy) / 2)
	return line{Point{mx, my}, Point{cos, sin}}
}

func signed(p []Point) (sum float64) {
	for i, a := range p {
		b := p[(i+1)%len(p)]
		sum += a.X*b.Y - a.Y*b.X
	}
	return sum / 2
}

func area(p []Point) float64 { return math.Abs(signed(p)) }

// homography maps the unit square to a picture.
type homography [3][3]float64

// square returns the homography to four corners; false: they are in a line.
func square(q [4]Point) (h homography, ok bool) {
	d1x, d1y := q[1].X-q[2].X, q[1].Y-q[2].Y
	d2x, d2y := q[3].X-q[2].X, q[3].Y-q[2].Y
	sx, sy := q[0].X-q[1].X+q[2].X-q[3].X, q[0].Y-q[1].Y+q[2].Y-q[3].Y
	det := d1x*d2y - d2x*d1y
	if math.Abs(det) < 1e-9 {
		return h, false
	}
	g, k := (sx*d2y-d2x*sy)/det, (d1x*sy-sx*d1y)/det
	return homography{
		{q[1].X - q[0].X + g*q[1].X, q[3].X - q[0].X + k*q[3].X, q[0].X},
		{q[1].Y - q[0].Y + g*q[1].Y, q[3].Y - q[0].Y + k*q[3].Y, q[0].Y},
		{g, k, 1},
	}, true
}

func (h *homography) at(u, v float64) Point {
	w := h[2][0]*u + h[2][1]*v + h[2][2]
	return Point{(h[0][0]*u + h[0][1]*v + h[0][2]) / w, (h[1][0]*u + h[1][1]*v + h[1][2]) / w}
}
