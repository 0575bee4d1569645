package robotapp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/corelink"
	"kennel/edge/helm"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
)

// newTestDeck is a deck whose helm takes orders and does nothing.
func newTestDeck(t *testing.T) *deck {
	t.Helper()
	return newTestDeckAt(t, t.TempDir())
}

func newTestDeckAt(t *testing.T, root string) *deck {
	t.Helper()
	srv, err := corelink.Listen(root, corelink.Hello{Program: "robotd"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	model, err := helm.Vector()
	if err != nil {
		t.Fatal(err)
	}
	h, err := helm.New(model, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &core{log: slog.New(slog.NewTextHandler(io.Discard, nil)), srv: srv}
	c.running.Store(true)
	d, err := newDeck(c, h)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestLineIsAnOrder: what the tree names is an order of the helm, in the body's units and within its limits, and what is taken is told
// (GOSTAI-IF-00c, GOSTAI-IF-00f, GOSTAI-IF-04.1, GOSTAI-IF-06, GOSTAI-IF-07.1, GOSTAI-IF-14.8, GOSTAI-IF-15, GOSTAI-IF-16, GOSTAI-IF-24,
// GOSTAI-LOC-13, GOSTAI-OPEN-03). All else is an error that says what was wanted.
func TestLineIsAnOrder(t *testing.T) {
	d := newTestDeck(t)
	const radius, track, most = 0.0145, 0.048, 0.22 * 0.78
	lights := func(o helm.Order, colours ...int) helm.Order {
		o.Kind, o.Set = helm.SetLights, claim.SetOf(colours...)
		return o
	}
	var white, red, mixed helm.Order
	for i := range 4 {
		white.Lights[i].R, white.Lights[i].G, white.Lights[i].B = 255, 255, 255
	}
	red.Lights[2].R = 128
	mixed.Lights[0].R, mixed.Lights[1].R = 255, 51
	for _, tc := range []struct {
		line  string
		order helm.Order // its kind, numbers, lights and set
		taken string     // "": nothing
	}{
		{"headPitch = 0.3", helm.Order{Kind: helm.Head, A: 0.3}, "0.3"},
		{"robot.body.head.pitch.angle = 0.3 speed:1.5", helm.Order{Kind: helm.Head, A: 0.3, Speed: 1.5}, "0.3"},
		{"headPitch.turn = -0.05 speed:0.5", helm.Order{Kind: helm.Head, A: -0.1 * math.Pi, Speed: math.Pi}, "-0.05"}, // the unit of the slot a second
		{"headPitch = 0.3 time:2s", helm.Order{Kind: helm.Head, A: 0.3, For: 2 * time.Second}, "0.3"},
		{"robot.pitch = 0.3 adaptive:0.5", helm.Order{Kind: helm.Head, A: 0.3, For: 500 * time.Millisecond}, "0.3"},
		{"headPitch.turn = -0.05", helm.Order{Kind: helm.Head, A: -0.1 * math.Pi}, "-0.05"},
		{"headPitch = 3", helm.Order{Kind: helm.Head, A: 22 * math.Pi / 180}, fmt.Sprint(22 * math.Pi / 180)},
		{"robot.pitch = -3", helm.Order{Kind: helm.Head, A: -45 * math.Pi / 180}, fmt.Sprint(-45 * math.Pi / 180)},
		{"arm = 0.05", helm.Order{Kind: helm.Lift, A: 0.05}, "0.05"},
		{"lift.position = 1 speed:0.1", helm.Order{Kind: helm.Lift, A: 0.092, Speed: 0.1}, "0.092"},
		{"wheel.speed = 2", helm.Order{Kind: helm.Wheels, A: 2 * radius, B: 2 * radius}, "[2, 2]"},
		{"robot.body.wheel.speed = [1, -1]", helm.Order{Kind: helm.Wheels, A: radius, B: -radius}, "[1, -1]"},
		{"wheel.speed = 2 time:1s", helm.Order{Kind: helm.Wheels, A: 2 * radius, B: 2 * radius, Accel: 2 * radius}, "[2, 2]"}, // evenly
		{"wheel.speed = [1, -2] time:1ms", helm.Order{Kind: helm.Wheels, A: radius, B: -2 * radius, Accel: 0.42}, "[1, -2]"},  // as fast as they may
		{"robot.xSpeed = 0.1 adaptive:2", helm.Order{Kind: helm.Wheels, A: 0.1, B: 0.1, Accel: 0.05}, "0.1"},
		{"wheelR.speed = 1", helm.Order{Kind: helm.Wheels, B: radius}, "1"},
		{"wheelL.speed = -1000", helm.Order{Kind: helm.Wheels, A: -most}, fmt.Sprint(-most / radius)},
		{"robot.xSpeed = 0.1", helm.Order{Kind: helm.Wheels, A: 0.1, B: 0.1}, "0.1"},
		{"robot.yawSpeed = 1", helm.Order{Kind: helm.Wheels, A: -track / 2, B: track / 2}, "1"},
		{"robot.go(-0.2)", helm.Order{Kind: helm.Straight, A: -0.2}, ""},
		{"go(0.2)", helm.Order{Kind: helm.Straight, A: 0.2}, ""},
		{"robot.turn(0.5)", helm.Order{Kind: helm.Turn, A: -0.5}, ""}, // to the right
		{"robot.stop()", helm.Order{Kind: helm.Stop}, ""},
		{"led = 1", lights(white, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), "[1, 1, 1, 1]"},
		{"led[2].r = 0.5", lights(red, 6), fmt.Sprint(128. / 255)},
		{"led.r = [1, 0.2, 0, -1]", lights(mixed, 0, 3, 6, 9), "[1, 0.2, 0, 0]"},
	} {
		line, err := robot.ParseLine(tc.line)
		if err != nil {
			t.Fatal(err)
		}
		s := &sink{d: d}
		s.modify(&line)
		got, err := state.NewLive(d.helm.Board(), s).Do(t.Context(), line)
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
		if o := s.o; err != nil || o.Kind != tc.order.Kind || !near(o.A, tc.order.A) || !near(o.B, tc.order.B) || o.Speed != tc.order.Speed || o.For != tc.order.For || !near(o.Accel, tc.order.Accel) || o.Lights != tc.order.Lights || o.Set != tc.order.Set {
			t.Errorf("%s: order %+v, %v; want %+v", tc.line, o, err, tc.order)
		}
		if taken := got.Value.String(); taken != tc.taken && (tc.taken != "" || taken != "nothing") {
			t.Errorf("%s: %s is taken, want %s", tc.line, taken, tc.taken)
		}
	}

	for line, want := range map[string]string{
		"wheel.val = 1":                  "not measured",      // nobody has seen the wheels
		"wheel.turn = 1":                 "takes a speed",     // and this body goes no way of a wheel alone
		"wheel.speed = [1, 2, 3]":        "3 values for 2",    //
		"wheel.speed = 1 speed:1":        "speed: is for",     //
		"led = 1 speed:1":                "speed: is for",     //
		"led = 1 time:1":                 "time: and",         //
		"robot.yaw = 1 adaptive:1":       "time: and",         //
		"headPitch = \"up\"":             "is float",          //
		"headPitch = true speed:0":       "more than 0",       //
		"headPitch.torque = 1":           "read-only",         //
		"headPitch.PGain = 1":            "not present",       // an optional slot (GOSTAI-IF-00d)
		"headPitch.colour = 1":           "no such part",      //
		"headPitch.val->unit = 1":        "name a slot",       //
		"battery.voltage = 4":            "read-only",         //
		"robot.type = \"humanoid\"":      "read-only",         //
		"robot.watchdogInterval = 1":     "nothing on this",   //
		"speaker.volume = -3":            "nothing on this",   //
		"voice.say(\"hello\")":           "nothing on this",   //
		"robot.go()":                     "takes 1 arguments", //
		"robot.go(\"far\")":              "is float",          //
		"robot.dance()":                  "no such part",      //
		"robot.go = 1":                   "is a method",       //
		"robot.finished()":               "is a event",        //
		"robot.body.arm.wing = 1":        "no such part",      //
		"pleo:robot.body.head.pitch = 1": "this is vector",    // of another body
		"legFL = 1":                      "no such part",      //
		"headPitch = nan":                "finite",            //
		"robot.go(inf)":                  "finite",            //
		"head = 1":                       "",                  // several kinds at once
		"robot.yaw = 1":                  "not measured",      // nobody knows where it stands
	} {
		s := &sink{d: d}
		l, err := robot.ParseLine(line)
		if err == nil {
			s.modify(&l)
			_, err = state.NewLive(d.helm.Board(), s).Do(t.Context(), l)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error with %q", line, err, want)
		}
	}
}

// TestPaceOfTreads: from the speeds they have, and what is too short is told (GOSTAI-OPEN-03).
func TestPaceOfTreads(t *testing.T) {
	d := newTestDeck(t)
	const most = 1 * 0.42 // m/s²
	for _, tc := range []struct {
		a, b   float64
		within time.Duration
		accel  float64
		takes  time.Duration
	}{{0.1, -0.1, time.Second, 0.1, time.Second}, {0.1, 0.05, 0, 0, 0}, {0, -0.105, 100 * time.Millisecond, most, 250 * time.Millisecond}, {0, 0, time.Second, 0, time.Second}} {
		if tc.within > 0 {
			moving := &sink{d: d, within: tc.within, o: helm.Order{A: tc.a + 0.03, B: tc.b + 0.07}}
			if moving.paceFrom(motion.Twist{V: 0.05, W: 0.04 / 0.048}); math.Abs(moving.o.Accel-tc.accel) > 1e-9 || (moving.takes-tc.takes).Abs() > time.Microsecond {
				t.Errorf("%+v, under way: %v m/s², %v", tc, moving.o.Accel, moving.takes)
			}
		}
		s := &sink{d: d, within: tc.within, o: helm.Order{A: tc.a, B: tc.b}}
		if s.pace(); math.Abs(s.o.Accel-tc.accel) > 1e-12 || (s.takes-tc.takes).Abs() > time.Microsecond {
			t.Errorf("%+v: %v m/s², %v", tc, s.o.Accel, s.takes)
		}
	}
}

// TestShortOfALine: what a line wants of its motor and the body's limits do not let be is told, in the line's own unit (GOSTAI-OPEN-03).
func TestShortOfALine(t *testing.T) {
	d := newTestDeck(t)
	for _, tc := range []struct {
		line string
		r    helm.Result
		want string
	}{
		{"headPitch = 0.3", helm.Result{}, ""},
		{"headPitch = 0.3 time:2s", helm.Result{Takes: 2 * time.Second}, ""},
		{"headPitch = 0.3 time:100ms", helm.Result{Takes: 534 * time.Millisecond}, "time:100ms is too short: at most speed and acceleration it takes 534ms"},
		{"headPitch = 0.3 adaptive:0.4", helm.Result{Takes: 534 * time.Millisecond}, ""},
		{"headPitch = 0.3 adaptive:0.3", helm.Result{Takes: 534 * time.Millisecond}, "adaptive:300ms is too short: at most speed and acceleration it takes 534ms"},
		{"arm = 0.05 time:2s", helm.Result{Homing: true}, "time:2s counts from when the motor has found its zero, which it looks for first"},
		{"arm = 0.05 speed:0.1", helm.Result{Speed: 0.1}, ""},
		{"arm = 0.05 speed:9", helm.Result{Speed: 0.5125}, "speed:9 is too fast: it moves at most at 0.512 m/s"},
		{"headPitch.turn = 0.05 speed:99", helm.Result{Speed: math.Pi}, "speed:99 is too fast: it moves at most at 0.5 turn/s"},
		{"headPitch = 0.3 speed:99", helm.Result{Speed: 7.8}, "speed:99 is too fast: it moves at most at 7.8 rad/s"},
	} {
		l, err := robot.ParseLine(tc.line)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.short(&l, &tc.r); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.line, got, tc.want)
		}
	}
}

// TestTreadsTogether: a tread that a program does not write goes on as the same program told it; another program's does not.
func TestTreadsTogether(t *testing.T) {
	d := newTestDeck(t)
	one, two := corelink.Peer{ID: 1}, corelink.Peer{ID: 2}
	var request uint32
	for _, tc := range []struct {
		peer        corelink.Peer
		line        string
		left, right float64 // what is told of them then, in rad/s
	}{
		{one, "wheelL.speed = 1", 1, 0}, {one, "wheelR.speed = 2", 1, 2}, {two, "wheelR.speed = 3", 0, 3}, {one, "wheelL.speed = 1", 1, 0},
		{one, "robot.go(1)", 0, 0}, {one, "wheelR.speed = 2", 0, 2}, {one, "robot.stop()", 0, 0}, {one, "robot.xSpeed = 0.0145", 1, 1},
		{one, "headPitch = 0", 1, 1},
	} {
		request++
		d.do(t.Context(), tc.peer, &corelink.Do{Request: request, Line: tc.line})
		if l, r := d.treadsOf(owner(tc.peer)); math.Abs(l/0.0145-tc.left) > 1e-9 || math.Abs(r/0.0145-tc.right) > 1e-9 {
			t.Errorf("after %s of %d the treads are told %v and %v rad/s, want %v and %v", tc.line, tc.peer.ID, l/0.0145, r/0.0145, tc.left, tc.right)
		}
	}
}

// TestFloodOfLines: 10,000 lines that nobody does keep no more than the mailbox holds, and end at once.
func TestFloodOfLines(t *testing.T) {
	d := newTestDeck(t)
	began := time.Now()
	for i := range uint32(10_000) {
		d.do(t.Context(), corelink.Peer{ID: 1}, &corelink.Do{Request: i, Line: "headPitch = 0.1"})
	}
	if len(d.due) > 1000 || d.helm.Refused() < 9000 {
		t.Errorf("%d lines wait, %d were refused", len(d.due), d.helm.Refused())
	}
	d.do(t.Context(), corelink.Peer{ID: 1}, &corelink.Do{Line: "headPitch = " + strings.Repeat("[", 60_000)})
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestLineWithoutABody: a device that is gone keeps its place in the tree, and its slots are unavailable (GOSTAI-OPEN-13).
func TestLineWithoutABody(t *testing.T) {
	b := &bench{t: t, root: t.TempDir()}
	d := newTestDeckAt(t, b.root)
	d.c.running.Store(false)
	volts, err := d.helm.Model().Tree.Lookup("battery.voltage")
	if err != nil {
		t.Fatal(err)
	}
	d.helm.Board().Set(volts.Refs[0].ID, 3.9, time.Second)
	d.helm.Board().Publish(time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- d.c.srv.Serve(ctx, corelink.Handlers{Message: func(p corelink.Peer, m corelink.Message) { d.handle(ctx, p, m) }})
	}()
	p := b.peer()
	await(p, "hello", func(*corelink.Hello) bool { return true })
	for line, want := range map[string]corelink.Did{
		"robot.type":      {Code: "ok", Value: `"wheeled"`},
		"battery.voltage": {Code: unavailable, Detail: "battery.voltage: " + noBody},
		"wheelL.speed":    {Code: unavailable, Detail: "robot.body.wheel[left].speed: not measured yet"},
		"headPitch = 0.1": {Code: unavailable, Detail: "headPitch: " + noBody},
		"robot.go(1)":     {Code: unavailable, Detail: "robot.go: " + noBody},
	} {
		got := *p.line("%s", line)
		if got.Request = 0; got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
	// As robotd says it, with the event on the node; who joins later hears it too.
	d.helm.Board().Introduce(state.Identity{Name: "Rex"}, time.Second)
	d.bodyIs(ctx, false)
	d.bodyIs(ctx, false)
	gone := await(p, "that the body is gone", func(*corelink.Absent) bool { return true })
	if want := []corelink.Absentee{{Full: "robot.body", SinceUS: gone.AtUS, Why: noBody}}; !slices.Equal(gone.Devices, want) {
		t.Errorf("gone: %+v, want %+v", gone, want)
	}
	for line, want := range map[string]corelink.Did{
		"robot.type":              {Code: "ok", Value: `"wheeled"`},
		"robot.name":              {Code: "ok", Value: `"Rex"`}, // no body measures it
		"battery.capacity":        {Code: "ok", Value: "0.32"},
		"headPitch.val->rangemax": {Code: "ok", Value: fmt.Sprint(22 * math.Pi / 180)},
		"battery.voltage":         {Code: unavailable, Detail: "robot.body.battery.voltage: unavailable: " + noBody},
		"led = 1":                 {Code: unavailable, Detail: "robot.body.led[0].val: unavailable: " + noBody},
	} {
		got := *p.line("%s", line)
		if got.Request = 0; got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
	xSpeed, err := d.helm.Model().Tree.Lookup("robot.xSpeed")
	if err != nil {
		t.Fatal(err)
	}
	d.helm.Board().Set(xSpeed.Refs[0].ID, 0.1, time.Second)
	d.helm.Board().Publish(time.Second)
	l := p.look()
	for name, known := range map[string]bool{"robot.name": true, "robot.xSpeed": false, "battery.voltage": false, "battery.capacity": true} {
		if s, v := l.value(name); s.Name == "" || (v != nil) != known {
			t.Errorf("%s is listed as %+v and reads as %+v; want it known: %v", name, s, v, known)
		}
	}
	if i := slices.IndexFunc(l.tree.Nodes, func(n corelink.Node) bool { return n.Compact == "arm" }); i < 0 || !slices.Equal(l.tree.Nodes[i].Aliases, []string{"lift"}) {
		t.Errorf("the arm is also called lift (GOSTAI-MAP-V-06): %d in %+v", i, l.tree.Nodes)
	}
	late := b.peer()
	await(late, "that the body is gone", func(m *corelink.Absent) bool { return len(m.Devices) == 1 })
	d.c.running.Store(true)
	d.bodyIs(ctx, true)
	for _, p := range []*peer{p, late} {
		await(p, "that the body is back", func(m *corelink.Absent) bool { return len(m.Devices) == 0 })
	}
	if got := p.line("battery.voltage"); got.Code != "ok" || got.Value != "3.9" {
		t.Errorf("a battery that is back: %+v", got)
	}
	late.end()
	p.end()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
