package vectorsim_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/body/vector/vectorsim"
)

// robot is a head that opens its body, reads and answers, and opens it again when it is silent, as edge/core/rt does, without its tasks. duty is
// the power it asks of its motors.
type robot struct {
	t *testing.T
	*vectorsim.Stepped
	d      *vectordriver.Driver
	duty   float64
	fresh  int           // frames heard
	heard  time.Duration // the newest
	opened int
}

// run lets the robot live until the given time.
func (r *robot) run(until time.Duration) {
	r.t.Helper()
	for r.Now() < until {
		if r.d == nil {
			d, err := vectordriver.Open(r.t.Context(), vectordriver.Config{Device: "simulated", Port: r.Stepped, Timeout: min(3*time.Second, until-r.Now())})
			if err != nil {
				if !errors.Is(err, vectordriver.ErrNoBody) && !errors.Is(err, vectordriver.ErrNoApplication) {
					r.t.Fatal(err)
				}
				continue
			}
			r.d, r.heard = d, r.Now()
			r.opened++
		}
		var s vectordriver.Sense
		switch err := r.d.ReadSense(&s, min(r.Now()+4*vectordriver.Period, until)); {
		case err == nil:
			r.fresh++
			r.heard = r.Now()
			act := vectordriver.Act{Motors: [4]float64{r.duty, r.duty}}
			if err := r.d.WriteAct(&act); err != nil && err != body.ErrFull {
				r.t.Fatal(err)
			}
		case err != body.ErrTimeout:
			r.t.Fatal(err)
		case r.Now()-r.heard > time.Second: // as rt.Config.SilentAfter
			if err := r.d.Close(); err != nil {
				r.t.Fatal(err)
			}
			r.d = nil
		}
	}
}

// A day of noise on the serial line: bytes of which none arrives as it was sent, or all are lost, or strangers are among them so that no
// frame is whole. While it lasts nothing moves, from the board's watchdog on (1.024 s, VEC-BODY-11); after each storm the robot is back
// within two seconds and drives (issue: what must hold 4; VEC-BODY-05 to 07, 33).
func TestADayOfNoise(t *testing.T) {
	const seed = 20
	total := time.Hour
	switch {
	case os.Getenv("KENNEL_SOAK") == "1":
		total = 24 * time.Hour
	case testing.Short():
		total = 2 * time.Minute
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	r := &robot{t: t, Stepped: vectorsim.NewStepped(vectorsim.Config{Seed: seed, DischargePerMinute: -1})}
	r.Again = 500 * time.Millisecond
	storms := 0
	for noisy := time.Duration(0); noisy < total; storms++ {
		// The robot is well and drives.
		r.SetNoise(vectorsim.Noise{})
		r.duty = 0.3 * float64(1-2*(storms%2))
		calm, before, fresh := r.Now(), r.State(), r.fresh
		r.run(calm + 2*time.Second)
		after := r.State()
		if moved := math.Abs(after.Angle[0] - before.Angle[0]); after.Duty[0] == 0 || moved < 0.5 || r.fresh-fresh < 10 {
			t.Fatalf("storm %d: two seconds after it the treads turned %.2f rad at duty %v, %d frames heard: want a robot that is back", storms,
				moved, after.Duty, r.fresh-fresh)
		}

		n := []vectorsim.Noise{
			{ByteNoise: 1},                         // nothing as it was sent
			{ByteNoise: 1, Babble: 1200},           // and more than was
			{ByteNoise: 0.5, ByteLoss: 0.5},        // no frame whole
			{ByteLoss: 1, Babble: 1500},            // strangers alone
			{Loss: 1, Babble: 300},                 // no frames, strangers between
			{Corrupt: 1},                           // one byte of each frame
			{Silent: true},                         // nothing at all
			{ByteNoise: 0.05, Babble: 60, Loss: 1}, // what would be frames is thrown in
		}[rng.IntN(8)]
		r.SetNoise(n)
		began := r.Now()
		end := began + min(total-noisy, time.Duration(10+rng.IntN(600))*time.Second)
		var still [4]float64
		const coast = 1500 * time.Millisecond // the watchdog's 1.024 s, and the time in which motors run down
		r.Each = func(at time.Duration) {
			s := r.State()
			switch {
			case at < began+coast:
				still = s.Angle
			case s.Angle != still || s.Duty != [4]float64{}:
				t.Fatalf("seed %d, storm %d %+v: %v after it began the motors have duty %v and went from %v to %v", seed, storms, n, at-began, s.Duty,
					still, s.Angle)
			}
		}
		heard := r.State().Heard
		r.run(end)
		r.Each = nil
		if more := r.State().Heard - heard; more > 0 {
			t.Fatalf("storm %d %+v: the board took %d frames for good ones", storms, n, more)
		}
		noisy += end - began
	}
	s := r.State()
	t.Logf("%v of noise in %d storms: power on %d times, body opened %d times, %d bad frames at the board", total, storms, s.PowerOns, r.opened, s.Bad)
	if s.PowerOns < uint64(storms) || r.opened < storms {
		t.Errorf("%d storms, and the power came on %d times, the body was opened %d times: each storm ends both", storms, s.PowerOns, r.opened)
	}
}

// TestARobotOnABadLine: on a line that loses some frames the robot keeps running, and its motors obey it or stop.
func TestARobotOnABadLine(t *testing.T) {
	for name, n := range map[string]vectorsim.Noise{
		"bytes damaged": {ByteNoise: 2e-4}, "bytes lost": {ByteLoss: 2e-4}, "strangers": {Babble: 100}, "all": {Loss: 0.05, Corrupt: 0.05, ByteNoise: 1e-4, ByteLoss: 1e-4, Babble: 40},
	} {
		r := &robot{t: t, Stepped: vectorsim.NewStepped(vectorsim.Config{Seed: 5, Noise: n}), duty: 0.4}
		r.Each = func(time.Duration) {
			if s := r.State(); s.Duty[0] != 0 && math.Abs(s.Duty[0]-0.4) > 1e-4 || s.Duty[0] != s.Duty[1] || s.Duty[2] != 0 || s.Duty[3] != 0 {
				t.Fatalf("%s: duty %v, want 0.4 on both treads or nothing", name, s.Duty)
			}
		}
		r.run(r.Now() + 20*time.Second)
		if s := r.State(); s.PowerOns != 1 || r.opened != 1 || s.Angle[0] < 100 {
			t.Errorf("%s: power on %d times, opened %d times, the tread turned %.0f rad; want one life that drives", name, s.PowerOns, r.opened, s.Angle[0])
		}
	}
}
