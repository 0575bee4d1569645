package plane

import (
	"math"
	"slices"
	"strings"
	"testing"

	"kennel/edge/sense"
	"kennel/infra/api/poke"
)

// poked is p with its defaults.
func poked(t *testing.T, p poke.Poke) poke.Poke {
	t.Helper()
	p, err := p.Complete()
	must(t, err)
	return p
}

// TestPoke: each verb moves the robot, and the robot's own senses feel it (VEC-IMU-06, VEC-IMU-13).
func TestPoke(t *testing.T) {
	ledge := &Map{Start: Pose{-0.2, 0, math.Pi / 2}, Cliffs: []Cliff{{Corners: []Vec{{0, -1}, {1, -1}, {1, 1}, {0, 1}}, Drop: 0.7}},
		Walls: []Wall{{From: Vec{-1, 0.3}, To: Vec{1, 0.3}}}}
	lift, put := poke.Poke{Verb: poke.Lift}, poke.Poke{Verb: poke.Put}
	high := poke.Poke{Verb: poke.Lift, Args: map[string]float64{poke.Height: 1}}
	push := func(by, toward float64) poke.Poke {
		return poke.Poke{Verb: poke.Push, Args: map[string]float64{poke.By: by, poke.Toward: toward}}
	}
	for _, tc := range []struct {
		name  string
		pokes []poke.Poke
		want  func(s State, seen sense.MotionEvents, m sense.Motion) bool
	}{
		{"lift", []poke.Poke{lift}, func(s State, _ sense.MotionEvents, m sense.Motion) bool {
			return s.Posture == InHand && math.Abs(s.Height-0.2) < 1e-9 && m.PickedUp && !m.Shaken
		}},
		{"lift high", []poke.Poke{high}, func(s State, seen sense.MotionEvents, m sense.Motion) bool {
			return s.Height == 1 && m.PickedUp && seen&sense.FallBegan == 0
		}},
		{"put", []poke.Poke{lift, put}, func(s State, seen sense.MotionEvents, m sense.Motion) bool {
			return s.Posture == OnTreads && s.Height == 0 && m.OffTreads == sense.OnTreads && seen&sense.Delocalized != 0
		}},
		{"push ahead", []poke.Poke{{Verb: poke.Push}}, func(s State, _ sense.MotionEvents, m sense.Motion) bool {
			return math.Hypot(s.Pose[0]+0.2, s.Pose[1]-0.05) < 1e-9 && m.OffTreads == sense.OnTreads
		}},
		{"push to its left", []poke.Poke{push(0.1, math.Pi/2)}, func(s State, _ sense.MotionEvents, _ sense.Motion) bool {
			return math.Hypot(s.Pose[0]+0.3, s.Pose[1]) < 1e-9 && math.Abs(s.Pose[2]-math.Pi/2) < 1e-9
		}},
		{"push into a wall", []poke.Poke{push(0.5, 0)}, func(s State, _ sense.MotionEvents, _ sense.Motion) bool {
			return s.Pose[1] > 0.25 && s.Pose[1] < 0.256
		}},
		{"push over the edge and put back", []poke.Poke{push(0.3, -math.Pi/2), put}, func(s State, seen sense.MotionEvents, _ sense.Motion) bool {
			return s.Falls == 1 && seen&sense.FallImpact != 0 && s.Pose == ledge.Start && s.Posture == OnTreads
		}},
		{"turn", []poke.Poke{{Verb: poke.Turn, Side: poke.Back}}, func(s State, _ sense.MotionEvents, m sense.Motion) bool {
			return s.Posture == OnBack && m.OffTreads == sense.OnBack
		}},
		{"spin", []poke.Poke{{Verb: poke.Spin}}, func(s State, _ sense.MotionEvents, _ sense.Motion) bool {
			return math.Abs(math.Abs(s.Pose[2])-math.Pi) < 1e-9
		}},
		{"shake", []poke.Poke{lift, {Verb: poke.Shake}}, func(s State, seen sense.MotionEvents, _ sense.Motion) bool {
			return s.Posture == InHand && seen&sense.ShakeBegan != 0
		}},
	} {
		w := with(t, ledge)
		mover := sense.NewMover(sense.Default().Motion)
		var seen sense.MotionEvents
		live := func(seconds float64) {
			for range int(math.Round(seconds / tick.Seconds())) {
				if l, r := w.Step(tick, 0, 0); l != 0 || r != 0 {
					t.Fatalf("%s: its treads turned by %v and %v", tc.name, l, r)
				}
				none := !slices.ContainsFunc([]int{0, 1, 2, 3}, w.Floor)
				seen |= mover.Step(tick, sense.MotionInput{Accel: w.Inertia().Accel, Gyro: w.Inertia().Gyro, NoFloor: none})
			}
		}
		live(3)
		for _, p := range tc.pokes {
			must(t, w.Poke(poked(t, p)))
			live(4)
		}
		if s := w.State(); !tc.want(s, seen, mover.Motion()) {
			t.Errorf("%s: %+v, felt %b, %+v", tc.name, s, seen, mover.Motion())
		}
	}
}

// TestPokeFelt: a push from the side is felt from the side, as long as it lasts.
func TestPokeFelt(t *testing.T) {
	w := with(t, &Map{})
	must(t, w.Poke(poked(t, poke.Poke{Verb: poke.Push, Args: map[string]float64{poke.Toward: math.Pi / 2}})))
	var most, least float64
	for range 200 {
		w.Step(tick, 0, 0)
		a := w.Inertia().Accel
		most, least = max(most, a[1]), min(least, a[1])
		if math.Abs(a[0]) > 0.2 {
			t.Fatalf("felt from behind: %v", a)
		}
	}
	if math.Abs(most-1.15) > 0.2 || math.Abs(least+1.15) > 0.2 || math.Abs(w.Inertia().Accel[1]) > 0.2 {
		t.Errorf("felt from %v to %v m/s2, at last %v; want 1.15 either way and rest", least, most, w.Inertia().Accel)
	}
}

// TestPokeRefused: the error of a poke that is not possible now says how the robot is, and the error of an unknown poke names it.
func TestPokeRefused(t *testing.T) {
	lift := poke.Poke{Verb: poke.Lift}
	for _, tc := range []struct {
		first, then poke.Poke
		want        string
	}{
		{lift, lift, "in a hand"}, {lift, poke.Poke{Verb: poke.Push}, "in a hand"},
		{lift, poke.Poke{Verb: poke.Spin}, "in a hand"},
		{poke.Poke{Verb: poke.Turn, Side: poke.Face}, poke.Poke{Verb: poke.Shake}, "the robot is on its face, want it in a hand"},
		{lift, poke.Poke{Verb: poke.Touch}, "this body cannot be touched"},
	} {
		w := with(t, &Map{})
		must(t, w.Poke(poked(t, tc.first)))
		if err := w.Poke(poked(t, tc.then)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, then %v: %v, want %q", tc.first, tc.then, err, tc.want)
		}
	}
	w := with(t, &Map{Cliffs: []Cliff{{Corners: []Vec{{0.3, -1}, {1, -1}, {1, 1}, {0.3, 1}}}}})
	for w.Posture() != Falling {
		w.Step(tick, 0.1, 0.1)
	}
	for _, verb := range []string{poke.Lift, poke.Put, poke.Push, poke.Spin, poke.Shake} {
		if err := w.Poke(poked(t, poke.Poke{Verb: verb})); err == nil || !strings.Contains(err.Error(), "falling") {
			t.Errorf("%s of a robot that falls: %v", verb, err)
		}
	}
}
