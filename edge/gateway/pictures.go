package gateway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/core/corelink"
	"kennel/edge/robot"
	"kennel/edge/sight"
	"kennel/infra/api/robotpb"
	"kennel/infra/errs"
)

// Bounds of pictures.
const (
	mostPictures    = 15 // a second, of a stream; and of one client by single calls
	defaultPictures = 5
	pictureTime     = 3 * time.Second // for a single one: robotd tells within 2 s why there is none
)

// eyes are the one connection to robotd's pictures, for all clients that look. It lasts while one of them does. Safe for concurrent use.
type eyes struct {
	path string

	mu       sync.Mutex
	watchers []*watcher
	stop     context.CancelFunc // of the connection; nil: there is none
	conn     *sight.Conn
}

// watcher is a client that looks.
type watcher struct {
	every time.Duration
	due   time.Time
	shots chan sighting // one slot: the newest
}

// sighting is a shot as a watcher gets it.
type sighting struct {
	*shot
	missed uint64 // pictures that newer ones replaced, since the one that was taken before
}

// shot is a picture, or why there is none; it is encoded once for all who want it alike.
type shot struct {
	sight.Frame
	reason string

	mu   sync.Mutex
	made map[manner][]byte
}

// manner is how a picture is encoded.
type manner struct {
	format  string
	quality int
	half    bool // half as wide and half as high
}

func (s *shot) encode(m manner) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.made[m]; ok {
		return b, nil
	}
	f := &s.Frame
	if m.half {
		f = f.Half()
	}
	b, err := sight.Encode(f, m.format, m.quality)
	if err == nil {
		if s.made == nil {
			s.made = map[manner][]byte{}
		}
		s.made[m] = b
	}
	return b, err
}

// watch begins to look, with so many pictures a second.
func (e *eyes) watch(rate float64) (w *watcher, end func()) {
	w = &watcher{every: time.Duration(float64(time.Second) / rate), shots: make(chan sighting, 1)}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watchers = append(e.watchers, w)
	e.ask()
	return w, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.watchers = slices.DeleteFunc(e.watchers, func(x *watcher) bool { return x == w })
		e.ask()
	}
}

// ask brings the connection to what the watchers want; mu is held.
func (e *eyes) ask() {
	rate := 0.0
	for _, w := range e.watchers {
		rate = max(rate, float64(time.Second)/float64(w.every))
	}
	switch {
	case rate == 0 && e.stop != nil:
		e.stop()
		e.stop, e.conn = nil, nil
	case rate > 0 && e.stop == nil:
		ctx, cancel := context.WithCancel(context.Background()) // ended by the last watcher
		e.stop = cancel
		go e.look(ctx)
	case e.conn != nil:
		_ = e.conn.Ask(sight.Wish{Rate: rate}) // a lost one is noticed by its reader
	}
}

// look hands pictures to the watchers until ctx ends. A connection that is lost is made again.
func (e *eyes) look(ctx context.Context) {
	for ctx.Err() == nil {
		err := e.receive(ctx)
		if ctx.Err() != nil {
			return
		}
		e.give(ctx, &shot{reason: "the real-time core hands out no pictures (" + err.Error() + "); try again in a second"})
		select {
		case <-ctx.Done():
		case <-time.After(beat / 2):
		}
	}
}

func (e *eyes) receive(ctx context.Context) error {
	c, err := sight.Dial(ctx, e.path)
	if err != nil {
		return err
	}
	defer c.Close() // nothing buffered
	e.mu.Lock()
	if ctx.Err() == nil {
		e.conn = c
		e.ask()
	}
	e.mu.Unlock()
	for {
		s := &shot{}
		var off *sight.Off
		switch err := c.Next(&s.Frame); {
		case errors.As(err, &off):
			s.reason = off.Reason
		case err != nil:
			return err
		}
		e.give(ctx, s)
	}
}

// give hands s to each watcher that is due one, in place of one that it has not taken yet.
func (e *eyes) give(ctx context.Context, s *shot) {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() != nil {
		return // another connection is the watchers' now
	}
	for _, w := range e.watchers {
		if s.reason == "" {
			if now.Before(w.due.Add(-w.every / 4)) {
				continue
			}
			if w.due = w.due.Add(w.every); w.due.Before(now) {
				w.due = now.Add(w.every)
			}
		}
		next := sighting{shot: s}
		select {
		case old := <-w.shots:
			if next.missed = old.missed; old.reason == "" {
				next.missed++
			}
		default:
		}
		w.shots <- next // its only writer holds mu
	}
}

// camera returns the camera of that name, "" for the one that the body has.
func camera(t *corelink.Tree, name string) (full string, err error) {
	for _, n := range t.Nodes {
		if !slices.Contains(interfaces(n.Interface), "VideoIn") {
			continue
		}
		if name == "" || name == n.Full || name == n.Compact || "robot."+name == n.Full || slices.Contains(n.Aliases, name) {
			return n.Full, nil
		}
		full = n.Full
	}
	switch {
	case full == "":
		return "", errs.Coded(errs.Invalid, "unable", "this body has no camera; describe lists the parts that it has")
	default:
		return "", errs.Coded(errs.NotFound, "not_found", "no camera %.80q: want %s", name, full)
	}
}

