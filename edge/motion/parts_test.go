package motion

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestConfigIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no track":            func(c *Config) { c.Drive.Track = 0 },
		"headroom":            func(c *Config) { c.Headroom.Accel = 1.1 },
		"segments":            func(c *Config) { c.Segments = MaxSegments + 1 },
		"two for one motor":   func(c *Config) { c.Right.Index = 0 },
		"motor index":         func(c *Config) { c.Left.Index = MaxMotors },
		"power never to zero": func(c *Config) { c.Left.Guard.Safe = 0 }, // VEC-MOT-06
		"15 s burn":           func(c *Config) { c.Joints[0].Motor.Guard.HeatMost = 15 },
		"stops":               func(c *Config) { c.Joints[1].Stops = [2]float64{1, 0} },
		"no tries":            func(c *Config) { c.Joints[1].Tries = 0 },
		"not a number":        func(c *Config) { c.Follow.Along = math.NaN() },
		"slip":                func(c *Config) { c.Odometry.Slip = 1 },
		"stale":               func(c *Config) { c.Stale = 0 },
	} {
		c := testConfig()
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestProfileKeepsItsRamp: speed, acceleration and the span of its targets hold for any targets, ramps and steps (VEC-MCT-05).
func TestProfileKeepsItsRamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Profile
		lo, hi := 0.0, 0.0
		n := rapid.IntRange(1, 8).Draw(t, "commands")
		var most Ramp
		for range n {
			r := Ramp{rapid.Float64Range(0.01, 10).Draw(t, "v"), rapid.Float64Range(0.1, 20).Draw(t, "a"), rapid.Float64Range(0.1, 20).Draw(t, "d")}
			most = Ramp{max(most.Speed, r.Speed), max(most.Accel, r.Accel), max(most.Decel, r.Decel)}
			target := rapid.Float64Range(-1, 1).Draw(t, "target")
			lo, hi = min(lo, target), max(hi, target)
			p.Aim(target, r)
			dt := rapid.Float64Range(0.001, 0.05).Draw(t, "dt")
			for range rapid.IntRange(0, 300).Draw(t, "steps") {
				v := p.V
				p.Step(dt)
				if math.Abs(p.V) > most.Speed+1e-9 || math.Abs(p.V-v) > max(most.Accel, most.Decel)*dt+1e-9 {
					t.Fatalf("%+v from speed %v in %v s: beyond %+v", p, v, dt, most)
				}
				if p.X < lo-1e-6 || p.X > hi+1e-6 {
					t.Fatalf("%+v leaves %v to %v", p, lo, hi)
				}
			}
		}
		for k := 0; !p.Done(); k++ {
			if p.Step(0.005); k > 200_000 {
				t.Fatalf("%+v never arrives", p)
			}
		}
	})
}

// TestProfileThatTurnsRound: a profile that stops or turns round within a long step stays between its targets; found by the test above.
func TestProfileThatTurnsRound(t *testing.T) {
	type aim struct {
		target float64
		ramp   Ramp
		dt     float64
		steps  int
	}
	for name, aims := range map[string][]aim{
		"rests":              {{0.125, Ramp{1, 0.5, 20}, 0.033203125, 30}},
		"turns at the end":   {{-0.5, Ramp{1, 1.5, 1}, 0.05, 2}, {-0.5, Ramp{1.5, 1.875, 7.75}, 0.00341796875, 171}, {1, Ramp{1, 1, 1}, 0.05, 100}},
		"turns and is there": {{1, Ramp{1, 0.5, 1}, 0.05, 1}, {0.000244140625, Ramp{1, 1, 3.5}, 0.05, 100}},
	} {
		var p Profile
		lo, hi := 0.0, 0.0
		for _, a := range aims {
			lo, hi = min(lo, a.target), max(hi, a.target)
			p.Aim(a.target, a.ramp)
			for range a.steps {
				if p.Step(a.dt); p.X < lo-1e-9 || p.X > hi+1e-9 {
					t.Fatalf("%s: %+v leaves %v to %v", name, p, lo, hi)
				}
			}
		}
		if !p.Done() {
			t.Errorf("%s: %+v does not arrive", name, p)
		}
	}
}

