package motion

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// judge watches a rig from outside: the stop reasons that went in, the duties that came out, and what the simulated parts really did. It holds
// the rules of the rows against them in every step (issue 6, what must hold 3) and shares no code with what it judges.
type judge struct {
	cfg     Config
	r       *rig
	ordered [3]bool          // a command was accepted since the last reason: treads, lift, head
	calm    [4]time.Duration // since that motor was last disturbed
	rest    [4]time.Duration // since the reason that stopped it
	pushed  [2]float64       // duty of each tread in the step before
	speeds  [4][5]float64    // of the last steps, a ring
	times   [5]time.Duration
	n       int
	excused [2]bool           // a hand was there while it homed: its zero may be wrong
	faults  map[string]string // rule: what was seen first
	moved   float64           // rad of all parts
}

func newJudge(r *rig) *judge {
	j := &judge{cfg: testConfig(), r: r, faults: map[string]string{}}
	r.after = j.look
	return j
}

func (j *judge) blame(rule, format string, args ...any) {
	if _, seen := j.faults[rule]; !seen {
		j.faults[rule] = fmt.Sprintf("at %v: ", j.r.now) + fmt.Sprintf(format, args...)
	}
}

// group of a motor: the treads have one command, each joint its own.
func group(motor int) int { return max(motor-1, 0) }

func (j *judge) look() {
	r := j.r
	dt := r.in.DT
	stop := r.in.Stop
	if r.in.DT > j.cfg.Stale {
		stop |= Watchdog // VEC-WDOG-02
	}
	if r.now-r.p.sense.At > j.cfg.Stale {
		stop |= Link // VEC-BODY-33
	}
	for i := range r.p.parts {
		q := &r.p.parts[i]
		duty := r.act[i]
		j.moved += math.Abs(q.rate) * dt.Seconds()
		halt := stop&Everything != 0 || i < 2 && stop&Lifted != 0
		if i < 2 { // a cliff ahead of the way a tread goes, or was about to go (VEC-IO-22, VEC-MCT-15)
			if r.in.Cliffs&front != 0 && duty > 0 || r.in.Cliffs&back != 0 && duty < 0 {
				j.blame("cliff", "tread %d has duty %.3f with cliffs %04b", i, duty, r.in.Cliffs)
			}
			if r.rep.Stop&Cliff != 0 && r.rep.Treads == Stopped {
				halt = true
			}
			// It was driven towards a cliff: that order is over, and not only held back while the cliff is seen.
			if was := j.pushed[i]; r.in.Cliffs&front != 0 && was > 0 && q.rate > 0 || r.in.Cliffs&back != 0 && was < 0 && q.rate < 0 {
				j.ordered[0] = false
			}
			j.pushed[i] = duty
		}
		if halt {
			j.ordered[group(i)] = false
			j.calm[i] = 0
			j.rest[i] += dt
			if duty != 0 {
				j.blame("stop", "motor %d has duty %.3f in the step that shows %06b", i, duty, stop)
			}
		} else {
			if j.calm[i] += dt; i < 2 && r.in.Cliffs != 0 {
				j.calm[i] = 0 // a stop at once is no ramp
			}
			if duty != 0 {
				j.rest[i] = 0
			} else {
				j.rest[i] += dt
			}
		}
		if duty != 0 && !j.ordered[group(i)] {
			j.blame("unasked", "motor %d has duty %.3f and nobody asked for it since the stop", i, duty)
		}
		if dt > 10*ms { // a loop that late (VEC-WDOG-03) left the motor to itself: its acceleration follows no plan
			j.calm[i] = 0
		}
		if q.held || q.pulled != 0 {
			j.calm[i], j.rest[i] = 0, 0
		}
		if j.rest[i] > 500*ms && q.rate != 0 {
			j.blame("coast", "motor %d still moves at %.3f rad/s %v after its power went", i, q.rate, j.rest[i])
		}
		j.limits(i, q)
		if q.heat > 8 { // 15 s at full power damage (VEC-MOT-06, VEC-MCT-07)
			j.blame("burn", "motor %d took %.1f s of stall at full power", i, q.heat)
		}
		if i >= 2 {
			if j.ends(i-2, q, duty); q.contact {
				j.calm[i] = 0
			}
		}
	}
	j.times[j.n%5] = r.now
	j.n++
}

