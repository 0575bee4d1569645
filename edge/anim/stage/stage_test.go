package stage

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"io/fs"
	"iter"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/face"
	"kennel/edge/face/sprite"
)

// album has sprites whose pictures tell which they are: picture n has red n+1 of 31, in a colour that is not grey. NAME is "w h count".
func album(name string) (iter.Seq2[image.Image, error], error) {
	var w, h, n int
	if _, err := fmt.Sscanf(name, "%dx%dx%d", &w, &h, &n); err != nil {
		return nil, fs.ErrNotExist
	}
	return func(yield func(image.Image, error) bool) {
		for i := range n {
			p := image.NewNRGBA(image.Rect(0, 0, w, h))
			for k := range w * h {
				v := uint8(i+1) << 3
				p.SetNRGBA(k%w, k/w, color.NRGBA{v | v>>5, 0, 255, 255})
			}
			if !yield(p, nil) {
				return
			}
		}
	}, nil
}

var find = sprite.NewSet(album).Get

// at returns which picture is seen at a pixel after drawing: 0 is none.
func at(draw func(*face.Picture), x, y int) int {
	dst := &face.Picture{}
	draw(dst)
	return int(dst.Pix[y*face.Width+x] >> 11)
}

func parse(t *testing.T, lines string) *clip.Clip {
	t.Helper()
	all, err := clip.ParseText([]byte("clip anim_x\n" + lines))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all[0].Check(clip.Vector) {
		t.Fatal(p)
	}
	return &all[0]
}

func scene(t *testing.T, lines string, length time.Duration) *Scene {
	t.Helper()
	s, problems := New(parse(t, lines), length, find)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return s
}

// seen returns which pictures a scene shows at a pixel, by milliseconds.
func seen(s *Scene, x, y int, times ...int) (out []int) {
	for _, t := range times {
		out = append(out, at(func(p *face.Picture) { s.Draw(p, time.Duration(t)*time.Millisecond, face.Teal) }, x, y))
	}
	return out
}

func want(t *testing.T, what string, got []int, want ...int) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestSequence: the pictures of a sequence take as long as the clip, or without a length a thirtieth of a second each (part of VEC-DSP-10); a later one replaces it.
func TestSequence(t *testing.T) {
	s := scene(t, "0 sprites 184x96x4\n", time.Second)
	want(t, "a second", seen(s, 0, 0, -1, 0, 249, 250, 500, 750, 999, 1000, 1250), 0, 1, 1, 2, 3, 4, 4, 4, 0)
	s = scene(t, "0 sprites 184x96x4\n", 2*time.Second)
	want(t, "two seconds", seen(s, 183, 95, 0, 499, 500, 1000, 1500, 2000), 1, 1, 2, 3, 4, 4)
	s = scene(t, "100 sprites 184x96x3\n", 0)
	want(t, "without a length", seen(s, 0, 0, 99, 100, 133, 134, 167, 199, 201), 0, 1, 1, 2, 3, 3, 0)
	s = scene(t, "0 sprites 184x96x2\n500 sprites 184x96x10\n", time.Second)
	want(t, "another one", seen(s, 0, 0, 499, 500, 600, 999), 1, 1, 2, 5)
	if s, problems := New(parse(t, "0 face happy\n"), time.Second, find); s != nil || problems != nil {
		t.Errorf("a clip without sprites: %v, %v", s, problems)
	}
	s.Draw(&face.Picture{}, 0, face.Teal)
	var none *Scene
	none.Draw(&face.Picture{}, 0, face.Teal)
	frames, half := scene(t, "0 sprites 184x96x1 scanlines=0.5\n", time.Second), &face.Picture{}
	frames.Draw(half, 0, face.Teal)
	if half.Pix[0]&31 != 31 || half.Pix[face.Width]&31 != 16 {
		t.Errorf("lines %04x and %04x", half.Pix[0], half.Pix[face.Width])
	}
}

