package teleop

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/agent/commands"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/live"
	"kennel/infra/api/poke"
	"kennel/infra/api/topics"
)

// robotd is a core that answers at once, as it is told to.
type robotd struct {
	handle func(corelink.Message)
	mu     sync.Mutex
	said   []corelink.Message
	code   string // of motions; "": ok
	dumb   bool
	gone   bool

	between func() // called once, before a claim is answered
}

func (r *robotd) Hello() (corelink.Hello, bool) { return corelink.Hello{Program: "robotd"}, !r.gone }

func (r *robotd) Send(m corelink.Message) error {
	if r.gone {
		return corelink.ErrNotConnected
	}
	if _, ok := m.(*corelink.Claim); ok && r.between != nil {
		f := r.between
		r.between = nil
		f()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, m)
	if r.dumb {
		return nil
	}
	var answer corelink.Message
	switch m := m.(type) {
	case *corelink.Claim:
		answer = &corelink.Reply{Request: m.Request, Code: "ok", Lease: 77}
		switch m.Devices[0] {
		case "wing", "robot.stop":
			answer = &corelink.Reply{Request: m.Request, Code: "busy", Detail: "wheelL belongs to rival with priority 50"}
		case "arm":
			answer = &corelink.Reply{Request: m.Request, Code: "full", Detail: "too many claims at once"}
		}
	case *corelink.Stop:
		answer = &corelink.Reply{Request: m.Request, Code: "ok"}
	case *corelink.Hold:
		answer = &corelink.Reply{Request: m.Request, Code: "ok"}
	case *corelink.Unhold:
		answer = &corelink.Reply{Request: m.Request, Code: "invalid", Detail: "the robot is held as before"}
	case *corelink.Do:
		answer = r.did(m)
	case *corelink.GetTree:
		least := -1.0
		answer = &corelink.Tree{Request: m.Request, Tree: live.Tree{Body: "vector", Nodes: []live.Node{{Full: "robot.body.head.pitch",
			Compact: "headPitch", Kind: "device", Aliases: []string{"nod"},
			Slots: []live.Slot{{ID: 5, Name: "angle", Type: "float", Unit: "rad", Min: &least}}}}}}
	case *corelink.GetValues:
		v, text := 0.25, "Vector"
		answer = &corelink.Values{Request: m.Request, AtUS: 2_000_000, Values: []live.Value{{Slot: 5, AgeMS: 5, Number: &v}, {Slot: 6, Infinite: 1},
			{Slot: 7, AgeMS: -1, Text: &text}}}
	}
	if answer != nil {
		go r.handle(answer)
	}
	return nil
}

// did answers a line as a robotd would; r.mu is held.
func (r *robotd) did(m *corelink.Do) *corelink.Reply {
	c := &corelink.Reply{Request: m.Request, Code: "ok"}
	switch {
	case m.Line == "robot.stop()":
	case m.Line == "headPitch":
		c.Value = "0.25"
	case strings.HasPrefix(m.Line, "wing"):
		c.Code, c.Detail = "invalid", "no such part"
	case strings.HasPrefix(m.Line, "arm"):
		c.Code, c.Detail = "not_held", "arm was not claimed"
	case r.code != "":
		c.Code, c.Detail = r.code, "the robot may not move: halted"
	case strings.HasPrefix(m.Line, "led"):
		c.Value = "1"
	case strings.HasPrefix(m.Line, "robot.go"):
		c.Underway = true
	case strings.HasPrefix(m.Line, "wheelL"):
		c.Underway, c.Value = true, "3; 3"
	default:
		if strings.HasSuffix(m.Line, "adaptive:100ms") {
			c.Detail = "adaptive:100ms is too short"
		}
		c.Underway, c.Value = true, "0.3"
	}
	return c
}

// end says that the motion of a request has ended.
func (r *robotd) end(request uint32, outcome string) {
	m := &corelink.Ended{Request: request, Outcome: outcome, Unit: "m", Moved: 0.011, Of: 0.2}
	if outcome == "stopped" {
		m.Reasons = []string{"its loop was late"}
	}
	r.handle(m)
}

// last returns the newest message of type T.
func last[T corelink.Message](r *robotd) (m T, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.said {
		if x, ok := x.(T); ok {
			m = x
			n++
		}
	}
	return m, n
}

type sent struct {
	name string
	f    live.Frame
	at   time.Time
}

// beside simulates the person beside a simulated robot; nil for a real robot.
type beside struct {
	mu  sync.Mutex
	rev string
	err error

	poked poke.Poke
}

func (b *beside) Poke(_ context.Context, p poke.Poke) error {
	b.poked = p
	return b.err
}

