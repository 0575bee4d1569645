package amigobot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/amigobot"
	"kennel/edge/body/amigobot/amigobotsim"
	"kennel/edge/body/bodytest"
	"kennel/edge/core/control"
	"kennel/edge/core/rt"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
	"kennel/edge/sim/plane"
	"kennel/edge/sim/uart"
)

const (
	ms     = time.Millisecond
	degree = math.Pi / 180
	alice  = claim.Owner(2)
	atMost = 60 * time.Second
)

// place is an AmigoBot and its head in simulated time: loop, control, driver and session over the bytes of the simulated robot.
type place struct {
	t       *testing.T
	sim     *amigobotsim.Stepped
	loop    *rt.Loop
	control *control.Control
	live    *state.Live
	report  control.Report
	results []control.Result
	events  []control.Event
	request uint32
	lease   uint64       // the newest
	steps   func() error // one step of the loop
	end     func()
	tape    *rt.Tape // nil: nothing is recorded
	out     bytes.Buffer
}

func newPlace(t *testing.T, cfg amigobotsim.Config) *place {
	t.Helper()
	return newRecordedPlace(t, cfg, nil)
}

func newRecordedPlace(t *testing.T, cfg amigobotsim.Config, tape *rt.Tape) *place {
	t.Helper()
	r, err := amigobotsim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return placeOf(t, amigobotsim.NewStepped(r), tape)
}

