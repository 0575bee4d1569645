package mind_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/anim/repertoire"
	"kennel/edge/body/monoclock"
	"kennel/edge/core/control"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/core/coreserver/coreservertest"
	"kennel/edge/core/coreserver/robotdtest"
	"kennel/edge/face"
	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/infra/api/motionwire"
	"kennel/infra/errs"
	"kennel/infra/testwait"
)

const patience = 20 * time.Second

const clips = `clip anim_nod
0 face happy
0 head 20 over=60
100 head -10 over=60
0 lift 40 over=60
0 lights front=#ff0000 middle=#00ff00 back=#0000ff for=200
0 sound Kennel_Test
300 face neutral

clip anim_cheer
0 sound Kennel_Mood_Happy
0 head 10 over=60

clip anim_sing
0 sound Kennel_Timer_Ring

clip anim_drive
0 body STRAIGHT 50 for=9000

clip anim_smile
0 face happy
60000 face happy

clip anim_snows
0 face happy
0 sprites face_weather_snow
59990 sprites face_none
60000 face happy

clip anim_still
0 lift 40 over=60

clip anim_beep
0 face neutral
290 face neutral
300 face happy
300 sound beep
590 face happy
600 face sad
1200 face sad

clip anim_dance
0 face neutral
100 event DANCE_BEAT_SYNC
290 face neutral
300 face happy
300 sound beep
590 face happy
600 face sad
1200 face sad
`

// desk is a robot of coreservertest with a display, with a mind.
type desk struct {
	*mindlink.Client
	body  *coreservertest.Body
	other *coreclient.Client
	ctx   context.Context
	end   func() // of robotd
}

func newDesk(t testing.TB, more ...robot.Part) *desk {
	t.Helper()
	return newStage(t, mind.Sound{}, more...)
}

// newStage is newDesk with sounds.
func newStage(t testing.TB, s mind.Sound, more ...robot.Part) *desk {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{Client: mindlink.NewClient(dir.Name())}
	d.body, d.end = robotdtest.Start(t, dir.Name(), more...)
	d.body.Measure("headPitch.turn", 0)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	d.ctx = ctx
	connect := func(name string, hear func(corelink.Message)) *coreclient.Client {
		link := corelink.NewClient(dir.Name(), corelink.WithHello(corelink.Hello{Program: name}))
		c := coreclient.New(link)
		go link.Run(ctx, func(m corelink.Message) {
			c.Handle(m)
			if hear != nil {
				hear(m)
			}
		})
		return c
	}
	l := clip.NewLibrary()
	all, err := clip.ParseText([]byte(clips))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Add(all); err != nil {
		t.Fatal(err)
	}
	l.Triggers["Nod"], l.Groups["ag_nod"] = "ag_nod", []clip.Choice{{Name: "anim_nod", Weight: 1, Mood: clip.AnyMood}}
	var m *mind.Mind
	ready := make(chan struct{})
	core := connect("mindd", func(msg corelink.Message) { <-ready; m.Hear(msg) })
	m, err = mind.New(mind.Config{Core: core, Sound: s, Program: "mindd", Library: l, Log: slog.New(slog.DiscardHandler), Now: monoclock.Now,
		Moods:   repertoire.Moods{"glad": {{With: "robot.body.tail", Motion: "wag"}, {With: "robot.body.head", Trigger: "Nod"}}, "sad": {{With: "robot.body.tail", Motion: "droop"}}},
		Motions: motions{}})
	if err != nil {
		t.Fatal(err)
	}
	close(ready)
	d.other = connect("other", nil)
	ended := make(chan error, 2)
	go func() { ended <- m.Run(ctx) }()
	go func() { ended <- mindlink.Serve(ctx, dir, m, m) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended, dir.Close()); err != nil {
			t.Error(err)
		}
	})
	for _, c := range []*coreclient.Client{core, d.other} {
		if err := c.Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, patience, "the socket of mindd", func() error { _, err := d.List(ctx); return err })
	return d
}

// motions are those of a body that has two: wag ends at once, droop never does; fall is refused.
type motions struct{}

func (motions) List(context.Context) ([]mindlink.Clip, error) {
	return []mindlink.Clip{{Name: "droop", SpanMS: 900, Tracks: []string{"joints"}}, {Name: "wag", SpanMS: 700, Tracks: []string{"joints"}}}, nil
}

