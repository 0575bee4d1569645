package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"
	"time"

	"kennel/edge/face"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot/claim"
	"kennel/edge/sight"
	"kennel/infra/api/robotpb"
	"kennel/infra/errs"
)

// Formats of the display's frames beside those of the camera.
const (
	formatPNG    = "png"
	formatRGB565 = "rgb565" // as the display takes it
)

var screenFormats = []string{formatPNG, sight.JPEG, sight.RGB, formatRGB565}

// Our own limits.
const (
	mostFrames    = 33 // a second, of a stream
	defaultFrames = 20
	screenQuality = 92
	screenTime    = 2 * time.Second // for a single frame
)

// animations lists what the robot can play.
func (g *Gateway) animations(ctx context.Context, _ caller, _ *robotpb.AnimationsRequest) (*robotpb.AnimationList, error) {
	l, err := g.mind.List(ctx)
	if err != nil {
		return nil, err
	}
	out := &robotpb.AnimationList{Triggers: l.Triggers, Lacks: l.Lacks, Sounds: l.Sounds}
	for _, c := range l.Clips {
		out.Animations = append(out.Animations, &robotpb.Animation{Name: c.Name, SpanMs: uint32(c.SpanMS), Tracks: c.Tracks})
	}
	for _, m := range l.Moods {
		out.Moods = append(out.Moods, &robotpb.Mood{Name: m.Name, Trigger: m.Trigger, Motion: m.Motion})
	}
	return out, nil
}

// play plays an animation and tells its progress.
func (g *Gateway) play(ctx context.Context, c caller, q *robotpb.PlayRequest, tell func(*robotpb.PlayProgress) error) error {
	if q.Loops > mindlink.MaxLoops {
		return invalid("loops: %d, want at most %d", q.Loops, mindlink.MaxLoops)
	}
	r := mindlink.Request{Clip: q.GetClip(), Trigger: q.GetTrigger(), Mood: q.GetMood(), Loops: int(q.Loops), Ignore: q.Ignore}
	holds := claim.Priority(0)
	if q.Lease != "" {
		if _, err := g.leases.get(c, q.Lease); err != nil {
			return err
		}
		holds = claim.Program
	}
	checked := time.Now()
	ended, err := g.Play(ctx, Caller{c}, r, holds, func(p mindlink.Progress) error {
		if time.Since(checked) > beat {
			checked = time.Now()
			if err := g.still(ctx, c, Move); err != nil {
				return err
			}
		}
		if p.Began == nil {
			return tell(&robotpb.PlayProgress{Kind: &robotpb.PlayProgress_AtMs{AtMs: uint32(p.AtMS)}})
		}
		return tell(&robotpb.PlayProgress{Kind: &robotpb.PlayProgress_Begun{Begun: &robotpb.PlayBegun{
			Clip: p.Began.Clip, SpanMs: uint32(p.Began.SpanMS), LeftOut: leftOut(p.Began.LeftOut)}}})
	})
	if err != nil {
		return err
	}
	return tell(&robotpb.PlayProgress{Kind: &robotpb.PlayProgress_Ended{Ended: &robotpb.PlayEnded{
		Clip: ended.Clip, Outcome: ended.Outcome, Reason: ended.Reason, By: ended.By, AtMs: uint32(ended.AtMS), LeftOut: leftOut(ended.LeftOut)}}})
}

func leftOut(all []mindlink.LeftOut) (out []*robotpb.LeftOut) {
	for _, l := range all {
		out = append(out, &robotpb.LeftOut{Track: l.Track, Reason: l.Reason})
	}
	return out
}

// screen returns one frame of the display, drawn after the call.
func (g *Gateway) screen(ctx context.Context, _ caller, q *robotpb.ScreenRequest) (p *robotpb.Picture, err error) {
	format := cmp.Or(q.Format, formatPNG)
	if !slices.Contains(screenFormats, format) {
		return nil, errFormat(format)
	}
	ctx, cancel := context.WithTimeout(ctx, screenTime)
	defer cancel()
	f, err := g.mind.Frame(ctx)
	switch {
	case err == nil:
		return frame(&f, format, 0)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, errs.Coded(errs.Unavailable, "mind_lost", "the robot's display shows nothing; try again in a second")
	}
	return nil, err
}