func (b *beside) now(rev string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rev, b.err = rev, err
}

func (b *beside) Ask(context.Context) (*live.World, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rev == "" || b.err != nil {
		return nil, b.err
	}
	return &live.World{Rev: b.rev, Posture: "on treads", Map: &live.Map{Name: b.rev}}, nil
}

func start(t *testing.T) (*Pilot, *robotd, func() []sent) { return startBeside(t, nil) }

func startBeside(t *testing.T, w Simulator) (*Pilot, *robotd, func() []sent) {
	var mu sync.Mutex
	var frames []sent
	r := &robotd{}
	c := coreclient.New(r)
	p := New(c, w, func(_ context.Context, name string, payload []byte) error {
		f, err := live.ParseFrame(payload)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		frames = append(frames, sent{name, f, time.Now()})
		return nil
	}, slog.New(slog.DiscardHandler))
	r.handle = func(m corelink.Message) { c.Handle(m); p.Handle(m) }
	return p, r, func() []sent { mu.Lock(); defer mu.Unlock(); return frames }
}

// TestStop: a stop that comes while a motion begins is not lost, and what robotd refuses or does not answer keeps no claim.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, _ := start(t)
		do := func(kind, args string) (string, error) {
			out, err := p.Executors()[kind](t.Context(), json.RawMessage(args))
			return out.Detail, err
		}
		const drive = `{"line":"robot.go(0.1)"}`
		if _, err := do(commandwire.RobotDo, drive); err != nil {
			t.Fatal(err)
		}
		m, _ := last[*corelink.Do](r)
		if _, n := last[*corelink.Release](r); n != 0 {
			t.Error("the claim is gone before the motion has ended")
		}
		r.end(m.Request, "done")
		r.end(m.Request, "done")
		if rel, n := last[*corelink.Release](r); n != 1 || rel.Lease != 77 {
			t.Errorf("%d releases, %+v; want one of lease 77", n, rel)
		}
		if _, err := do(commandwire.RobotStop, ``); err != nil {
			t.Error(err)
		}
		r.between = func() {
			if _, err := do(commandwire.RobotStop, ``); err != nil {
				t.Error(err)
			}
		}
		if _, err := do(commandwire.RobotDo, drive); err == nil || !strings.Contains(err.Error(), "stopped at its start") {
			t.Errorf("a motion that was stopped as it began: %v", err)
		}
		r.mu.Lock()
		if _, ok := r.said[len(r.said)-1].(*corelink.Stop); !ok {
			t.Errorf("robotd heard %v last, want a stop after the motion", corelink.Name(r.said[len(r.said)-1]))
		}
		r.mu.Unlock()
		if _, n := last[*corelink.Stop](r); n != 3 {
			t.Errorf("%d stops, want 3", n)
		}
		r.code = "stopped"
		_, before := last[*corelink.Release](r)
		if _, err := do(commandwire.RobotDo, drive); err == nil || !strings.Contains(err.Error(), "halted") {
			t.Errorf("a refused motion: %v", err)
		}
		if _, n := last[*corelink.Release](r); n != before+1 {
			t.Errorf("a refused motion keeps its claim: %d releases", n-before)
		}
		r.dumb = true
		began := time.Now()
		if _, err := do(commandwire.RobotDo, drive); err == nil || !strings.Contains(err.Error(), "does not answer") ||
			time.Since(began) != 2*coreclient.Patience {
			t.Errorf("a core that is silent: %v after %v", err, time.Since(began))
		}
		r.gone = true
		if _, err := do(commandwire.RobotDo, drive); !errors.Is(err, coreclient.ErrNotConnected) {
			t.Errorf("no core: %v", err)
		}
		if _, err := do(commandwire.RobotStop, ``); !errors.Is(err, coreclient.ErrNotConnected) {
			t.Errorf("stop without a core: %v", err)
		}
	})
}

