package coreserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kennel/edge/core/control"
	"kennel/edge/core/corelink"
	"kennel/edge/core/coreserver/coreservertest"
	"kennel/edge/env/envtest"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
	"kennel/infra/api/live"
)

// patience bounds how long a test waits for an event that must come.
const patience = 20 * time.Second

// bench is a server on a toy body, below a root of its own.
type bench struct {
	t    testing.TB
	root string
	body *coreservertest.Body
	*Server
}

// newBench returns a server that nothing runs yet, with a body.
func newBench(t testing.TB, root string) *bench {
	t.Helper()
	link, err := corelink.Listen(root, corelink.Hello{Program: "robotd", PID: 7})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := link.Close(); err != nil {
			t.Error(err)
		}
	})
	toy, err := coreservertest.New()
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Root: root, Hardware: envtest.Hardware{}, Log: slog.New(slog.DiscardHandler), Link: link, Control: toy, Loop: coreservertest.Loop{Body: toy}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Opened(t.Context(), corelink.BodyInfo{Species: "toy"}); err != nil {
		t.Fatal(err)
	}
	return &bench{t, root, toy, s}
}

// run runs the server until the test ends, or the returned function is called.
func (b *bench) run() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 3)
	go func() { done <- b.cfg.Link.Serve(ctx, b.Handlers(ctx)) }()
	go func() { done <- b.Run(ctx) }()
	go func() { done <- b.Report(ctx) }()
	var ended atomic.Bool
	end = func() {
		if ended.Swap(true) {
			return
		}
		cancel()
		for range 3 {
			if err := <-done; err != nil {
				b.t.Error(err)
			}
		}
	}
	b.t.Cleanup(end)
	return end
}

// peer is a program that asks.
type peer struct {
	t   testing.TB
	c   *corelink.Client
	got chan corelink.Message
	end func()
	n   uint32

	ends  map[uint32]*corelink.Ended // that came while something else was awaited
	early []corelink.Message         // updates that came before the reply to their subscription
}