// TestProfileTakesTheTimeOfATrapezoid: 1 rad at 1 rad/s and 2 rad/s² takes 1.5 s.
func TestProfileTakesTheTimeOfATrapezoid(t *testing.T) {
	var p Profile
	p.Aim(1, Ramp{1, 2, 2})
	steps := 0
	for ; !p.Done(); steps++ {
		p.Step(0.005)
	}
	near(t, "time", float64(steps)*0.005, 1.5, 0.02)
}

// TestPaceOfAProfile: from any place and speed the reference is there when Pace says so, when it
// was asked to be wherever its ramp lets it, and no sooner (GOSTAI-OPEN-03).
func TestPaceOfAProfile(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 3))
	between := func(low, high float64) float64 { return low + rng.Float64()*(high-low) }
	const dt = 0.001
	short := 0
	for i := range 500 {
		var p Profile
		if i%2 == 1 { // under way, by a plan of its own
			p.Aim(between(-2, 2), Ramp{between(0.5, 4), between(1, 8), between(1, 8)})
			for range rng.IntN(600) {
				p.Step(dt)
			}
		}
		target, ramp, want := between(-2, 2), Ramp{between(1, 5), between(1, 8), between(1, 8)}, between(0.05, 5)
		p.Aim(target, ramp)
		begun, least := p, p.takes(ramp.Speed)
		takes := p.Pace(want)
		if math.Abs(takes-max(want, least)) > 1e-6 {
			t.Fatalf("from %+v to %v within %+v: %v s, want %v, or %v as the least", begun, target, ramp, takes, want, least)
		}
		if takes > want+1e-9 {
			short++
		}
		steps, most := 0, math.Abs(begun.V)
		for ; !p.Done() && steps < 20_000; steps++ {
			p.Step(dt)
			most = max(most, math.Abs(p.V))
		}
		if got := float64(steps) * dt; math.Abs(got-takes) > 0.02 || most > max(ramp.Speed, math.Abs(begun.V))+1e-9 {
			t.Fatalf("from %+v to %v within %+v: there after %v s, want %v; at most %v a second", begun, target, ramp, got, takes, most)
		}
	}
	if short < 50 || short > 450 {
		t.Errorf("%d of 500 times were too short: this test wants some of both", short)
	}
	var p Profile
	if p.Aim(0, Ramp{1, 1, 1}); p.Pace(3) != 0 {
		t.Error("a joint that is already at its target did not finish at once")
	}
}

// TestSpeedAtLowRates: one edge in many steps still is a speed, and silence becomes rest (VEC-MCT-06).
func TestSpeedAtLowRates(t *testing.T) {
	const count = 0.002
	for _, speed := range []float64{0.02, -0.05, 0.3, 3, -9} {
		e := estimator{count: count}
		x, worst := 0.0, 0.0
		at := time.Duration(0)
		for i := range 2000 {
			at += frame
			x += speed * frame.Seconds()
			v := e.observe(math.Floor(x/count)*count, at)
			if i > 200 {
				worst = max(worst, math.Abs(v-speed))
			}
		}
		near(t, fmt.Sprintf("error at %v rad/s", speed), worst, 0, 0.12*math.Abs(speed)+0.06)
		stopped := at
		for e.v != 0 && at < stopped+time.Second {
			at += frame
			e.observe(math.Floor(x/count)*count, at)
		}
		near(t, "s until it is seen to rest", (at - stopped).Seconds(), 0, 0.21)
	}
}

