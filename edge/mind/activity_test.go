package mind

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/core/corelink"
	"kennel/edge/sound/bank"
	"kennel/infra/api/live"
	"kennel/infra/testwait"
)

// TestActivity: position, speed and acceleration of what a clip moves reach the parameters of sounds while it moves, in degrees and millimetres, and speeds are 0 afterwards (part of VEC-SND-07).
func TestActivity(t *testing.T) {
	all, err := clip.ParseText([]byte("clip a\n0 head -20 over=600\n0 lift 62 over=600\n900 head -20\n"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{Library: clip.NewLibrary()})
	if err != nil {
		t.Fatal(err)
	}
	const start = time.Second
	if err := m.player.Start(start, &all[0], clip.Options{Lift: 0.032}); err != nil {
		t.Fatal(err)
	}
	get := func(name string) float64 { return m.audio.engine.Parameter(bank.Procedural, "Robot_Vic_"+name) }
	last, lastSpeed := 0.0, 0.0
	for now := start; now < start+630*time.Millisecond; now += clip.Step {
		m.step(now)
		pos := -m.frame.Head * 180 / math.Pi
		if now > start {
			speed := (pos - last) / clip.Step.Seconds()
			near(t, "head", []float64{get("Head_Position"), get("Head_Speed"), get("Head_Accelerate")}, pos, speed, (speed-lastSpeed)/clip.Step.Seconds())
			lastSpeed = speed
		}
		if now == start+300*time.Millisecond && (get("Head_Speed") > -30 || get("Lift_Speed") < 45 || math.Abs(get("Lift_Position")-47) > 1) {
			t.Errorf("half way: head %v deg/s, lift %v mm/s at %v mm", get("Head_Speed"), get("Lift_Speed"), get("Lift_Position"))
		}
		last = pos
	}
	for now := start + 630*time.Millisecond; now < start+2*time.Second; now += clip.Step {
		m.step(now)
	}
	near(t, "at rest", []float64{get("Head_Position"), get("Head_Speed"), get("Head_Accelerate"), get("Lift_Position"), get("Lift_Speed")}, -20, 0, 0, 62, 0)
	if err := m.player.Start(3*time.Second, &all[0], clip.Options{Lift: 0.032}); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		m.step(3*time.Second + time.Duration(i)*clip.Step)
	}
	if get("Head_Speed") == 0 {
		t.Error("the head does not move")
	}
	m.player.Stop(4 * time.Second)
	m.step(4 * time.Second)
	near(t, "stopped", []float64{get("Head_Speed"), get("Head_Accelerate"), get("Lift_Speed")}, 0, 0, 0)
}

// near fails for numbers that are not about those wanted.
func near(t *testing.T, what string, got []float64, want ...float64) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestDrives: treads have a speed and an acceleration, with their direction, unless the robot spins: then it has a spin speed (part of VEC-SND-07).
func TestDrives(t *testing.T) {
	var told []string
	a := activity{set: func(name string, v float64) {
		told = append(told, fmt.Sprintf("%s %.0f", name[len("Robot_Vic_Tread_"):], v))
	}}
	for i, x := range []struct {
		speed, turning float64
		want           []string
	}{
		{0, 0, nil},
		{0.1, 0, []string{"Speed 100", "Accelerate 500"}},
		{0.1, 0.5, []string{"Speed 100", "Accelerate 0"}}, // an arc
		{-0.05, 0, []string{"Speed -50", "Accelerate -750"}},
		{0.01, 3, []string{"Speed 0", "Accelerate 250", "Spin_Speed 172"}},
		{0, -3, []string{"Speed 0", "Accelerate 0", "Spin_Speed -172"}},
		{0, 0, []string{"Spin_Speed 0"}},
		{0, 0, nil},
		{0.02, 0, []string{"Speed 20", "Accelerate 100"}},
		{0, 0, []string{"Speed 0", "Accelerate -100"}},
		{0, 0, []string{"Speed 0", "Accelerate 0"}},
		{0, 0, nil},
	} {
		told = nil
		a.drives(time.Duration(i)*200*time.Millisecond, x.speed, x.turning)
		if !slices.Equal(told, x.want) {
			t.Errorf("%d, %v m/s, %v rad/s: %q, want %q", i, x.speed, x.turning, told, x.want)
		}
	}
}

// TestHearsTreads: what robotd reports of the treads reaches the parameters of sounds.
func TestHearsTreads(t *testing.T) {
	m, err := New(Config{Library: clip.NewLibrary()})
	if err != nil {
		t.Fatal(err)
	}
	took := make(chan struct{})
	go func() {
		defer close(took)
		(<-m.asks)(time.Second)
	}()
	testwait.Until(t, testwait.Long, "a report", testwait.Holds(func() bool {
		m.Hear(&corelink.Motion{Motion: live.Motion{Speed: 0.08}}) // one that comes while the loop is at work is dropped
		select {
		case <-took:
			return true
		default:
			return false
		}
	}))
	near(t, "treads", []float64{m.audio.engine.Parameter(bank.Animation, "Robot_Vic_Tread_Speed")}, 80)
}