// TestWait: with wait the result comes when the motion has ended, and is a failure if it did not end well (GOSTAI-IF-15). A stop does not wait for
// it.
func TestWait(t *testing.T) {
	for _, tc := range []struct{ outcome, want, err string }{
		{"done", "robot.go(0.2): done after 0.011 m", ""}, {"stopped", "", "robot.go(0.2): stopped after 0.011 m of 0.2 m: its loop was late"},
		{"cancelled", "", "robot.go(0.2): cancelled after 0.011 m of 0.2 m"}, {"", "", "has not ended"}, {"lost", "", "robotd) lost: gone"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, r, _ := start(t)
			began := time.Now()
			time.AfterFunc(time.Second, func() {
				m, _ := last[*corelink.Do](r)
				switch tc.outcome {
				case "":
				case "lost":
					r.handle(&corelink.Bye{Reason: "gone"})
				case "cancelled":
					if _, err := p.Executors()[commandwire.RobotStop](t.Context(), nil); err != nil {
						t.Error(err)
					}
					r.end(m.Request, tc.outcome)
				default:
					r.end(m.Request, tc.outcome)
				}
			})
			out, err := p.Executors()[commandwire.RobotDo](t.Context(), json.RawMessage(`{"line":"robot.go(0.2)","wait":true}`))
			if out.Detail != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: %q, %v; want %q, %q", tc.outcome, out.Detail, err, tc.want, tc.err)
			}
			want := time.Second
			if tc.outcome == "" {
				want = commandwire.DefaultDrive + spare
			}
			if took := time.Since(began); took != want {
				t.Errorf("%q: it took %v, want %v", tc.outcome, took, want)
			}
		})
	}
}

// TestHold: who holds the robot and why goes to robotd, and its refusal is the command's failure.
func TestHold(t *testing.T) {
	p, r, _ := start(t)
	out, err := p.Executors()[commandwire.RobotHold](t.Context(), json.RawMessage(`{"reason":"its wheel is off","by":"op@example.org"}`))
	if m, n := last[*corelink.Hold](r); err != nil || out.Detail != "held by op@example.org because its wheel is off, until it is released" ||
		n != 1 || m.By != "op@example.org" || m.Reason != "its wheel is off" {
		t.Errorf("%q, %v; robotd heard %+v", out.Detail, err, m)
	}
	if _, err := p.Executors()[commandwire.RobotRelease](t.Context(), nil); err == nil || !strings.Contains(err.Error(), "held as before") {
		t.Errorf("release: %v", err)
	}
}

// TestHoldWhileRobotdRestarts: a hold that comes while there is no robotd is the first that the next one hears.
func TestHoldWhileRobotdRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, _ := start(t)
		r.gone = true
		held := make(chan error, 1)
		go func() {
			_, err := p.Executors()[commandwire.RobotHold](t.Context(), json.RawMessage(`{"reason":"its wheel is off","by":"op@example.org"}`))
			held <- err
		}()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		select {
		case err := <-held:
			t.Fatalf("the hold ended: %v", err)
		default:
		}
		r.gone = false
		r.handle(&corelink.Hello{})
		if err := <-held; err != nil {
			t.Error(err)
		}
		if _, n := last[*corelink.Hold](r); n != 1 {
			t.Errorf("robotd heard %d holds, want 1", n)
		}
	})
}

// TestLights: four lights are three statements of one line.
func TestLights(t *testing.T) {
	p, r, _ := start(t)
	out, err := p.Executors()[commandwire.SetLights](t.Context(), json.RawMessage(`{"lights":[{"r":255},{"g":51},{},{"b":255}]}`))
	m, _ := last[*corelink.Do](r)
	if want := "led.r = [1, 0, 0, 0]; led.g = [0, 0.2, 0, 0]; led.b = [0, 0, 0, 1]"; err != nil || out.Detail != "set 4 lights" || m == nil ||
		m.Line != want {
		t.Errorf("%q, %v; robotd heard %+v, want %s", out.Detail, err, m, want)
	}
}

// TestPoke: the simulator takes a poke with its defaults, and its refusal is the command's failure.
func TestPoke(t *testing.T) {
	hand := &beside{}
	p, _, _ := startBeside(t, hand)
	do := func(args string) (commands.Outcome, error) {
		return p.Executors()[commandwire.RobotPoke](t.Context(), json.RawMessage(args))
	}
	if out, err := do(`{"verb":"touch"}`); err != nil || out.Detail != "done: touch -for 2s" || hand.poked.String() != "touch -for 2s" {
		t.Errorf("%+v, %v; the hand did %v", out, err, hand.poked)
	}
	if _, err := do(`{"verb":"kick"}`); err == nil || !strings.Contains(err.Error(), "want one of") {
		t.Errorf("a kick: %v", err)
	}
	hand.err = errors.New("not a simulated robot")
	if _, err := do(`{"verb":"put"}`); err != hand.err {
		t.Errorf("refused: %v", err)
	}
	p, _, _ = start(t)
	if _, err := do(`{"verb":"put"}`); err != errNoBody {
		t.Errorf("without a body: %v", err)
	}
}