// wanted returns how the pictures of a request are encoded: what it leaves out is as the camera's slots say.
func (g *Gateway) wanted(ctx context.Context, part, format string, quality *uint32) (m manner, err error) {
	t, err := g.core.Tree(ctx)
	if err != nil {
		return m, err
	}
	full, err := camera(t, part)
	if err != nil {
		return m, err
	}
	if format != "" && !slices.Contains(sight.Formats, format) {
		return m, invalid("format: %.40q, want one of %s", format, strings.Join(sight.Formats, ", "))
	}
	if quality != nil && *quality > sight.MostQuality {
		return m, invalid("quality: %d, want 0 to %d", *quality, sight.MostQuality)
	}
	m = manner{format: cmp.Or(format, sight.JPEG), quality: sight.DefaultQuality}
	if quality != nil {
		m.quality = int(*quality)
	}
	if format != "" && quality != nil {
		return m, nil
	}
	slots, err := g.lookup.slots(ctx, g.core.Client, []string{full})
	if err != nil {
		return m, err
	}
	all, err := g.now.get(ctx)
	if err != nil {
		return m, err
	}
	for i := range slots {
		slots[i].Take(all.Values, true)
		n, ok := slots[i].Number()
		switch {
		case !ok:
		case slots[i].Slot.Name == "quality" && quality == nil:
			m.quality = int(min(max(n, 0), sight.MostQuality))
		case slots[i].Slot.Name == "format" && format == "":
			for _, f := range sight.Formats {
				if float64(robot.ImageFormat(f)) == n {
					m.format = f
				}
			}
		}
	}
	return m, nil
}

// picture returns a picture as a message.
func picture(s sighting, m manner) (*robotpb.Picture, error) {
	if s.reason != "" {
		return &robotpb.Picture{Reason: s.reason, Missed: s.missed}, nil
	}
	b, err := s.encode(m)
	if err != nil {
		return nil, err
	}
	return &robotpb.Picture{Format: m.format, Width: uint32(s.Width), Height: uint32(s.Height), Data: b, Seq: s.Seq, AtUs: s.At.Microseconds(), Missed: s.missed,
		ExposureS: s.Exposure.Seconds(), Gain: s.Gain, Calibration: &robotpb.Calibration{Fx: s.Focal[0], Fy: s.Focal[1], Cx: s.Centre[0], Cy: s.Centre[1]}}, nil
}

// image returns one picture, whose exposure began after the call.
func (g *Gateway) image(ctx context.Context, c caller, req *robotpb.ImageRequest) (*robotpb.Picture, error) {
	m, err := g.wanted(ctx, req.Part, req.Format, req.Quality)
	if err != nil {
		return nil, err
	}
	s, err := g.shoot(ctx, c, func(*sight.Frame) bool { return true })
	if err != nil {
		return nil, err
	}
	return picture(s, m)
}

// shoot returns a picture that ok takes, whose exposure began after the call.
func (g *Gateway) shoot(ctx context.Context, c caller, ok func(*sight.Frame) bool) (sighting, error) {
	if !c.pictures.Allow() {
		return sighting{}, tooMany("one client may ask for %d single pictures a second; follow images for more", mostPictures)
	}
	return g.expose(ctx, ok)
}

// expose is shoot for any client.
func (g *Gateway) expose(ctx context.Context, ok func(*sight.Frame) bool) (sighting, error) {
	w, end := g.eyes.watch(mostPictures)
	defer end()
	limit, cancel := context.WithTimeout(ctx, pictureTime)
	defer cancel()
	since, reason := monoclock.Now(), "the camera takes none; try again in a second"
	for {
		select {
		case <-ctx.Done():
			return sighting{}, ctx.Err()
		case <-limit.Done():
			return sighting{}, noPicture(reason)
		case s := <-w.shots:
			if s.reason != "" {
				return sighting{}, noPicture(s.reason)
			}
			if s.At >= since && ok(&s.Frame) {
				return s, nil
			}
		}
	}
}

func noPicture(reason string) error {
	return &errs.Error{Kind: errs.Unavailable, Code: "no_picture", Retry: time.Second, Msg: "no picture: " + reason}
}

// images tells pictures until the client ends the call.
func (g *Gateway) images(ctx context.Context, c caller, req *robotpb.ImagesRequest, tell func(*robotpb.Picture) error) error {
	rate := cmp.Or(req.RateHz, defaultPictures)
	if !(rate > 0 && rate <= mostPictures) {
		return invalid("rate_hz: %v, want above 0 to %d", req.RateHz, mostPictures)
	}
	m, err := g.wanted(ctx, req.Part, req.Format, req.Quality)
	if err != nil {
		return err
	}
	w, end := g.eyes.watch(rate)
	defer end()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	told := false // a message since the tick before
	for {
		var p *robotpb.Picture
		select {
		case <-ctx.Done():
			return ctx.Err()
		case s := <-w.shots:
			if p, err = picture(s, m); err != nil {
				return err
			}
		case <-tick.C:
			if err := g.still(ctx, c, Camera); err != nil {
				return err
			}
			if told {
				told = false
				continue
			}
			p = &robotpb.Picture{}
		}
		if err := tell(p); err != nil {
			return err
		}
		told = true
	}
}