func errFormat(format string) error {
	return invalid("format: %.40q, want one of %s", format, strings.Join(screenFormats, ", "))
}

// screens tells frames until the client ends the call.
func (g *Gateway) screens(ctx context.Context, c caller, q *robotpb.ScreensRequest, tell func(*robotpb.Picture) error) error {
	rate, format := cmp.Or(q.RateHz, defaultFrames), cmp.Or(q.Format, sight.JPEG)
	if !(rate > 0 && rate <= mostFrames) {
		return invalid("rate_hz: %v, want above 0 to %d", q.RateHz, mostFrames)
	}
	if !slices.Contains(screenFormats, format) {
		return errFormat(format)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	newest, failed := make(chan mindlink.Frame, 1), make(chan error, 1)
	go func() {
		failed <- g.mind.Watch(ctx, rate, func(f mindlink.Frame) error {
			select {
			case <-newest: // it was not taken
			default:
			}
			newest <- f // its only writer
			return nil
		})
	}()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for last, told := uint64(0), false; ; {
		p := &robotpb.Picture{}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case f := <-newest:
			missed := uint64(0)
			if last > 0 && f.Seq > last {
				missed = f.Seq - last - 1
			}
			var err error
			if p, err = frame(&f, format, missed); err != nil {
				return err
			}
			last = f.Seq
		case <-tick.C:
			if err := g.still(ctx, c, Look); err != nil {
				return err
			}
			if told {
				told = false
				continue
			}
		}
		if err := tell(p); err != nil {
			return err
		}
		told = true
	}
}

// frame returns a frame of the display as a message.
func frame(f *mindlink.Frame, format string, missed uint64) (*robotpb.Picture, error) {
	b, err := encodeScreen(f.Picture, format)
	if err != nil {
		return nil, err
	}
	return &robotpb.Picture{Format: format, Width: face.Width, Height: face.Height, Data: b, Seq: f.Seq, AtUs: f.At.Microseconds(), Missed: missed}, nil
}

var screenPNG = png.Encoder{CompressionLevel: png.BestSpeed}

// encodeScreen returns a frame in one of screenFormats.
func encodeScreen(p *face.Picture, format string) ([]byte, error) {
	if format == formatRGB565 {
		return p.AppendRGB565(nil), nil
	}
	img := image.NewRGBA(p.Bounds())
	rgb := make([]byte, 0, 3*len(p.Pix))
	for i, v := range p.Pix {
		c := face.RGBA(v)
		copy(img.Pix[4*i:], []byte{c.R, c.G, c.B, c.A})
		rgb = append(rgb, c.R, c.G, c.B)
	}
	var b bytes.Buffer
	switch format {
	case sight.RGB:
		return rgb, nil
	case sight.JPEG:
		err := jpeg.Encode(&b, img, &jpeg.Options{Quality: screenQuality})
		return b.Bytes(), err
	default:
		err := screenPNG.Encode(&b, img)
		return b.Bytes(), err
	}
}

// Play plays an animation for a client. holds is the priority with which the client holds motors itself, if it does: the animation goes before its other
// motions. tell hears what mindlink.Client's Play tells. The errors have a kind and a code.
func (g *Gateway) Play(ctx context.Context, c Caller, r mindlink.Request, holds claim.Priority, tell func(mindlink.Progress) error) (mindlink.Ended, error) {
	r.Program, r.Level = c.Program(), mindlink.Command
	if holds != 0 {
		r.Priority = int(holds) + 1
	}
	return g.mind.Play(ctx, r, func(p mindlink.Progress) error {
		if p.Began != nil && g.cfg.Played != nil {
			g.cfg.Played()
		}
		return tell(p)
	})
}

// Mind returns the way to the robot's character, for its list, its eyes and its display.
func (g *Gateway) Mind() *mindlink.Client { return g.mind }
