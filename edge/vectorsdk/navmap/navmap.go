// Package navmap is a map of the floor around a robot: a quadtree of squares, each with what the robot knows of it, and the ways between its obstacles.
//
// The frame is the one of the robot's poses: metres, x forward, y to the left. The map grows as far as something is painted on it, up to a bound. Squares with
// the same content are one square, so an empty floor costs little.
package navmap

import "math"

// Content says of a square what the robot knows, in the published numbers (part of VEC-MAP-03). 5, 6, 8 and 9 have no source on this robot.
type Content uint8

// The contents.
const (
	Unknown      Content = 0
	Clear        Content = 1 // the range finder looked across it
	ClearOfCliff Content = 2 // the robot stood on it
	Object       Content = 3 // of a program's
	Proximity    Content = 4 // the range finder saw something
	Cliff        Content = 7
)

// Blocks reports whether a robot cannot stand on it.
func (c Content) Blocks() bool { return c >= Object }

// Bounds of a map; own defaults.
const (
	Leaf     = 0.016   // m, the side of the smallest square
	first    = 6       // depth of an empty map: 1 m
	maxDepth = 10      // 16 m
	maxNodes = 1 << 14 // beyond it, squares are not divided further
)

// node is a square: one content, or four children in the order of the wire: +x+y, +x-y, -x+y, -x-y (VEC-MAP-02).
type node struct {
	kids    *[4]node
	content Content
}

// Map is not safe for concurrent use.
type Map struct {
	root  node
	x, y  float64 // centre
	depth int     // of the root; 0 is the smallest square
	nodes int
	rev   uint64
}

// New returns a map on which nothing is known, around a point.
func New(x, y float64) *Map { return &Map{x: x, y: y, depth: first, nodes: 1} }

// Revision changes whenever the map does.
func (m *Map) Revision() uint64 { return m.rev }

// Root returns the centre, the side in metres and the depth of the whole square.
func (m *Map) Root() (x, y, side float64, depth int) {
	return m.x, m.y, Leaf * float64(int(1)<<m.depth), m.depth
}

// Shape is an area of the floor.
type Shape interface {
	// Distance returns how far a point is outside of the area, in metres; negative inside.
	Distance(x, y float64) float64
	// Reach returns a point and how far the area reaches around it.
	Reach() (x, y, radius float64)
}

// Way is the area within a distance of a line: what a robot covers that drives from one end to the other. Both ends may be the same.
type Way struct {
	X1, Y1, X2, Y2 float64
	Radius         float64
}

// Distance implements Shape.
func (w Way) Distance(x, y float64) float64 {
	dx, dy := w.X2-w.X1, w.Y2-w.Y1
	along := 0.0
	if l := dx*dx + dy*dy; l > 0 {
		along = min(max(((x-w.X1)*dx+(y-w.Y1)*dy)/l, 0), 1)
	}
	return math.Hypot(x-w.X1-along*dx, y-w.Y1-along*dy) - w.Radius
}

// Reach implements Shape.
func (w Way) Reach() (x, y, radius float64) {
	return (w.X1 + w.X2) / 2, (w.Y1 + w.Y2) / 2, math.Hypot(w.X2-w.X1, w.Y2-w.Y1)/2 + w.Radius
}

// Box is a rectangle that is turned by Yaw, in radians counter-clockwise.
type Box struct {
	X, Y, Yaw     float64
	Length, Width float64 // along its own x and y
}

// Distance implements Shape.
func (b Box) Distance(x, y float64) float64 {
	s, c := math.Sincos(b.Yaw)
	x, y = x-b.X, y-b.Y
	ax, ay := math.Abs(x*c+y*s)-b.Length/2, math.Abs(y*c-x*s)-b.Width/2
	return math.Hypot(max(ax, 0), max(ay, 0)) + min(max(ax, ay), 0)
}

// Reach implements Shape.
func (b Box) Reach() (x, y, radius float64) { return b.X, b.Y, math.Hypot(b.Length, b.Width) / 2 }

// Paint says what is known of an area: each smallest square that it touches at its middle. What is known better stays: nothing but Unknown takes an Object off, a
// cliff stays a cliff, and a look across a floor does not undo that the robot stood there.
func (m *Map) Paint(s Shape, c Content) {
	x, y, r := s.Reach()
	if math.IsNaN(x+y+r) || math.IsInf(x+y+r, 0) {
		return
	}
	for m.depth < maxDepth && !m.covers(x, y, r) {
		if c == Unknown && m.outside(x, y, r) {
			return
		}
		m.grow(x, y)
	}
	if m.paint(&m.root, m.x, m.y, m.depth, s, c) {
		m.rev++
	}
}