// TestLine: a line claims what it moves, for as long as that may last, and nothing else (GOSTAI-OPEN-01).
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			args, code    string
			want, err     string
			claim         string // "": none
			heldOn, stops bool   // the claim is held until the motion ends; a stop comes while it begins
		}{
			{args: `{"line":"headPitch"}`, want: "headPitch = 0.25"},
			{args: `{"line":"robot.stop()","seconds":4}`, want: "done: robot.stop()", claim: "robot.stop"}, // also while another person drives
			{args: `{"line":"headPitch = 0.3","seconds":4}`, want: "headPitch = 0.3", claim: "headPitch", heldOn: true},
			{args: `{"line":"robot.go(0.2)","seconds":4}`, want: "begun: robot.go(0.2), for at most 4s", claim: "robot.go", heldOn: true},
			{args: `{"line":"robot.go(0.2)","seconds":4}`, err: "stopped at its start", claim: "robot.go", heldOn: true, stops: true},
			{args: `{"line":"wheelL.speed = 3; wheelR.speed = 3","seconds":4}`, want: "wheelL.speed = 3; wheelR.speed = 3: 3; 3", claim: "wheelL.speed",
				heldOn: true},
			{args: `{"line":"led[0] = 1","seconds":4}`, want: "led[0] = 1", claim: "led[0]"},
			{args: `{"line":"headPitch = 0.3","seconds":4}`, code: "stopped", err: "stopped: the robot may not move: halted", claim: "headPitch"},
			{args: `{"line":"wing = 1","seconds":4}`, err: "invalid: no such part", claim: "wing"},
			{args: `{"line":"arm = 1","seconds":4}`, err: "full: too many claims", claim: "arm"},
			// As long as its motor is to take, and what the body says of that (GOSTAI-OPEN-03).
			{args: `{"line":"headPitch = 0.3 time:4s","seconds":1}`, want: "headPitch = 0.3", claim: "headPitch", heldOn: true},
			{args: `{"line":"headPitch = 0.3 adaptive:0.1","seconds":4}`, want: "headPitch = 0.3; adaptive:100ms is too short", claim: "headPitch", heldOn: true},
			{args: `{"line":"headPitch = 0.3 time:11s"}`, err: "headPitch: time of 11s, want at most 10s"},
			{args: `{"line":"headPitch = nan"}`, err: "finite"},
			{args: `{"line":""}`, err: "1 to 400"},
		} {
			p, r, _ := start(t)
			r.code = tc.code
			if tc.stops {
				r.between = func() {
					if _, err := p.Executors()[commandwire.RobotStop](t.Context(), nil); err != nil {
						t.Error(err)
					}
				}
			}
			out, err := p.Executors()[commandwire.RobotDo](t.Context(), json.RawMessage(tc.args))
			if tc.err == "" && (err != nil || out.Detail != tc.want) || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s: %q, %v; want %q, %q", tc.args, out.Detail, err, tc.want, tc.err)
			}
			c, n := last[*corelink.Claim](r)
			if tc.claim == "" {
				if n != 0 {
					t.Errorf("%s claims %v", tc.args, c.Devices)
				}
				continue
			}
			if n != 1 || c.Devices[0] != tc.claim || c.TTLMS != 6000 || c.Priority != 50 {
				t.Errorf("%s: %d claims, %+v", tc.args, n, c)
			}
			m, _ := last[*corelink.Do](r)
			if m.ForMS != 4000 {
				t.Errorf("%s: %+v", tc.args, m)
			}
			none := tc.claim == "robot.stop" || tc.claim == "wing" || tc.claim == "arm" // is to be had
			if _, n := last[*corelink.Release](r); (n == 0) != (tc.heldOn || none) {
				t.Errorf("%s: %d releases", tc.args, n)
			}
			if none {
				continue
			}
			r.end(m.Request, "done")
			if rel, n := last[*corelink.Release](r); n != 1 || rel.Lease != 77 {
				t.Errorf("%s: %d releases, %+v; want one in the end", tc.args, n, rel)
			}
			if stop, n := last[*corelink.Stop](r); tc.stops && (n != 2 || r.said[len(r.said)-2] != stop) {
				t.Errorf("%s: robotd heard %d stops, want another after the motion", tc.args, n)
			}
		}
		// A line that follows another has a claim of its own: the first one's ends with what that began.
		p, r, _ := start(t)
		for range 2 {
			if _, err := p.Executors()[commandwire.RobotDo](t.Context(), json.RawMessage(`{"line":"headPitch = 0.3"}`)); err != nil {
				t.Fatal(err)
			}
		}
		if _, n := last[*corelink.Claim](r); n != 2 {
			t.Errorf("two lines: %d claims", n)
		}
	})
}

