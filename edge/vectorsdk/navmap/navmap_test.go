package navmap

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestPaint: what is known better stays (part of VEC-MAP-03), and squares that are alike are one.
func TestPaint(t *testing.T) {
	m := New(0, 0)
	here := Way{Radius: 0.1}
	for _, tc := range []struct{ paint, want Content }{
		{Clear, Clear}, {Proximity, Proximity}, {Clear, Clear}, {ClearOfCliff, ClearOfCliff}, {Clear, ClearOfCliff}, {Proximity, Proximity}, {ClearOfCliff, ClearOfCliff},
		{Cliff, Cliff}, {ClearOfCliff, Cliff}, {Proximity, Cliff}, {Clear, Cliff}, {Object, Object}, {Clear, Object}, {Cliff, Object}, {Proximity, Object}, {Unknown, Unknown},
	} {
		before := m.Revision()
		was := m.At(0, 0)
		m.Paint(here, tc.paint)
		if got := m.At(0, 0); got != tc.want || (m.Revision() != before) != (got != was) {
			t.Errorf("%d over %d: %d, want %d", tc.paint, was, got, tc.want)
		}
	}
	if n := leaves(m); n != 1 || m.nodes != 1 {
		t.Errorf("%d leaves of %d nodes on which nothing is known", n, m.nodes)
	}
}

func leaves(m *Map) (n int) {
	for range m.Squares {
		n++
	}
	return n
}

// TestOrder: leaves come in the order +x+y, +x-y, -x+y, -x-y, and depth 0 is the smallest square (VEC-MAP-02).
func TestOrder(t *testing.T) {
	m := New(0, 0)
	_, _, side, depth := m.Root()
	if depth != 6 || math.Abs(side-64*Leaf) > 1e-12 {
		t.Errorf("side %v of depth %d", side, depth)
	}
	m.Paint(Box{X: side / 4, Y: -side / 4, Length: side / 4, Width: side / 4}, Object) // +x-y
	var got []Content
	area := 0.0
	for q := range m.Squares {
		area += q.Side * q.Side
		if math.Abs(q.Side-Leaf*math.Pow(2, float64(q.Depth))) > 1e-12 {
			t.Errorf("%+v", q)
		}
		if q.Content == Object || len(got) == 0 || q.Content != got[len(got)-1] {
			got = append(got, q.Content)
		}
	}
	if math.Abs(area-side*side) > 1e-9 {
		t.Errorf("the leaves cover %v of %v", area, side*side)
	}
	first := -1
	for i, c := range got {
		if c == Object && first < 0 {
			first = i
		}
	}
	if first != 1 || m.At(side/4, -side/4) != Object || m.At(side/4, side/4) != Unknown || m.At(-side/4, -side/4) != Unknown {
		t.Errorf("%v", got)
	}
}

// TestGrow: the map grows toward what is painted and keeps what it has, up to its bound; nothing that is painted makes it larger than that.
func TestGrow(t *testing.T) {
	m := New(0, 0)
	m.Paint(Way{Radius: 0.05}, ClearOfCliff)
	m.Paint(Way{X1: 3, Y1: -2, X2: 3, Y2: -2, Radius: 0.05}, Object)
	if m.At(0, 0) != ClearOfCliff || m.At(3, -2) != Object || m.At(1.5, -1) != Unknown || m.At(100, 0) != Unknown {
		t.Error("what was painted is not there")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		m.Paint(Way{X1: r.NormFloat64() * 20, Y1: r.NormFloat64() * 20, X2: r.NormFloat64(), Y2: r.NormFloat64(), Radius: r.Float64() / 10}, Content(r.IntN(5)))
		if m.nodes > maxNodes+4 || m.depth > maxDepth {
			t.Fatalf("%d nodes, depth %d", m.nodes, m.depth)
		}
	}
	for _, s := range []Shape{Way{X1: math.NaN()}, Way{X1: math.Inf(1)}, Box{Length: math.Inf(1)}} {
		before := m.Revision()
		if m.Paint(s, Object); m.Revision() != before {
			t.Errorf("%+v was painted", s)
		}
	}
}

