package face

import (
	"bytes"
	"errors"
	"image"
	"image/gif"
	"image/png"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/face/facetest"
)

// golden are the faces of testdata/faces.png, eight a line: an expression or none, words, a colour (VEC-FCE-01, 03 to 05, 08).
var golden = []struct {
	words string
	color Color
}{
	{"neutral", Teal}, {"happy", Teal}, {"sad", Teal}, {"angry", Teal}, {"sleepy", Teal}, {"surprised", Teal}, {"asleep", Teal}, {"closed", Teal},
	{"curious", Teal}, {"doubtful", Teal}, {"focused", Teal}, {"shy", Teal}, {"proud", Teal}, {"pained", Teal}, {"delighted", Teal}, {"wink", Teal},
	{"left", Teal}, {"right", Teal}, {"up", Teal}, {"down", Teal}, {"neutral", Color{0.05, 0.95}}, {"neutral", Color{0.11, 1}}, {"happy", Color{0.57, 1}}, {"neutral", Color{0.83, 0.76}},
	{"face_angle=20", Teal}, {"face_center_x=30 face_center_y=-20", Teal}, {"face_scale_x=0.6 face_scale_y=1.4", Teal}, {"scanline_opacity=0.4", Teal}, {"left.eye_center_x=-12 right.eye_center_y=9", Teal},
	{"eye_scale_x=0.5 right.eye_scale_y=1.5", Teal}, {"eye_angle=20", Teal}, {"lower_inner_radius_x=0 lower_inner_radius_y=0 upper_outer_radius_x=1 upper_outer_radius_y=1", Teal},
	{"upper_inner_radius_x=0 upper_inner_radius_y=0 lower_outer_radius_x=1 lower_outer_radius_y=1", Teal}, {"upper_lid_y=0.5 upper_lid_bend=1 right.upper_lid_bend=-1", Teal},
	{"lower_lid_y=0.4 lower_lid_angle=30", Teal}, {"saturation=0.3", Teal}, {"lightness=0.5", Teal}, {"glow_size=1 glow_lightness=0.8", Teal},
	{"hot_spot_center_x=-0.9 right.hot_spot_center_y=0.9", Teal}, {"glow_lightness=0 face_scale_x=1.5 face_scale_y=1.5", Teal},
}

