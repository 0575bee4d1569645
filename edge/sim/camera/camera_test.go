package camera

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/edge/marker"
	"kennel/edge/sim/plane"
)

// vector is the mount and the lens of Vector's camera, as vectorsim has them.
var (
	mount = Mount{Neck: [2]float64{-0.013, 0.049}, Eye: [2]float64{0.01752, -0.008}, Down: 4 * math.Pi / 180}
	lens  = Of(640, 360, math.Pi/2, 50*math.Pi/180)
	body  = plane.Robot{Track: 0.048, Nose: 0.045, Tail: 0.055, Width: 0.06, RangeMax: 1}
)

const width = 0.06

// manual is a fixed exposure that shows an ordinary room.
var manual = Exposure{Time: 10 * time.Millisecond, Gain: 1}

// see takes a picture in m with the head raised by head.
func see(t testing.TB, m *plane.Map, head float64, e Exposure, number uint64) (*image.YCbCr, Exposure) {
	t.Helper()
	w, err := plane.New(m, body, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, c := w.State(), New(lens, m, width, 1)
	img := c.Blank()
	return img, c.Take(img, mount.View(&s, head), &s, e, number)
}

// mean is the mean brightness and the mean colours of a part of a picture.
func mean(img *image.YCbCr, r image.Rectangle) (y, cb, cr float64) {
	for j := r.Min.Y; j < r.Max.Y; j++ {
		for i := r.Min.X; i < r.Max.X; i++ {
			c := img.YCbCrAt(i, j)
			y, cb, cr = y+float64(c.Y), cb+float64(c.Cb), cr+float64(c.Cr)
		}
	}
	n := float64(r.Dx() * r.Dy())
	return y / n, cb / n, cr / n
}

// keep writes a picture below $KENNEL_PICTURES, for a person to look at.
func keep(t *testing.T, name string, img image.Image) {
	dir := os.Getenv("KENNEL_PICTURES")
	if dir == "" {
		return
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// difference is the part of the picture where two differ by more than noise does: its bounds, and how many pixels.
func difference(a, b *image.YCbCr) (r image.Rectangle, n int) {
	for y := range a.Rect.Dy() {
		for x := range a.Rect.Dx() {
			if d := int(a.Y[a.YOffset(x, y)]) - int(b.Y[b.YOffset(x, y)]); d > 20 || d < -20 {
				p := image.Rect(x, y, x+1, y+1)
				if n++; n == 1 {
					r = p
				}
				r = r.Union(p)
			}
		}
	}
	return r, n
}

func cube(at plane.Pose) plane.Object {
	return plane.Object{Name: "cube", Shape: "box", At: at, Size: plane.Vec{0.044, 0.044}, Marker: "cube"}
}

// TestCube: a cube before the robot is where the geometry of part of VEC-VIS-02 and VEC-VIS-03 says. Its front is 0.3 m before the origin, so 0.29548 m before the lens,
// which is 0.041 m high and looks 4 degrees down.
func TestCube(t *testing.T) {
	with := &plane.Map{Objects: []plane.Object{cube(plane.Pose{0.322, 0, 0})}}
	img, _ := see(t, with, 0, manual, 1)
	keep(t, "cube", img)
	empty, _ := see(t, &plane.Map{}, 0, manual, 1)
	got, n := difference(img, empty)
	// By hand: points of the front, ahead x and height z from the lens, turned by 4 degrees.
	eye := [2]float64{-0.013 + 0.01752, 0.041}
	row := func(x, z float64) float64 {
		sin, cos := math.Sincos(4 * math.Pi / 180)
		dx, dz := x-eye[0], z-eye[1]
		return 180 - lens.FY*(dz*cos+dx*sin)/(dx*cos-dz*sin)
	}
	column := func(x, z, y float64) float64 {
		sin, cos := math.Sincos(4 * math.Pi / 180)
		return 320 - lens.FX*y/((x-eye[0])*cos-(z-eye[1])*sin)
	}
	want := image.Rect(int(math.Round(column(0.3, 0.044, 0.022))), int(math.Round(row(0.344, 0.044))), int(math.Round(column(0.3, 0.044, -0.022))), int(math.Round(row(0.3, 0))))
	for i, d := range []int{got.Min.X - want.Min.X, got.Min.Y - want.Min.Y, got.Max.X - want.Max.X, got.Max.Y - want.Max.Y} {
		if d < -2 || d > 2 {
			t.Errorf("edge %d: the cube is at %v, want %v", i, got, want)
		}
	}
	if n < 500 {
		t.Errorf("%d pixels differ from a picture without the cube", n)
	}
	// Of its front the rim is white, the square line around the marker black.
	middle := (want.Min.Y + want.Max.Y) / 2
	rim, _, _ := mean(img, image.Rect(want.Min.X+1, middle-5, want.Min.X+2, middle+5))
	black, _, _ := mean(img, image.Rect(want.Min.X+6, middle-5, want.Min.X+8, middle+5))
	if rim < 150 || black > 90 {
		t.Errorf("rim %.0f, line %.0f", rim, black)
	}
}

// TestHead: a raised head sees the cube lower in the picture, by the tangent of the angle.
func TestHead(t *testing.T) {
	with, without := &plane.Map{Objects: []plane.Object{cube(plane.Pose{0.322, 0, 0})}}, &plane.Map{}
	at := func(head float64) float64 {
		a, _ := see(t, with, head, manual, 1)
		b, _ := see(t, without, head, manual, 1)
		r, _ := difference(a, b)
		return float64(r.Max.Y)
	}
	if d := at(0.2) - at(0); d < 70 || d > 90 { // 386 * 0.2 and a little more away from the middle
		t.Errorf("the cube is %.0f rows lower, want about 80", d)
	}
}

// TestSides: what is at the left of the robot is at the left of the picture, and a robot that is turned to the left sees it in the middle.
func TestSides(t *testing.T) {
	for _, theta := range []float64{0, 0.3} {
		m := &plane.Map{Start: plane.Pose{0, 0, theta}, Objects: []plane.Object{cube(plane.Pose{0.4 * math.Cos(0.3), 0.4 * math.Sin(0.3), 0.3})}}
		a, _ := see(t, m, 0, manual, 1)
		b, _ := see(t, &plane.Map{Start: m.Start}, 0, manual, 1)
		r, n := difference(a, b)
		x, want := float64(r.Min.X+r.Max.X)/2, 320-lens.FX*math.Tan(0.3-theta)
		if n == 0 || math.Abs(x-want) > 8 {
			t.Errorf("turned by %v: the cube is at column %.0f, want %.0f", theta, x, want)
		}
	}
}

// TestWall: a wall fills the picture up to its height; above it is the room. A nearer thing hides it.
func TestWall(t *testing.T) {
	m := &plane.Map{Walls: []plane.Wall{{From: plane.Vec{0.5, -3}, To: plane.Vec{0.5, 3}, Height: 0.1}}, Light: 1}
	img, _ := see(t, m, 0, manual, 1)
	keep(t, "wall", img)
	edge := func(column int) int { // the row with the largest step from above
		best, at := 0.0, 0
		for y := 20; y < 180; y++ {
			a, _, _ := mean(img, image.Rect(column, y-3, column+8, y))
			b, _, _ := mean(img, image.Rect(column, y, column+8, y+3))
			if d := math.Abs(b - a); d > best {
				best, at = d, y
			}
		}
		return at
	}
	sin, cos := math.Sincos(4 * math.Pi / 180)
	dx, dz := 0.5-0.00452, 0.1-0.041
	want := 180 - lens.FY*(dz*cos+dx*sin)/(dx*cos-dz*sin)
	for _, column := range []int{100, 320, 520} {
		if y := float64(edge(column)); math.Abs(y-want) > 2 {
			t.Errorf("column %d: the wall ends at row %.0f, want %.0f", column, y, want)
		}
	}
	m.Objects = []plane.Object{{Name: "box", Shape: "box", At: plane.Pose{0.4, 0, 0}, Size: plane.Vec{0.02, 0.1}, Height: 0.2, Fixed: true}}
	hidden, _ := see(t, m, 0, manual, 1)
	if r, _ := difference(img, hidden); r.Min.X > 320-30 || r.Max.X < 320+30 || r.Min.Y > 20 {
		t.Errorf("a box before the wall is at %v", r)
	}
}

// TestFloor: lines and cliffs are where they are on the floor, and the charger has its marker.
func TestFloor(t *testing.T) {
	empty, _ := see(t, &plane.Map{}, -0.3, manual, 1)
	keep(t, "floor", empty)
	line, _ := see(t, &plane.Map{Lines: []plane.Line{{From: plane.Vec{0.15, -1}, To: plane.Vec{0.15, 1}, Shade: 2}}}, -0.3, manual, 1)
	row := func(x float64) float64 {
		sin, cos := math.Sincos(4*math.Pi/180 + 0.3)
		nx, nz := -0.013+0.01752*math.Cos(0.3)-0.008*math.Sin(0.3), 0.049-0.008*math.Cos(0.3)-0.01752*math.Sin(0.3)
		dx, dz := x-nx, -nz
		return 180 - lens.FY*(dz*cos+dx*sin)/(dx*cos-dz*sin)
	}
	r, n := difference(line, empty)
	if top, bottom := row(0.1575), row(0.1425); n < 1000 || math.Abs(float64(r.Min.Y)-top) > 2 || math.Abs(float64(r.Max.Y)-bottom) > 2 {
		t.Errorf("the line is at %v, want rows %.0f to %.0f", r, top, bottom)
	}
	cliff, _ := see(t, &plane.Map{Cliffs: []plane.Cliff{{Corners: []plane.Vec{{0.2, -3}, {5, -3}, {5, 3}, {0.2, 3}}}}}, -0.3, manual, 1)
	keep(t, "cliff", cliff)
	over, _, _ := mean(cliff, image.Rect(200, int(row(0.2))-40, 440, int(row(0.2))-4))
	before, _, _ := mean(cliff, image.Rect(200, int(row(0.2))+4, 440, int(row(0.2))+40))
	if over > before-20 {
		t.Errorf("over the cliff %.0f, before it %.0f: want it darker", over, before)
	}
	charger, _ := see(t, &plane.Map{Charger: &plane.Charger{At: plane.Pose{0.4, 0, math.Pi}}}, 0, manual, 1)
	keep(t, "charger", charger)
	without, _ := see(t, &plane.Map{}, 0, manual, 1)
	if r, n := difference(charger, without); n < 300 || (r.Min.X+r.Max.X)/2 < 310 || (r.Min.X+r.Max.X)/2 > 330 {
		t.Errorf("the charger is at %v, %d pixels", r, n)
	}
}

// TestPeople: a person is on the floor, with skin above clothes, and the room is seen beside the neck.
func TestPeople(t *testing.T) {
	m := &plane.Map{People: []plane.Person{{At: plane.Vec{2, 0}}}}
	img, _ := see(t, m, 0.4, manual, 1)
	keep(t, "person", img)
	sin, cos := math.Sincos(0.4 - 4*math.Pi/180)
	row := func(z float64) int {
		dx, dz := 2.0, z-0.045
		return int(180 - lens.FY*(dz*cos-dx*sin)/(dx*cos+dz*sin))
	}
	y := row(1.7 * 0.885)
	_, _, cr := mean(img, image.Rect(316, y-2, 324, y+2))
	if cr < 140 {
		t.Errorf("the face at row %d has a red difference of %.0f, want skin", y, cr)
	}
	neck := row(1.7 * 0.85)
	beside, _, _ := mean(img, image.Rect(340, neck-2, 345, neck+2))
	room, _, _ := mean(img, image.Rect(600, neck-2, 605, neck+2))
	if math.Abs(beside-room) > 10 {
		t.Errorf("beside the neck %.0f, beside the person %.0f: want the room", beside, room)
	}
}

// TestExposure: a longer exposure and more gain are brighter and, for gain, noisier. The automatic one brings any light to the same level, as far as it can; a
// dark room with a short exposure is black.
func TestExposure(t *testing.T) {
	all := lens.frame()
	level := func(light float64, e Exposure) (float64, Exposure, *image.YCbCr) {
		img, used := see(t, &plane.Map{Light: light, Walls: []plane.Wall{{From: plane.Vec{0.3, -3}, To: plane.Vec{0.3, 3}}}}, 0, e, 1)
		y, _, _ := mean(img, all)
		return y, used, img
	}
	short, _, _ := level(1, Exposure{time.Millisecond, 1})
	long, used, _ := level(1, Exposure{8 * time.Millisecond, 1})
	if short > 80 || long < 2*short || used != (Exposure{8 * time.Millisecond, 1}) {
		t.Errorf("1 ms: %.0f, 8 ms: %.0f, as %+v", short, long, used)
	}
	if dark, _, _ := level(0.01, Exposure{time.Millisecond, 1}); dark > 15 {
		t.Errorf("a dark room at 1 ms: %.0f, want black", dark)
	}
	for _, light := range []float64{0.2, 1, 5} {
		y, used, _ := level(light, Exposure{})
		if y < 90 || y > 145 || used.Time < Shortest || used.Time > Longest {
			t.Errorf("light %v: level %.0f by %+v", light, y, used)
		}
	}
	bright, b, _ := level(5, Exposure{})
	dim, d, _ := level(0.02, Exposure{})
	if b.Time >= d.Time || d != (Exposure{Longest, MostGain}) || dim > bright {
		t.Errorf("bright %+v, dim %+v", b, d)
	}
	noise := func(gain float64) (n float64) { // the same brightness by gain, from two pictures of one scene
		e := Exposure{time.Duration(float64(8*time.Millisecond) / gain), gain}
		a, _ := see(t, &plane.Map{}, -0.3, e, 1)
		b, _ := see(t, &plane.Map{}, -0.3, e, 2)
		for y := 200; y < 300; y++ {
			for x := range 640 {
				d := float64(a.Y[a.YOffset(x, y)]) - float64(b.Y[b.YOffset(x, y)])
				n += d * d
			}
		}
		return math.Sqrt(n / 64000 / 2)
	}
	if one, four := noise(1), noise(4); one < 0.5 || one > 4 || four < 1.5*one {
		t.Errorf("noise of %.2f with gain 1, %.2f with gain 4", one, four)
	}
}

// frame is the whole picture.
func (l Lens) frame() image.Rectangle { return image.Rect(0, 0, l.Width, l.Height) }

// TestSame: the same world, view, exposure and number make the same bytes; another number or another seed makes other noise alone.
func TestSame(t *testing.T) {
	m, err := plane.Builtin("room")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := see(t, m, 0.1, Exposure{}, 5)
	b, _ := see(t, m, 0.1, Exposure{}, 5)
	if !bytes.Equal(a.Y, b.Y) || !bytes.Equal(a.Cb, b.Cb) || !bytes.Equal(a.Cr, b.Cr) {
		t.Error("two pictures of the same differ")
	}
	c, _ := see(t, m, 0.1, Exposure{}, 6)
	if _, n := difference(a, c); bytes.Equal(a.Y, c.Y) || n > 0 {
		t.Errorf("another number: equal %v, %d pixels by more than noise", bytes.Equal(a.Y, c.Y), n)
	}
	for _, name := range plane.Names() {
		m, _ := plane.Builtin(name)
		img, _ := see(t, m, 0, Exposure{}, 1)
		keep(t, "world "+name, img)
		if y, _, _ := mean(img, lens.frame()); y < 60 || y > 200 {
			t.Errorf("%s: level %.0f", name, y)
		}
	}
}

// TestMarkersAreFound: a marker in the camera's picture is found, and its distance, side and turn are measured, on every marker (part of VEC-MRK-01, VEC-MRK-02, VEC-MRK-04: 5 % and
// 5 degrees).
func TestMarkersAreFound(t *testing.T) {
	const edge = 0.044
	for i, name := range marker.Names {
		for k, at := range []plane.Pose{{0.12, 0, 0}, {0.16, 0.05, 0.4}, {0.2, -0.08, -0.5}, {0.3, 0.1, 0.2}} {
			m := &plane.Map{Objects: []plane.Object{{Shape: "box", At: at, Size: plane.Vec{edge, edge}, Height: edge, Marker: name}}, Light: []float64{1, 0.5, 2, 1}[k]}
			img, _ := see(t, m, 0, Exposure{}, uint64(i))
			keep(t, fmt.Sprint("marker ", name, k), img)
			var f marker.Finder
			all := f.Find(img.Y, img.YStride, lens.Width, lens.Height)
			best := -1
			for n, x := range all {
				if x.Name != name {
					t.Errorf("%s at %v: also %+v", name, at, x)
				} else if best < 0 || x.Bounds().Dx() > all[best].Bounds().Dx() {
					best = n
				}
			}
			if best < 0 {
				if name == marker.Cube || at[0] < 0.2 { // small symbols are alike from afar
					t.Errorf("%s at %v is not found", name, at)
				}
				continue
			}
			p, ok := all[best].Pose(marker.Lens{FX: lens.FX, FY: lens.FY, CX: lens.CX, CY: lens.CY}, MarkerShare*edge)
			if !ok {
				t.Errorf("%s at %v has no pose", name, at)
				continue
			}
			// The middle of the box is behind the face; the camera is 4.5 mm ahead of the body's origin and looks 4 degrees down.
			sin, cos := math.Sincos(mount.Down)
			back := edge / 2
			x := (p.At[2]-back*p.Out[2])*cos - (p.At[1]-back*p.Out[1])*sin + mount.Neck[0] + mount.Eye[0]
			y := -(p.At[0] - back*p.Out[0])
			if d := math.Hypot(x-at[0], y-at[1]); d > 0.05*math.Hypot(at[0], at[1]) {
				t.Errorf("%s at %v: seen at %.4f, %.4f", name, at, x, y)
			}
			if turn := math.Remainder(math.Atan2(-p.Out[0], p.Out[2])-at[2], math.Pi/2); math.Abs(turn) > 5*math.Pi/180 {
				t.Errorf("%s at %v: turned by %.3f more", name, at, turn)
			}
		}
	}
}

// TestRaised: a cube that a lift raises is seen so much higher.
func TestRaised(t *testing.T) {
	m := &plane.Map{Objects: []plane.Object{cube(plane.Pose{0.2, 0, 0})}}
	w, err := plane.New(m, body, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, c := w.State(), New(lens, m, width, 1)
	where := func() [3]float64 {
		t.Helper()
		img := c.Blank()
		c.Take(img, mount.View(&s, 0.2), &s, Exposure{}, 0)
		keep(t, fmt.Sprintf("raised %v", s.Raised), img)
		var f marker.Finder
		found := f.Find(img.Y, img.YStride, lens.Width, lens.Height)
		if len(found) != 1 {
			t.Fatalf("%d markers", len(found))
		}
		p, ok := found[0].Pose(marker.Lens{FX: lens.FX, FY: lens.FY, CX: lens.CX, CY: lens.CY}, MarkerShare*0.044)
		if !ok {
			t.Fatal("no pose")
		}
		return p.At
	}
	low := where()
	s.Raised[0] = 0.05
	if high := where(); math.Abs(math.Hypot(high[1]-low[1], high[2]-low[2])-0.05) > 0.006 || high[1] > low[1] {
		t.Errorf("from %v to %v, want 50 mm up", low, high)
	}
}

// TestNothingIsFound: rooms without markers have none.
func TestNothingIsFound(t *testing.T) {
	var f marker.Finder
	for _, name := range plane.Names() {
		m, _ := plane.Builtin(name)
		m.Charger = nil
		for i := range m.Objects {
			m.Objects[i].Marker = ""
		}
		img, _ := see(t, m, 0, Exposure{}, 1)
		if all := f.Find(img.Y, img.YStride, lens.Width, lens.Height); len(all) != 0 {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// TestAnyView: no place of the camera is too much for it: in a wall, below the floor, upside down, in a person.
func TestAnyView(t *testing.T) {
	m, err := plane.Builtin("room")
	if err != nil {
		t.Fatal(err)
	}
	w, err := plane.New(m, body, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, c := w.State(), New(Of(64, 36, math.Pi/2, 50*math.Pi/180), m, width, 1)
	img := c.Blank()
	for i := range 2000 {
		s.Pose = plane.Pose{float64(i%41)/10 - 2, float64(i%23)/10 - 1.1, float64(i)}
		s.Pitch, s.Roll, s.Height = float64(i%7)-3, float64(i%5)-2, float64(i%13)/10-0.7
		c.Take(img, mount.View(&s, float64(i%3)/4), &s, Exposure{}, uint64(i))
	}
	s.Pose = plane.Pose{1.5, 0, 0}
	c.Take(img, mount.View(&s, 0), &s, Exposure{}, 0)
}

func BenchmarkTake(b *testing.B) {
	m, err := plane.Builtin("room")
	if err != nil {
		b.Fatal(err)
	}
	w, err := plane.New(m, body, 1)
	if err != nil {
		b.Fatal(err)
	}
	s, c := w.State(), New(lens, m, width, 1)
	img, v := c.Blank(), mount.View(&s, 0.1)
	for n := uint64(0); b.Loop(); n++ {
		c.Take(img, v, &s, Exposure{}, n)
	}
	b.ReportMetric(100*15*b.Elapsed().Seconds()/float64(b.N), "%core@15Hz")
}