func placeOf(t *testing.T, sim *amigobotsim.Stepped, tape *rt.Tape) *place {
	t.Helper()
	p := &place{t: t, sim: sim, tape: tape}
	model, err := amigobot.Model()
	if err != nil {
		t.Fatal(err)
	}
	if p.control, err = control.New(model, tape); err != nil {
		t.Fatal(err)
	}
	p.live = state.NewLive(p.control.Board(), nil)
	drv, err := amigobot.Open(t.Context(), amigobot.Config{Device: "simulated", Port: p.sim})
	if err != nil {
		t.Fatal(err)
	}
	// The loop runs in a goroutine that takes turns with the test's: one step each.
	turn, done := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	wait := rt.Task{Name: "test", Every: 1, Run: func(*rt.Frame) {
		select {
		case done <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case <-turn:
		case <-ctx.Done():
		}
	}}
	if p.loop, err = rt.New(rt.Config{Tape: tape}, p.sim, p.control.Task(), wait); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		<-turn
		ended <- p.loop.Run(ctx, drv)
	}()
	p.steps = func() error {
		select {
		case turn <- struct{}{}:
		case err := <-ended:
			ended <- err
			return errors.Join(errors.New("the loop ended"), err)
		}
		select {
		case <-done:
			return nil
		case err := <-ended:
			ended <- err
			return errors.Join(errors.New("the loop ended"), err)
		}
	}
	p.end = sync.OnceFunc(func() {
		cancel()
		select {
		case turn <- struct{}{}:
		case err := <-ended:
			ended <- err
		}
		<-ended
		if err := drv.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(p.end)
	p.run(200 * ms)
	return p
}

func (p *place) step() {
	p.t.Helper()
	if err := p.steps(); err != nil {
		p.t.Fatal(err)
	}
	p.control.Report(&p.report)
	if p.tape != nil {
		if _, err := p.tape.Flush(&p.out); err != nil {
			p.t.Fatal(err)
		}
	}
	for {
		r, ok := p.control.Result()
		if !ok {
			break
		}
		p.results = append(p.results, r)
	}
	for {
		e, ok := p.control.Event()
		if !ok {
			break
		}
		p.events = append(p.events, e)
	}
}

func (p *place) run(d time.Duration) {
	p.t.Helper()
	for until := p.sim.Now() + d; p.sim.Now() < until; {
		p.step()
	}
}

func (p *place) until(what string, ok func() bool) {
	p.t.Helper()
	for until := p.sim.Now() + atMost; !ok(); p.step() {
		if p.sim.Now() > until {
			p.t.Fatalf("%s: not within %v; %+v, really %+v", what, atMost, p.report.Base, p.sim.State())
		}
	}
}

// ask posts an order and returns its answer.
func (p *place) ask(o control.Order) control.Result {
	p.t.Helper()
	p.request++
	o.Owner, o.Request = alice, p.request
	if !p.control.Post(o) {
		p.t.Fatal("the mailbox is full")
	}
	return p.result(func(r *control.Result) bool { return r.Request == o.Request })
}

func (p *place) result(ok func(*control.Result) bool) (got control.Result) {
	p.t.Helper()
	p.until("a result", func() bool {
		i := slices.IndexFunc(p.results, func(r control.Result) bool { return ok(&r) })
		if i >= 0 {
			got = p.results[i]
			p.results = slices.Delete(p.results, i, i+1)
		}
		return i >= 0
	})
	return got
}

func (p *place) ended() control.Result {
	p.t.Helper()
	return p.result(func(r *control.Result) bool { return r.Code == control.Ended })
}

func (p *place) claim(names ...string) *place {
	p.t.Helper()
	set, err := p.control.Actuators(names...)
	if err != nil {
		p.t.Fatal(err)
	}
	if r := p.ask(control.Order{Kind: control.Claim, Set: set, Priority: claim.Person}); r.Code != control.OK {
		p.t.Fatalf("claim of %v: %+v", names, r)
	} else {
		p.lease = r.Lease
	}
	return p
}

func (p *place) slot(name string) int {
	p.t.Helper()
	target, err := p.control.Model().Tree.Lookup(name)
	if err != nil || len(target.Refs) != 1 {
		p.t.Fatalf("%s: %v", name, err)
	}
	return target.Refs[0].ID
}

// set returns an order for slots by name.
func (p *place) set(long time.Duration, goals map[string]float64) control.Order {
	o := control.Order{Kind: control.Set, For: long}
	for _, name := range slices.Sorted(maps.Keys(goals)) {
		o.Goals[o.N] = control.Goal{Slot: p.slot(name), Value: goals[name]}
		o.N++
	}
	return o
}

func (p *place) value(name string) float64 {
	p.t.Helper()
	got, err := p.live.Read(name)
	if err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	return got.Value.Number
}

// still reports whether both wheels stand, but for the robot's own controller that creeps to where it holds.
func (p *place) still() bool {
	v := p.sim.State().Speed
	return math.Abs(v[0])+math.Abs(v[1]) < 0.05
}

// truth is where the robot really is.
func (p *place) truth() (pose plane.Pose) {
	p.t.Helper()
	if err := p.sim.InWorld(func(w *plane.World) error { pose = w.State().Pose; return nil }); err != nil {
		p.t.Fatal(err)
	}
	return pose
}

// TestWays: go and turn end within the standard's accuracy: 5 % or 2 cm, 3 degrees (GOSTAI-OPEN-11, GOSTAI-MAP-A-01).
func TestWays(t *testing.T) {
	p := newPlace(t, amigobotsim.Config{}).claim("robot.body.wheel")
	for _, tc := range []struct {
		kind  control.Kind
		a     float64
		speed float64
	}{
		{control.Go, 0.5, 0}, {control.Go, -0.3, 0}, {control.Go, 1.2, 0.4}, {control.Go, 0.05, 0}, {control.Turn, math.Pi / 2, 0},
		{control.Turn, -math.Pi, 0}, {control.Turn, 0.2, 0}, {control.Turn, 2 * math.Pi, 1.5},
	} {
		name := fmt.Sprintf("%v of %.2f at %v", map[control.Kind]string{control.Go: "go", control.Turn: "turn"}[tc.kind], tc.a, tc.speed)
		from := p.truth()
		if r := p.ask(control.Order{Kind: tc.kind, A: tc.a, Speed: tc.speed, For: time.Minute}); r.Code != control.OK || !r.Underway {
			t.Fatalf("%s: %+v", name, r)
		}
		end, to := p.ended(), p.truth()
		near := max(0.02, 0.05*math.Abs(tc.a))
		got := (to[0]-from[0])*math.Cos(from[2]) + (to[1]-from[1])*math.Sin(from[2])
		want := tc.a
		if tc.kind == control.Turn {
			near, got, want = max(3*degree, 0.05*math.Abs(tc.a)), math.Remainder(to[2]-from[2]-tc.a, 2*math.Pi), 0
		}
		if end.Outcome != motion.Done || math.Abs(got-want) > near || math.Abs(end.Moved-tc.a) > near {
			t.Errorf("%s: %v, really %v (want %v within %v), counted %v", name, end.Outcome, got, want, near, end.Moved)
		}
	}
}

// TestMotorsComeBack: an order that comes while the motors are being switched off, as they are some time after a motion, switches them on again
// and is carried out. A packet that still shows them on does not count.
func TestMotorsComeBack(t *testing.T) {
	p := newPlace(t, amigobotsim.Config{}).claim("robot.body.wheel")
	p.sim.SetFaults(amigobotsim.Faults{Delay: 60 * ms}) // of a radio link, or AMRISim
	for d := 4900 * ms; d <= 5300*ms; d += 20 * ms {
		if r := p.ask(control.Order{Kind: control.Turn, A: 0.1, For: time.Minute}); r.Code != control.OK {
			t.Fatalf("%+v", r)
		}
		if end := p.ended(); end.Outcome != motion.Done {
			t.Errorf("%v: %v, want %v", d, end.Outcome, motion.Done)
		}
		p.run(d)
	}
}

// TestSpeeds: speeds of the base and of its wheels, what is not written stays, and a deadline ends them.
func TestSpeeds(t *testing.T) {
	p := newPlace(t, amigobotsim.Config{}).claim("robot.body.wheel")
	if r := p.ask(p.set(time.Minute, map[string]float64{"robot.xSpeed": 0.2})); r.Code != control.OK || math.Abs(r.Taken[0]-0.2) > 1e-9 {
		t.Fatalf("%+v", r)
	}
	p.ask(p.set(time.Minute, map[string]float64{"robot.yawSpeed": 0.5}))
	p.run(4 * time.Second)
	if v, w := p.value("robot.xSpeed"), p.value("robot.yawSpeed"); math.Abs(v-0.2) > 0.02 || math.Abs(w-0.5) > 0.05 {
		t.Errorf("it goes at %v m/s and %v rad/s, want 0.2 and 0.5", v, w)
	}
	if r := p.ask(p.set(time.Minute, map[string]float64{"wheelL.speed": -2, "wheelR.speed": 2})); r.Code != control.OK {
		t.Fatalf("%+v", r)
	}
	p.run(3 * time.Second)
	if l, r := p.value("wheelL.speed"), p.value("wheelR.speed"); math.Abs(l+2) > 0.2 || math.Abs(r-2) > 0.2 {
		t.Errorf("wheels at %v and %v rad/s, want -2 and 2 (VEL2, AMIGO-CMD-32)", l, r)
	}
	if r := p.ask(p.set(500*ms, map[string]float64{"robot.xSpeed": 99})); r.Code != control.OK || r.Taken[0] != 0.5 {
		t.Errorf("a speed beyond its limits: %+v, want 0.5 taken", r)
	}
	for {
		if end := p.ended(); end.Outcome == motion.Expired {
			break
		} else if end.Outcome != motion.Cancelled {
			t.Fatalf("%+v", end)
		}
	}
	p.until("rest", p.still)
	p.run(6 * time.Second)
	if p.sim.State().Motors {
		t.Error("the motors are on long after the last motion")
	}
}

// TestSafety: nothing moves that must not: halt, lost claims, the robot's own button, stall, a robot that restarts, one that falls silent
// (AMIGO-SAFE-01, AMIGO-SAFE-03, AMIGO-UI-05, AMIGO-LINK-06).
func TestSafety(t *testing.T) {
	for name, tc := range map[string]struct {
		world   *plane.Map
		happens func(p *place)
		outcome motion.Outcome
		within  time.Duration // until the wheels stand
	}{
		"halt":             {nil, func(p *place) { p.loop.Halt() }, motion.Stopped, time.Second},
		"its owner dies":   {nil, func(p *place) { p.control.Post(control.Order{Kind: control.Drop, Owner: alice}) }, motion.Cancelled, 2 * time.Second},
		"stop":             {nil, func(p *place) { p.ask(control.Order{Kind: control.Stop}) }, motion.Cancelled, 2 * time.Second},
		"its motor button": {nil, func(p *place) { p.sim.SetBlack(true); p.sim.SetBlack(false) }, motion.Released, 2 * time.Second},
		"reset":            {nil, func(p *place) { p.sim.SetReset(true); p.sim.SetReset(false) }, motion.Stopped, 2 * time.Second},
		"the line is dead": {nil, func(p *place) { p.sim.SetFaults(amigobotsim.Faults{Loss: 1}) }, motion.Stopped, 4 * time.Second},
		"a wall":           {&plane.Map{Walls: []plane.Wall{{From: plane.Vec{0.5, -1}, To: plane.Vec{0.5, 1}}}}, func(*place) {}, motion.Blocked, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, amigobotsim.Config{World: tc.world}).claim("robot.body.wheel")
			if r := p.ask(p.set(time.Minute, map[string]float64{"robot.xSpeed": 0.3})); r.Code != control.OK {
				t.Fatalf("%+v", r)
			}
			p.until("it drives", func() bool { return p.sim.State().Speed[0] > 0.2 })
			tc.happens(p)
			began := p.sim.Now()
			end := p.ended()
			if end.Outcome != tc.outcome {
				t.Errorf("it ended %v, want %v", end.Outcome, tc.outcome)
			}
			p.until("rest", p.still)
			if took := p.sim.Now() - began; took > tc.within {
				t.Errorf("it stood after %v, want %v", took, tc.within)
			}
			p.sim.SetFaults(amigobotsim.Faults{})
			for range 3000 { // and nothing moves again by itself (what must hold 3)
				p.step()
				if !p.still() {
					t.Fatalf("%v after it stopped it moves: %+v", p.sim.Now()-began, p.sim.State())
				}
			}
		})
	}
}