func (b *bench) peer(program string) *peer {
	b.t.Helper()
	c := corelink.NewClient(b.root, corelink.WithHello(corelink.Hello{Program: program}))
	p := &peer{t: b.t, c: c, got: make(chan corelink.Message, 20_000), ends: map[uint32]*corelink.Ended{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- c.Run(ctx, func(m corelink.Message) {
			p.got <- m
		})
	}()
	var ended atomic.Bool
	p.end = func() {
		if !ended.Swap(true) {
			cancel()
			<-done
		}
	}
	b.t.Cleanup(p.end)
	await(p, "hello", func(*corelink.Hello) bool { return true })
	return p
}

// await returns the next message that ok accepts.
func await[T corelink.Message](p *peer, what string, ok func(T) bool) T {
	p.t.Helper()
	limit := time.After(patience)
	var last T
	for {
		select {
		case m := <-p.got:
			if m, is := m.(T); is {
				if last = m; ok(m) {
					return m
				}
			}
			switch m := m.(type) {
			case *corelink.Ended:
				p.ends[m.Request] = m
			case *corelink.Update:
				p.early = append(p.early, m)
			}
		case <-limit:
			p.t.Fatalf("%s: no such %T came; the last was %+v", what, last, last)
		}
	}
}

// ended returns how the motion of a request ended.
func (p *peer) ended(request uint32) *corelink.Ended {
	p.t.Helper()
	if m := p.ends[request]; m != nil {
		return m
	}
	return await(p, "end", func(m *corelink.Ended) bool { return m.Request == request })
}

// ask sends what make makes of a number, and returns the answer.
func (p *peer) ask(make func(n uint32) corelink.Message) *corelink.Reply {
	p.t.Helper()
	p.n++
	n := p.n
	if err := p.c.Send(make(n)); err != nil {
		p.t.Fatal(err)
	}
	return await(p, "reply", func(m *corelink.Reply) bool { return m.Request == n })
}

// update returns the next update of a request.
func (p *peer) update(request uint32) *corelink.Update {
	p.t.Helper()
	for i, m := range p.early {
		if u, is := m.(*corelink.Update); is && u.Request == request {
			p.early = p.early[i+1:]
			return u
		}
	}
	return await(p, "an update", func(m *corelink.Update) bool { return m.Request == request })
}

func (p *peer) line(s string) *corelink.Reply {
	p.t.Helper()
	return p.ask(func(n uint32) corelink.Message { return &corelink.Do{Request: n, Line: s, ForMS: 5000} })
}

func (p *peer) claim(priority claim.Priority, devices ...string) *corelink.Reply {
	p.t.Helper()
	return p.ask(func(n uint32) corelink.Message {
		return &corelink.Claim{Request: n, Devices: devices, Priority: uint8(priority)}
	})
}

// orderOf returns the order that line makes, and the ask that it is a part of.
func (b *bench) orderOf(line string) (*ask, error) {
	a := &ask{s: b.Server, order: control.Order{For: time.Second}}
	lines, err := robot.ParseLines(line)
	for i := 0; i < len(lines) && err == nil; i++ {
		err = a.add(b.t.Context(), lines[i])
	}
	return a, err
}

// goals writes the goals of an order as a line would.
func (b *bench) goals(o *control.Order) string {
	var out []string
	for _, g := range o.Goals[:o.N] {
		out = append(out, fmt.Sprintf("%s=%.4g", b.model.Tree.Slots()[g.Slot], g.Value))
	}
	return strings.ReplaceAll(strings.Join(out, " "), "robot.body.", "")
}

// TestLineIsAnOrder: what the tree names is one order of the control loop, in the units of the slots and within their ranges (GOSTAI-IF-00c,
// GOSTAI-IF-00f, GOSTAI-IF-06, GOSTAI-IF-07.1, GOSTAI-IF-15, GOSTAI-IF-24, GOSTAI-LOC-13, GOSTAI-OPEN-01, GOSTAI-OPEN-03, GOSTAI-SUP-11). All else
// is an error that says what was wanted.
func TestLineIsAnOrder(t *testing.T) {
	b := newBench(t, t.TempDir())
	for _, tc := range []struct {
		line  string
		goals string
		order control.Order // its kind, way and manner
	}{
		{"headPitch = 0.3", "head.pitch.turn=0.04775", control.Order{Kind: control.Set}},
		{"robot.body.head.pitch.angle = 0.3 speed:1.5", "head.pitch.turn=0.04775",
			control.Order{Kind: control.Set, Speed: 1.5 / (2 * math.Pi)}}, // turns a second
		{"headPitch.turn = -0.05 speed:0.5", "head.pitch.turn=-0.05", control.Order{Kind: control.Set, Speed: 0.5}},
		{"headPitch = 0.3 time:2s", "head.pitch.turn=0.04775", control.Order{Kind: control.Set, Within: 2 * time.Second}},
		{"headPitch = 9 adaptive:0.5", "head.pitch.turn=0.1592", control.Order{Kind: control.Set, Within: 500 * time.Millisecond}},
		{"wheel.speed = 2", "wheel[left].speed=2 wheel[right].speed=2", control.Order{Kind: control.Set}},
		{"robot.body.wheel.speed = [1, -1] time:1s", "wheel[left].speed=1 wheel[right].speed=-1", control.Order{Kind: control.Set, Within: time.Second}},
		{"wheelL.speed = 3; wheelR.speed = 2", "wheel[left].speed=3 wheel[right].speed=2", control.Order{Kind: control.Set}},
		{"wheelL.speed = 3; headPitch = 0; laser", "wheel[left].speed=3 head.pitch.turn=0", control.Order{Kind: control.Set}},
		{"led = 1", "led[0].r=1 led[0].g=1 led[0].b=1 led[1].r=1 led[1].g=1 led[1].b=1", control.Order{Kind: control.Set}},
		{"led.r = [1, -1]", "led[0].r=1 led[1].r=0", control.Order{Kind: control.Set}},
		{"robot.go(-0.2)", "", control.Order{Kind: control.Go, A: -0.2}},
		{"go(0.2) speed:0.1", "", control.Order{Kind: control.Go, A: 0.2, Speed: 0.1}},
		{"robot.turn(0.5) time:2s", "", control.Order{Kind: control.Turn, A: -0.5, Within: 2 * time.Second}}, // to the right
		{"robot.stop()", "", control.Order{Kind: control.Stop}},
		{"laser; robot.type", "", control.Order{}},
		{"speaker.play(5); led[0].r = 1", "speaker.play=5 led[0].r=1", control.Order{Kind: control.Set}},
	} {
		a, err := b.orderOf(tc.line)
		o := &a.order
		if got := b.goals(o); err != nil || got != tc.goals || o.Kind != tc.order.Kind || o.A != tc.order.A || math.Abs(o.Speed-tc.order.Speed) > 1e-9 ||
			o.Within != tc.order.Within || o.For != time.Second {
			t.Errorf("%s: kind %d, %s, way %v, speed %v, within %v, %v; want %s, %+v", tc.line, o.Kind, got, o.A, o.Speed, o.Within, err, tc.goals, tc.order)
		}
	}
	for line, want := range map[string]string{
		"wheel.val = 1":                              "not measured", // nothing has measured the wheels
		"wheel.turn = 1":                             "takes a speed",
		"wheel.speed = [1, 2, 3]":                    "3 values for 2",
		"wheel.speed = 1 speed:1":                    "speed is only for",
		"led = 1 speed:1":                            "only for a motor",
		"led = 1 time:1":                             "only for a motor",
		"robot.stop() speed:1":                       "only for a motor",
		"headPitch = \"up\"":                         "is float",
		"headPitch.torque = 1":                       "read-only",
		"headPitch.PGain = 1":                        "not present", // an optional slot (GOSTAI-IF-00d)
		"headPitch.colour = 1":                       "no such part",
		"headPitch.val->unit = 1":                    "want a slot",
		"battery.voltage = 4":                        "read-only",
		"robot.type = \"humanoid\"":                  "read-only",
		"speaker.volume = -3":                        "cannot do that",
		"speaker.stop()":                             "",
		"robot.go(1); speaker.play(5)":               "cannot do that",
		"speaker.play(\"bark\")":                     "n is int",
		"speaker.play(5) speed:1":                    "only for a motor",
		"robot.go()":                                 "takes 1 arguments",
		"robot.go(\"far\")":                          "is float",
		"robot.dance()":                              "no such part",
		"robot.go = 1":                               "is a method",
		"robot.finished()":                           "",
		"pleo:robot.body.head.pitch = 1":             "want toy", // of another body
		"headPitch = nan":                            "finite",
		"robot.go(inf)":                              "finite",
		"robot.go(1); robot.turn(1)":                 "calls one method",
		"headPitch = 1; robot.go(1)":                 "calls one method",
		"robot.go(1); headPitch = 1":                 "calls one method",
		"headPitch = 1 time:1; wheel.speed = 1":      "the same speed",
		"headPitch = 0.3; wing = 1":                  "no such part",
		strings.Repeat("led = 1; ", 6) + "led = 0.5": "at most 32 slots",
	} {
		if a, err := b.orderOf(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want an error with %q", line, a.order.Kind, err, want)
		}
	}
}

// TestReply: what was taken is told in the unit of the line's own slot, and what the body's limits do not allow in words (GOSTAI-IF-14.8,
// GOSTAI-OPEN-03).
func TestReply(t *testing.T) {
	b := newBench(t, t.TempDir())
	second := func(v float64) float64 { return v / (2 * math.Pi) }
	for _, tc := range []struct {
		line         string
		r            control.Result // Taken: of the goals; 0 leaves what was asked for
		value, words string
	}{
		{"headPitch = 0.3", control.Result{}, "0.3", ""},
		{"headPitch = 12", control.Result{}, "1", "headPitch: 12 is beyond its range, taken 1"},
		{"headPitch = 0.9", control.Result{Taken: [control.MaxGoals]float64{second(0.38397)}}, "0.38397",
			"headPitch: 0.9 is beyond its range, taken 0.384"},
		{"wheel.speed = 20", control.Result{Taken: [control.MaxGoals]float64{11.83448, 11.83448}}, "[11.8345, 11.8345]",
			"wheel.speed: 20 is beyond its range, taken [11.8, 11.8]"},
		{"wheel.speed = [1, 2]", control.Result{Taken: [control.MaxGoals]float64{1, 1.9}}, "[1, 1.9]",
			"wheel.speed: [1, 2] is beyond its range, taken [1, 1.9]"},
		{"led[0].r = 0.5", control.Result{Taken: [control.MaxGoals]float64{128. / 255}}, "0.501961", ""}, // a step of its device
		{"wheelL.speed = 1; laser; headPitch = 0.1", control.Result{}, "1; 0.4; 0.1", ""},
		{"robot.go(1)", control.Result{}, "", ""},
		{"headPitch = 0.3 time:2s", control.Result{Takes: 2 * time.Second}, "0.3", ""},
		{"headPitch = 0.3 time:100ms", control.Result{Takes: 534 * time.Millisecond}, "0.3",
			"time:100ms is too short: at most speed and acceleration it takes 534ms"},
		{"headPitch = 0.3 adaptive:0.4", control.Result{Takes: 534 * time.Millisecond}, "0.3", ""},
		{"headPitch = 0.3 adaptive:0.3", control.Result{Takes: 534 * time.Millisecond}, "0.3",
			"adaptive:300ms is too short: at most speed and acceleration it takes 534ms"},
		{"headPitch = 0.3 time:2s", control.Result{Homing: true}, "0.3", "time:2s counts from when the motor has found its zero, which it looks for first"},
		{"headPitch = 0.3 speed:1", control.Result{Speed: second(1)}, "0.3", ""},
		{"headPitch.turn = 0.05 speed:99", control.Result{Speed: 0.5}, "0.05", "speed:99 is too fast: it moves at most at 0.5 turn/s"},
		{"headPitch = 0.3 speed:99", control.Result{Speed: second(7.8)}, "0.3", "speed:99 is too fast: it moves at most at 7.8 rad/s"},
		{"robot.go(1) speed:9", control.Result{Speed: 0.1716}, "", "speed:9 is too fast: it moves at most at 0.172 m/s"},
		{"robot.turn(1) speed:99", control.Result{Speed: 3.9}, "", "speed:99 is too fast: it moves at most at 3.9 rad/s"},
	} {
		a, err := b.orderOf(tc.line)
		if err != nil {
			t.Fatalf("%s: %v", tc.line, err)
		}
		tc.r.Underway = true
		for i, g := range a.order.Goals[:a.order.N] {
			if tc.r.Taken[i] == 0 {
				tc.r.Taken[i] = g.Value
			}
		}
		if got := a.reply(&tc.r); got.Code != "ok" || got.Value != tc.value || got.Detail != tc.words {
			t.Errorf("%s: %+v; want %q, %q", tc.line, got, tc.value, tc.words)
		}
	}
	for code, want := range map[control.Code]string{
		control.NotHeld: "robot.go: wheelL was not claimed; claim it first", control.Refused: "robot.go: the robot may not move: its loop was late; try again",
		control.Unable:     "robot.go: this body cannot do that",
		control.Unmeasured: "robot.go: it depends on a value that is not measured yet", control.Gone: "robot.go: this claim of yours has ended; claim again",
		control.Invalid: "robot.go: want a legal change",
	} {
		a, err := b.orderOf("robot.go(1)")
		wheel, lerr := b.model.Tree.Lookup("wheelL")
		if err = errors.Join(err, lerr); err != nil {
			t.Fatal(err)
		}
		if got := a.reply(&control.Result{Code: code, Stop: motion.Watchdog, Actuator: wheel.Nodes[0].Actuator()}); got.Code != code.String() ||
			!strings.HasPrefix(got.Detail, want) {
			t.Errorf("%v: %+v, want %q", code, got, want)
		}
	}
}

// TestPeers: two programs see the tree; one drives, the other may not until the first has left. How a motion ends is told to its peer, with how
// far it came
// and why, and to all as an event (GOSTAI-IF-15.3, GOSTAI-OPEN-11).
func TestPeers(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.run()
	c, other := b.peer("one"), b.peer("two")
	if err := errors.Join(c.c.Send(&corelink.Introduce{Name: "Toy-1", Serial: "1"}), c.c.Send(&corelink.GetTree{Request: 11}),
		c.c.Send(&corelink.GetValues{Request: 12})); err != nil {
		t.Fatal(err)
	}
	tree, values := await(c, "tree", func(*corelink.Tree) bool { return true }), await(c, "values", func(*corelink.Values) bool { return true })
	read := func(device, name string) (found live.Value) {
		for _, n := range tree.Nodes {
			for _, s := range n.Slots {
				if n.Compact == device && s.Name == name {
					i := slices.IndexFunc(values.Values, func(v live.Value) bool { return v.Slot == s.ID })
					if i >= 0 {
						return values.Values[i]
					}
				}
			}
		}
		return live.Value{Slot: -1}
	}
	if tree.Request != 11 || tree.Body != "toy" || len(tree.Nodes) != len(b.model.Tree.Nodes()) {
		t.Errorf("tree %d of %s with %d nodes", tree.Request, tree.Body, len(tree.Nodes))
	}
	if v := read("laser", "distance"); v.Number == nil || *v.Number != 0.4 || v.AgeMS < 0 {
		t.Errorf("laser %+v", v)
	}
	if v := read("robot", "name"); v.Text == nil || *v.Text != "Toy-1" {
		t.Errorf("name %+v", v)
	}
	if v := read("robot", "type"); v.Text == nil || *v.Text != "wheeled" || v.AgeMS != -1 {
		t.Errorf("type %+v", v)
	}
	if v := read("wheelL", "speed"); v.Slot != -1 {
		t.Errorf("a speed that nothing measured: %+v", v)
	}
	i := slices.IndexFunc(tree.Nodes, func(n live.Node) bool { return n.Full == "robot.body.head.pitch" })
	k := slices.IndexFunc(tree.Nodes[i].Slots, func(s live.Slot) bool { return s.Name == "angle" })
	if s := tree.Nodes[i].Slots[k]; s.Unit != "rad" || s.Min == nil || *s.Min != -1 || s.Max == nil || *s.Max != 1 {
		t.Errorf("angle of the head %+v", s)
	}

	for _, tc := range []struct {
		name string
		got  *corelink.Reply
		code string
		says string
	}{
		{"a line", c.line("robot.type"), "ok", ""},
		{"a line without a claim", c.line("robot.go(0.1)"), "not_held", "robot.go: wheelL was not claimed"},
		{"no line", c.line("headPitch = nan"), "invalid", "finite"},
		{"a value that nothing measured", c.line("wheelL.speed"), "unavailable", "not measured"},
		{"lights without an owner", c.line("led[0].g = 0.2"), "ok", ""},
		{"claim of a sensor", c.claim(50, "laser"), "invalid", "no actuator"},
		{"claim of no such part", c.claim(50, "wing"), "invalid", "no such part"},
		{"claim of nothing", c.claim(50), "invalid", "at least one device"},
		{"safety's claim", c.claim(claim.Safety, "wheelL"), "invalid", "priority 250"},
		{"a claim", c.claim(claim.Person, "robot.body.wheel"), "ok", ""},
		{"a second claimant", other.claim(claim.Person, "robot.body.wheel"), "busy", "wheelL belongs to one with priority 50"},
		{"a line of the second", other.line("robot.go(0.1)"), "not_held", "robot.go: wheelL belongs to one with priority 50"},
		{"release of no claim", c.ask(func(n uint32) corelink.Message { return &corelink.Release{Request: n, Lease: 99} }), "gone", "has ended"},
	} {
		if tc.got.Code != tc.code || !strings.Contains(tc.got.Detail, tc.says) || (tc.says == "") != (tc.got.Detail == "") {
			t.Errorf("%s: %+v; want %s, %q", tc.name, tc.got, tc.code, tc.says)
		}
	}
	for _, tc := range []struct {
		line, words, event, texts string
		outcome                   motion.Outcome
		moved                     float64
		numbers                   []int64
	}{
		{"robot.go(0.1)", "done after 0.0998 m", "robot.finished", "go done", motion.Done, 0.0998, []int64{100, 100}},
		{"robot.go(0.1)", "stopped after 0.011 m of 0.1 m: its loop was late", "robot.aborted", "go stopped its loop was late", motion.Stopped, 0.011,
			[]int64{11, 100}},
		{"robot.turn(1)", "blocked after 0.25 rad of 1 rad", "robot.aborted", "turn blocked", motion.Blocked, -0.25, []int64{250, 1000}}, // to the right
		{"wheel.speed = 1", "expired", "", "", motion.Expired, 0, nil},
	} {
		r := c.line(tc.line)
		if r.Code != "ok" || !r.Underway {
			t.Fatalf("%s: %+v", tc.line, r)
		}
		b.body.End(tc.outcome, tc.moved)
		if end := c.ended(r.Request); end.Words() != tc.words {
			t.Errorf("%s ended: %s; want %s", tc.line, end.Words(), tc.words)
		}
		if tc.event == "" {
			continue
		}
		e := await(other, tc.event, func(m *corelink.Event) bool { return true })
		if e.Name != tc.event || !slices.Equal(e.Numbers, tc.numbers) || strings.Join(e.Texts, " ") != tc.texts || e.Seq == 0 || e.Replayed {
			t.Errorf("%s: event %+v, want %s %v %q", tc.line, e, tc.event, tc.numbers, tc.texts)
		}
	}
	if m := await(other, "owners", func(m *corelink.Motion) bool { return len(m.Owners) == 2 }); m.Owners[0] != (live.Owner{Device: "wheelL",
		Program: "one", Priority: 50}) ||
		len(m.Parts) != 3 || m.Parts[0].Name != "wheels" {
		t.Errorf("motion %+v", m)
	}
	if r := c.line("wheel.speed = 1"); !r.Underway {
		t.Errorf("wheels: %+v", r)
	}
	await(other, "motion", func(m *corelink.Motion) bool { return m.Moving })
	c.end()
	await(other, "rest", func(m *corelink.Motion) bool { return !m.Moving && len(m.Owners) == 0 })
	if r := other.claim(claim.Person, "wheelL", "wheelR"); r.Code != "ok" {
		t.Errorf("claim after the owner left: %+v", r)
	}
	// Stop, and then halt, which no message lifts.
	r := other.line("robot.turn(50)")
	if got := other.ask(func(n uint32) corelink.Message { return &corelink.Stop{Request: n} }); got.Code != "ok" {
		t.Errorf("stop: %+v", got)
	}
	if end := other.ended(r.Request); end.Outcome != "cancelled" {
		t.Errorf("%+v", end)
	}
	if err := other.c.Send(&corelink.Halt{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if r := other.line("robot.turn(1)"); r.Code != "stopped" || !strings.Contains(r.Detail, "may not move: halted") || r.Underway {
		t.Errorf("a turn while halted: %+v", r)
	}
}

// TestWithoutABody: a device that is gone keeps its place in the tree, its slots are unavailable, and each peer is told (GOSTAI-OPEN-13).
func TestWithoutABody(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.run()
	c := b.peer("one")
	b.cfg.Control.Board().Introduce(state.Identity{Name: "Rex"}, time.Second)
	b.body.Measure("robot.xSpeed", 0.1)
	b.Closed(t.Context())
	b.Closed(t.Context())
	gone := await(c, "that the body is gone", func(m *corelink.Absent) bool { return len(m.Devices) > 0 })
	if want := []corelink.Absentee{{Full: "robot.body", SinceUS: gone.AtUS, Why: noBody}}; !slices.Equal(gone.Devices, want) {
		t.Errorf("gone: %+v, want %+v", gone, want)
	}
	for line, want := range map[string]corelink.Reply{
		"robot.type":              {Code: "ok", Value: `"wheeled"`},
		"robot.name":              {Code: "ok", Value: `"Rex"`}, // no body measures it
		"battery.capacity":        {Code: "ok", Value: "0.32"},
		"headPitch.val->rangemax": {Code: "ok", Value: "1"},
		"battery.voltage":         {Code: "unavailable", Detail: "robot.body.battery.voltage: unavailable: " + noBody},
		"led = 1":                 {Code: "unavailable", Detail: "robot.body.led[0].val: unavailable: " + noBody},
		"robot.xSpeed":            {Code: "unavailable", Detail: "robot.xSpeed: unavailable: " + noBody},
		"robot.go(1)":             {Code: "unavailable", Detail: "robot.go: " + noBody},
	} {
		got := *c.line(line)
		if got.Request = 0; got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
	if err := c.c.Send(&corelink.GetValues{Request: 5}); err != nil {
		t.Fatal(err)
	}
	values := await(c, "values", func(*corelink.Values) bool { return true })
	if err := c.c.Send(&corelink.GetLateness{Request: 6}); err != nil {
		t.Fatal(err)
	}
	late := await(c, "lateness", func(m *corelink.Lateness) bool { return m.Request == 6 })
	if want := (&corelink.Lateness{Request: 6, UpToUS: []uint32{3, 99}, Counts: []uint32{2, 1}}); !reflect.DeepEqual(late, want) {
		t.Errorf("lateness %+v, want %+v", late, want)
	}
	for name, known := range map[string]bool{"robot.name": true, "robot.xSpeed": false, "battery.voltage": false, "battery.capacity": true} {
		target, err := b.model.Tree.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if is := slices.ContainsFunc(values.Values, func(v live.Value) bool { return v.Slot == target.Refs[0].ID }); is != known {
			t.Errorf("%s has a value: %v, want %v", name, is, known)
		}
	}
	joined := b.peer("late")
	await(joined, "that the body is gone", func(m *corelink.Absent) bool { return len(m.Devices) == 1 })
	if err := b.Opened(t.Context(), corelink.BodyInfo{Species: "toy", Firmware: "f2"}); err != nil {
		t.Fatal(err)
	}
	await(joined, "its description", func(m *corelink.Hello) bool { return m.Body.Firmware == "f2" })
	await(joined, "that it is back", func(m *corelink.Absent) bool { return len(m.Devices) == 0 })
}

// crowded is a control loop whose mailbox is full so many times.
type crowded struct {
	*coreservertest.Body
	full int
}

func (c *crowded) Post(o control.Order) bool {
	if c.full--; c.full >= 0 {
		return false
	}
	return c.Body.Post(o)
}

// TestStopInACrowd: a stop is not refused because others filled the mailbox of the loop (issue 28, build 3).
func TestStopInACrowd(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.cfg.Control = &crowded{b.body, 3}
	b.handle(t.Context(), corelink.Peer{ID: 1}, &corelink.Stop{Request: 1})
	if o := b.body.Orders(); len(o) != 1 || o[0].Kind != control.Stop || len(b.due) != 1 {
		t.Errorf("the loop got %+v, %d answers are due; want the stop and its answer", o, len(b.due))
	}
}
