package screen

import (
	"errors"
	"fmt"
	"time"

	"kennel/edge/face"
)

// Film is a film of whole frames that repeats, as robots show one while they start (part of VEC-DSP-03).
type Film struct{ frames []byte }

// The form of a film. The source gives neither order of bytes nor rate.
const (
	filmFrame = 2 * face.Width * face.Height
	filmEach  = time.Second / 30
)

// MaxFilm is the most bytes of a film: five seconds; our own limit.
const MaxFilm = 150 * filmFrame

// ErrFilm: bytes are not a film. The error says why.
var ErrFilm = errors.New("not a film of whole frames")

// ParseFilm reads a film: one frame after the other, RGB565, the low byte first, 30 a second. It keeps b.
func ParseFilm(b []byte) (*Film, error) {
	if len(b) == 0 || len(b) > MaxFilm || len(b)%filmFrame != 0 {
		return nil, fmt.Errorf("%w: expected 1 to %d times %d bytes, found %d", ErrFilm, MaxFilm/filmFrame, filmFrame, len(b))
	}
	return &Film{b}, nil
}

// Draw implements Screen.
func (f *Film) Draw(p *face.Picture, since time.Duration) {
	n := int(max(since, 0)/filmEach) % (len(f.frames) / filmFrame)
	b := f.frames[n*filmFrame:][:filmFrame]
	for i := range p.Pix {
		p.Pix[i] = uint16(b[2*i]) | uint16(b[2*i+1])<<8
	}
}