// TestValues: the robot's reports reach the tree under the standard's names and units (GOSTAI-MAP-A-02 to 13, 15 to 32).
func TestValues(t *testing.T) {
	wall := &plane.Map{Walls: []plane.Wall{{From: plane.Vec{1.14, -3}, To: plane.Vec{1.14, 3}}}}
	p := newPlace(t, amigobotsim.Config{World: wall, Volts: 12.3})
	p.sim.SetDigital(0b100001)
	p.sim.SetAnalog(2, 2.5)
	p.run(2 * time.Second)
	for name, want := range map[string]float64{"battery.voltage": 12.3, "battery.remain": 2.3 / 3, "digin[0].val": 1, "digin[1].val": 0,
		"digin[5].val": 1, "analog[1].val": 2.5,
		"robot.moving": 0, "bumperL.pressure": 0, "wheelL.PGain": 40, "wheelR.DGain": 80, "sonar[0].distance": 1.022, "sonar[4].distance": math.Inf(1)} {
		if got := p.value(name); math.Abs(got-want) > 0.03 && got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if p.report.Power.Battery.Volts != 12.3 || p.report.Totals[2] != 0 {
		t.Errorf("%+v", p.report)
	}
	p.sim.SetVolts(10.8)
	p.until("a low battery", func() bool {
		return slices.ContainsFunc(p.events, func(e control.Event) bool { return e.Name == "battery.low" })
	})
	if r := p.claim("robot.body.wheel").ask(p.set(0, map[string]float64{"wheelL.PGain": 55})); r.Code != control.OK || r.Taken[0] != 55 {
		t.Errorf("a gain: %+v", r)
	}
	p.until("the gain", func() bool { return p.value("wheelL.PGain") == 55 })
	p.sim.BrownOut() // a robot that was reset is asked again for all that it can measure (AMIGO-SYNC-14)
	p.sim.SetAnalog(2, 1.5)
	p.until("an analog port after a reset", func() bool { return math.Abs(p.value("analog[1].val")-1.5) < 0.03 })
}

// TestRandomLife: simulated hours of an owner who drives, dies and claims again, while the robot is halted, reset, switched off by its own button,
// runs into walls and loses packets. At every step: speeds within limits; every motion under way belongs to its owner; and without one the
// robot stops within the time that its deceleration or its watchdog takes (issue: what must hold 2).
func TestRandomLife(t *testing.T) {
	life, seeds := 4*time.Minute, uint64(3)
	if os.Getenv("KENNEL_SOAK") == "1" {
		life, seeds = 2*time.Hour, 10
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 9))
		room := &plane.Map{Walls: []plane.Wall{{From: plane.Vec{-1, -1}, To: plane.Vec{1, -1}}, {From: plane.Vec{1, -1}, To: plane.Vec{1, 1}},
			{From: plane.Vec{1, 1}, To: plane.Vec{-1, 1}}, {From: plane.Vec{-1, 1}, To: plane.Vec{-1, -1}}}}
		p := newPlace(t, amigobotsim.Config{Seed: seed, World: room})
		set, err := p.control.Actuators("robot.body.wheel")
		if err != nil {
			t.Fatal(err)
		}
		slots := []int{p.slot("robot.xSpeed"), p.slot("robot.yawSpeed"), p.slot("wheelL.speed"), p.slot("wheelR.speed")}
		trouble, slope, flat, drove, far := time.Duration(0), false, time.Duration(0), 0, 0.0
		allowed := p.sim.Now() // the robot may still move, because something was under way then
		for end := p.sim.Now() + life; p.sim.Now() < end; {
			now := p.sim.Now()
			o := control.Order{
				Owner: alice, Request: uint32(now), Set: set, Priority: claim.Person, For: time.Duration(rng.IntN(8000)) * ms,
				A: rng.NormFloat64() / 2,
			}
			switch rng.IntN(300) {
			case 0, 1, 2, 3:
				o.Kind = control.Claim
				p.control.Post(o)
			case 4, 5, 6, 7, 8, 9:
				o.Kind = [...]control.Kind{control.Set, control.Go, control.Turn}[rng.IntN(3)]
				o.N, o.Goals[0] = 1, control.Goal{Slot: slots[rng.IntN(len(slots))], Value: rng.NormFloat64()}
				p.control.Post(o)
			case 10:
				o.Kind = control.Stop
				p.control.Post(o)
			case 11:
				o.Kind = control.Drop
				p.control.Post(o)
			}
			if trouble == 0 && rng.IntN(1000) == 0 {
				trouble = now + time.Duration(rng.IntN(4000))*ms
				switch rng.IntN(5) {
				case 0:
					p.loop.Halt()
				case 1:
					p.sim.SetFaults(amigobotsim.Faults{Loss: rng.Float64() / 2})
				case 2:
					p.sim.SetReset(true)
					p.sim.SetReset(false)
				case 3:
					if p.sim.State().Mode == amigobotsim.Connected { // without a client the button begins self tests, which let no client in (AMIGO-TST-07)
						p.sim.SetBlack(true)
						p.sim.SetBlack(false)
					}
				case 4:
					p.sim.SetDrag(rng.Float64(), rng.Float64()) // a slope: without power it rolls
					slope = true
				}
			} else if trouble != 0 && now > trouble {
				trouble, slope, allowed = 0, false, max(allowed, now)
				p.sim.SetFaults(amigobotsim.Faults{})
				p.sim.SetDrag(0, 0)
				p.loop.Post(rt.Command{Kind: rt.Resume})
			}
			p.step()
			p.results, p.events = p.results[:0], p.events[:0]
			s := p.sim.State()
			running := p.report.Parts[0].Outcome == motion.Running
			owner := p.report.Owners[slices.IndexFunc(p.control.Model().Tree.Actuators(), func(n *robot.Node) bool { return n.Compact() == "wheelL" })].Owner
			limit := 0.75 // a load that lets go makes the robot overshoot, up to what its motors can (AMIGO-MOT-08)
			if slope {
				flat = now + time.Second // until the speed that the slope gave is gone
			}
			if now <= flat {
				limit *= 2 // the slope pulls with at most the motors' full force, and adds to it
			}
			switch {
			case running && owner != alice:
				t.Fatalf("seed %d, %v: a motion is under way and its owner holds nothing", seed, now)
			case running && p.report.Stop&motion.Everything != 0:
				t.Fatalf("seed %d, %v: a motion is under way in spite of %v", seed, now, p.report.Stop.Words())
			case math.Abs(s.Speed[0]+s.Speed[1])/2 > limit+1e-9:
				t.Fatalf("seed %d, %v: %v m/s", seed, now, s.Speed)
			}
			if running {
				allowed, drove = now, drove+1
			}
			// 0.5 m/s at 0.5 m/s² is a second; a robot that hears nothing stops after its watchdog's 2 s (AMIGO-SAFE-01).
			if !slope && !p.still() && now-allowed > 4*time.Second && s.Mode == amigobotsim.Connected {
				t.Fatalf("seed %d, %v: nothing has been under way for %v, and it moves: %+v; stop %v, %+v", seed, now, now-allowed, s,
					p.report.Stop.Words(), p.report.Parts[0])
			}
			far = max(far, math.Abs(s.Pose[0])+math.Abs(s.Pose[1]))
		}
		if drove < 500 || far < 0.3 {
			t.Errorf("seed %d: it drove in %d steps and came %v m far: a life without motion shows nothing", seed, drove, far)
		}
		p.end()
	}
}

