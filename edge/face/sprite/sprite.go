// Package sprite holds the pictures that a robot draws over its eyes, single ones and sequences, and draws them onto its display.
//
//	PNG files of a robot ─┐
//	drawn by code ────────┴─► Source ──► Set (decodes once, keeps a bounded number of bytes) ──► Sequence ──Draw──► face.Picture
//
// A grey picture says how bright each pixel is, and shines in the colour of the eyes; a coloured one is drawn as it is. Both respect alpha (VEC-DSP-09).
package sprite

import (
	"errors"
	"fmt"
	"image"
	"iter"
	"slices"

	"kennel/edge/face"
)

// Our own limits of a sequence.
const (
	MaxFrames   = 300     // ten seconds at Rate
	MaxSequence = 4 << 20 // bytes in memory
)

// Rate is how many pictures of a sequence are shown a second where nothing else is said (part of VEC-DSP-10).
const Rate = 30

// ErrSprite: pictures are not a sprite. The error says which one, what was expected and what was found.
var ErrSprite = errors.New("sprite refused")

// Sequence is one or more pictures of one size. It does not change, so that goroutines may share it.
type Sequence struct {
	width, height int
	frames        []frame
	bytes         int
}

// frame is one picture: the rows of pixels that are seen, two bytes for each pixel if the picture is grey, and else four. Brightness and colours are multiplied by alpha.
type frame struct {
	rows []row
	grey bool
	pix  []uint8
}

// row is so many pixels beside each other, from a place of the picture on.
type row struct{ x, y, n uint8 }

// New makes a sequence of pictures, each up to the size of the display and all of the same. ErrSprite for other sizes, for no picture, and for more than MaxFrames or
// MaxSequence; an error of pictures as it is.
func New(pictures iter.Seq2[image.Image, error]) (*Sequence, error) {
	s := &Sequence{}
	for p, err := range pictures {
		if err != nil {
			return nil, err
		}
		n := len(s.frames)
		size := p.Bounds().Size()
		switch {
		case n == MaxFrames:
			return nil, fmt.Errorf("%w: expected at most %d pictures, found more", ErrSprite, MaxFrames)
		case size.X < 1 || size.X > face.Width || size.Y < 1 || size.Y > face.Height:
			return nil, fmt.Errorf("%w: picture %d: expected at most %d by %d pixels, found %d by %d", ErrSprite, n, face.Width, face.Height, size.X, size.Y)
		case n > 0 && size != image.Pt(s.width, s.height):
			return nil, fmt.Errorf("%w: picture %d: expected %d by %d pixels as before, found %d by %d", ErrSprite, n, s.width, s.height, size.X, size.Y)
		}
		s.width, s.height = size.X, size.Y
		f := pack(p)
		s.frames = append(s.frames, f)
		if s.bytes += len(f.pix) + 3*len(f.rows); s.bytes > MaxSequence {
			return nil, fmt.Errorf("%w: picture %d: expected at most %d bytes of pixels in all, found %d", ErrSprite, n, MaxSequence, s.bytes)
		}
	}
	if len(s.frames) == 0 {
		return nil, fmt.Errorf("%w: expected a picture, found none", ErrSprite)
	}
	return s, nil
}

// pack keeps what is seen of a picture.
func pack(p image.Image) (f frame) {
	b := p.Bounds()
	f.grey = true
	for y := b.Min.Y; y < b.Max.Y && f.grey; y++ {
		for x := b.Min.X; x < b.Max.X && f.grey; x++ {
			r, g, bl, a := p.At(x, y).RGBA()
			f.grey = a>>8 == 0 || r>>8 == g>>8 && g>>8 == bl>>8
		}
	}
	for y := range b.Dy() {
		open := false
		for x := range b.Dx() {
			r, g, bl, a := p.At(b.Min.X+x, b.Min.Y+y).RGBA()
			if a>>8 == 0 {
				open = false
				continue
			}
			if !open {
				open, f.rows = true, append(f.rows, row{uint8(x), uint8(y), 0})
			}
			f.rows[len(f.rows)-1].n++
			light := [3]uint8{uint8(min(r, a) >> 8), uint8(min(g, a) >> 8), uint8(min(bl, a) >> 8)}
			if f.grey {
				f.pix = append(f.pix, light[0], uint8(a>>8))
			} else {
				f.pix = append(append(f.pix, light[:]...), uint8(a>>8))
			}
		}
	}
	f.rows, f.pix = slices.Clip(f.rows), slices.Clip(f.pix)
	return f
}