// TestGuard: after 1 s of stall the power fades, never to zero; 15 s at full power are never reached; motion gives it back (VEC-MOT-06,
// VEC-MCT-07).
func TestGuard(t *testing.T) {
	const dt = 0.00512
	c := testConfig().Left.Guard
	g := newGuard(c)
	run := func(s, duty, speed float64) (last, heat float64) {
		for range int(s / dt) {
			last = g.Limit(duty, speed, dt)
			heat += last * last * dt
		}
		return last, heat
	}
	if d, _ := run(0.95, -1, 0); d != -1 {
		t.Errorf("duty %v before 1 s of stall, want all", d)
	}
	d, heat := run(60, 1, 0)
	if d != c.Safe || !g.Stalled() {
		t.Errorf("duty %v after a minute of stall, want %v", d, c.Safe)
	}
	if heat > 5 {
		t.Errorf("a minute of stall is %.1f s at full power", heat)
	}
	if d, _ = run(0.5, 1, 5); d != 1 || g.Stalled() {
		t.Errorf("duty %v after half a second of motion, want all", d)
	}
	// Many stalls shorter than one second heat it as well.
	heat = 0
	for range 100 {
		_, h := run(0.9, 1, 0)
		heat += h
		run(0.15, 1, 5)
	}
	if heat > 12 {
		t.Errorf("100 short stalls in 105 s are %.1f s at full power", heat)
	}
}

// TestKinematics: straight, turn and arc with the sign of VEC-MOT-10, VEC-MCT-12; the printed equation turns the other way.
func TestKinematics(t *testing.T) {
	d := Drive{Radius: 0.0145, Track: 0.048}
	two := func(l, r float64) [2]float64 { return [2]float64{l, r} }
	if got := two(d.Treads(Twist{0.1, 0})); got != two(0.1, 0.1) {
		t.Errorf("straight %v", got)
	}
	if got := two(d.Treads(Twist{0, 1})); got != two(-0.024, 0.024) {
		t.Errorf("turn to the left %v", got)
	}
	if l, r := d.Arc(2, 0.1); math.Abs(l-2*0.076) > 1e-12 || math.Abs(r-2*0.124) > 1e-12 || l >= r {
		t.Errorf("arc to the left %v %v: the left tread is the inner one", l, r)
	}
	rapid.Check(t, func(t *rapid.T) {
		v, w := rapid.Float64Range(-1, 1).Draw(t, "v"), rapid.Float64Range(-5, 5).Draw(t, "w")
		if got := d.Twist(d.Treads(Twist{v, w})); math.Abs(got.V-v) > 1e-9 || math.Abs(got.W-w) > 1e-9 {
			t.Fatalf("%v there and back from %v %v", got, v, w)
		}
	})
	if p := (Pose{}).advance(math.Pi*0.1, math.Pi); math.Abs(p.X) > 1e-12 || math.Abs(p.Y-0.2) > 1e-12 {
		t.Errorf("half a circle of 0.1 m to the left ends at %v", p)
	}
}

// TestOdometry: by treads and gyro, slip and bias included; odometers grow (part of VEC-MCT-03, VEC-MCT-13, VEC-MCT-16).
func TestOdometry(t *testing.T) {
	lap := func(r *rig) Pose {
		for range 3 {
			r.must(r.m.Drive(0.15, 0.1, 0, 0))
			r.run(3 * time.Second)
			r.must(r.m.Drive(-0.1, 0.1, 0, 0))
			r.run(2 * time.Second)
		}
		r.must(r.m.Drive(0, 0, 0, 0))
		r.run(time.Second)
		return Pose{r.rep.Pose.X - r.p.pose.X, r.rep.Pose.Y - r.p.pose.Y, wrap(r.rep.Pose.Theta - r.p.pose.Theta)}
	}
	r := newRig(t, newPlant(8), nil)
	if e := lap(r); math.Hypot(e.X, e.Y) > 0.01 || math.Abs(e.Theta) > 2*degree {
		t.Errorf("with gyro it is off by %v", e)
	}
	o := r.rep.Odometers
	if o.Left < 1 || o.Right < 1 || o.Body < 0.9 || r.rep.Unreliable {
		t.Errorf("odometers %+v, unreliable %v", o, r.rep.Unreliable)
	}
	r.must(r.m.Drive(-0.1, -0.1, 0, r.now+time.Second))
	r.run(2 * time.Second)
	near(t, "odometer after a second backwards", r.rep.Odometers.Body-o.Body, 0.09, 0.03)

	slippery := newPlant(8)
	slippery.slip = 0.2
	withGyro := lap(newRig(t, slippery, nil))
	if math.Abs(withGyro.Theta) > 4*degree {
		t.Errorf("treads that slip, gyro present: heading off by %.1f°", withGyro.Theta/degree)
	}
	slippery = newPlant(8)
	slippery.slip = 0.2
	told := newRig(t, slippery, func(c *Config) { c.Odometry.Slip, c.Odometry.PushSlip = 0.2, 0 })
	told.gyro = false
	if e := lap(told); math.Hypot(e.X, e.Y) > 0.02 || math.Abs(e.Theta) > 3*degree {
		t.Errorf("treads that slip by a known factor, no gyro: off by %v", e)
	}
}