// TestReplay: a recording of this body replays bit by bit: the tape knows no species.
func TestReplay(t *testing.T) {
	p := newRecordedPlace(t, amigobotsim.Config{}, rt.NewTape(1<<20)).claim("robot.body.wheel")
	p.ask(control.Order{Kind: control.Go, A: 0.3, For: time.Minute})
	p.ended()
	p.loop.Halt()
	p.run(time.Second)
	p.end()
	if _, err := p.tape.Flush(&p.out); err != nil {
		t.Fatal(err)
	}
	var known control.Report
	model, err := amigobot.Model()
	if err != nil {
		t.Fatal(err)
	}
	var c *control.Control
	done, err := rt.Replay(&p.out, rt.Config{}, func(tape *rt.Tape, _ body.Description) []rt.Task {
		if c, err = control.New(model, tape); err != nil {
			t.Fatal(err)
		}
		return []rt.Task{c.Task()}
	}, nil)
	if err != nil || done.Cut != nil || done.Steps < 100 {
		t.Fatalf("%+v, %v", done, err)
	}
	if c.Report(&known); math.Abs(known.Base.Pose.X-0.3) > 0.02 || known.Stop&motion.Halted == 0 {
		t.Errorf("after the replay: %+v", known.Base)
	}
}

// TestBody: the driver is a body as every other, on a socket in real time.
func TestBody(t *testing.T) {
	bodytest.Run(t, func(t *testing.T) body.Body {
		r, err := amigobotsim.New(amigobotsim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close() // the socket has its own
		line, err := uart.ListenSocket(dir, "robot")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx, [amigobotsim.Ports]uart.Line{amigobotsim.Control: line}) }()
		t.Cleanup(func() {
			cancel()
			if err := errors.Join(<-done, line.Close()); err != nil {
				t.Error(err)
			}
		})
		d, err := amigobot.Open(t.Context(), amigobot.Config{Device: dir.Name() + "/robot"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
