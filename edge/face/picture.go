package face

import (
	"cmp"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"io"
	"slices"
	"time"
)

// WritePNG writes a picture as a PNG file, each pixel as a square of zoom by zoom.
func WritePNG(w io.Writer, p *Picture, zoom int) error {
	zoom = max(zoom, 1)
	out := image.NewRGBA(image.Rect(0, 0, Width*zoom, Height*zoom))
	for y := range Height * zoom {
		for x := range Width * zoom {
			out.SetRGBA(x, y, RGBA(p.Pix[y/zoom*Width+x/zoom]))
		}
	}
	return png.Encode(w, out)
}

// MaxMovie is the most pictures that a Movie holds: a minute and a half at 30 a second, 95 MB.
const MaxMovie = 2700

// ErrMovie: a movie cannot be written.
var ErrMovie = errors.New("movie cannot be written")

// Movie collects pictures for a GIF file, which has one palette of the 256 colours that occur most.
type Movie struct {
	pictures []*Picture
	count    [1 << 16]int
}

// Add adds a copy of a picture. ErrMovie beyond MaxMovie.
func (m *Movie) Add(p *Picture) error {
	if len(m.pictures) == MaxMovie {
		return ErrMovie
	}
	one := *p
	m.pictures = append(m.pictures, &one)
	for _, v := range one.Pix {
		m.count[v]++
	}
	return nil
}

// palette returns the colours, and for each RGB565 value that occurs the nearest of them.
func (m *Movie) palette() (colors color.Palette, index []uint8) {
	var values []uint16
	for v, n := range m.count {
		if n > 0 {
			values = append(values, uint16(v))
		}
	}
	slices.SortStableFunc(values, func(a, b uint16) int { return cmp.Compare(m.count[b], m.count[a]) })
	for _, v := range values[:min(len(values), 256)] {
		colors = append(colors, RGBA(v))
	}
	index = make([]uint8, 1<<16)
	for i, v := range values {
		if i < len(colors) {
			index[v] = uint8(i)
		} else {
			index[v] = uint8(colors.Index(RGBA(v)))
		}
	}
	return colors, index
}

// WriteGIF writes the pictures as a GIF file that repeats for ever, each pixel as a square of zoom by zoom. GIF times are hundredths of a second: the end of
// each picture is rounded, so that errors do not add up. ErrMovie without a picture.
func (m *Movie) WriteGIF(w io.Writer, each time.Duration, zoom int) error {
	if len(m.pictures) == 0 {
		return ErrMovie
	}
	zoom = max(zoom, 1)
	colors, index := m.palette()
	var out gif.GIF
	const tick = 10 * time.Millisecond
	shown := time.Duration(0)
	for i, p := range m.pictures {
		one := image.NewPaletted(image.Rect(0, 0, Width*zoom, Height*zoom), colors)
		for y := range Height * zoom {
			for x := range Width * zoom {
				one.Pix[y*one.Stride+x] = index[p.Pix[y/zoom*Width+x/zoom]]
			}
		}
		end := (time.Duration(i+1)*each + tick/2) / tick
		out.Image, out.Delay, shown = append(out.Image, one), append(out.Delay, int(end-shown)), end
	}
	return gif.EncodeAll(w, &out)
}
