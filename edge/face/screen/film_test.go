package screen

import (
	"errors"
	"testing"
	"time"

	"kennel/edge/face"
)

// TestFilm: frames of a raw file follow each other 30 times a second and repeat, the low byte first; half a frame is refused (part of VEC-DSP-03).
func TestFilm(t *testing.T) {
	const frame = 35_328
	b := make([]byte, 3*frame)
	for i := range 3 {
		for at := 0; at < frame; at += 2 {
			b[i*frame+at], b[i*frame+at+1] = byte(i+1), 0xf8
		}
	}
	f, err := ParseFilm(b)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[time.Duration]uint16{0: 0xf801, 33 * time.Millisecond: 0xf801, 34 * time.Millisecond: 0xf802, 67 * time.Millisecond: 0xf803, 101 * time.Millisecond: 0xf801,
		time.Hour: 0xf801, -time.Second: 0xf801} {
		p := Picture(f, at)
		if p.Pix[0] != want || p.Pix[face.Width*face.Height-1] != want {
			t.Errorf("at %v: %04x, want %04x", at, p.Pix[0], want)
		}
	}
	for _, n := range []int{0, 1, frame - 1, frame + 1, 151 * frame} {
		if _, err := ParseFilm(make([]byte, n)); !errors.Is(err, ErrFilm) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// FuzzFilm: a file is refused, or shows one of its frames at each time.
func FuzzFilm(f *testing.F) {
	f.Add([]byte("x"), int64(0))
	f.Add(make([]byte, 2*filmFrame), int64(time.Second))
	f.Fuzz(func(t *testing.T, b []byte, at int64) {
		film, err := ParseFilm(b)
		if err != nil {
			return
		}
		film.Draw(&face.Picture{}, time.Duration(at))
	})
}
