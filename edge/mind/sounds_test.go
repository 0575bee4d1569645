package mind_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mindtest"
	"kennel/edge/robot"
	"kennel/edge/sound/voice"
	"kennel/infra/errs"
	"kennel/infra/testwait"
)

// talker are the parts of a body that speaks.
var talker = []robot.Part{display, mindtest.Voice}

// heard holds what a listener heard: the samples from the first that is not silent to the last.
type heard struct {
	samples []int16
	place   int64         // of the first
	at      time.Duration // likewise
	missed  int64
	said    []string
}

// listen hears until end, which returns all of it.
func (d *desk) listen(t testing.TB) (so func() heard, end func() heard) {
	t.Helper()
	ctx, cancel := context.WithCancel(d.ctx)
	var h heard
	zeros := 0
	ready, done, ask := make(chan struct{}), make(chan error, 1), make(chan func())
	pieces := make(chan mindlink.Piece, 1000)
	go func() {
		done <- d.Listen(ctx, func(p mindlink.Piece) error {
			if len(p.Samples) == 0 && p.Said == nil {
				close(ready)
			}
			pieces <- p
			return nil
		})
	}()
	go func() {
		for {
			select {
			case f := <-ask:
				f()
			case p := <-pieces:
				h.missed += p.Missed
				if p.Said != nil {
					h.said = append(h.said, *p.Said)
				}
				for i, v := range p.Samples {
					switch {
					case v != 0 && len(h.samples) == 0:
						h.place, h.at = p.Place+int64(i), p.At+time.Duration(i)*time.Second/mindlink.SoundRate
					case v == 0:
						zeros++
						continue
					}
					if len(h.samples) > 0 { // a pause
						h.samples = append(h.samples, make([]int16, zeros)...)
					}
					zeros = 0
					h.samples = append(h.samples, v)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("not heard: %v", err)
	}
	so = func() (now heard) {
		c := make(chan struct{})
		ask <- func() { now = h; close(c) }
		<-c
		return now
	}
	return so, func() heard {
		now := so()
		cancel()
		<-done
		return now
	}
}

// TestSound: a sound of a bank arrives at a listener sample by sample as it is, half as loud at half the volume, and its end comes after its last sample.
func TestSound(t *testing.T) {
	t.Parallel()
	d := newStage(t, mindtest.Synthesizer{}.Sound(), talker...)
	l, err := d.List(d.ctx)
	if err != nil || !slices.Contains(l.Sounds, "beep") || !slices.Contains(l.Sounds, "Kennel_Mood_Happy") || slices.Contains(l.Lacks, "audio") {
		t.Errorf("%v, %v", l, err)
	}
	want := mindtest.Tone(300 * time.Millisecond).PCM()
	for _, volume := range []float64{0, 1, 0.5} {
		so, end := d.listen(t)
		e, err := d.Sound(d.ctx, mindlink.Sound{Name: "beep", Volume: volume, Program: "a"}, nothing)
		if err != nil || e.Outcome != mindlink.Done || e.AtMS < 300 {
			t.Fatalf("%+v, %v", e, err)
		}
		testwait.Until(t, patience, "the last sample", testwait.Holds(func() bool { return len(so().samples) >= len(want) }))
		h := end()
		if volume != 0.5 {
			if !slices.Equal(h.samples, want) || h.missed != 0 {
				t.Errorf("volume %v: %d samples of %d, %d missed", volume, len(h.samples), len(want), h.missed)
			}
			continue
		}
		for i, v := range h.samples {
			if d := math.Abs(float64(v) - float64(want[i])/2); d > 1 {
				t.Fatalf("sample %d at half the volume is %d, want half of %d", i, v, want[i])
			}
		}
	}
	for r, code := range map[mindlink.Sound]string{{Name: "none"}: "not_found", {Name: "beep", Volume: 2}: "invalid", {Name: "beep", Volume: -1}: "invalid"} {
		if _, err := d.Sound(d.ctx, r, nothing); errs.CodeOf(err) != code {
			t.Errorf("%+v: %v, want %s", r, err, code)
		}
	}
}

func nothing(mindlink.Progress) error { return nil }

// TestClipSound: the sound of a clip begins and ends with the face of its keyframes, within a frame of the display; also in a clip that waited for a beat that never came
// (VEC-AFF-16).
func TestClipSound(t *testing.T) {
	t.Parallel()
	for clip, takes := range map[string]int64{"anim_beep": 1200, "anim_dance": 2200} {
		t.Run(clip, func(t *testing.T) { clipSound(t, clip, takes) })
	}
}

func clipSound(t *testing.T, clip string, takes int64) {
	t.Parallel()
	d := newStage(t, mindtest.Synthesizer{}.Sound(), talker...)
	so, end := d.listen(t)
	var frames []mindlink.Frame
	ctx, cancel := context.WithCancel(d.ctx)
	watched := make(chan error, 1)
	go func() {
		watched <- d.Watch(ctx, mindlink.MaxRate, func(f mindlink.Frame) error { frames = append(frames, f); return nil })
	}()
	e, err := d.Play(d.ctx, mindlink.Request{Clip: clip, Program: "a"}, nothing)
	if err != nil || e.Outcome != mindlink.Done || len(e.LeftOut) != 0 || e.AtMS < takes {
		t.Errorf("%+v, %v", e, err)
	}
	cancel()
	<-watched
	want := mindtest.Tone(300 * time.Millisecond).PCM()
	testwait.Until(t, patience, "the last sample", testwait.Holds(func() bool { return len(so().samples) >= len(want) }))
	h := end()
	if !slices.Equal(h.samples, want) {
		t.Errorf("%d samples, want %d", len(h.samples), len(want))
	}
	const slack = 33 * time.Millisecond
	begins, ends := h.at, h.at+300*time.Millisecond
	var shown [3][]mindlink.Frame // before the sound, with it, and after it
	for _, f := range frames {
		switch {
		case f.At > begins-250*time.Millisecond && f.At < begins-slack:
			shown[0] = append(shown[0], f)
		case f.At > begins+slack && f.At < ends-slack:
			shown[1] = append(shown[1], f)
		case f.At > ends+slack && f.At < ends+500*time.Millisecond:
			shown[2] = append(shown[2], f)
		}
	}
	for i, part := range shown {
		if len(part) == 0 {
			t.Fatalf("part %d of 3 has no frame: the sound was at %v, frames from %v to %v", i, begins, frames[0].At, frames[len(frames)-1].At)
		}
		for _, f := range part {
			if *f.Picture != *part[0].Picture || i > 0 && *f.Picture == *shown[i-1][0].Picture {
				t.Errorf("part %d: the frame at %v does not fit the sound, which was heard from %v to %v", i, f.At, begins, ends)
			}
		}
	}
}

// TestSay: a text is heard from its first sample to its last before its end is told, with its states in order (part of VEC-AUD-09, part of VEC-TTS-01).
func TestSay(t *testing.T) {
	t.Parallel()
	d := newStage(t, mindtest.Synthesizer{Span: time.Second}.Sound(), talker...)
	so, end := d.listen(t)
	var states []string
	e, err := d.Say(d.ctx, mindlink.Say{Text: "Hello.", Program: "a"}, func(p mindlink.Progress) error {
		if p.State != "" {
			states = append(states, p.State)
		}
		return nil
	})
	want := mindtest.Tone(time.Second).PCM()
	if err != nil || e.Outcome != mindlink.Done || e.AtMS < 1000 || !slices.Equal(states, []string{"generating", "ready", "playing"}) {
		t.Errorf("%+v, %v, %v", e, states, err)
	}
	testwait.Until(t, patience, "the last sample", testwait.Holds(func() bool { return len(so().samples) >= len(want) }))
	testwait.Until(t, patience, "the end of the text", testwait.Holds(func() bool { return len(so().said) == 2 }))
	if h := end(); !slices.Equal(h.samples, want) || !slices.Equal(h.said, []string{"Hello.", ""}) {
		t.Errorf("%d samples, want %d; said %q", len(h.samples), len(want), h.said)
	}
	if now := time.Duration(e.AtMS) * time.Millisecond; now < time.Second {
		t.Errorf("ended after %v", now)
	}
	for r, code := range map[mindlink.Say]string{{}: "invalid", {Text: "?!"}: "invalid", {Text: "a", Duration: 21}: "invalid", {Text: "a", Pitch: 2}: "invalid", {Text: "a", Level: "x"}: "invalid"} {
		if _, err := d.Say(d.ctx, r, nothing); errs.CodeOf(err) != code {
			t.Errorf("%+v: %v, want %s", r, err, code)
		}
	}
}

// TestSpeechEnds: a newer text of the same program replaces an older one, and a command what the robot says of itself; another program's is refused; a caller that leaves, and
// a program that asks for silence, end it; a clip plays without its sound meanwhile (part of VEC-TTS-04).
func TestSpeechEnds(t *testing.T) {
	t.Parallel()
	d := newStage(t, mindtest.Synthesizer{Span: time.Minute}.Sound(), talker...)
	say := func(ctx context.Context, r mindlink.Say) <-chan mindlink.Ended {
		t.Helper()
		playing, ended := make(chan struct{}, 1), make(chan mindlink.Ended, 1)
		go func() {
			e, err := d.Say(ctx, r, func(p mindlink.Progress) error {
				if p.State == "playing" || r.Text == "never" && p.State == "generating" {
					playing <- struct{}{}
				}
				return nil
			})
			if err != nil && ctx.Err() == nil {
				t.Errorf("%+v: %v", r, err)
				close(playing)
			}
			ended <- e
		}()
		<-playing
		return ended
	}
	stopped := func(what string, ended <-chan mindlink.Ended, by string) {
		t.Helper()
		if e := <-ended; e.Outcome != mindlink.Stopped || e.By != by || e.Reason == "" || e.AtMS > 30_000 {
			t.Errorf("%s: %+v", what, e)
		}
	}
	own := say(d.ctx, mindlink.Say{Text: "own", Level: mindlink.Behavior, Program: "mindd"})
	first := say(d.ctx, mindlink.Say{Text: "one", Program: "a"})
	stopped("its own", own, "a")
	if _, err := d.Say(d.ctx, mindlink.Say{Text: "two", Program: "b"}, nothing); errs.CodeOf(err) != "busy" {
		t.Errorf("another program's: %v", err)
	}
	never := say(d.ctx, mindlink.Say{Text: "never", Program: "a"})
	stopped("the older", first, "a")
	leave, cancel := context.WithCancel(d.ctx)
	last := say(leave, mindlink.Say{Text: "three", Program: "a"})
	stopped("one that is made", never, "a")
	if began, ended := d.play(t, d.ctx, mindlink.Request{Clip: "anim_beep", Program: "c"}); len(began.LeftOut) != 1 || began.LeftOut[0].Track != "audio" {
		t.Errorf("%+v", began)
	} else if e := <-ended; e.Outcome != mindlink.Done {
		t.Errorf("%+v", e)
	}
	cancel()
	<-last
	// The robot is free again: another program speaks, and is silenced with its sound.
	var other <-chan mindlink.Ended
	testwait.Until(t, patience, "the end of a caller that left", func() error {
		ctx, cancel := context.WithTimeout(d.ctx, 100*time.Millisecond)
		defer cancel()
		if _, err := d.Say(ctx, mindlink.Say{Text: "four", Program: "b"}, nothing); errs.CodeOf(err) == "busy" {
			return err
		}
		return nil
	})
	other = say(d.ctx, mindlink.Say{Text: "five", Program: "b"})
	if err := d.Hush(d.ctx, "a"); err != nil {
		t.Error(err)
	}
	stopped("hushed", other, "a")
}

// TestNoVoice: a body that cannot be heard refuses, in words about its speaker; one whose synthesiser is missing says what to install, and is never a success.
func TestNoVoice(t *testing.T) {
	t.Parallel()
	missing := mind.Sound{Voice: func() (voice.Synthesizer, error) {
		return nil, errs.New(errs.Unavailable, "espeak-ng is not installed: install the package espeak-ng")
	}}
	for code, d := range map[string]*desk{"no_voice": newStage(t, missing, talker...), "unable": newDesk(t, display)} {
		if e, err := d.Say(d.ctx, mindlink.Say{Text: "a", Program: "a"}, nothing); errs.CodeOf(err) != code {
			t.Errorf("%+v, %v, want %s", e, err, code)
		}
		if code == "no_voice" {
			continue
		}
		if e, err := d.Sound(d.ctx, mindlink.Sound{Name: "Kennel_Photo", Program: "a"}, nothing); errs.CodeOf(err) != code {
			t.Errorf("%+v, %v", e, err)
		}
		if err := d.Listen(d.ctx, func(mindlink.Piece) error { return errors.New("heard") }); errs.CodeOf(err) != code {
			t.Error(err)
		}
	}
}