// limits: speed at every moment; acceleration over 5 frames, less than the motor's lag, since rubbing jumps at each turn of direction.
func (j *judge) limits(i int, q *part) {
	speed, most := math.Abs(q.rate), j.cfg.Tread
	if i < 2 {
		speed *= j.cfg.Drive.Radius
	} else {
		most = j.cfg.Joints[i-2].Most
	}
	if q.pulled == 0 && speed > most.Speed {
		j.blame("speed", "motor %d moves at %.3f, limit %v", i, speed, most.Speed)
	}
	old := j.speeds[i][j.n%5]
	j.speeds[i][j.n%5] = q.rate
	if i >= 2 {
		if s := j.r.rep.Joints[i-2].State; s != Moving && s != Holding { // homing and hands end in jolts of their own
			j.calm[i] = min(j.calm[i], 400*ms)
		}
	}
	if j.calm[i] < 500*ms || j.n < 5 || q.contact { // contacts are judged by ends
		return
	}
	accel := math.Abs(q.rate-old) / (j.r.now - j.times[j.n%5]).Seconds()
	if i < 2 {
		accel *= j.cfg.Drive.Radius
	}
	if accel > max(most.Accel, most.Decel) {
		j.blame("accel", "motor %d changes by %.2f, limit %v; %+v", i, accel, most.Accel, *q)
	}
}

// ends of travel: met only while homing, gently; else by a hand, without power, or where a hand spoiled the homing.
func (j *judge) ends(i int, q *part, duty float64) {
	rep, cfg := &j.r.rep.Joints[i], &j.cfg.Joints[i]
	if rep.State == Homing || rep.Events&Calibrating != 0 {
		if math.Abs(duty) > cfg.HomeDuty {
			j.blame("homing", "joint %d homes with duty %.3f, want at most %v", i, duty, cfg.HomeDuty)
		}
		if rep.Events&Calibrating != 0 {
			j.excused[i] = false
		}
		if q.held || q.pulled != 0 {
			j.excused[i] = true
		}
		return
	}
	if !q.contact || q.pulled != 0 || j.excused[i] {
		return
	}
	if j.calm[i+2] >= 500*ms && j.rest[i+2] == 0 {
		j.blame("ends", "joint %d met its stop at %.2f rad/s with duty %.3f, %v: %+v", i, q.touched, duty, rep.State, *rep)
	}
}

// path draws a path from the body's position.
func randomPath(rng *rand.Rand, from Pose) Path {
	var p Path
	p.Segments[0].Start = from
	for range 1 + rng.IntN(5) {
		ramp := Ramp{0.02 + 0.3*rng.Float64(), 0.1 + 2*rng.Float64(), 0.1 + 2*rng.Float64()}
		s := Segment{Kind: Kind(1 + rng.IntN(3)), Start: from, Length: 0.3 * (rng.Float64() - 0.4), Radius: 0.05 + 0.3*rng.Float64(), Ramp: ramp}
		if rng.IntN(2) == 0 {
			s.Radius = -s.Radius
		}
		if s.Kind == PointTurn {
			s.Length, s.Ramp = s.Length*20, ramp.scaled(20)
		}
		p.Append(s)
	}
	return p
}

