package marker

import (
	"math"
	"testing"
)

// TestMarkers: each marker has a closed black line around it, and no two are alike (part of VEC-MRK-03).
func TestMarkers(t *testing.T) {
	seen := map[Marker]string{}
	for _, name := range Names {
		m := Named(name)
		if m == nil {
			t.Fatalf("%s is not drawn", name)
		}
		if other, ok := seen[*m]; ok {
			t.Errorf("%s looks as %s", name, other)
		}
		seen[*m] = name
		for i := range Cells {
			if !m[0][i] || !m[i][0] || !m[Cells-1][i] || !m[i][Cells-1] || m[Cells/6][Cells/6] {
				t.Fatalf("%s: no line around it", name)
			}
		}
	}
	if len(Names) != 18 || Named("") != nil || Names[2] != "circles2" || Names[17] != "triangles5" {
		t.Error(Names)
	}
}

// draw3 draws a marker whose middle is at a place before the camera, turned about the camera's axis by roll and about its own upright axis by yaw.
func draw3(m *Marker, l Lens, w, h int, at Vec, roll, yaw, edge float64) []byte {
	b := make([]byte, w*h)
	sr, cr := math.Sincos(roll)
	sy, cy := math.Sincos(yaw)
	right, up := Vec{cy * cr, cy * sr, sy}, Vec{sr, -cr, 0}
	n := right.cross(up)
	for i := range b {
		ray := Vec{(float64(i%w) + 0.5 - l.CX) / l.FX, (float64(i/w) + 0.5 - l.CY) / l.FY, 1}
		t := n.dot(at) / n.dot(ray)
		p := ray.by(t).minus(at)
		u, v := p.dot(right)/edge, p.dot(up)/edge
		b[i] = 190
		if max(math.Abs(u), math.Abs(v)) < 0.5 && m[int((v+0.5)*Cells)][int((u+0.5)*Cells)] {
			b[i] = 12
		}
	}
	return b
}

// TestFind: markers in drawings are read in every turn, and their place and direction are measured (VEC-MRK-02, VEC-MRK-04).
func TestFind(t *testing.T) {
	l := Lens{320, 320, 160, 90}
	var f Finder
	for _, name := range Names {
		for turn := range 8 {
			roll, yaw := float64(turn)*math.Pi/4+0.1, 0.3*float64(turn%3-1)
			at := Vec{0.01, -0.005, 0.12}
			all := f.Find(draw3(Named(name), l, 320, 180, at, roll, yaw, 0.04), 320, 320, 180)
			if len(all) != 1 || all[0].Name != name {
				t.Errorf("%s, turn %d: %+v", name, turn, all)
				continue
			}
			p, ok := all[0].Pose(l, 0.04)
			if !ok || p.At.minus(at).norm() > 0.02*at.norm() {
				t.Errorf("%s, turn %d: %+v", name, turn, p)
			}
			sr, cr := math.Sincos(roll)
			if up := p.Up.dot(Vec{sr, -cr, 0}); up < 0.995 && name == Cube { // others look alike in some turns
				t.Errorf("%s, turn %d: up %v", name, turn, p.Up)
			}
			if want := math.Cos(yaw); math.Abs(-p.Out[2]-want) > 0.06 {
				t.Errorf("%s, turn %d: out %v, want %.3f towards the camera", name, turn, p.Out, want)
			}
		}
	}
	cut := draw3(Named(Cube), l, 320, 180, Vec{0.09, 0, 0.2}, 0, 0, 0.04)
	for range 3 {
		if all := f.Find(cut[:len(cut)-100], 320, 320, 180); all != nil {
			t.Error("a picture that is cut short has markers")
		}
	}
}

// FuzzFind: no picture breaks the finder, and what it finds is in the picture.
func FuzzFind(f *testing.F) {
	l := Lens{64, 64, 32, 32}
	f.Add(draw3(Named(Cube), l, 64, 64, Vec{0, 0, 0.06}, 0.2, 0, 0.04), uint8(64))
	f.Add(make([]byte, 400), uint8(20))
	var finder Finder
	f.Fuzz(func(t *testing.T, b []byte, width uint8) {
		w := max(1, int(width))
		h := len(b) / w
		for _, x := range finder.Find(b, w, w, h) {
			if r := x.Bounds(); r.Min.X < -8 || r.Min.Y < -8 || r.Max.X > w+8 || r.Max.Y > h+8 {
				t.Errorf("%s in %v of a picture of %d by %d", x.Name, r, w, h)
			}
			x.Pose(l, 0.04)
		}
	})
}

func BenchmarkFind(b *testing.B) {
	l := Lens{320, 320, 320, 180}
	p := draw3(Named(Cube), l, 640, 360, Vec{0, 0, 0.15}, 0.1, 0.2, 0.04)
	var f Finder
	for b.Loop() {
		f.Find(p, 640, 640, 360)
	}
}