// TestTurnWhileLate: a turn that ends while the loop is late is measured by the treads, not by the gyro.
func TestTurnWhileLate(t *testing.T) {
	r := newRig(t, newPlant(8), nil)
	r.must(r.m.Drive(-0.08, 0.08, 0, 0))
	r.run(time.Second)
	before := wrap(r.rep.Pose.Theta - r.p.pose.Theta)
	for i := range 60 {
		if i == 15 {
			r.act = Duties{} // the body cuts the power on its own
		}
		r.p.step(&r.act, frame.Seconds())
	}
	r.now += 60 * frame
	if r.step(); math.Abs(r.p.turn) > 0.01 {
		t.Fatalf("it still turns at %v rad/s", r.p.turn)
	}
	if off := wrap(r.rep.Pose.Theta-r.p.pose.Theta) - before; math.Abs(off) > 2*degree {
		t.Errorf("after 300 ms without a measurement its heading is off by %.1f°", off/degree)
	}
}

// TestPushedByHand: encoders of one channel do not see which way a hand pushes; the pose says so until something that sees sets it
// (VEC-MOT-11).
func TestPushedByHand(t *testing.T) {
	r := newRig(t, newPlant(9), nil)
	r.must(r.m.Drive(0.1, 0.1, 0, r.now+time.Second))
	r.run(2 * time.Second)
	if r.rep.Unreliable {
		t.Fatal("unreliable after an ordinary drive")
	}
	r.p.parts[0].pulled = 2
	r.run(300 * ms)
	r.p.parts[0].pulled = 0
	r.run(100 * ms)
	if !r.rep.Unreliable {
		t.Error("pushed, and the pose still counts as reliable")
	}
	r.must(r.m.SetPose(Pose{1, 2, 3}))
	r.step()
	if r.rep.Unreliable || r.rep.Pose != (Pose{1, 2, 3}) {
		t.Errorf("after SetPose %v, unreliable %v", r.rep.Pose, r.rep.Unreliable)
	}
}