// TestNobodyLooks: a robot sends its live view twice a second while a viewer is present, and never otherwise.
func TestNobodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, frames := start(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(time.Minute)
		p.Look([]byte(`{"v":2}`))
		time.Sleep(time.Minute)
		if len(frames()) != 0 || len(r.said) != 0 {
			t.Fatalf("%d frames, robotd heard %v, and nobody looks", len(frames()), r.said)
		}
		r.handle(&corelink.Motion{Motion: live.Motion{X: 0.5, Stop: []string{"halted"}, Owners: []live.Owner{{Device: "wheelL", Program: "agentd",
			Priority: 50}}}})
		p.Handle(&corelink.Absent{AtUS: 1_300_000, Devices: []corelink.Absentee{{Full: "robot.body.laser", SinceUS: 1_200_000, Why: "unplugged"}}})
		for range 3 { // who looks asks again before it is over
			p.Look([]byte(`{"v":1,"for_ms":15000}`))
			time.Sleep(10 * time.Second)
		}
		time.Sleep(time.Minute)
		got := frames()
		if n := len(got); n < 65 || n > 71 { // 35 s
			t.Errorf("%d frames in 35 s, want two a second", n)
		}
		trees := 0
		for i, f := range got {
			if i > 0 && f.at.Sub(got[i-1].at) < live.Every {
				t.Errorf("two frames within %v", f.at.Sub(got[i-1].at))
			}
			if f.f.Tree != nil {
				trees++
			}
			if f.name != topics.Live || len(f.f.Values) != 3 || *f.f.Values[0].Number != 0.25 || f.f.Values[0].AgeMS != 5 || f.f.Values[1].Infinite != 1 ||
				*f.f.Values[2].Text != "Vector" || f.f.Values[2].AgeMS != -1 || f.f.Motion.X != 0.5 || f.f.Motion.Stop[0] != "halted" ||
				f.f.Motion.Owners[0].Device != "wheelL" ||
				!slices.Equal(f.f.Gone, []live.Gone{{Full: "robot.body.laser", ForMS: 800, Why: "unplugged"}}) {
				t.Fatalf("frame %+v", f)
			}
		}
		if trees < 3 || trees > 5 || got[0].f.Tree == nil || got[0].f.Tree.Nodes[0].Slots[0].Max != nil || *got[0].f.Tree.Nodes[0].Slots[0].Min != -1 ||
			!slices.Equal(got[0].f.Tree.Nodes[0].Aliases, []string{"nod"}) {
			t.Errorf("%d trees, the first %+v", trees, got[0].f.Tree)
		}
		p.Handle(&corelink.Absent{AtUS: 1_400_000}) // it is back
		p.Look([]byte(`{"v":1,"for_ms":100}`))
		time.Sleep(time.Second)
		if again := frames(); len(again) <= len(got) || again[len(again)-1].f.Gone != nil {
			t.Errorf("a device that is back: %+v", again[len(again)-1].f.Gone)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestWorld: where a simulated robot is goes with each frame, its map with the first of a look, with each tree and when it is another. Unknown
// parts are left out, and the frame is sent all the same.
func TestWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &beside{}
		p, _, frames := startBeside(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		look := func() []sent {
			t.Helper()
			before := len(frames())
			p.Look([]byte(`{"v":1,"for_ms":4000}`))
			time.Sleep(10 * time.Second)
			got := frames()[before:]
			if len(got) < 8 || len(got) > 9 {
				t.Fatalf("%d frames in 4 s, want 8", len(got))
			}
			return got
		}
		for _, f := range look() {
			if f.f.World != nil {
				t.Fatalf("a real robot is at %+v", f.f.World)
			}
		}
		b.now("a", nil)
		time.AfterFunc(2*time.Second+live.Every/2, func() { b.now("b", nil) })
		maps := ""
		for _, f := range look() {
			w := f.f.World
			if w == nil {
				t.Fatalf("no world in %+v", f.f)
			}
			if maps += w.Rev; w.Map != nil {
				maps += "!"
			}
		}
		if !strings.HasPrefix(maps, "a!aaaab!bb") || strings.Count(maps, "!") != 2 {
			t.Errorf("worlds and maps (!) were sent as %s", maps)
		}
		if f := look()[0].f; f.Tree == nil || f.World.Map == nil || f.World.Map.Name != "b" {
			t.Errorf("the first frame of another look: %+v", f)
		}
		b.now("b", errors.New("it does not say"))
		for _, f := range look() {
			if f.f.World != nil || f.f.Motion != nil || len(f.f.Values) != 3 {
				t.Fatalf("frame %+v", f)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