// act does one random thing, and lets some time pass.
func (j *judge) act(seed uint64) {
	r := j.r
	rng := rand.New(rand.NewPCG(seed, 1))
	within := func(a, b float64) float64 { return a + (b-a)*rng.Float64() }
	wait := time.Duration(within(0, 2) * float64(time.Second))
	i := rng.IntN(2)
	order := func(g int, err error) {
		if err == nil {
			j.ordered[g] = true
		}
	}
	switch k := rng.IntN(30); k {
	case 28, 29: // by a time, often one too short: the limits hold all the same (GOSTAI-OPEN-03)
		_, err := r.m.MoveIn(i, within(-2, 2), time.Duration(within(0.01, 2)*float64(time.Second)))
		order(1+i, err)
	case 0, 1, 2:
		until := time.Duration(0)
		if rng.IntN(2) == 0 {
			until = r.now + time.Duration(within(0, 1)*float64(time.Second))
		}
		order(0, r.m.Drive(within(-0.4, 0.4), within(-0.4, 0.4), within(0, 3), until))
	case 3, 4, 5:
		p := randomPath(rng, r.m.Pose())
		order(0, r.m.Follow(&p))
		wait *= 3
	case 6, 7, 8, 9, 10:
		order(1+i, r.m.MoveTo(i, within(-2, 2), Ramp{within(0, 12), within(0, 15), within(0, 15)}))
	case 11, 12:
		order(1+i, r.m.MoveAt(i, within(-12, 12), r.now+time.Duration(within(0, 1)*float64(time.Second))))
	case 13:
		order(1+i, r.m.MoveAt(i, 0, 0))
	case 14:
		order(1+i, r.m.Calibrate(i))
		wait *= 2
	case 15:
		r.must(r.m.Release(i))
		r.p.parts[i+2].held = false
	case 16:
		r.m.StopAll()
	case 17, 18, 19: // a reason to stop, and orders that are given while it holds
		r.in.Stop = []Reason{Halted, Falling, Watchdog, Link, Lifted, Halted | Falling | Lifted}[rng.IntN(6)]
		wait /= 2
		r.run(wait / 2)
		order(0, r.m.Drive(0.1, 0.1, 0, 0))
		order(1+i, r.m.MoveTo(i, 0.3, Ramp{}))
		r.run(wait / 2)
		r.in.Stop = 0
	case 20: // frames are lost
		r.silent = true
		r.run(time.Duration(within(0, 0.3) * float64(time.Second)))
		r.silent = false
	case 21: // the loop hangs
		r.stepBy(time.Duration(within(0.006, 0.2) * float64(time.Second)))
	case 22, 23:
		r.in.Cliffs = Cliffs(rng.IntN(16))
		r.run(wait)
		order(0, r.m.Drive(within(-0.2, 0.2), within(-0.2, 0.2), 0, 0))
		r.run(wait / 2)
		r.in.Cliffs = 0
	case 24: // a hand
		q := &r.p.parts[rng.IntN(4)]
		q.held = true
		if rng.IntN(3) == 0 {
			wait *= 5
		}
		r.run(wait)
		q.held = false
	case 25:
		q := &r.p.parts[rng.IntN(4)]
		q.pulled = within(-3, 3)
		r.run(min(wait, 400*ms))
		q.pulled = 0
	case 26: // the body restarts: earlier orders have ended (VEC-BODY-33)
		r.p.sense.Epoch++
		j.ordered, j.calm = [3]bool{}, [4]time.Duration{}
		for i := range r.p.parts {
			r.p.parts[i].zero = r.p.parts[i].angle
		}
	case 27: // held fast for as long as it takes to burn
		order(0, r.m.Drive(0.2, 0.2, 0, 0))
		r.p.parts[0].held, r.p.parts[1].held = true, true
		for range 8 {
			r.run(3 * time.Second)
			order(0, r.m.Drive(0.2, 0.2, 0, 0))
		}
		r.p.parts[0].held, r.p.parts[1].held = false, false
	}
	r.run(wait)
}

// play runs a script on a plant of that seed.
func play(tb failer, seed uint64, script []uint64, plant func(*rig)) *judge {
	r := newRig(tb, newPlant(seed), nil)
	j := newJudge(r)
	if plant != nil {
		plant(r)
	}
	for _, s := range script {
		j.act(s)
	}
	return j
}

// TestNothingMovesThatMustNot: whatever is asked of it and whatever happens to it, the motors have no power while a reason to stop holds
// (Halt, cliff VEC-IO-22 and VEC-MCT-15, fall, watchdog VEC-WDOG-02, link loss VEC-BODY-33), none afterwards before a new command, never
// more than the limits of speed and acceleration (VEC-MOT-01, 02, 04), the ends of travel are met only while homing (VEC-MOT-07), and no
// motor burns (VEC-MOT-06, VEC-MCT-07). KENNEL_SOAK=1 plays simulated hours.
func TestNothingMovesThatMustNot(t *testing.T) {
	var total time.Duration
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "plant")
		script := rapid.SliceOfN(rapid.Uint64(), 10, 40).Draw(t, "script")
		j := play(t, seed, script, nil)
		total += j.r.now
		for rule, what := range j.faults {
			t.Errorf("%s: %s", rule, what)
		}
	})
	t.Logf("%v simulated", total)
}