// TestCliff: the treads have no power in the step that shows it, ahead or behind, may only back away, brake with nothing that pushes towards it, and
// joints keep moving (VEC-IO-22, VEC-MCT-15).
func TestCliff(t *testing.T) {
	for _, c := range []struct {
		name    string
		cliff   Cliffs
		towards float64
	}{{"ahead", FrontRight, 1}, {"behind", BackLeft, -1}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, newPlant(10), nil)
			r.must(r.m.Drive(0.2*c.towards, 0.2*c.towards, 0, 0))
			r.must(r.m.MoveTo(1, 0.2, Ramp{}))
			r.run(time.Second)
			r.in.Cliffs = c.cliff
			x := r.p.pose.X
			r.step()
			if r.act[0] != 0 || r.act[1] != 0 || r.rep.Treads != Stopped || r.rep.Stop != Cliff || r.act[3] == 0 {
				t.Fatalf("the step that shows a cliff: %v %v %v", r.act[:4], r.rep.Treads, r.rep.Stop)
			}
			r.run(time.Second)
			near(t, "m rolled on", (r.p.pose.X-x)*c.towards, 0, 0.012)
			for _, refused := range [][2]float64{{0.1, 0.1}, {-0.1, 0.1}, {0.1, 0}} {
				if err := r.m.Drive(refused[0]*c.towards, refused[1]*c.towards, 0, 0); err != ErrStopped {
					t.Errorf("%v before a cliff: %v", refused, err)
				}
			}
			var p Path
			p.Append(Segment{Kind: Line, Start: r.m.Pose(), Length: -0.05 * c.towards, Ramp: gentle})
			r.must(r.m.Follow(&p))
			r.step()
			r.until("backing away", 5*time.Second, func() bool { return r.rep.Treads != Running })
			near(t, "m backed", (r.p.pose.X-x)*c.towards, -0.04, 0.02)

			r.must(r.m.Drive(-0.2*c.towards, -0.2*c.towards, 0, 0))
			r.run(500 * ms)
			r.m.StopTreads()
			for range 100 {
				r.step()
				if push := r.act[0] * c.towards; push > 0 {
					t.Fatalf("it brakes with duty %v, towards the cliff", push)
				}
			}
		})
	}
}

// TestNothingIsAllocated in any step, of any kind (style 6).
func TestNothingIsAllocated(t *testing.T) {
	r := newRig(t, newPlant(12), nil)
	r.home()
	p := GoTo(r.m.Pose(), Pose{5, 1, 1}, gentle, gentle)
	seed := uint64(0)
	allocs := testing.AllocsPerRun(2000, func() {
		switch seed++; seed % 500 {
		case 1:
			_ = r.m.Follow(&p)
			_ = r.m.MoveTo(0, 0.5, Ramp{})
			_ = r.m.Calibrate(1)
		case 200:
			r.in.Stop = Halted
		case 201:
			r.in.Stop = 0
			_ = r.m.Drive(0.1, 0.1, 0, 0)
			p.Segments[0].Kind = 9
			_ = r.m.Follow(&p)
			p.Segments[0].Kind = PointTurn
		case 300:
			r.m.StopAll()
		}
		r.step()
	})
	if allocs != 0 {
		t.Errorf("%v allocations a step", allocs)
	}
}

func TestWordsAreWords(t *testing.T) {
	words := []string{Stopped.String(), Outcome(99).String(), Line.String(), Kind(9).String(), Holding.String(), State(9).String()}
	if want := []string{"stopped", "outcome(99)", "line", "kind(9)", "holding", "state(9)"}; !slices.Equal(words, want) {
		t.Errorf("%q, want %q", words, want)
	}
}

// BenchmarkStep: both treads on a path and both joints under way; the plant's share is in it.
func BenchmarkStep(b *testing.B) {
	r := newRig(b, newPlant(13), nil)
	r.home()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if i++; i%400 == 1 {
			p := GoTo(r.m.Pose(), Pose{0.3, 0.1, 1}, gentle, gentle)
			_ = r.m.Follow(&p)
			_ = r.m.MoveTo(0, float64(i%800)/800, Ramp{})
			_ = r.m.MoveTo(1, float64(i%800)/800, Ramp{})
		}
		r.now += frame
		r.in.Now, r.in.DT, r.in.At = r.now, frame, r.now
		r.m.Step(&r.in, &r.act)
	}
}