func (m *Map) half() float64 { return Leaf * float64(int(1)<<m.depth) / 2 }

func (m *Map) covers(x, y, r float64) bool {
	return max(math.Abs(x-m.x), math.Abs(y-m.y))+r <= m.half()
}

func (m *Map) outside(x, y, r float64) bool {
	return max(math.Abs(x-m.x), math.Abs(y-m.y))-r > m.half()
}

// grow doubles the map toward a point.
func (m *Map) grow(x, y float64) {
	h := m.half()
	old, kids := m.root, new([4]node)
	cx, cy := m.x+h, m.y+h
	if x < m.x {
		cx = m.x - h
	}
	if y < m.y {
		cy = m.y - h
	}
	kids[quarter(m.x, m.y, cx, cy)] = old
	m.root, m.x, m.y = node{kids: kids}, cx, cy
	m.depth++
	m.nodes += 4
	merge(&m.root, &m.nodes)
	m.rev++
}

// quarter returns the child of a square around cx, cy that a point is in.
func quarter(x, y, cx, cy float64) (i int) {
	if x < cx {
		i += 2
	}
	if y < cy {
		i++
	}
	return i
}

// centre returns the middle of a child of a square whose side is a quarter of 4*step.
func centre(i int, cx, cy, step float64) (x, y float64) {
	x, y = cx+step, cy+step
	if i >= 2 {
		x = cx - step
	}
	if i%2 == 1 {
		y = cy - step
	}
	return x, y
}

// better reports whether what is known becomes c.
func better(old, c Content) bool {
	switch c {
	case Unknown, Object:
		return old != c
	case Cliff:
		return old != Object && old != Cliff
	case Proximity:
		return old < Object
	case ClearOfCliff:
		return old == Unknown || old == Clear || old == Proximity
	}
	return old == Unknown || old == Proximity
}

func (m *Map) paint(n *node, cx, cy float64, depth int, s Shape, c Content) (changed bool) {
	if n.kids == nil && !better(n.content, c) {
		return false
	}
	half := Leaf * float64(int(1)<<depth) / 2
	d := s.Distance(cx, cy)
	switch {
	case d > half*math.Sqrt2:
		return false
	case n.kids != nil:
	case d <= -half*math.Sqrt2, depth == 0 && d <= half, m.nodes+4 > maxNodes && c.Blocks():
		n.content = c
		return true
	case depth == 0, m.nodes+4 > maxNodes:
		return false
	default:
		n.kids = new([4]node)
		for i := range n.kids {
			n.kids[i].content = n.content
		}
		m.nodes += 4
	}
	for i := range n.kids {
		x, y := centre(i, cx, cy, half/2)
		changed = m.paint(&n.kids[i], x, y, depth-1, s, c) || changed
	}
	merge(n, &m.nodes)
	return changed
}

// merge makes one square of four that are alike.
func merge(n *node, nodes *int) {
	c := n.kids[0].content
	for i := range n.kids {
		if n.kids[i].kids != nil || n.kids[i].content != c {
			return
		}
	}
	*n = node{content: c}
	*nodes -= 4
}

// Square is a leaf of the map.
type Square struct {
	X, Y    float64 // its middle
	Side    float64 // m
	Depth   int     // 0 is the smallest
	Content Content
}

// Squares calls yield with all leaves, in the order of the wire (VEC-MAP-02).
func (m *Map) Squares(yield func(Square) bool) { walk(&m.root, m.x, m.y, m.depth, yield) }

func walk(n *node, x, y float64, depth int, yield func(Square) bool) bool {
	side := Leaf * float64(int(1)<<depth)
	if n.kids == nil {
		return yield(Square{x, y, side, depth, n.content})
	}
	for i := range n.kids {
		cx, cy := centre(i, x, y, side/4)
		if !walk(&n.kids[i], cx, cy, depth-1, yield) {
			return false
		}
	}
	return true
}

// At returns what is known of a point.
func (m *Map) At(x, y float64) Content {
	if m.outside(x, y, 0) {
		return Unknown
	}
	n, cx, cy, half := &m.root, m.x, m.y, m.half()
	for n.kids != nil {
		i := quarter(x, y, cx, cy)
		cx, cy = centre(i, cx, cy, half/2)
		n, half = &n.kids[i], half/2
	}
	return n.content
}
