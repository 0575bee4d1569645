package sight

import (
	"bytes"
	"fmt"
	"image/color"
	"image/jpeg"
	"slices"
	"strings"
)

// Formats of encoded pictures, by the names of GOSTAI-IF-17.6.
const (
	JPEG  = "jpeg"
	RGB   = "rgb"   // red, green and blue of each pixel, a byte each, row by row
	Grey8 = "grey8" // brightness of each pixel, a byte, row by row
)

// Formats are all of them.
var Formats = []string{JPEG, RGB, Grey8}

// Quality of JPEG (GOSTAI-IF-17.11): 0 is small and bad, 100 is best.
const (
	DefaultQuality = 75
	MostQuality    = 100
)

// Encode returns f in a format. quality is of JPEG.
func Encode(f *Frame, format string, quality int) ([]byte, error) {
	switch format {
	case JPEG:
		var b bytes.Buffer
		b.Grow(f.Width * f.Height / 8)
		err := jpeg.Encode(&b, f.Image(), &jpeg.Options{Quality: max(quality, 1)})
		return b.Bytes(), err
	case Grey8:
		return slices.Clone(f.Pix[:f.Width*f.Height]), nil
	case RGB:
		img, out := f.Image(), make([]byte, 0, 3*f.Width*f.Height)
		for y := range f.Height {
			for x := range f.Width {
				c := img.COffset(x, y)
				r, g, b := color.YCbCrToRGB(img.Y[y*f.Width+x], img.Cb[c], img.Cr[c])
				out = append(out, r, g, b)
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("format %.40q: want one of %s", format, strings.Join(Formats, ", "))
}
