// Package facetest compares pictures of the display with stored ones.
package facetest

import (
	"bytes"
	"errors"
	"image"
	"image/draw"
	"image/png"
	"math"
	"os"
	"testing"
)

// Shot is a picture of a test, and what it shows.
type Shot struct {
	Name    string
	Picture image.Image
}

// Tolerance of Golden: machines may round differently, so that a pixel may be one step of its 5 or 6 bits off, and one of so many may be further off.
const (
	step  = 9
	oneOf = 3500
)

// Golden compares shots of one size with those of a PNG file, which has so many a line, and fails if two of them are the same. FACE_UPDATE=1 writes the file again.
func Golden(t *testing.T, file string, columns int, shots []Shot) {
	t.Helper()
	size := shots[0].Picture.Bounds().Size()
	place := func(i int) image.Rectangle {
		at := image.Pt(i%columns*size.X, i/columns*size.Y)
		return image.Rectangle{Min: at, Max: at.Add(size)}
	}
	sheet := image.NewRGBA(image.Rect(0, 0, size.X*columns, place(len(shots)-1).Max.Y))
	seen := map[string]string{}
	for i, s := range shots {
		one := image.NewRGBA(image.Rectangle{Max: size})
		draw.Draw(one, one.Rect, s.Picture, image.Point{}, draw.Src)
		if was, ok := seen[string(one.Pix)]; ok {
			t.Errorf("%q and %q look the same", was, s.Name)
		}
		seen[string(one.Pix)] = s.Name
		draw.Draw(sheet, place(i), one, image.Point{}, draw.Src)
	}
	if os.Getenv("FACE_UPDATE") == "1" {
		var b bytes.Buffer
		if err := errors.Join(png.Encode(&b, sheet), os.WriteFile(file, b.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stored, err := png.Decode(f)
	if err != nil || stored.Bounds() != sheet.Bounds() {
		t.Fatalf("%v, %v: want %v", err, stored.Bounds(), sheet.Bounds())
	}
	far := func(x uint8, y uint32) bool { return math.Abs(float64(x)-float64(y>>8)) > step }
	off, total := make([]int, len(shots)), 0
	for i := range shots {
		for y := place(i).Min.Y; y < place(i).Max.Y; y++ {
			for x := place(i).Min.X; x < place(i).Max.X; x++ {
				a := sheet.RGBAAt(x, y)
				r, g, b, _ := stored.At(x, y).RGBA()
				if far(a.R, r) || far(a.G, g) || far(a.B, b) {
					off[i]++
					total++
				}
			}
		}
	}
	if total > len(shots)*size.X*size.Y/oneOf {
		for i, n := range off {
			if n > 0 {
				t.Errorf("%s: %d pixels differ", shots[i].Name, n)
			}
		}
	}
}
