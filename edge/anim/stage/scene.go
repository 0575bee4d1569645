// Package stage puts the pictures of a clip, and those of layouts, over a robot's face: sprites at the top, boxes below them, the eyes at the bottom (VEC-DSP-02).
//
//	clip.Clip ─────────────┐
//	sprite.Set ────────────┴─► Scene ──Draw(time of the clip)──► face.Picture, on which the face is already
//	layout and image map ────► Composite ──Draw(time)──► likewise
package stage

import (
	"cmp"
	"fmt"
	"sort"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/face"
	"kennel/edge/face/sprite"
)

// Find returns a sprite by its name, as sprite.Set.Get does.
type Find func(name string) (*sprite.Sequence, error)

// Values of a box of a clip or a layout (VEC-AFF-15).
const (
	cleared   = "clear_sprite_box" // the asset of an empty box
	customHue = "CustomHue"        // grey pictures shine in the colour of the eyes
	hold      = "Hold"             // the last picture stays
	loop      = "Loop"             // the sequence begins again
)

// Scene holds the pictures of one clip. It does not change, so that goroutines may share it.
type Scene struct {
	length time.Duration
	films  []film
	boxes  [][]pose // of one box each, in the order in which the clip names them first: the later ones are above
}

// film is a sequence of the whole display.
type film struct {
	at    time.Duration
	seq   *sprite.Sequence // nil: it was not found
	lines float32
}

// pose is one keyframe of a box.
type pose struct {
	at, since           time.Duration // since is when its asset began
	seq                 *sprite.Sequence
	asset               string
	plain               bool
	end                 string
	x, y, width, height float32
	alpha               float32 // 0 to 1
}

// New returns the pictures of a clip that takes length; nil if it has none. The errors say which pictures were not found or do not fit: the scene is without them.
func New(c *clip.Clip, length time.Duration, find Find) (*Scene, []error) {
	if len(c.Tracks.Sprites)+len(c.Tracks.Boxes) == 0 {
		return nil, nil
	}
	s := &Scene{length: length}
	var problems []error
	refuse := func(track string, i int, err error) *sprite.Sequence {
		problems = append(problems, fmt.Errorf("%.60s: %s[%d]: %w", c.Name, track, i, err))
		return nil
	}
	for i, x := range c.Tracks.Sprites {
		seq, err := find(x.Sequence)
		if err == nil {
			err = fits(seq, face.Width, face.Height)
		}
		if err != nil {
			seq = refuse("FaceAnimationKeyFrame", i, err)
		}
		s.films = append(s.films, film{ms(x.Trigger), seq, x.ScanlineOpacity})
	}
	place := map[[2]string]int{}
	for i, x := range c.Tracks.Boxes {
		p := pose{at: ms(x.Trigger), since: ms(x.Trigger), asset: x.Asset, plain: x.Method != customHue, end: x.End,
			x: float32(x.X), y: float32(x.Y), alpha: x.Alpha / 100}
		if x.Asset != cleared {
			var err error
			if p.seq, err = find(x.Asset); err == nil && p.seq.Len() > 1 {
				err = fits(p.seq, int(x.Width), int(x.Height))
			}
			if err != nil {
				p.seq = refuse("SpriteBoxKeyFrame", i, err)
			} else {
				p.width, p.height = area(p.seq, x.Width, x.Height)
			}
		}
		key := [2]string{x.Layer, x.Name}
		n, known := place[key]
		if !known {
			n = len(s.boxes)
			place[key], s.boxes = n, append(s.boxes, nil)
		} else if last := s.boxes[n][len(s.boxes[n])-1]; last.asset == x.Asset && last.end == x.End {
			p.since = last.since // the picture that moves does not begin again
		}
		s.boxes[n] = append(s.boxes[n], p)
	}
	return s, problems
}

func ms(n uint32) time.Duration { return time.Duration(n) * time.Millisecond }

// fits reports a sequence whose size is neither its box's nor, with a box without a size, any (part of VEC-DSP-08).
func fits(s *sprite.Sequence, width, height int) error {
	if w, h := s.Size(); width != 0 && w != width || height != 0 && h != height {
		return fmt.Errorf("%w: expected %d by %d pixels, found %d by %d", sprite.ErrSprite, width, height, w, h)
	}
	return nil
}

// area returns the size of a box; 0 is the size of its picture.
func area(s *sprite.Sequence, width, height uint32) (w, h float32) {
	ownW, ownH := s.Size()
	return float32(cmp.Or(int(width), ownW)), float32(cmp.Or(int(height), ownH))
}

// Draw draws the pictures of a time of the clip over a face; grey ones shine in the colour of its eyes. It allocates nothing. A nil Scene draws nothing.
func (s *Scene) Draw(dst *face.Picture, t time.Duration, eyes face.Color) {
	if s == nil {
		return
	}
	for _, poses := range s.boxes {
		if n := begun(poses, t, func(p *pose) time.Duration { return p.at }); n > 0 {
			drawBox(dst, poses[n-1:], t, eyes)
		}
	}
	n := begun(s.films, t, func(f *film) time.Duration { return f.at })
	if n == 0 || s.films[n-1].seq == nil {
		return
	}
	f := &s.films[n-1]
	if i := f.frame(t, s.length); i < f.seq.Len() {
		f.seq.Draw(dst, i, sprite.Place{Alpha: 1, Lines: f.lines, Color: eyes})
	}
}

// begun returns how many keyframes have begun at a time.
func begun[T any](all []T, t time.Duration, at func(*T) time.Duration) int {
	return sort.Search(len(all), func(i int) bool { return at(&all[i]) > t })
}

// frame returns which picture is shown: all of them take as long as the clip, or without its length a thirtieth of a second each (part of VEC-DSP-10). At the clip's very end
// the last one is shown still.
func (f *film) frame(t, length time.Duration) int {
	n := f.seq.Len()
	if length <= 0 {
		return int((t - f.at) * sprite.Rate / time.Second)
	}
	i := int((t - f.at) * time.Duration(n) / length)
	if t <= length {
		i = min(i, n-1)
	}
	return i
}

// drawBox draws a box, whose geometry moves in a straight line to the next keyframe's, if that shows something (VEC-AFF-15).
func drawBox(dst *face.Picture, poses []pose, t time.Duration, eyes face.Color) {
	p := poses[0]
	if p.seq == nil {
		return
	}
	i := int((t - p.since) * sprite.Rate / time.Second)
	if n := p.seq.Len(); n == 1 {
		i = 0 // a single picture has no end
	} else if i >= n {
		switch p.end {
		case hold:
			i = n - 1
		case loop:
			i %= n
		default:
			return
		}
	}
	if len(poses) > 1 && poses[1].seq != nil {
		next := &poses[1]
		share := float32(t-p.at) / float32(next.at-p.at)
		for _, v := range [...]struct {
			from *float32
			to   float32
		}{{&p.x, next.x}, {&p.y, next.y}, {&p.width, next.width}, {&p.height, next.height}, {&p.alpha, next.alpha}} {
			*v.from += (v.to - *v.from) * share
		}
	}
	at := sprite.Place{X: round(p.x), Y: round(p.y), Width: round(p.width), Height: round(p.height), Alpha: p.alpha, Lines: 1, Color: eyes, Plain: p.plain}
	if at.Width > 0 && at.Height > 0 {
		p.seq.Draw(dst, i, at)
	}
}

// round returns the nearest whole number.
func round(v float32) int {
	if v < 0 {
		return -int(0.5 - v)
	}
	return int(v + 0.5)
}
