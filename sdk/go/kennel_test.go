package kennel_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/robotpb"
	kennel "kennel/sdk/go"
	"kennel/sdk/sdktest"
)

func connect(t *testing.T) *kennel.Robot {
	t.Helper()
	r, err := kennel.Connect(t.Context(), sdktest.Start(t, nil).File(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// count returns how often something happened to the robot.
func count(t *testing.T, r *kennel.Robot, what string) float64 {
	t.Helper()
	n, err := r.Read(t.Context(), "fake."+what)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// await waits until the robot has counted something n times.
func await(t *testing.T, r *kennel.Robot, what string, n float64) {
	t.Helper()
	for count(t, r, what) < n {
		if t.Context().Err() != nil {
			t.Fatal(what)
		}
	}
}

// TestConnect: each thing that is wrong before the first call has its own code and says what is wrong.
func TestConnect(t *testing.T) {
	t.Setenv("KENNEL_ROBOT", "")
	robot, other := sdktest.Start(t, nil), sdktest.Start(t, nil)
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // its port is free now
	for name, tc := range map[string]struct{ path, code, says string }{
		"no file named":         {"", "file_missing", "$KENNEL_ROBOT"},
		"no such file":          {filepath.Join(t.TempDir(), "robot.json"), "file_missing", "robot.json"},
		"no JSON":               {broken, "file_wrong", "broken.json"},
		"no token":              {robot.File(t, map[string]string{"token": ""}), "file_wrong", "token"},
		"no certificate":        {robot.File(t, map[string]string{"certificate": "x"}), "file_wrong", "certificate"},
		"no port":               {robot.File(t, map[string]string{"address": "robot"}), "file_wrong", "host:port"},
		"another's certificate": {robot.File(t, map[string]string{"certificate": other.Certificate}), "certificate_wrong", "another certificate"},
		"nothing there":         {robot.File(t, map[string]string{"address": l.Addr().String()}), "unreachable", l.Addr().String()},
	} {
		_, err := kennel.Connect(t.Context(), tc.path)
		var e *kennel.Error
		if !errors.As(err, &e) || e.Code != tc.code || !strings.Contains(e.Message, tc.says) {
			t.Errorf("%s: %v, want %s and %q", name, err, tc.code, tc.says)
		}
	}
	t.Setenv("KENNEL_ROBOT", robot.File(t, nil))
	r, err := kennel.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}

func TestRead(t *testing.T) {
	r := connect(t)
	for name, want := range map[string]float64{"robot.body.laser.distance": 0.42, "fake.far": math.Inf(1), "headPitch": 0.3} {
		if got, err := r.Read(t.Context(), name); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for name, code := range map[string]string{"nowhere": "not_found", "fake.unknown": "not_measured", "fake.text": "not_measured"} {
		if _, err := r.Read(t.Context(), name); !errors.Is(err, &kennel.Error{Code: code}) {
			t.Errorf("%s: %v, want %s", name, err, code)
		}
	}
	got, err := r.Values(t.Context(), "robot.body.laser.distance", "fake.text", "fake.unknown")
	want := kennel.Values{At: 1500 * time.Millisecond, Readings: []kennel.Reading{
		{Part: "robot.body.laser", Slot: "distance", Unit: "m", Value: 0.42, Age: 20 * time.Millisecond},
		{Part: "fake", Slot: "text", Value: "hello", Age: 20 * time.Millisecond},
		{Part: "fake", Slot: "unknown", Age: -time.Microsecond}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
	if d, ok := got.Number("robot.body.laser.distance"); d != 0.42 || !ok {
		t.Error(d, ok)
	}
	d, err := r.Describe(t.Context())
	if err != nil || d.Thing != "vic:00e20100" || len(d.Parts) != 4 {
		t.Errorf("%v, %v", d, err)
	}
	if ahead, err := r.Ahead(t.Context()); ahead != "robot.body.laser.distance" || err != nil {
		t.Error(ahead, err)
	}
	if err := r.Stop(t.Context()); err != nil || count(t, r, "stopped") != 1 {
		t.Error(err)
	}
}

func TestWrongToken(t *testing.T) {
	r, err := kennel.Connect(t.Context(), sdktest.Start(t, nil).File(t, map[string]string{"token": "a bad token"}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Describe(t.Context()); !errors.Is(err, &kennel.Error{Code: "token_wrong"}) {
		t.Error(err)
	}
	if err := r.Subscribe(t.Context(), 0, nil, "fake.count"); !errors.Is(err, &kennel.Error{Code: "token_wrong"}) {
		t.Error(err)
	}
}

// TestStreams: what only says that the robot is there is no message, a robot that is not heard for 2 s is lost, and an end of the program's own is its own.
func TestStreams(t *testing.T) {
	r := connect(t)
	var seen []any
	see := func(v kennel.Values) error { seen = append(seen, v.Readings[0].Value); return nil }
	if err := r.Subscribe(t.Context(), 50, see, "fake.count"); !errors.Is(err, &kennel.Error{Code: "core_lost"}) || !slices.Equal(seen, []any{0.0, 1.0, 2.0}) {
		t.Errorf("%v, %v", seen, err)
	}
	var events []uint64
	hear := func(e *robotpb.Event) error { events = append(events, e.Seq); return nil }
	if err := r.Events(t.Context(), hear, "fake."); !errors.Is(err, &kennel.Error{Code: "core_lost"}) || !slices.Equal(events, []uint64{1, 2, 3}) {
		t.Errorf("%v, %v", events, err)
	}
	events = nil
	if err := r.EventsSince(t.Context(), 4, hear, "fake."); !errors.Is(err, &kennel.Error{Code: "core_lost"}) || !slices.Equal(events, []uint64{5, 6, 7}) {
		t.Errorf("%v, %v", events, err)
	}
	var orders []uint64
	report := func(o *robotpb.OrderReport) error { orders = append(orders, o.Order); return nil }
	if err := r.Orders(t.Context(), report); !errors.Is(err, &kennel.Error{Code: "core_lost"}) || !slices.Equal(orders, []uint64{1, 2, 3}) {
		t.Errorf("%v, %v", orders, err)
	}
	seen = nil
	if err := r.Subscribe(t.Context(), 0, see, "fake.silent"); !errors.Is(err, kennel.ErrLost) || !slices.Equal(seen, []any{7.0}) {
		t.Errorf("%v, %v", seen, err)
	}
	if _, err := r.Do(t.Context(), "silent"); !errors.Is(err, kennel.ErrLost) {
		t.Error(err)
	}
	mine := errors.New("seen enough")
	if err := r.Subscribe(t.Context(), 0, func(kennel.Values) error { return mine }, "fake.count"); !errors.Is(err, mine) {
		t.Error(err)
	}
	if err := r.Subscribe(t.Context(), 0, see, "nowhere"); !errors.Is(err, &kennel.Error{Code: "not_found"}) {
		t.Error(err)
	}
}

// TestSlowReader: the time that a program takes for a message is not the robot's silence.
func TestSlowReader(t *testing.T) {
	r := connect(t)
	n := 0
	err := r.Subscribe(t.Context(), 0, func(kennel.Values) error {
		if n++; n == 1 {
			time.Sleep(2200 * time.Millisecond) // as long as takes a program to lose a robot
		}
		return nil
	}, "fake.count")
	if !errors.Is(err, &kennel.Error{Code: "core_lost"}) || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestOrders(t *testing.T) {
	r := connect(t)
	ctx := t.Context()
	done := func(e *robotpb.Ended, err error) string {
		if err != nil {
			t.Error(err)
		}
		return e.GetNote()
	}
	for want, got := range map[string]string{
		"robot.go(0.1)":                          done(r.Go(ctx, 0.1)),
		"robot.turn(-0.5) within 3000 ms":        done(r.Turn(ctx, -0.5, kennel.Deadline(3*time.Second))),
		"headPitch = 0.3 time:2":                 done(r.Set(ctx, "headPitch", 0.3, kennel.Time(2*time.Second))),
		"headPitch = 1 speed:0.5":                done(r.Set(ctx, "headPitch", true, kennel.Speed(0.5))),
		"wheel.speed = (1, 2) adaptive:0.25":     done(r.Set(ctx, "wheel.speed", []any{1, 2.0}, kennel.Adaptive(250*time.Millisecond))),
		`voice.say("hello", 0)`:                  done(r.Call(ctx, "voice.say", []any{"hello", false})),
		"headPitch = 0.3 time:2s; robot.go(0.1)": done(r.Do(ctx, "headPitch = 0.3 time:2s; robot.go(0.1)")),
	} {
		if got != want {
			t.Errorf("the robot did %q, want %q", got, want)
		}
	}
	var notDone *kennel.NotDone
	if e, err := r.Do(ctx, "blocked"); !errors.As(err, &notDone) || notDone.Outcome != "blocked" || !strings.Contains(err.Error(), "0.011 m of 0.1 m") || len(e.Reasons) != 1 {
		t.Errorf("%v, %v", e, err)
	}
	if _, err := r.Do(ctx, "busy"); !errors.Is(err, &kennel.Error{Code: "busy"}) {
		t.Error(err)
	}
	if _, err := r.Set(ctx, "headPitch", struct{}{}); !errors.Is(err, &kennel.Error{Code: "invalid"}) {
		t.Error(err)
	}
}

// TestSettings: settings are values by name; a change answers with all of them, and a wrong one changes nothing.
func TestSettings(t *testing.T) {
	r := connect(t)
	want := map[string]any{"volume": "LOW", "metric": true, "place": nil, "eyes": map[string]any{"hue": 0.5}}
	if got, err := r.Settings(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
		t.Error(got, err)
	}
	want = map[string]any{"volume": "HIGH", "metric": false, "place": "here", "eyes": map[string]any{"hue": 0.25}}
	if got, err := r.Change(t.Context(), map[string]any{"volume": "HIGH", "metric": false, "place": "here", "eyes.hue": 0.25}); err != nil || !reflect.DeepEqual(got, want) {
		t.Error(got, err)
	}
	if got, err := r.DescribeSettings(t.Context()); err != nil || !slices.Equal(got[0].Values, []string{"LOW", "HIGH"}) {
		t.Error(got, err)
	}
	for name, v := range map[string]any{"colour": 2, "volume": make(chan int)} {
		if _, err := r.Change(t.Context(), map[string]any{name: v}); !errors.Is(err, &kennel.Error{Code: "invalid"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEndedByProgram: a program that gives up ends the motion.
func TestEndedByProgram(t *testing.T) {
	r := connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	began := func(p *robotpb.Progress) error {
		if p.GetPose() != nil {
			cancel()
		}
		return nil
	}
	if _, err := r.Order(ctx, &robotpb.OrderRequest{Text: "hang"}, began); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	await(t, r, "cancelled", 1)
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.Do(short, "hang"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	await(t, r, "cancelled", 2)
}

// TestLease: a lease is renewed until it is released, also by Close, and orders are given under it.
func TestLease(t *testing.T) {
	robot := sdktest.Start(t, nil)
	path := robot.File(t, nil)
	r, err := kennel.Connect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.ClaimFor(t.Context(), 300*time.Millisecond, "to dance", "robot.go")
	if err != nil {
		t.Fatal(err)
	}
	await(t, r, "renewed", 2)
	if e, err := l.Go(t.Context(), 0.1); err != nil || e.Note != "robot.go(0.1) leased" {
		t.Error(e, err)
	}
	if err := errors.Join(l.Release(t.Context()), l.Release(t.Context())); err != nil || count(t, r, "claimed") != 0 {
		t.Error(err, "it is held after its release")
	}
	if _, err := l.Go(t.Context(), 0.1); !errors.Is(err, &kennel.Error{Code: "lease_gone"}) {
		t.Error(err)
	}
	if _, err := r.Claim(t.Context(), "busy"); !errors.Is(err, &kennel.Error{Code: "busy"}) {
		t.Error(err)
	}
	if _, err := r.Claim(t.Context(), "headPitch"); err != nil || count(t, r, "claimed") != 1 {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if r, err = kennel.Connect(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := count(t, r, "claimed"); n != 0 {
		t.Errorf("%v leases after Close", n)
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"address":"robot:443","certificate":"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n","token":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "robot.json")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		var e *kennel.Error
		if _, err := kennel.File(path); err != nil && (!errors.As(err, &e) || e.Code != "file_wrong") {
			t.Fatal(err)
		}
	})
}

// TestPictures: one picture and a stream of them have what the robot sends, with its calibration; a camera that is off is a refusal.
func TestPictures(t *testing.T) {
	r := connect(t)
	want := kennel.Picture{Format: "rgb", Data: []byte{0xff, 0xd8, 0, 90}, Width: 4, Height: 2, Seq: 1, At: 2500 * time.Millisecond, Exposure: 5 * time.Millisecond, Gain: 2,
		FX: 320, FY: 386, CX: 2, CY: 1}
	if p, err := r.Picture(t.Context(), kennel.Look{Format: "rgb", Quality: 90}); err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := r.Picture(t.Context(), kennel.Look{Format: "bmp"}); !errors.Is(err, &kennel.Error{Code: "no_picture"}) {
		t.Error(err)
	}
	var missed []uint64
	err := r.Pictures(t.Context(), kennel.Look{Rate: 10}, func(p kennel.Picture) error {
		if p.Format != "jpeg" || p.Data[3] != 0 {
			t.Errorf("%+v", p)
		}
		missed = append(missed, p.Missed)
		return nil
	})
	if !errors.Is(err, &kennel.Error{Code: "core_lost"}) || !slices.Equal(missed, []uint64{0, 1, 2}) {
		t.Errorf("%v, %v", missed, err)
	}
}

// TestPlay: an animation is asked for by each of its names, tells its progress, and is a NotDone with the reason if it was stopped; a client that leaves ends it.
func TestPlay(t *testing.T) {
	r := connect(t)
	l, err := r.Animations(t.Context())
	if err != nil || l.Animations[0].Name != "anim_nod" || l.Moods[0].Trigger != "Nod" || l.Lacks[0] != "lift" {
		t.Errorf("%v, %v", l, err)
	}
	begun := ""
	ended, err := r.Play(t.Context(), kennel.Animation{Mood: "happy", Loops: 2, Ignore: []string{"head"}}, func(p *robotpb.PlayProgress) error {
		if b := p.GetBegun(); b != nil {
			begun = b.Clip
		}
		return nil
	})
	if err != nil || begun != "happy" || ended.Clip != "happy 2 [head]" || ended.LeftOut[0].Track != "lift" {
		t.Errorf("%q, %v, %v", begun, ended, err)
	}
	var not *kennel.NotDone
	if _, err := r.Play(t.Context(), kennel.Animation{Clip: "taken"}, nil); !errors.As(err, &not) || not.Outcome != "stopped" || not.Reasons[0] != "headPitch belongs to another" {
		t.Error(err)
	}
	if _, err := r.Play(t.Context(), kennel.Animation{Trigger: "wrong"}, nil); !errors.Is(err, &kennel.Error{Code: "not_found"}) {
		t.Error(err)
	}
	enough := errors.New("enough")
	if _, err := r.Play(t.Context(), kennel.Animation{Clip: "hang"}, func(*robotpb.PlayProgress) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	if p, err := r.Screen(t.Context(), ""); err != nil || p.Format != "png" || p.Width != 4 {
		t.Errorf("%+v, %v", p, err)
	}
	n := 0
	if err := r.Screens(t.Context(), kennel.Look{Rate: 10}, func(p kennel.Picture) error { n++; return nil }); !errors.Is(err, &kennel.Error{Code: "core_lost"}) || n != 3 {
		t.Errorf("%d frames, %v", n, err)
	}
}

// TestSay: a text and a sound are asked for with all that was wished, tell their progress, and are a NotDone with the reason if they were interrupted; what the robot plays
// comes sample by sample.
func TestSay(t *testing.T) {
	r := connect(t)
	state := ""
	ended, err := r.Say(t.Context(), "hello", kennel.Voice{Plain: true, Language: "de-DE", Speed: 2, Pitch: -0.5}, func(p *robotpb.SpeechProgress) error {
		state = cmp.Or(p.GetState(), state)
		return nil
	})
	if err != nil || state != "playing" || ended.Clip != "hello true de-DE 2 -0.5" {
		t.Errorf("%q, %v, %v", state, ended, err)
	}
	var not *kennel.NotDone
	if _, err := r.Say(t.Context(), "taken", kennel.Voice{}, nil); !errors.As(err, &not) || not.Outcome != "stopped" || not.Reasons[0] != "speech is heard instead" {
		t.Error(err)
	}
	if _, err := r.Say(t.Context(), "wrong", kennel.Voice{}, nil); !errors.Is(err, &kennel.Error{Code: "no_voice"}) {
		t.Error(err)
	}
	enough := errors.New("enough")
	if _, err := r.Say(t.Context(), "hang", kennel.Voice{}, func(*robotpb.SpeechProgress) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	if ended, err := r.Sound(t.Context(), "beep", 0.5, nil); err != nil || ended.Clip != "beep 0.5" {
		t.Errorf("%v, %v", ended, err)
	}
	if err := r.Hush(t.Context()); err != nil {
		t.Error(err)
	}
	var all []kennel.Piece
	if err := r.Sounds(t.Context(), func(p kennel.Piece) error { all = append(all, p); return nil }); !errors.Is(err, &kennel.Error{Code: "core_lost"}) || len(all) != 3 ||
		all[2].Rate != 16000 || !slices.Equal(all[2].Samples, []int16{2, -2}) || all[2].Place != 4 || all[2].At != 2*time.Second || all[2].Missed != 2 || all[2].Said == nil || *all[2].Said != "text 2" {
		t.Errorf("%+v, %v", all, err)
	}
	var heard []kennel.Heard
	if err := r.Listen(t.Context(), func(p kennel.Heard) error { heard = append(heard, p); return nil }); !errors.Is(err, &kennel.Error{Code: "core_lost"}) || len(heard) != 3 ||
		!slices.Equal(heard[2].Samples, []int16{2, -2}) || heard[2].Rate != 16000 || heard[2].At != 2*time.Second || heard[2].Missed != 2 || heard[2].Bearing != nil || heard[2].Reason != "no sound" ||
		!heard[0].Own || !heard[1].Voice || heard[2].Voice || heard[1].Bearing == nil || *heard[1].Bearing != -0.5 {
		t.Errorf("%+v, %v", heard, err)
	}
}
