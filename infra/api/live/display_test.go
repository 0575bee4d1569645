package live

import (
	"bytes"
	"image"
	"image/jpeg"
	"reflect"
	"testing"
)

// pictureOf returns a JPEG of one grey.
func pictureOf(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestDisplay: a frame carries the picture of a display; what is no JPEG, too large or of too many pixels is refused.
func TestDisplay(t *testing.T) {
	long := append(pictureOf(t, 8, 8), make([]byte, MaxDisplay)...)
	for name, tc := range map[string]struct {
		picture []byte
		ok      bool
	}{
		"none":            {nil, true},
		"a Vector's":      {pictureOf(t, 184, 96), true},
		"the largest":     {long[:MaxDisplay], true},
		"a byte too long": {long[:MaxDisplay+1], false},
		"no picture":      {[]byte("GIF89a, or a script"), false},
		"cut off":         {pictureOf(t, 184, 96)[:20], false},
		"too wide":        {pictureOf(t, 1025, 8), false},
		"too high":        {pictureOf(t, 8, 1025), false},
	} {
		want := Frame{V: 1, Values: []Value{}, Display: tc.picture}
		b, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseFrame(b); (err == nil) != tc.ok || tc.ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
