package walk

import (
	"math"
	"testing"
	"time"

	"kennel/edge/anim"
	"kennel/edge/body/pleo/legs"
	"kennel/edge/body/pleo/lifeos"
)

// kinds are the joints of Joints by LifeOS's ids.
var kinds = [...]lifeos.Joint{lifeos.JointLeftShoulder, lifeos.JointLeftElbow, lifeos.JointRightShoulder, lifeos.JointRightElbow, lifeos.JointLeftHip,
	lifeos.JointLeftKnee, lifeos.JointRightHip, lifeos.JointRightKnee}

// walk takes steps from the posture between them and returns where they lead, the least number of feet on the floor, and the largest lean.
func walk(t *testing.T, w *Walker, way Way, scale float64, steps int, rate float64) (p [3]float64, feet int, lean float64) {
	t.Helper()
	const most = 0.96 // of a joint's speed
	w.Begin(way, scale, steps, rate, w.march.first)
	was := *w.Angles()
	l := was.Legs()
	before := l.Place()
	rest := before.Rest()
	pose := [3]float64{}
	feet = legs.Count
	for range 100_000 {
		ended := w.Step(anim.Row)
		now := *w.Angles()
		for i, v := range now {
			k := kinds[i].Kind()
			if v < k.Min || v > k.Max || math.Abs(v-was[i]) > most*k.Speed*anim.Row.Seconds() {
				t.Fatalf("%v: %s goes from %v to %v degrees in a row: its range is %v to %v, its speed %v", way, k.Name, was[i], v, k.Min, k.Max, k.Speed)
			}
		}
		l = now.Legs()
		after := l.Place()
		next := after.Rest()
		var both [legs.Count]bool
		n := 0
		for i := range both {
			both[i] = rest.Down[i] && next.Down[i]
			if next.Down[i] {
				n++
			}
		}
		feet, lean = min(feet, n), max(lean, next.Lean)
		step := legs.Step(&before, &after, both)
		sin, cos := math.Sincos(pose[2])
		pose = [3]float64{pose[0] + step.X*cos - step.Y*sin, pose[1] + step.X*sin + step.Y*cos, pose[2] + step.Theta}
		before, rest, was = after, next, now
		if ended {
			return pose, feet, lean
		}
	}
	t.Fatal("it never ends")
	return
}

// TestSteps: each way leads where its name says and nowhere else, within the ranges and speeds of the joints (PLEO-JNT-13), on at least two feet and
// nearly level; a scale shortens the steps, a rate slows them down, and between steps it is on four feet (part of GOSTAI-MAP-P-01).
func TestSteps(t *testing.T) {
	w, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for way := range ways {
		for _, scale := range []float64{1, 0.5} {
			const steps = 10
			p, feet, lean := walk(t, w, way, scale, steps, 1)
			far, aside, turn := p[0], p[1], p[2]
			t.Logf("%v: %d steps of scale %v lead %.1f mm ahead, %.1f aside, %.1f degrees; a step is %.4f; lean %.1f degrees", way, steps, scale, 1000*far, 1000*aside, turn*180/math.Pi, w.StepOf(way), lean*180/math.Pi)
			sign := map[Way]float64{Forward: 1, Back: -1, Left: 1, Right: -1}[way]
			gone, idle := far, math.Abs(turn)
			if way >= Left {
				gone, idle = turn, math.Hypot(far, aside)
			}
			if want := sign * scale * steps * w.StepOf(way); math.Abs(gone-want) > 0.12*math.Abs(want) || idle > 0.02 {
				t.Errorf("%v with scale %v leads %v, want %v; and %v of the other kind", way, scale, gone, want, idle)
			}
			if feet < 2 || lean > 0.12 {
				t.Errorf("%v: on %d feet, leaning %v rad", way, feet, lean)
			}
		}
	}
	l := w.march.first.Legs()
	f := l.Place()
	if r := f.Rest(); r.Down != [legs.Count]bool{true, true, true, true} || r.Lean > 1e-9 {
		t.Errorf("between steps: %+v", r)
	}
	w.Begin(Forward, 1, 2, 0.5, w.march.first)
	for n := time.Duration(0); ; n += anim.Row {
		if w.Step(anim.Row) {
			if want := 2 * 2 * w.StepTime(); n < want || n > want+4*time.Second {
				t.Errorf("two steps at half rate take %v, want a little more than %v", n, want)
			}
			break
		}
	}
	if n := testing.AllocsPerRun(3, func() {
		w.Begin(Left, 1, 1, 1, w.march.first)
		for !w.Step(anim.Row) {
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