// TestBox: a rectangle is as large as it says, however it is turned.
func TestBox(t *testing.T) {
	b := Box{X: 1, Y: 2, Yaw: math.Pi / 6, Length: 0.4, Width: 0.2}
	s, c := math.Sincos(b.Yaw)
	for _, tc := range []struct{ x, y, want float64 }{{0, 0, -0.1}, {0.2, 0, 0}, {0.3, 0, 0.1}, {0, -0.25, 0.15}, {0.23, 0.14, 0.05}, {0.15, 0, -0.05}} {
		if got := b.Distance(1+tc.x*c-tc.y*s, 2+tc.x*s+tc.y*c); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%v, %v: %v, want %v", tc.x, tc.y, got, tc.want)
		}
	}
}

// length returns the length of a way, and the least distance that it keeps from obstacles of a map.
func length(m *Map, from Point, way []Point) (l, clear float64) {
	clear = math.Inf(1)
	for _, to := range way {
		w := Way{X1: from.X, Y1: from.Y, X2: to.X, Y2: to.Y}
		l += math.Hypot(to.X-from.X, to.Y-from.Y)
		for q := range m.Squares {
			if q.Content.Blocks() {
				clear = min(clear, w.Distance(q.X, q.Y)-q.Side/2)
			}
		}
		from = to
	}
	return l, clear
}

// TestPath: the way around a wall keeps its distance and is not much longer than it must be; without a wall it is straight; a goal in a wall, behind a closed
// one or too far away has none; a robot that begins beside a wall leaves it.
func TestPath(t *testing.T) {
	m := New(0, 0)
	if way, ok := m.Path(Point{}, Point{0.2, 0.1}, 0.06); !ok || len(way) != 1 || way[0] != (Point{0.2, 0.1}) {
		t.Errorf("a free way: %v, %v", way, ok)
	}
	m.Paint(Box{X: 0.1, Length: 0.01, Width: 0.1}, Object)
	way, ok := m.Path(Point{}, Point{0.2, 0}, 0.06)
	l, clear := length(m, Point{}, way)
	if !ok || way[len(way)-1] != (Point{0.2, 0}) || len(way) < 2 || len(way) > 4 || clear < 0.04 || l > 0.45 {
		t.Errorf("around a wall: %v, %v: %.3f m, %.3f m from it", way, ok, l, clear)
	}
	if _, ok := m.Path(Point{}, Point{0.1, 0}, 0.06); ok {
		t.Error("a way into the wall")
	}
	if _, ok := m.Path(Point{}, Point{9, 0}, 0.06); ok {
		t.Error("a way of 9 m")
	}
	if way, ok := m.Path(Point{0.06, 0}, Point{0.2, 0}, 0.06); !ok {
		t.Errorf("from beside the wall: %v", way)
	}
	for _, b := range []Box{{X: 0.5, Y: 0.3, Length: 0.8, Width: 0.02}, {X: 0.5, Y: -0.3, Length: 0.8, Width: 0.02}, {X: 0.1, Length: 0.02, Width: 0.6}, {X: 0.9, Length: 0.02, Width: 0.6}} {
		m.Paint(b, Proximity)
	}
	if way, ok := m.Path(Point{}, Point{0.5, 0}, 0.06); ok {
		t.Errorf("through a closed wall: %v", way)
	}
}

// FuzzPaint: no sequence of areas breaks the tree: its leaves cover the whole square once, and At agrees with them.
func FuzzPaint(f *testing.F) {
	f.Add([]byte("0123456789abcdef"))
	f.Add([]byte{255, 0, 255, 0, 1, 2, 3, 4, 5, 200, 100, 50, 7})
	f.Fuzz(func(t *testing.T, b []byte) {
		m := New(0, 0)
		for ; len(b) >= 6; b = b[6:] {
			at := func(i int) float64 { return (float64(b[i]) - 128) / 60 }
			var s Shape = Way{at(0), at(1), at(2), at(3), math.Abs(at(4)) / 4}
			if b[5]&8 != 0 {
				s = Box{at(0), at(1), at(2), math.Abs(at(3)), math.Abs(at(4))}
			}
			m.Paint(s, []Content{Unknown, Clear, ClearOfCliff, Object, Proximity, Cliff}[b[5]%6])
		}
		_, _, side, _ := m.Root()
		area, nodes := 0.0, 0
		for q := range m.Squares {
			area += q.Side * q.Side
			nodes++
			if m.At(q.X, q.Y) != q.Content {
				t.Fatalf("%+v, but %d", q, m.At(q.X, q.Y))
			}
		}
		if math.Abs(area-side*side) > 1e-6 || m.nodes != 1+(nodes-1)/3*4 {
			t.Errorf("%d leaves of %d nodes cover %v of %v", nodes, m.nodes, area, side*side)
		}
	})
}
