package mind

import (
	"time"

	"kennel/edge/face"
	"kennel/edge/mind/mindlink"
)

// screen is the display: the eyes, or what is shown instead of them. It belongs to the loop.
type screen struct {
	drawer   *face.Drawer
	chosen   face.Color    // by the owner
	given    *face.Color   // by a program instead; nil: none
	picture  *face.Picture // instead of the eyes; nil: none
	until    time.Duration // of picture
	notice   *face.Picture // instead of everything; nil: none
	seq      uint64
	watchers map[*watcher]bool
}

// watcher is a caller that looks at the display.
type watcher struct {
	every time.Duration
	due   time.Duration
	next  chan mindlink.Frame // one slot: the newest
}

// draw gives the watchers that are due one the frame of a time. Frames are drawn for watchers alone.
func (s *screen) draw(now time.Duration, p *face.Params) {
	var due []*watcher
	for w := range s.watchers {
		if now >= w.due-w.every/4 {
			if w.due += w.every; w.due < now {
				w.due = now + w.every
			}
			due = append(due, w)
		}
	}
	if len(due) == 0 {
		return
	}
	pic := s.notice
	if pic == nil {
		pic = s.picture
	}
	if pic == nil {
		pic = &face.Picture{}
		c := s.chosen
		if s.given != nil {
			c = *s.given
		}
		s.drawer.Draw(pic, p, c)
	}
	s.seq++
	f := mindlink.Frame{Seq: s.seq, At: now, Picture: pic}
	for _, w := range due {
		select {
		case <-w.next: // it was not taken
		default:
		}
		w.next <- f // the loop is its only writer
	}
}