func faceOf(t testing.TB, words string) Params {
	t.Helper()
	p := Neutral
	for word := range strings.FieldsSeq(words) {
		if err := p.Apply(word); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestGolden compares 40 faces with stored ones, within the tolerance of facetest.
func TestGolden(t *testing.T) {
	if len(golden) != 40 {
		t.Fatalf("%d faces", len(golden))
	}
	d := NewDrawer(Standard)
	var shots []facetest.Shot
	for _, g := range golden {
		pic := &Picture{}
		p := faceOf(t, g.words)
		if err := p.Check(); err != nil {
			t.Errorf("%s: %v", g.words, err)
		}
		d.Draw(pic, &p, g.color)
		shots = append(shots, facetest.Shot{Name: g.words, Picture: pic})
	}
	facetest.Golden(t, filepath.Join("testdata", "faces.png"), 8, shots)
}

// TestEveryValue: each value of the face and of either eye changes the picture.
func TestEveryValue(t *testing.T) {
	d := NewDrawer(Standard)
	from := faceOf(t, "upper_lid_y=0.3 lower_lid_y=0.3")
	var was Picture
	d.Draw(&was, &from, Teal)
	try := func(name string, f Field, v *float32, p *Params) {
		old := *v
		for _, to := range []float32{f.Min, f.Max, f.Min*0.3 + f.Max*0.4} {
			var pic Picture
			*v = to
			d.Draw(&pic, p, Teal)
			if pic.Pix != was.Pix {
				*v = old
				return
			}
		}
		t.Errorf("%s changes nothing", name)
		*v = old
	}
	open := Neutral // lids hide radii
	for i, f := range WholeFields {
		try(f.Name, f, &from.Whole[i], &from)
	}
	for i, f := range EyeFields {
		p := &from
		if i >= LowerInnerRadiusX && i <= LowerOuterRadiusY {
			d.Draw(&was, &open, Teal)
			p = &open
		} else {
			d.Draw(&was, &from, Teal)
		}
		try("left."+f.Name, f, &p.Left[i], p)
		try("right."+f.Name, f, &p.Right[i], p)
	}
}

// mean returns the mean brightness of green in a rectangle.
func mean(p *Picture, x0, y0, x1, y1 int) (sum float64) {
	for y := y0; y < y1; y++ {
		for x := x0; x < x1; x++ {
			sum += float64(p.Pix[y*Width+x] >> 5 & 63)
		}
	}
	return sum / float64((x1-x0)*(y1-y0))
}

// TestLooks: what parameters mean, independent of stored pictures.
func TestLooks(t *testing.T) {
	d := NewDrawer(Standard)
	draw := func(words string) *Picture {
		var pic Picture
		p := faceOf(t, words)
		d.Draw(&pic, &p, Teal)
		return &pic
	}
	n := draw("neutral")
	if l, r := mean(n, 0, 0, 92, 96), mean(n, 92, 0, 184, 96); l < 5 || math.Abs(l-r) > 0.05*l {
		t.Errorf("left %v, right %v", l, r)
	}
	if got := draw("eye_scale_x=0"); mean(got, 0, 0, 184, 96) != 0 {
		t.Error("an eye without width is seen")
	}
	if up, down := draw("upper_lid_y=0.5"), draw("lower_lid_y=0.5"); mean(up, 0, 20, 184, 38) > mean(n, 0, 20, 184, 38)/4 || mean(down, 0, 58, 184, 76) > mean(n, 0, 58, 184, 76)/4 {
		t.Error("lids do not hide half of the eye (VEC-FCE-05)")
	}
	// A bend of 1 hides more in the middle of the eye, at x=53, than beside it (VEC-FCE-05).
	if bent := draw("upper_lid_y=0.3 upper_lid_bend=1"); mean(bent, 50, 30, 56, 50) >= mean(bent, 36, 30, 42, 50) {
		t.Error("the lid does not bend")
	}
	// The hot spot is the brightest place (VEC-FCE-03).
	if hot := draw("hot_spot_center_x=0.8"); mean(hot, 60, 40, 68, 56) <= mean(hot, 38, 40, 46, 56)+3 {
		t.Error("the hot spot is not brighter")
	}
	// Every other line is darker, and all are the same with 1 (VEC-FCE-01).
	if lines := draw("scanline_opacity=0.25"); mean(lines, 40, 49, 66, 50) > 0.4*mean(lines, 40, 48, 66, 49) {
		t.Error("no scan lines")
	}
	var grey Picture
	p := Neutral
	d.Draw(&grey, &p, Color{0.3, 0})
	if c := RGBA(grey.Pix[48*Width+53]); c.R < 150 || max(c.R, c.G, c.B)-min(c.R, c.G, c.B) > 8 {
		t.Errorf("without saturation: %v", c)
	}
	for hue, want := range map[float32][3]float32{0: {1, 0, 0}, 1. / 6: {1, 1, 0}, 1. / 3: {0, 1, 0}, 0.5: {0, 1, 1}, 2. / 3: {0, 0, 1}, 5. / 6: {1, 0, 1}, 1: {1, 0, 0}} {
		got := Color{hue, 1}.channels(1)
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-5 {
				t.Errorf("hue %v: %v, want %v", hue, got, want)
			}
		}
	}
}

// TestEyeVectors: 19 and 25 values by position; other lengths and absurd values are refused (VEC-FCE-04).
func TestEyeVectors(t *testing.T) {
	v := make([]float32, EyeValues)
	for i, f := range EyeFields {
		v[i] = f.Max
	}
	all, err := EyeOf(v)
	if err != nil || !slices.Equal(all[:], v) {
		t.Errorf("%v %v", all, err)
	}
	old, err := EyeOf(v[:19])
	if err != nil || old[LowerLidBend] != 1 || old[Saturation] != EyeFields[Saturation].Default || old[GlowLightness] != EyeFields[GlowLightness].Default {
		t.Errorf("%v %v", old, err)
	}
	if none, err := EyeOf(nil); err != nil || none != Neutral.Left {
		t.Errorf("%v %v", none, err)
	}
	for _, n := range []int{1, 14, 18, 20, 24} {
		if _, err := EyeOf(v[:n]); !errors.Is(err, ErrParam) {
			t.Errorf("%d values: %v", n, err)
		}
	}
	for i, f := range EyeFields {
		for _, bad := range []float32{f.Max + 1, f.Min - 1, float32(math.NaN()), float32(math.Inf(1))} {
			w := slices.Clone(v)
			w[i] = bad
			if _, err := EyeOf(w); !errors.Is(err, ErrParam) || !strings.Contains(err.Error(), f.Name) {
				t.Errorf("%s %v: %v", f.Name, bad, err)
			}
		}
	}
	for i, want := range map[int][3]float32{EyeScaleX: {0, 10, 1}, UpperLidAngle: {-45, 45, 0}, UpperLidBend: {-1, 1, 0}, UpperLidY: {0, 1, 0}, GlowLightness: {0, 1, 0.35}, LowerInnerRadiusX: {0, 1, 0.5}} {
		if f := EyeFields[i]; [3]float32{f.Min, f.Max, f.Default} != want {
			t.Errorf("%+v", f)
		}
	}
}

// TestMix: between two faces every value is on a straight line, and a default is one before it is mixed (VEC-FCE-07).
func TestMix(t *testing.T) {
	a, b := faceOf(t, "face_center_x=-10 upper_lid_y=0.2 left.lightness=-1"), faceOf(t, "face_center_x=30 upper_lid_y=0.6 left.lightness=0.5")
	m := Mix(&a, &b, 0.25)
	if m.Whole[CenterX] != 0 || math.Abs(float64(m.Left[UpperLidY]-0.3)) > 1e-6 || m.Left[Lightness] != 0.875 {
		t.Errorf("%v", m.Words())
	}
	layer := faceOf(t, "face_center_x=3 face_scale_y=0.5 eye_scale_x=2 eye_center_y=4 hot_spot_center_x=0.5 eye_angle=10")
	p := faceOf(t, "face_center_x=-10 face_scale_y=0.5 eye_scale_x=1.5 eye_center_y=1 hot_spot_center_x=0.1 hot_spot_center_y=0.7 eye_angle=5")
	p.Add(&layer)
	want := faceOf(t, "face_center_x=-7 face_scale_y=0.25 eye_scale_x=3 eye_center_y=5 hot_spot_center_x=0.3 hot_spot_center_y=0.7 eye_angle=15")
	if !slices.Equal(p.Words(), want.Words()) {
		t.Errorf("%v, want %v", p.Words(), want.Words())
	}
}

// TestWords: the words of a face make the same face.
func TestWords(t *testing.T) {
	for _, g := range golden {
		p := faceOf(t, g.words)
		if got := faceOf(t, strings.Join(p.Words(), " ")); got != p {
			t.Errorf("%s: %v", g.words, p.Words())
		}
	}
	p := Neutral
	for _, bad := range []string{"", "glad", "upper_lid_y", "upper_lid_y=", "upper_lid_y=x", "upper_lid_y=1.5", "middle.upper_lid_y=1", "left.face_angle=1", "face_scale_x=NaN", "face_scale_x=Inf", "face_scale_x=1e99"} {
		if err := p.Apply(bad); !errors.Is(err, ErrParam) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// FuzzApply: a text that is accepted gives a face in range whose words give it again.
func FuzzApply(f *testing.F) {
	for _, g := range golden {
		f.Add(g.words)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := Neutral
		for word := range strings.FieldsSeq(text) {
			if p.Apply(word) != nil {
				return
			}
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		if got := faceOf(t, strings.Join(p.Words(), " ")); got != p {
			t.Fatalf("%q: %v", text, p.Words())
		}
	})
}

// TestHostile: no value makes Draw panic, and drawing allocates nothing.
func TestHostile(t *testing.T) {
	d := NewDrawer(Standard)
	var pic Picture
	values := []float32{0, -1, 1, 10, -1e38, 1e38, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e-30}
	draw := func(p Params) { d.Draw(&pic, &p, Color{values[1], values[3]}) }
	for _, v := range values {
		p := Neutral
		for i := range p.Whole {
			q := p
			q.Whole[i] = v
			draw(q)
		}
		for i := range p.Left {
			q := p
			q.Left[i], q.Right[i] = v, -v
			draw(q)
		}
	}
	p := faceOf(t, "happy")
	if n := testing.AllocsPerRun(10, func() { d.Draw(&pic, &p, Teal) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestFiles: the picture in the display's bytes, as PNG and as GIF.
func TestFiles(t *testing.T) {
	d := NewDrawer(Standard)
	var pic Picture
	p := Neutral
	d.Draw(&pic, &p, Teal)
	raw := pic.AppendRGB565(nil)
	if at := 2 * (48*Width + 53); len(raw) != 35328 || uint16(raw[at])<<8|uint16(raw[at+1]) != pic.Pix[48*Width+53] || pic.Pix[48*Width+53] == 0 {
		t.Errorf("%d bytes", len(raw))
	}
	var b bytes.Buffer
	if err := WritePNG(&b, &pic, 2); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil || img.Bounds() != image.Rect(0, 0, 368, 192) || img.At(107, 97) != pic.At(53, 48) {
		t.Errorf("%v %v", img.Bounds(), err)
	}
	var m Movie
	if err := m.WriteGIF(&b, time.Second, 1); !errors.Is(err, ErrMovie) {
		t.Error(err)
	}
	for i := range 7 {
		p.Whole[CenterX] = float32(i)
		d.Draw(&pic, &p, Teal)
		if err := m.Add(&pic); err != nil {
			t.Fatal(err)
		}
	}
	b.Reset()
	if err := m.WriteGIF(&b, time.Second/30, 1); err != nil {
		t.Fatal(err)
	}
	g, err := gif.DecodeAll(&b)
	sum := 0
	for _, hundredths := range g.Delay {
		sum += hundredths
	}
	if err != nil || len(g.Image) != 7 || sum != 23 || g.Image[6].At(53, 48) != pic.At(53, 48) {
		t.Errorf("%v: %d pictures, %v", err, len(g.Image), g.Delay)
	}
}

// BenchmarkWorst draws eyes that fill the display.
func BenchmarkWorst(b *testing.B) {
	d := NewDrawer(Standard)
	var pic Picture
	p := faceOf(b, "face_scale_x=4 face_scale_y=4 upper_lid_y=0.1 lower_lid_y=0.1")
	b.ReportAllocs()
	for b.Loop() {
		d.Draw(&pic, &p, Teal)
	}
}

func BenchmarkDraw(b *testing.B) {
	d := NewDrawer(Standard)
	var pic Picture
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := Neutral
		p.Left[UpperLidY] = float32(i%10) / 10
		d.Draw(&pic, &p, Teal)
	}
}