// TestPlantedViolationsAreCaught: the judge finds each of them under its own name, so its silence above means something.
func TestPlantedViolationsAreCaught(t *testing.T) {
	// late applies the duties of the step before whenever pick says so.
	late := func(pick func(r *rig, steps int) bool) func(*rig) {
		return func(r *rig) {
			var before Duties
			var steps int // since the last reason
			r.fault = func(a *Duties) {
				if r.rep.Stop != 0 {
					steps = 0
				} else {
					steps++
				}
				if pick(r, steps) {
					*a = before
				} else {
					before = *a
				}
			}
		}
	}
	for _, c := range []struct {
		name, rule string
		plant      func(*rig)
	}{
		{"one step too late", "stop", func(r *rig) {
			var before Duties
			r.fault = func(a *Duties) {
				now := *a
				*a, before = before, now
			}
		}},
		{"goes on after the stop", "unasked", late(func(r *rig, steps int) bool { return r.rep.Stop&Everything != 0 || steps < 3 })},
		{"deaf to cliffs", "cliff", late(func(r *rig, _ int) bool { return r.rep.Stop&Cliff != 0 })},
		{"never lets go", "coast", func(r *rig) { // the power stage leaks
			r.p.parts[0].weight = -0.1
		}},
		{"no limit of speed", "speed", func(r *rig) { r.m.most.Speed *= 2 }},
		{"no limit of a joint's acceleration", "accel", func(r *rig) {
			for i := range 2 {
				r.m.joints[i].cfg.Most = Ramp{20, 60, 60}
			}
		}},
		{"no limit of a tread's acceleration", "accel", func(r *rig) { r.m.most.Accel = 4 }},
		{"targets beyond the end", "ends", func(r *rig) {
			for i := range 2 {
				r.m.joints[i].cfg.Margin = -0.3
			}
		}},
		{"homes with all its power", "homing", func(r *rig) {
			for i := range 2 {
				r.m.joints[i].cfg.HomeDuty, r.m.joints[i].cfg.HomeSpeed = 1, 8
			}
		}},
		{"no protection from burning", "burn", func(r *rig) {
			g := GuardConfig{Speed: 1e-9, Duty: 1, After: 1e9, Fade: 1, Recover: 1, Safe: 1, HeatMost: 1e9, Cool: 60}
			r.m.left.guard, r.m.right.guard = newGuard(g), newGuard(g)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(40) {
				rng := rand.New(rand.NewPCG(seed, 7))
				script := make([]uint64, 10)
				for i := range script {
					script[i] = rng.Uint64()
				}
				if j := play(t, seed, script, c.plant); j.faults[c.rule] != "" {
					return
				}
			}
			t.Errorf("not caught as %q in 40 runs", c.rule)
		})
	}
}

// TestSameInputsSameBits: two runs of one script agree in every bit (VEC-MOT-05; what must hold 5 asks it of the whole robot).
func TestSameInputsSameBits(t *testing.T) {
	run := func() (acts []Duties, rep Report) {
		r := newRig(t, newPlant(3), nil)
		j := newJudge(r)
		look := r.after
		r.after = func() { look(); acts = append(acts, r.act) }
		for s := range uint64(8) {
			j.act(s)
		}
		return acts, *r.rep
	}
	acts, rep := run()
	again, rep2 := run()
	if len(acts) != len(again) || rep != rep2 {
		t.Fatalf("%d and %d steps, %+v and %+v", len(acts), len(again), rep, rep2)
	}
	for i := range acts {
		if acts[i] != again[i] {
			t.Fatalf("step %d: %+v, then %+v", i, acts[i], again[i])
		}
	}
}
