package mind

import (
	"cmp"
	"context"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/anim/stage"
	"kennel/edge/face"
	"kennel/edge/face/screen"
	"kennel/edge/mind/mindlink"
	"kennel/infra/errs"
)

// display has one owner at a time, the first of these that there is: a notice, a page of customer care, a program's picture, the face of a clip that plays with its
// sprites over it (VEC-DSP-02), a page of an answer, the idle eyes (part of VEC-CFG-03). It belongs to the loop.
type display struct {
	drawer   *face.Drawer
	scene    *stage.Scene  // pictures of the clip that plays; nil: it has none
	sceneOf  *clip.Clip    // that the scene belongs to
	chosen   face.Color    // by the owner
	given    *face.Color   // by a program instead; nil: none
	picture  *face.Picture // instead of the eyes; nil: none
	until    time.Duration // of picture
	notice   shownPage
	care     shownPage
	page     shownPage // while no clip has the display
	pageOf   string    // its program
	pageEnds time.Duration
	seq      uint64
	watchers map[*watcher]bool
}

// shownPage is a page, and when it was first shown; the zero value is none.
type shownPage struct {
	screen.Screen
	at time.Duration
}

// watcher is a caller that looks at the display.
type watcher struct {
	every time.Duration
	due   time.Duration
	next  chan mindlink.Frame // one slot: the newest
}

// instead returns what is shown instead of the eyes; nil: nothing. acts: a clip plays that has the display.
func (s *display) instead(now time.Duration, acts bool) *face.Picture {
	if s.page.Screen != nil && now >= s.pageEnds {
		s.page = shownPage{}
	}
	var p shownPage
	switch {
	case s.notice.Screen != nil:
		p = s.notice
	case s.care.Screen != nil:
		p = s.care
	case s.picture != nil:
		return s.picture
	case !acts:
		p = s.page
	}
	if p.Screen == nil {
		return nil
	}
	return screen.Picture(p.Screen, now-p.at)
}

// draw gives the watchers that are due one the frame of a time. Frames are drawn for watchers alone.
func (s *display) draw(now time.Duration, f *clip.Frame) {
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
	pic := s.instead(now, f.Has&clip.Display != 0)
	if pic == nil {
		pic = &face.Picture{}
		c := s.chosen
		if s.given != nil {
			c = *s.given
		}
		s.drawer.Draw(pic, &f.Face, c)
		if f.Clip != nil && f.Clip == s.sceneOf {
			s.scene.Draw(pic, f.At, c)
		}
	}
	s.seq++
	frame := mindlink.Frame{Seq: s.seq, At: now, Picture: pic}
	for _, w := range due {
		select {
		case <-w.next: // it was not taken
		default:
		}
		w.next <- frame // the loop is its only writer
	}
}

// Show shows a picture for a time. See mindlink.Mind.
func (m *Mind) Show(ctx context.Context, i mindlink.Image) error {
	if i.ForMS <= 0 || i.ForMS > maxShow.Milliseconds() {
		return errs.Coded(errs.Invalid, "invalid", "for_ms: expected 1 to %d, found %d", maxShow.Milliseconds(), i.ForMS)
	}
	b, err := m.body(ctx)
	if err != nil {
		return err
	}
	if b.parts&clip.Display == 0 {
		return errNoDisplay()
	}
	p := &face.Picture{}
	mindlink.Pixels(p, i.Pixels)
	inerr := m.in(ctx, func(now time.Duration) {
		t := m.turn
		uses := t != nil && t.hand != nil && m.frame.Has&clip.Display != 0
		if uses && t.level >= clip.Command {
			if !i.Interrupt {
				err = errs.Coded(errs.Conflict, "busy", "%s of %s has the display", t.name, t.program)
				return
			}
			m.end(now, ending{why: "a picture is shown instead", by: i.Program})
		}
		m.dropImage() // a newer picture replaces an older one
		if m.image, err = m.locks.Take("picture of "+i.Program, clip.Command, clip.Display); err == nil {
			m.imageOf, m.screen.picture, m.screen.until = i.Program, p, now+time.Duration(i.ForMS)*time.Millisecond
		}
	})
	return cmp.Or(inerr, err)
}

// maxShow is the longest that a picture is shown; own default.
const maxShow = 10 * time.Minute

// Page shows a page, or takes it away. See mindlink.Mind.
func (m *Mind) Page(ctx context.Context, p mindlink.Page) error {
	s, err := p.Screen()
	if err != nil {
		return err
	}
	if s != nil && (p.ForMS <= 0 || p.ForMS > maxShow.Milliseconds()) {
		return errs.Coded(errs.Invalid, "invalid", "for_ms: expected 1 to %d, found %d", maxShow.Milliseconds(), p.ForMS)
	}
	b, err := m.body(ctx)
	if err != nil {
		return err
	}
	if b.parts&clip.Display == 0 {
		return errNoDisplay()
	}
	return m.in(ctx, func(now time.Duration) {
		switch d := &m.screen; {
		case s != nil:
			d.page, d.pageOf, d.pageEnds = shownPage{s, now}, p.Program, now+time.Duration(p.ForMS)*time.Millisecond
		case d.pageOf == p.Program:
			d.page = shownPage{}
		}
	})
}

func errNoDisplay() error {
	return errs.Coded(errs.Invalid, "unable", "this body has no display; describe lists the parts that it has")
}

// Eyes gives the eyes a colour. See mindlink.Mind.
func (m *Mind) Eyes(ctx context.Context, e mindlink.Eyes) error {
	for name, v := range map[string]float32{"hue": e.Hue, "saturation": e.Saturation} {
		if !(v >= 0 && v <= 1) {
			return errs.Coded(errs.Invalid, "invalid", "%s: expected 0 to 1, found %v", name, v)
		}
	}
	c := &face.Color{Hue: e.Hue, Saturation: e.Saturation}
	if e.Forget {
		c = nil
	}
	return m.in(ctx, func(time.Duration) { m.screen.given = c })
}

// Watch gives frames of the display. See mindlink.Mind.
func (m *Mind) Watch(ctx context.Context, rate float64, give func(mindlink.Frame) error) error {
	b, err := m.body(ctx)
	if err != nil {
		return err
	}
	if b.parts&clip.Display == 0 {
		return errNoDisplay()
	}
	return m.watch(ctx, rate, give)
}

func (m *Mind) watch(ctx context.Context, rate float64, give func(mindlink.Frame) error) error {
	w := &watcher{every: time.Duration(float64(time.Second) / rate), next: make(chan mindlink.Frame, 1)}
	if err := m.in(ctx, func(time.Duration) { m.screen.watchers[w] = true }); err != nil {
		return err
	}
	defer func() {
		_ = m.in(context.WithoutCancel(ctx), func(time.Duration) { delete(m.screen.watchers, w) }) // it fails only when the loop has ended
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case f := <-w.next:
			if err := give(f); err != nil {
				return err
			}
		}
	}
}