// TestEachReasonStops: no power in the very step that shows it, orders refused, rest soon, and nothing moves afterwards before a new order
// (issue 6, what must hold 3: Halt, cliff, fall, watchdog, link loss; Lifted and Cliff stop the treads only).
func TestEachReasonStops(t *testing.T) {
	for _, c := range []struct {
		name       string
		set, clear func(*rig)
		want       Reason
	}{
		{"halt", func(r *rig) { r.in.Stop = Halted }, func(r *rig) { r.in.Stop = 0 }, Halted},
		{"fall", func(r *rig) { r.in.Stop = Falling }, func(r *rig) { r.in.Stop = 0 }, Falling},
		{"watchdog", func(r *rig) { r.in.Stop = Watchdog }, func(r *rig) { r.in.Stop = 0 }, Watchdog},
		{"link of others", func(r *rig) { r.in.Stop = Link }, func(r *rig) { r.in.Stop = 0 }, Link},
		{"no frame for 50 ms", func(r *rig) { r.silent = true; r.run(46 * ms) }, func(r *rig) { r.silent = false }, Link},
		{"no number", func(r *rig) { r.p.parts[3].zero = math.NaN() }, func(r *rig) { r.p.parts[3].zero = r.p.parts[3].angle }, Link},
		{"lifted", func(r *rig) { r.in.Stop = Lifted }, func(r *rig) { r.in.Stop = 0 }, Lifted},
		{"cliff", func(r *rig) { r.in.Cliffs = FrontLeft }, func(r *rig) { r.in.Cliffs = 0 }, Cliff},
		{"hung", func(r *rig) { r.stepBy(60 * ms) }, func(*rig) {}, 0}, // over with the next step
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, newPlant(14), nil)
			r.home()
			r.must(r.m.Drive(0.15, 0.15, 0, 0))
			r.must(r.m.MoveTo(0, 0.7, Ramp{Speed: 0.5}))
			r.run(500 * ms)
			if r.act[0] == 0 || r.act[2] == 0 {
				t.Fatal("it does not even move")
			}
			motors := 4
			if c.want&Everything == 0 && c.want != 0 {
				motors = 2
			}
			c.set(r)
			r.step()
			if r.rep.Stop != c.want {
				t.Errorf("reason %06b, want %06b", r.rep.Stop, c.want)
			}
			check := func(when string) {
				t.Helper()
				for i := range motors {
					if r.act[i] != 0 {
						t.Fatalf("%s: motor %d has duty %v", when, i, r.act[i])
					}
				}
			}
			check("at once")
			if c.want != 0 {
				if err := r.m.Drive(0.1, 0.1, 0, 0); err != ErrStopped {
					t.Errorf("an order meanwhile: %v", err)
				}
				if err := r.m.MoveTo(0, 0, Ramp{}); c.want&Everything != 0 && err != ErrStopped {
					t.Errorf("an order meanwhile: %v", err)
				}
			}
			for range 60 {
				r.step()
				check("while it holds")
			}
			c.clear(r)
			for range 60 {
				r.step()
				check("after it")
			}
			if v := r.p.parts[0].rate; v != 0 || r.rep.Treads != Stopped {
				t.Errorf("treads %v at %v rad/s", r.rep.Treads, v)
			}
			r.must(r.m.Drive(0.1, 0.1, 0, 0))
			r.run(100 * ms)
			if r.act[0] == 0 {
				t.Error("a new order moves nothing")
			}
		})
	}
}

// TestOdometers: a way counts once whatever its frames, and a turn on the spot, in which the steps of two encoders alternate, is no way of the body
// (VEC-MCT-16; on a loaded machine 0.148 m were counted for 0.101 m and a quarter turn).
func TestOdometers(t *testing.T) {
	r := newRig(t, newPlant(1).ideal(), nil)
	drive := func(k Kind, length float64, ramp Ramp) {
		t.Helper()
		var p Path
		p.Append(Segment{Kind: k, Start: r.m.Pose(), Length: length, Ramp: ramp})
		r.must(r.m.Follow(&p))
		r.step()
		r.until("the end", 20*time.Second, func() bool { return r.rep.Treads != Running })
		r.run(time.Second)
	}
	drive(PointTurn, 6*math.Pi, Ramp{2, 6, 6})
	near(t, "odometer after three turns on the spot", r.rep.Odometers.Body, 0, 0.003)
	drive(Line, 0.3, Ramp{0.1, 0.3, 0.3})
	drive(Line, -0.3, Ramp{0.1, 0.3, 0.3})
	near(t, "odometer after 0.3 m there and back", r.rep.Odometers.Body, 0.6, 0.01)
}
