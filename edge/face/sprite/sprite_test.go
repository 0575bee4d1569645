package sprite

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"iter"
	"strings"
	"testing"
	"testing/fstest"

	"kennel/edge/face"
)

// plain is a picture of one colour.
func plain(w, h int, c color.NRGBA) *image.NRGBA {
	p := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			p.SetNRGBA(x, y, c)
		}
	}
	return p
}

func file(t testing.TB, p image.Image) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, p); err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: b.Bytes()}
}

func of(pictures ...image.Image) iter.Seq2[image.Image, error] {
	return func(yield func(image.Image, error) bool) {
		for _, p := range pictures {
			if !yield(p, nil) {
				return
			}
		}
	}
}

var (
	grey  = color.NRGBA{128, 128, 128, 255}
	white = color.NRGBA{255, 255, 255, 255}
	red   = color.NRGBA{255, 0, 0, 255}
	blue  = face.Color{Hue: 2. / 3, Saturation: 1}
)

// TestDraw: a grey picture is as bright as it is grey, in the colour of the eyes; a coloured one is drawn as it is; both as far as alpha says, and on the display alone
// (VEC-DSP-09, part of VEC-DSP-05).
func TestDraw(t *testing.T) {
	full := Place{Alpha: 1, Lines: 1, Color: blue}
	with := func(change func(*Place)) Place {
		p := full
		change(&p)
		return p
	}
	for name, tc := range map[string]struct {
		from  color.NRGBA
		at    Place
		below uint16
		want  uint16
	}{
		"grey in the colour of the eyes":    {white, full, 0xffff, 0x001f},
		"half as bright":                    {grey, full, 0xffff, 0x0010},
		"grey that stays":                   {grey, with(func(p *Place) { p.Plain = true }), 0, 16<<11 | 32<<5 | 16},
		"a colour":                          {red, full, 0x001f, 0xf800},
		"a colour of which half is seen":    {color.NRGBA{255, 0, 0, 128}, full, 0x001f, 16<<11 | 15},
		"half of a box":                     {red, with(func(p *Place) { p.Alpha = 0.5 }), 0x001f, 16<<11 | 15},
		"without a box":                     {red, with(func(p *Place) { p.Alpha = 0 }), 0x001f, 0x001f},
		"clear":                             {color.NRGBA{255, 0, 0, 0}, full, 0x07e0, 0x07e0},
		"a place below the display":         {red, with(func(p *Place) { p.Y = face.Height }), 7, 7},
		"a place at the left of it":         {red, with(func(p *Place) { p.X = -4 }), 7, 7},
		"three pixels at the left of it":    {red, with(func(p *Place) { p.X = -3 }), 7, 0xf800},
		"three pixels above it":             {red, with(func(p *Place) { p.Y = -3 }), 7, 0xf800},
		"a picture that is cut by its box":  {red, with(func(p *Place) { p.Width, p.X = 2, -2 }), 7, 7},
		"a picture that is cut from below":  {red, with(func(p *Place) { p.Height, p.Y = 2, -2 }), 7, 7},
		"a picture whose box shows a pixel": {red, with(func(p *Place) { p.Width, p.Height, p.X, p.Y = 3, 3, -2, -2 }), 7, 0xf800},
	} {
		s, err := New(of(plain(4, 4, tc.from)))
		if err != nil {
			t.Fatal(err)
		}
		dst := &face.Picture{}
		dst.Pix[0] = tc.below
		s.Draw(dst, 0, tc.at)
		if dst.Pix[0] != tc.want {
			t.Errorf("%s: %04x, want %04x", name, dst.Pix[0], tc.want)
		}
	}
	s, _ := New(of(plain(face.Width, face.Height, red), plain(face.Width, face.Height, white)))
	dst := &face.Picture{}
	lines := with(func(p *Place) { p.Lines = 0 })
	if n := testing.AllocsPerRun(3, func() { s.Draw(dst, 0, lines) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if dst.Pix[0] != 0xf800 || dst.Pix[face.Width] != 0 || dst.Pix[2*face.Width] != 0xf800 {
		t.Errorf("lines %04x %04x %04x", dst.Pix[0], dst.Pix[face.Width], dst.Pix[2*face.Width])
	}
	if s.Draw(dst, 1, full); dst.Pix[face.Width*face.Height-1] != 0x001f {
		t.Errorf("the last pixel of the second picture: %04x", dst.Pix[face.Width*face.Height-1])
	}
}

// TestNew: sizes, and how much there may be.
func TestNew(t *testing.T) {
	noise := image.NewNRGBA(image.Rect(0, 0, face.Width, face.Height))
	for i := range noise.Pix {
		noise.Pix[i] = uint8(i*7 + i/4 | 1)
	}
	many := make([]image.Image, MaxFrames+1)
	heavy := make([]image.Image, MaxSequence/(4*face.Width*face.Height)+1)
	for i := range many {
		many[i] = plain(1, 1, red)
	}
	for i := range heavy {
		heavy[i] = noise
	}
	for name, tc := range map[string]struct {
		pictures []image.Image
		want     bool
	}{
		"one":              {[]image.Image{plain(1, 1, red)}, true},
		"two sizes":        {[]image.Image{plain(1, 1, red), plain(1, 2, red)}, false},
		"none":             {nil, false},
		"too wide":         {[]image.Image{plain(face.Width+1, 1, red)}, false},
		"too high":         {[]image.Image{plain(1, face.Height+1, red)}, false},
		"without size":     {[]image.Image{image.NewNRGBA(image.Rectangle{})}, false},
		"as many as there": {many[1:], true},
		"more":             {many, false},
		"not too heavy":    {heavy[1:], true},
		"too heavy":        {heavy, false},
	} {
		s, err := New(of(tc.pictures...))
		if (err == nil) != tc.want || err != nil && !errors.Is(err, ErrSprite) {
			t.Errorf("%s: %v", name, err)
		} else if err == nil && s.Len() != len(tc.pictures) {
			t.Errorf("%s: %d", name, s.Len())
		}
	}
}

// tells says which picture of the tests below a sprite begins with: its first pixel's red, of 31.
func tells(s *Sequence) int {
	dst := &face.Picture{}
	s.Draw(dst, 0, Place{Alpha: 1, Lines: 1})
	return int(dst.Pix[0] >> 11)
}

// TestFiles: sequences are found by the names of their folders, in any case, and single sprites by their file's, in the folders of the rows, of which the first wins;
// frames are in the order of the numbers at the end of their names (VEC-DSP-07, VEC-DSP-08).
func TestFiles(t *testing.T) {
	mark := func(n uint8) *fstest.MapFile { return file(t, plain(2, 2, color.NRGBA{n<<3 | n>>2, 0, 1, 255})) }
	from := fstest.MapFS{
		"assets/sprites/spriteSequences/face_Snow/face_snow_00010.png": mark(3),
		"assets/sprites/spriteSequences/face_Snow/note.txt":            {Data: []byte("x")},
		"config/sprites/spriteSequences/face_snow/a_00.png":            mark(4),
		"config/sprites/spriteSequences/second/a_00.png":               mark(5),
		"config/devOnlySprites/spriteSequences/second/a_00.png":        mark(6),
		"config/devOnlySprites/spriteSequences/third/a_0000.png":       mark(7),
		"config/devOnlySprites/spriteSequences/gap/a_00.png":           mark(1),
		"config/devOnlySprites/spriteSequences/gap/a_02.png":           mark(1),
		"config/devOnlySprites/spriteSequences/twice/a_00.png":         mark(1),
		"config/devOnlySprites/spriteSequences/twice/b_000.png":        mark(1),
		"config/devOnlySprites/spriteSequences/short/a_0.png":          mark(1),
		"config/devOnlySprites/spriteSequences/long/a_000000.png":      mark(1),
		"config/devOnlySprites/spriteSequences/none/a.txt":             {},
		"config/devOnlySprites/spriteSequences/bad/a_00.png":           {Data: []byte("GIF89a")},
		"assets/sprites/independentSprites/one.png":                    mark(8),
		"config/sprites/independentSprites/one.png":                    mark(9),
		"config/sprites/independentSprites/two.png":                    mark(10),
		"config/facePNGs/two.png":                                      mark(11),
		"config/facePNGs/three.png":                                    mark(12),
		"config/devOnlySprites/independentSprites/three.png":           mark(13),
		"config/devOnlySprites/independentSprites/four.png":            mark(14),
		"config/facePNGs/large.png":                                    file(t, plain(face.Width+1, 1, red)),
		"config/facePNGs/heavy.png":                                    {Data: make([]byte, MaxFile+1)},
		"secret.png":                                                   mark(15),
	}
	for i := range 10 {
		from[fmt.Sprintf("assets/sprites/spriteSequences/face_Snow/face_snow_%05d.png", i)] = mark(uint8(20 + i))
	}
	set := NewSet(Files(from))
	for name, want := range map[string]int{"FACE_snow": 20, "second": 5, "third": 7, "one": 8, "two": 10, "three": 12, "four": 14} {
		s, err := set.Get(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := tells(s); got != want {
			t.Errorf("%s: picture %d, want %d", name, got, want)
		}
		if w, h := s.Size(); w != 2 || h != 2 {
			t.Errorf("%s: %d by %d", name, w, h)
		}
	}
	snow, _ := set.Get("face_snow")
	if snow.Len() != 11 {
		t.Fatalf("%d pictures", snow.Len())
	}
	last := &face.Picture{}
	if snow.Draw(last, 10, Place{Alpha: 1, Lines: 1}); last.Pix[0]>>11 != 3 {
		t.Errorf("the last picture is %d", last.Pix[0]>>11)
	}
	for _, name := range []string{"gap", "twice", "short", "long", "none", "bad", "large", "heavy"} {
		if _, err := set.Get(name); !errors.Is(err, ErrSprite) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "nothing", "../../secret", "..", "face_snow/face_snow_00000", `a\b`} {
		if _, err := set.Get(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestKept: a sprite is decoded once; a set keeps at most MaxKept bytes and drops the least recently used sprite first.
func TestKept(t *testing.T) {
	reads := map[string]int{}
	noise := plain(face.Width, face.Height, red)
	pictures := make([]image.Image, 25) // 1.8 MB: three fit
	for i := range pictures {
		pictures[i] = noise
	}
	set := NewSet(func(name string) (iter.Seq2[image.Image, error], error) {
		reads[strings.ToLower(name)]++
		return of(pictures...), nil
	})
	for _, name := range []string{"a", "b", "A", "c", "a", "d", "a", "c", "B"} {
		if _, err := set.Get(name); err != nil {
			t.Fatal(err)
		}
		if set.bytes > MaxKept {
			t.Errorf("%d bytes", set.bytes)
		}
	}
	if fmt.Sprint(reads) != "map[a:1 b:2 c:1 d:1]" {
		t.Errorf("reads %v", reads)
	}
}

// FuzzPNG: bytes are refused as ErrSprite, or are a picture that can be drawn.
func FuzzPNG(f *testing.F) {
	f.Add(file(f, plain(3, 2, red)).Data)
	f.Add(file(f, plain(face.Width, face.Height, color.NRGBA{9, 9, 9, 9})).Data)
	g := image.NewGray16(image.Rect(0, 0, 5, 5))
	f.Add(file(f, g).Data)
	f.Add(file(f, plain(3, 2, white)).Data[:40])
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePNG(b)
		if err != nil {
			if !errors.Is(err, ErrSprite) {
				t.Fatal(err)
			}
			return
		}
		s, err := New(of(p))
		if err != nil {
			if !errors.Is(err, ErrSprite) {
				t.Fatal(err)
			}
			return
		}
		s.Draw(&face.Picture{}, 0, Place{X: -1, Y: 2, Alpha: 0.7, Lines: 0.2, Color: blue})
	})
}

// BenchmarkDraw is a sequence of the whole display, every pixel of which is half seen.
func BenchmarkDraw(b *testing.B) {
	s, err := New(of(plain(face.Width, face.Height, color.NRGBA{255, 128, 0, 128})))
	if err != nil {
		b.Fatal(err)
	}
	dst := &face.Picture{}
	b.ReportAllocs()
	for b.Loop() {
		s.Draw(dst, 0, Place{Alpha: 1, Lines: 1})
	}
}