// TestBoxes: at the end of its sequence a box is empty, keeps the last picture or begins again; a single picture stays; its place moves in a straight line to the next
// one, without the sequence beginning again (VEC-AFF-15).
func TestBoxes(t *testing.T) {
	const line = "%d box b layer=l asset=%s method=RGBA end=%s x=%d y=%d width=4 height=4\n"
	for end, last := range map[string]int{"Clear": 0, "Hold": 3, "Loop": 1} {
		s := scene(t, fmt.Sprintf(line, 100, "4x4x3", end, 10, 10), time.Second)
		want(t, end, seen(s, 10, 10, 99, 100, 134, 199, 201), 0, 1, 2, 3, last)
		want(t, end+" elsewhere", append(seen(s, 9, 10, 110), seen(s, 14, 10, 110)...), 0, 0)
	}
	s := scene(t, fmt.Sprintf(line, 0, "4x4x1", "Clear", 0, 0)+fmt.Sprintf(line, 500, "clear_sprite_box", "Clear", 0, 0), time.Second)
	want(t, "a single picture", seen(s, 0, 0, 0, 400, 499, 500, 900), 1, 1, 1, 0, 0)
	s = scene(t, fmt.Sprintf(line, 0, "4x4x30", "Hold", 0, 0)+fmt.Sprintf(line, 200, "4x4x30", "Hold", 20, 40)+fmt.Sprintf(line, 300, "4x4x2", "Hold", 20, 40), time.Second)
	want(t, "its way", append(seen(s, 11, 21, 0, 100, 200), seen(s, 20, 40, 100, 200, 299, 300, 340)...), 0, 4, 0, 0, 7, 9, 1, 2)
	s = scene(t, "0 box b layer=l asset=9x9x1 method=RGBA end=Hold width=8 height=8\n100 box b layer=l asset=9x9x1 method=RGBA end=Hold alpha=0\n", time.Second)
	want(t, "its size", append(seen(s, 7, 7, 0), seen(s, 8, 8, 0, 100)...), 1, 0, 0)
	dst := &face.Picture{}
	s.Draw(dst, 50*time.Millisecond, face.Teal)
	if dst.Pix[0]&31 != 16 {
		t.Errorf("half way of its alpha: %04x", dst.Pix[0])
	}
	if n := testing.AllocsPerRun(3, func() { s.Draw(dst, 50*time.Millisecond, face.Teal) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestOrder: sprites are above boxes, boxes above the face, and boxes above those that the clip names before them (VEC-DSP-02).
func TestOrder(t *testing.T) {
	const boxes = "0 box a layer=l asset=8x8x1 method=RGBA end=Hold\n1 box b layer=l asset=4x4x2 method=RGBA end=Hold\n2 box a layer=m asset=2x2x3 method=RGBA end=Hold\n"
	s := scene(t, boxes, time.Second)
	dst := &face.Picture{}
	for i := range dst.Pix {
		dst.Pix[i] = 0xf800
	}
	s.Draw(dst, 50*time.Millisecond, face.Teal)
	got := []int{}
	for _, x := range []int{0, 3, 7, 8} {
		got = append(got, int(dst.Pix[x*face.Width+x]>>11))
	}
	want(t, "boxes", got, 2, 2, 1, 31)
	s = scene(t, boxes+"0 sprites 184x96x9\n", time.Second)
	want(t, "a sprite above them", append(seen(s, 0, 0, 900), seen(s, 50, 50, 900)...), 9, 9)
}

// TestMethods: a grey picture of a box shines in the colour of the eyes, or with RGBA stays grey (part of VEC-AFF-15).
func TestMethods(t *testing.T) {
	dot := image.NewGray(image.Rect(0, 0, 1, 1))
	dot.SetGray(0, 0, color.Gray{255})
	grey := func(string) (*sprite.Sequence, error) {
		return sprite.New(func(yield func(image.Image, error) bool) { yield(dot, nil) })
	}
	for method, want := range map[string]uint16{"CustomHue": 0x001f, "RGBA": 0xffff} {
		s, problems := New(parse(t, "0 box b layer=l asset=x end=Hold method="+method+"\n"), time.Second, grey)
		dst := &face.Picture{}
		s.Draw(dst, 0, face.Color{Hue: 2. / 3, Saturation: 1})
		if len(problems) > 0 || dst.Pix[0] != want {
			t.Errorf("%s: %04x, want %04x, %v", method, dst.Pix[0], want, problems)
		}
	}
}

// TestProblems: pictures that are not there, or that have another size than the display or their box, are left out with their reason, and the others are shown (part of VEC-DSP-08).
func TestProblems(t *testing.T) {
	s, problems := New(parse(t, `0 sprites nothing
100 sprites 183x96x2
200 sprites 184x96x2
0 box a layer=l asset=4x4x2 method=RGBA end=Hold width=5 height=4
1 box b layer=l asset=gone method=RGBA end=Hold
2 box c layer=l asset=4x4x1 method=RGBA end=Hold width=5 height=5
`), time.Second, find)
	if len(problems) != 4 || !errors.Is(problems[0], fs.ErrNotExist) || !errors.Is(problems[1], sprite.ErrSprite) || !errors.Is(problems[2], sprite.ErrSprite) || !errors.Is(problems[3], fs.ErrNotExist) {
		t.Errorf("problems %v", problems)
	}
	for i, place := range []string{"FaceAnimationKeyFrame[0]", "FaceAnimationKeyFrame[1]", "SpriteBoxKeyFrame[0]", "SpriteBoxKeyFrame[1]"} {
		if i < len(problems) && !strings.Contains(problems[i].Error(), place) {
			t.Errorf("%v: want %s", problems[i], place)
		}
	}
	want(t, "the others", append(seen(s, 90, 90, 50, 150, 250), seen(s, 0, 0, 50)...), 0, 0, 1, 1)
}

// TestAbsurd: a clip with more boxes than may be is refused.
func TestAbsurd(t *testing.T) {
	text := "clip anim_x\n"
	for i := range clip.MaxBoxes + 1 {
		text += fmt.Sprintf("%d box b%d layer=l asset=4x4x1 method=RGBA end=Hold\n", i, i)
	}
	all, err := clip.ParseText([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if p := all[0].Check(clip.Vector); len(p) != 1 || p[0].Field != "spriteBoxName" || p[0].Keyframe != clip.MaxBoxes {
		t.Errorf("problems %v", p)
	}
}

const (
	layoutFile = `[{"layerName": "L", "images": [
		{"spriteBoxName": "Icon", "spriteRenderMethod": "RGBA", "x": 170, "y": -10, "width": 40, "height": 20},
		{"spriteBoxName": "Tens", "spriteRenderMethod": "CustomHue", "x": 10, "y": 20, "width": 8, "height": 8},
		{"spriteBoxName": "Empty", "spriteRenderMethod": "CustomHue", "x": 0, "y": 0, "width": 8, "height": 8}]}]`
	mapFile = `[{"layerName": "L", "images": [{"spriteBoxName": "Icon", "spriteName": "40X20x2"}, {"spriteBoxName": "Tens", "spriteName": "9x9x1"}]}]`
)

// TestOpen: the triggers' files name a layout and a map, of which the boxes are filled: at their places, cut at the display's edge and, of single pictures, at the box's; sequences
// repeat (VEC-DSP-04, VEC-DSP-05, VEC-DSP-06).
func TestOpen(t *testing.T) {
	resources := fstest.MapFS{
		layoutTriggers:                     {Data: []byte(`[{"CladEvent": "Weather", "LayoutName": "weather"}, {"CladEvent": "Bad", "LayoutName": "bad"}, {"CladEvent": "Gone", "LayoutName": "gone"}]`)},
		mapTriggers:                        {Data: []byte(`[{"CladEvent": "WeatherRain", "MapName": "rain"}, {"CladEvent": "Wrong", "MapName": "wrong"}]`)},
		layoutFolder + "/a/b/Weather.json": {Data: []byte(layoutFile)},
		layoutFolder + "/bad.json":         {Data: []byte("[{}]]")},
		mapFolder + "/rain.json":           {Data: []byte(mapFile)},
		mapFolder + "/x/wrong.json":        {Data: []byte(strings.Replace(mapFile, "Tens", "Ones", 1))},
	}
	lower := func(name string) (*sprite.Sequence, error) { return find(strings.ToLower(name)) }
	c, err := Open(resources, "Weather", "WeatherRain", lower)
	if err != nil {
		t.Fatal(err)
	}
	shows := func(x, y int, since time.Duration) int {
		return at(func(p *face.Picture) { c.Draw(p, since, face.Teal) }, x, y)
	}
	want(t, "the icon", []int{shows(170, 0, 0), shows(183, 9, 40*time.Millisecond), shows(170, 9, 70*time.Millisecond), shows(169, 0, 0), shows(170, 10, 0)}, 1, 2, 1, 0, 0)
	want(t, "the digit", []int{shows(10, 20, 0), shows(17, 27, time.Hour), shows(18, 27, 0), shows(0, 0, 0)}, 1, 1, 0, 0)
	for _, tc := range [][2]string{{"None", "WeatherRain"}, {"Weather", "None"}, {"Bad", "WeatherRain"}, {"Gone", "WeatherRain"}, {"Weather", "Wrong"}} {
		if _, err := Open(resources, tc[0], tc[1], lower); !errors.Is(err, clip.ErrClip) && !errors.Is(err, clip.ErrNoClip) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v: %v", tc, err)
		}
	}
}

// TestRefused: layouts, maps and triggers with absurd numbers or names are refused with their place.
func TestRefused(t *testing.T) {
	if l, err := ParseLayout([]byte(layoutFile)); err != nil || len(l) != 1 || len(l[0].Boxes) != 3 || l[0].Boxes[0] != (Box{"Icon", "RGBA", 170, -10, 40, 20}) {
		t.Errorf("%+v, %v", l, err)
	}
	for wrong, place := range map[string]string{
		`"width": 40|"width": 185`:             "[0].images[0].width",
		`"width": 40|"width": 0`:               "[0].images[0].width",
		`"height": 20|"height": 97`:            "[0].images[0].height",
		`"x": 170|"x": 17000`:                  "[0].images[0].x",
		`"y": -10|"y": -5000`:                  "[0].images[0].y",
		`"RGBA"|"CMYK"`:                        "[0].images[0].spriteRenderMethod",
		`"Tens"|"Icon"`:                        "[0].images[1].spriteBoxName",
		`"Tens"|""`:                            "[0].images[1].spriteBoxName",
		`"layerName": "L"|"layerName": ""`:     "[0].layerName",
		`"layerName"|"layer"`:                  "line 4",
		`"x": 10, "y": 20|"x": "ten", "y": 20`: "line 3",
	} {
		from, to, _ := strings.Cut(wrong, "|")
		_, err := ParseLayout([]byte(strings.Replace(layoutFile, from, to, 1)))
		if !errors.Is(err, clip.ErrClip) || !strings.Contains(err.Error(), place) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	for _, wrong := range []string{`[{"layerName": "", "images": [{"spriteBoxName": "a", "spriteName": "b"}]}]`, `[{"layerName": "l", "images": [{"spriteBoxName": "", "spriteName": "b"}]}]`,
		`[{"layerName": "l", "images": [{"spriteBoxName": "a", "spriteName": ""}]}]`, `{}`, `[] []`} {
		if _, err := ParseImageMap([]byte(wrong)); !errors.Is(err, clip.ErrClip) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	for _, wrong := range []string{`[{"CladEvent": "A", "MapName": "a"}, {"CladEvent": "A", "MapName": "b"}]`, `[{"CladEvent": "A", "LayoutName": "a"}]`,
		`[{"CladEvent": "A", "MapName": "a", "More": "b"}]`, `[{"CladEvent": "", "MapName": "a"}]`} {
		if _, err := parseNames([]byte(wrong), "MapName"); !errors.Is(err, clip.ErrClip) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// FuzzLayout: a layout and a map are refused as clip.ErrClip, or can be drawn.
func FuzzLayout(f *testing.F) {
	f.Add([]byte(layoutFile), []byte(mapFile))
	f.Add([]byte(`[]`), []byte(`[{"layerName": "l", "images": []}]`))
	same := func(string) (*sprite.Sequence, error) { return find("4x4x2") }
	f.Fuzz(func(t *testing.T, layout, images []byte) {
		l, err := ParseLayout(layout)
		m, err2 := ParseImageMap(images)
		for _, err := range []error{err, err2} {
			if err != nil && !errors.Is(err, clip.ErrClip) {
				t.Fatal(err)
			}
		}
		c, _ := Compose(l, m, same)
		if len(c.boxes) > clip.MaxBoxes {
			t.Errorf("%d boxes", len(c.boxes))
		}
		c.Draw(&face.Picture{}, time.Second, face.Teal)
	})
}

// BenchmarkScene is a frame of a face with a sequence over the whole display and two boxes: issue 37 wants less than 1 ms.
func BenchmarkScene(b *testing.B) {
	all, err := clip.ParseText([]byte("clip anim_x\n0 sprites 184x96x9\n0 box a layer=l asset=60x30x9 method=RGBA end=Loop width=60 height=30\n1 box b layer=l asset=60x30x9 method=RGBA end=Loop x=90 width=60 height=30 alpha=50\n"))
	if err != nil {
		b.Fatal(err)
	}
	s, problems := New(&all[0], time.Second, find)
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	d, dst := face.NewDrawer(face.Standard), &face.Picture{}
	b.ReportAllocs()
	for b.Loop() {
		d.Draw(dst, &face.Neutral, face.Teal)
		s.Draw(dst, 500*time.Millisecond, face.Teal)
	}
}