// Len returns how many pictures there are, at least 1.
func (s *Sequence) Len() int { return len(s.frames) }

// Bytes returns how much memory the pixels take.
func (s *Sequence) Bytes() int { return s.bytes }

// Size returns width and height in pixels.
func (s *Sequence) Size() (width, height int) { return s.width, s.height }

// Place says where and how a picture is drawn.
type Place struct {
	X, Y          int        // of the upper left corner, in pixels; it may be outside of the display
	Width, Height int        // what is beyond is not drawn; 0: all of the picture
	Alpha         float32    // 0 to 1
	Lines         float32    // how much of every second line is drawn, 0 to 1
	Color         face.Color // of the eyes
	Plain         bool       // a grey picture stays grey
}

// Draw draws picture n, 0 to Len-1, over what dst shows. It allocates nothing.
func (s *Sequence) Draw(dst *face.Picture, n int, at Place) {
	f := &s.frames[n]
	inside := image.Rect(0, 0, face.Width, face.Height)
	if at.Width > 0 {
		inside.Max.X = min(inside.Max.X, at.X+at.Width)
	}
	if at.Height > 0 {
		inside.Max.Y = min(inside.Max.Y, at.Y+at.Height)
	}
	each := 4
	tint := [3]float32{1, 1, 1}
	if f.grey {
		each = 2
		if !at.Plain {
			tint = at.Color.RGB()
		}
	}
	var full [2][4]uint32 // by line: shares of red, green, blue and alpha, of 256
	for i, lines := range [2]float32{1, at.Lines} {
		share := min(max(at.Alpha*lines, 0), 1) * 256
		full[i] = [4]uint32{uint32(share*tint[0] + 0.5), uint32(share*tint[1] + 0.5), uint32(share*tint[2] + 0.5), uint32(share + 0.5)}
	}
	next := f.pix
	for _, r := range f.rows {
		pix := next
		next = next[int(r.n)*each:]
		x, y := at.X+int(r.x), at.Y+int(r.y)
		from, to := max(0, -x), min(int(r.n), inside.Max.X-x)
		if y < 0 || y >= inside.Max.Y || from >= to {
			continue
		}
		share := &full[y&1]
		line := dst.Pix[y*face.Width+x+from : y*face.Width+x+to]
		for i := range line {
			px := pix[(from+i)*each:][:each]
			if f.grey {
				line[i] = over(line[i], share, uint32(px[0]), uint32(px[0]), uint32(px[0]), uint32(px[1]))
			} else {
				line[i] = over(line[i], share, uint32(px[0]), uint32(px[1]), uint32(px[2]), uint32(px[3]))
			}
		}
	}
}

// over returns a pixel with another one over it, whose channels of 0 to 255 are multiplied by alpha already.
func over(was uint16, share *[4]uint32, r, g, b, a uint32) uint16 {
	rest := 255 - (a*share[3]+128)>>8
	mix := func(v, share, below, most uint32) uint32 {
		return (v*share*most + below*rest*256 + 128*255) / (256 * 255)
	}
	v := uint32(was)
	return uint16(mix(r, share[0], v>>11, 31)<<11 | mix(g, share[1], v>>5&63, 63)<<5 | mix(b, share[2], v&31, 31))
}