func (motions) Plan(_ context.Context, name string) (p mind.Planned, err error) {
	switch name {
	case "wag":
		return mind.Planned{Span: 700 * time.Millisecond, Do: func(context.Context, claim.Priority) error { return nil }}, nil
	case "droop":
		return mind.Planned{Span: 900 * time.Millisecond, Do: func(ctx context.Context, _ claim.Priority) error {
			<-ctx.Done()
			return ctx.Err()
		}}, nil
	}
	return p, errs.Coded(errs.Conflict, "refused", "motion %s: it would fall", name)
}

func (motions) Body(context.Context) (motionwire.Body, error) {
	return motionwire.Body{V: 1, Model: "toy"}, nil
}

func (motions) Judge(_ context.Context, name string, file []byte) (motionwire.Verdict, error) {
	return motionwire.Verdict{V: 1, Ref: motionwire.Ref{Name: name}, Kept: len(file) > 3}, nil
}

var display = robot.Part{Path: "body.head.display", Is: []string{"VideoOut"}}

// play begins to play and returns how it began, and how it will end.
func (d *desk) play(t *testing.T, ctx context.Context, r mindlink.Request) (mindlink.Began, <-chan mindlink.Ended) {
	t.Helper()
	began, ended := make(chan mindlink.Began, 1), make(chan mindlink.Ended, 1)
	go func() {
		e, err := d.Play(ctx, r, func(p mindlink.Progress) error {
			if p.Began != nil {
				began <- *p.Began
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			t.Errorf("%+v: %v", r, err)
			began <- mindlink.Began{}
		}
		ended <- e
	}()
	select {
	case b := <-began:
		return b, ended
	case <-d.ctx.Done():
		t.Fatal("it never began")
		panic("unreachable")
	}
}

func tracks(left []mindlink.LeftOut) (names []string) {
	for _, l := range left {
		names = append(names, l.Track)
	}
	slices.Sort(names)
	return names
}

// sets returns the values that were ordered for a slot, in order.
func (d *desk) sets(name string) (values []float64) {
	target, _ := d.body.Model().Tree.Lookup(name)
	for _, o := range d.body.Orders() {
		for _, g := range o.Goals[:o.N] {
			if o.Kind == control.Set && g.Slot == target.Refs[0].ID {
				values = append(values, g.Value)
			}
		}
	}
	return values
}

// TestPlay: a trigger's clip moves what the body has, leaves out what it lacks and says so, ends well, and leaves the lights dark and the motors free.
func TestPlay(t *testing.T) {
	t.Parallel()
	d := newDesk(t, display)
	began, ended := d.play(t, d.ctx, mindlink.Request{Trigger: "Nod", Program: "a"})
	if want := []string{"audio", "lift"}; began.Clip != "anim_nod" || began.SpanMS != 300 || !slices.Equal(tracks(began.LeftOut), want) {
		t.Errorf("%+v, want without %v", began, want)
	}
	if e := <-ended; e.Outcome != mindlink.Done || e.Reason != "" || !slices.Equal(tracks(e.LeftOut), []string{"audio", "lift"}) || e.AtMS < 300 {
		t.Errorf("%+v", e)
	}
	// Up is negative in the tree: 20 degrees up, then 10 down.
	if got := d.sets("robot.body.head.pitch.turn"); len(got) != 2 || !(got[0] < got[1]) {
		t.Errorf("head %v", got)
	}
	if got := d.sets("robot.body.led[0].r"); len(got) < 2 || got[0] != 1 || got[len(got)-1] != 0 {
		t.Errorf("light %v", got)
	}
	d.body.Measure("headPitch.turn", math.NaN())
	if began, ended := d.play(t, d.ctx, mindlink.Request{Trigger: "Nod", Program: "a"}); !slices.Equal(tracks(began.LeftOut), []string{"audio", "head", "lift"}) {
		t.Errorf("without a measured head: %+v, %+v", began, <-ended)
	} else {
		<-ended
	}
	lease, err := d.other.Claim(d.ctx, 0, claim.Idle, "headPitch", "led[0]")
	if err != nil {
		t.Errorf("afterwards: %v", err)
	}
	lease.Release()
}

// TestStoredSounds: a body whose speaker plays what it stores plays a clip's sound by its number, also a clip of sounds alone, and a sound that a program names; a sound that
// it does not store is left out (part of GOSTAI-MAP-A-14).
func TestStoredSounds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, name := range []string{"anim_cheer", "anim_sing"} {
		began, ended := d.play(t, d.ctx, mindlink.Request{Clip: name, Program: "a"})
		if e := <-ended; len(began.LeftOut) != 0 || e.Outcome != mindlink.Done || len(e.LeftOut) != 0 {
			t.Errorf("%+v, %+v", began, e)
		}
	}
	l, err := d.List(d.ctx)
	if err != nil || !slices.Contains(l.Sounds, "Kennel_Charger_Docked") || slices.Contains(l.Sounds, "Kennel_Photo") {
		t.Errorf("%v, %v", l.Sounds, err)
	}
	if e, err := d.Sound(d.ctx, mindlink.Sound{Name: "Kennel_Charger_Docked", Program: "a"}, nothing); err != nil || e.Outcome != mindlink.Done {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := d.Sound(d.ctx, mindlink.Sound{Name: "Kennel_Photo", Program: "a"}, nothing); errs.CodeOf(err) != "unable" {
		t.Error(err)
	}
	if got := d.sets("robot.body.speaker.play"); !slices.Equal(got, []float64{200, 209, 210}) {
		t.Errorf("played %v, want 200, 209 and 210", got)
	}
}

// TestTaken: a program with a higher priority takes the wheels, and the clip ends saying who has them (part of VEC-TRG-06); one that holds them at the same
// priority is not disturbed.
func TestTaken(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, ended := d.play(t, d.ctx, mindlink.Request{Clip: "anim_drive", Program: "a"})
	testwait.Until(t, patience, "wheels that turn", testwait.Holds(func() bool { return len(d.sets("robot.xSpeed")) > 0 }))
	lease, err := d.other.Claim(d.ctx, 0, claim.Person, "robot.go")
	if err != nil {
		t.Fatal(err)
	}
	if e := <-ended; e.Outcome != mindlink.Stopped || !strings.Contains(e.Reason, "other") || !strings.Contains(e.Reason, "50") {
		t.Errorf("%+v", e)
	}
	lease.Release()
	if lease, err = d.other.Claim(d.ctx, 0, claim.Program, "robot.go"); err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	_, err = d.Play(d.ctx, mindlink.Request{Clip: "anim_drive", Program: "a"}, func(mindlink.Progress) error { return nil })
	if errs.CodeOf(err) != "busy" || !strings.Contains(err.Error(), "other") {
		t.Error(err)
	}
	// The holder's own animation goes before its other motions.
	leave, cancel := context.WithCancel(d.ctx)
	_, ended = d.play(t, leave, mindlink.Request{Clip: "anim_drive", Program: "a", Priority: int(claim.Program) + 1})
	cancel()
	<-ended
	testwait.Until(t, patience, "the wheels to be the holder's again", func() error { return lease.Renew(d.ctx, 0) })
}

// TestStopped: a stop of all motors ends a clip, and so does a robotd that ends.
func TestStopped(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, stop := range []func(){func() {
		if err := d.other.Stop(d.ctx); err != nil {
			t.Error(err)
		}
	}, d.end} {
		n := len(d.sets("robot.xSpeed"))
		_, ended := d.play(t, d.ctx, mindlink.Request{Clip: "anim_drive", Program: "a"})
		testwait.Until(t, patience, "wheels that turn", testwait.Holds(func() bool { return len(d.sets("robot.xSpeed")) > n }))
		stop()
		if e := <-ended; e.Outcome != mindlink.Stopped || e.Reason == "" || e.By != "" {
			t.Errorf("%+v", e)
		}
	}
	_, err := d.Play(d.ctx, mindlink.Request{Clip: "anim_drive", Program: "a"}, func(mindlink.Progress) error { return nil })
	if errs.CodeOf(err) != "core_lost" {
		t.Error(err)
	}
}

// TestLevels: a newer animation of the same program replaces an older one, another program's waits for it, and a behaviour gives way to a command.
func TestLevels(t *testing.T) {
	t.Parallel()
	d := newDesk(t, display)
	refused := func(r mindlink.Request) {
		t.Helper()
		if _, err := d.Play(d.ctx, r, func(mindlink.Progress) error { return nil }); errs.CodeOf(err) != "busy" {
			t.Errorf("%+v: %v", r, err)
		}
	}
	_, first := d.play(t, d.ctx, mindlink.Request{Clip: "anim_smile", Level: mindlink.Behavior, Program: "a"})
	refused(mindlink.Request{Clip: "anim_smile", Level: mindlink.Behavior, Program: "b"})
	_, second := d.play(t, d.ctx, mindlink.Request{Clip: "anim_smile", Program: "b"})
	if e := <-first; e.Outcome != mindlink.Stopped || e.By != "b" {
		t.Errorf("%+v", e)
	}
	refused(mindlink.Request{Clip: "anim_smile", Program: "c"})
	refused(mindlink.Request{Clip: "anim_smile", Level: mindlink.Behavior, Program: "b"})
	_, third := d.play(t, d.ctx, mindlink.Request{Trigger: "Nod", Program: "b"})
	if e := <-second; e.Outcome != mindlink.Stopped || e.By != "b" {
		t.Errorf("%+v", e)
	}
	if e := <-third; e.Outcome != mindlink.Done {
		t.Errorf("%+v", e)
	}
}

// TestPicture: what a program shows stays on the display for its time: neither the idle eyes nor a behaviour nor another program's animation replaces it.
func TestPicture(t *testing.T) {
	t.Parallel()
	d := newDesk(t, display)
	image := mindlink.Image{Pixels: []byte(strings.Repeat("\xf8\x00", face.Width*face.Height)), ForMS: 60_000, Program: "a"}
	red := func(f *mindlink.Frame) bool {
		return !slices.ContainsFunc(f.Picture.Pix[:], func(v uint16) bool { return v != 0xf800 })
	}
	seen := 0
	errEnough := errors.New("enough")
	watch := func(want bool, n int) {
		t.Helper()
		seen = 0
		err := d.Watch(d.ctx, mindlink.MaxRate, func(f mindlink.Frame) error {
			if red(&f) != want {
				t.Errorf("frame %d is red: %v", f.Seq, !want)
			}
			if seen++; seen == n {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errEnough) {
			t.Errorf("after %d frames: %v", seen, err)
		}
	}
	watch(false, 2)
	if err := d.Show(d.ctx, image); err != nil {
		t.Fatal(err)
	}
	for _, r := range []mindlink.Request{{Clip: "anim_smile", Level: mindlink.Behavior, Program: "b"}, {Clip: "anim_smile", Program: "b"}} {
		if _, err := d.Play(d.ctx, r, func(mindlink.Progress) error { return nil }); errs.CodeOf(err) != "busy" {
			t.Errorf("%+v: %v", r, err)
		}
	}
	watch(true, 10)
	_, ended := d.play(t, d.ctx, mindlink.Request{Clip: "anim_smile", Program: "a"})
	watch(false, 2)
	if err := d.Show(d.ctx, image); errs.CodeOf(err) != "busy" {
		t.Error(err)
	}
	image.Interrupt = true
	if err := d.Show(d.ctx, image); err != nil {
		t.Error(err)
	}
	if e := <-ended; e.Outcome != mindlink.Stopped || e.By != "a" {
		t.Errorf("%+v", e)
	}
	image.ForMS = 1
	if err := d.Show(d.ctx, image); err != nil {
		t.Error(err)
	}
	testwait.Until(t, patience, "the eyes again", func() error {
		err := d.Watch(d.ctx, 5, func(f mindlink.Frame) error {
			if red(&f) {
				return errors.New("still the picture")
			}
			return errEnough
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
}

// TestEyes: the eyes have the colour that a program gives them, and blink and look about while nothing plays (part of VEC-FCE-02).
func TestEyes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, display)
	if err := d.Eyes(d.ctx, mindlink.Eyes{Hue: 0, Saturation: 1}); err != nil {
		t.Fatal(err)
	}
	if err := d.Eyes(d.ctx, mindlink.Eyes{Hue: 1.5}); errs.CodeOf(err) != "invalid" {
		t.Error(err)
	}
	enough := errors.New("enough")
	var last *face.Picture
	differ := 0
	if err := d.Watch(d.ctx, mindlink.MaxRate, func(f mindlink.Frame) error {
		lit := false
		for _, v := range f.Picture.Pix {
			if v&0x07ff != 0 {
				t.Errorf("pixel %04x is not red", v)
				return enough
			}
			lit = lit || v != 0
		}
		if !lit {
			t.Error("a dark face")
		}
		if last != nil && *last != *f.Picture {
			differ++
		}
		if last = f.Picture; differ == 3 {
			return enough
		}
		return nil
	}); !errors.Is(err, enough) {
		t.Error(err)
	}
}

// TestMoods: a mood plays the first way that the body has the part for, be it a trigger or a motion of its own library, which a newer animation replaces.
func TestMoods(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	began, ended := d.play(t, d.ctx, mindlink.Request{Mood: "glad", Program: "a"})
	if e := <-ended; began.Clip != "anim_nod" || e.Outcome != mindlink.Done {
		t.Errorf("%+v, %+v", began, e)
	}
	if _, err := d.Play(d.ctx, mindlink.Request{Mood: "sad", Program: "a"}, nil); errs.CodeOf(err) != "not_found" {
		t.Error(err)
	}
	l, err := d.List(d.ctx)
	if err != nil || len(l.Moods) != 1 || l.Moods[0] != (mindlink.Mood{Name: "glad", Trigger: "Nod"}) || !slices.Contains(l.Lacks, "display") || slices.Contains(l.Lacks, "audio") || len(l.Clips) != 11 || l.Clips[9].Name != "motion/droop" {
		t.Errorf("%+v, %v", l, err)
	}

	d = newDesk(t, robot.Part{Path: "body.tail.yaw", Is: []string{"RotationalMotor"}, Ranges: map[string]robot.Range{"angle": {Min: -1, Max: 1}}})
	began, ended = d.play(t, d.ctx, mindlink.Request{Mood: "glad", Program: "a"})
	if e := <-ended; began.Clip != "wag" || e.Outcome != mindlink.Done {
		t.Errorf("%+v, %+v", began, e)
	}
	began, ended = d.play(t, d.ctx, mindlink.Request{Clip: "motion/wag", Loops: 3, Program: "a"})
	if e := <-ended; began.Clip != "motion/wag" || began.SpanMS != 2100 || e.Outcome != mindlink.Done {
		t.Errorf("%+v, %+v", began, e)
	}
	if _, err := d.Play(d.ctx, mindlink.Request{Clip: "motion/fall", Program: "a"}, nil); errs.CodeOf(err) != "refused" || errs.KindOf(err) != errs.Conflict {
		t.Error(err)
	}
	if b, err := d.Body(d.ctx); err != nil || b.Model != "toy" {
		t.Errorf("%+v, %v", b, err)
	}
	if v, err := d.Judge(d.ctx, mindlink.Draft{Name: "hop", File: []byte("a hop")}); err != nil || !v.Kept || v.Name != "hop" {
		t.Errorf("%+v, %v", v, err)
	}
	for _, draft := range []mindlink.Draft{{Name: "../hop"}, {Name: "hop", File: make([]byte, motionwire.MaxFile+1)}} {
		if _, err := d.Judge(d.ctx, draft); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%.40q of %d bytes: %v", draft.Name, len(draft.File), err)
		}
	}
	_, ended = d.play(t, d.ctx, mindlink.Request{Mood: "sad", Program: "a"})
	began, next := d.play(t, d.ctx, mindlink.Request{Trigger: "Nod", Program: "a"})
	if e := <-ended; e.Clip != "droop" || e.Outcome != mindlink.Stopped || e.By != "a" {
		t.Errorf("%+v", e)
	}
	if e := <-next; began.Clip != "anim_nod" || e.Outcome != mindlink.Done {
		t.Errorf("%+v", e)
	}
}

// TestRefused: requests that make no sense, and what this body cannot do, by their codes.
func TestRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, tc := range []struct {
		r    mindlink.Request
		code string
	}{
		{mindlink.Request{}, "invalid"},
		{mindlink.Request{Clip: "anim_nod", Mood: "glad"}, "invalid"},
		{mindlink.Request{Clip: "anim_nod", Loops: mindlink.MaxLoops + 1}, "invalid"},
		{mindlink.Request{Clip: "anim_nod", Ignore: []string{"tail"}}, "invalid"},
		{mindlink.Request{Clip: "anim_nod", Level: "urgent"}, "invalid"},
		{mindlink.Request{Clip: "anim_nod", Priority: int(claim.Safety)}, "invalid"},
		{mindlink.Request{Clip: "anim_none"}, "not_found"},
		{mindlink.Request{Trigger: "None"}, "not_found"},
		{mindlink.Request{Mood: "none"}, "not_found"},
		{mindlink.Request{Clip: "anim_still"}, "unable"}, // a lift alone
	} {
		if _, err := d.Play(d.ctx, tc.r, nil); errs.CodeOf(err) != tc.code {
			t.Errorf("%+v: %v, want %s", tc.r, err, tc.code)
		}
	}
	image := mindlink.Image{Pixels: make([]byte, mindlink.ImageSize), ForMS: 1}
	if err := d.Show(d.ctx, image); errs.CodeOf(err) != "unable" {
		t.Error(err)
	}
	image.Pixels = image.Pixels[1:]
	if err := d.Show(d.ctx, image); errs.CodeOf(err) != "invalid" {
		t.Error(err)
	}
	if err := d.Watch(d.ctx, 20, nil); errs.CodeOf(err) != "unable" {
		t.Error(err)
	}
	if err := d.Watch(d.ctx, 0, nil); errs.CodeOf(err) != "invalid" {
		t.Error(err)
	}
	if _, err := mindlink.NewClient(t.TempDir()).List(d.ctx); errs.CodeOf(err) != "mind_lost" {
		t.Error(err)
	}
}
