package power

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"kennel/edge/faultcode"
)

// rounds is how many random lives a property test plays.
func rounds(light int) uint64 {
	if os.Getenv("KENNEL_SOAK") == "1" {
		return uint64(light) * 100
	}
	return uint64(light)
}

// VEC-PWR-07: 3.5, 3.45, 3.4 and 3.35 V, each step in order.
func TestShedsInOrderAtItsVolts(t *testing.T) {
	var s Shedding
	var seen []Shed
	at := map[Shed]float64{}
	for mv := 3600; mv >= 3300; mv-- {
		before := s.Now
		s = s.Step(Battery{Volts: float64(mv) / 1000, Level: Low}, false, frame)
		if s.Now != before {
			seen, at[s.Now] = append(seen, s.Now), float64(mv)/1000
		}
	}
	if len(seen) != 4 || seen[0] != ShedTalk || seen[1] != ShedSight || seen[2] != ShedWork || seen[3] != ShedAll {
		t.Fatalf("shed %v, want talk, sight, work, all", seen)
	}
	for step, want := range map[Shed]float64{ShedTalk: 3.5, ShedSight: 3.45, ShedWork: 3.4, ShedAll: 3.35} {
		if at[step] != want {
			t.Errorf("%v at %v V, want %v V", step, at[step], want)
		}
	}
	if s = s.Step(Battery{Volts: 4.2, Level: Full}, true, time.Hour); s.Now != ShedAll {
		t.Errorf("after all: %v, want all: it is final", s.Now)
	}
}

func TestShedding(t *testing.T) {
	low := Battery{Volts: 3.42, Level: Low}
	for _, tc := range []struct {
		name      string
		s         Shedding
		b         Battery
		onCharger bool
		dt        time.Duration
		want      Shed
	}{
		{"nothing above 3.5 V (VEC-PWR-07)", Shedding{}, Battery{Volts: 3.501, Level: Low}, false, frame, ShedNothing},
		{"one step a call, however low", Shedding{}, Battery{Volts: 3.3, Level: Low}, false, frame, ShedTalk},
		{"not on the charger", Shedding{}, low, true, frame, ShedNothing},
		{"kept on the charger until it rises", Shedding{Now: ShedSight, Held: ShedHold}, low, true, frame, ShedSight},
		{"a battery nobody measured", Shedding{}, Battery{}, false, frame, ShedNothing},
		{"within the hysteresis", Shedding{Now: ShedTalk, Held: ShedHold}, Battery{Volts: 3.55, Level: Low}, false, frame, ShedTalk},
		{"above it, too soon", Shedding{Now: ShedTalk}, Battery{Volts: 3.6, Level: Low}, true, 30*time.Second - 1, ShedTalk},
		{"above it, held", Shedding{Now: ShedTalk}, Battery{Volts: 3.551, Level: Low}, true, 30 * time.Second, ShedNothing},
	} {
		if got := tc.s.Step(tc.b, tc.onCharger, tc.dt).Now; got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// VEC-PWR-01: what makes the voltage bounce sheds nothing, and what is shed comes back no sooner than ShedHold later.
func TestSheddingNeverFlaps(t *testing.T) {
	for seed := range rounds(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		b, s := Battery{}, Shedding{}
		volts := 3.3 + 0.3*rng.Float64()
		var changed time.Duration
		at := time.Duration(0)
		const step = 50 * time.Millisecond
		for ; at < 3*time.Minute; at += step {
			volts += 0.004 * rng.NormFloat64()
			b = b.Step(Input{Volts: volts - 0.3*float64(rng.IntN(20)/19)}, step)
			before := s
			s = s.Step(b, rng.IntN(2) == 0, step)
			switch {
			case s.Now < before.Now && at-changed < ShedHold-step:
				t.Fatalf("seed %d: %v back to %v %v after the last change", seed, before.Now, s.Now, at-changed)
			case before.Now == ShedAll && s.Now != ShedAll, s.Now > before.Now+1:
				t.Fatalf("seed %d: %v to %v", seed, before.Now, s.Now)
			}
			if s.Now != before.Now {
				changed = at
			}
		}
	}
}

// VEC-PWR-10: 45/50/55/60 degrees for the body, 80/90/95/100 for the processor, each confirmed for a second.
func TestHeatLadders(t *testing.T) {
	for _, tc := range []struct {
		name   string
		ladder *Ladder
		limits [4]float64
	}{
		{"body", &BodyLadder, [4]float64{45, 50, 55, 60}},
		{"CPU", &CPULadder, [4]float64{80, 90, 95, 100}},
	} {
		for i, limit := range tc.limits {
			want := Heat(i + 1)
			below, at := Guard{}, Guard{}
			for range 3 {
				below, at = below.Step(tc.ladder, limit-0.01, HeatConfirm), at.Step(tc.ladder, limit, HeatConfirm)
			}
			if below.Heat != want-1 || at.Heat != want {
				t.Errorf("%s: %v below %v degrees and %v at it, want %v and %v", tc.name, below.Heat, limit, at.Heat, want-1, want)
			}
			for range 3 {
				at = at.Step(tc.ladder, limit-1.99, HeatConfirm)
			}
			if at.Heat != want {
				t.Errorf("%s: %v at %v degrees on the way down, want %v (hysteresis)", tc.name, at.Heat, limit-1.99, want)
			}
			for range 3 {
				at = at.Step(tc.ladder, limit-2, HeatConfirm)
			}
			if at.Heat != want-1 {
				t.Errorf("%s: %v at %v degrees on the way down, want %v", tc.name, at.Heat, limit-2, want-1)
			}
		}
	}
}

func TestHeatIsConfirmed(t *testing.T) {
	var g Guard
	for at := time.Duration(0); at < time.Second; at += frame {
		if g = g.Step(&BodyLadder, 65, frame); g.Heat != Cool {
			t.Fatalf("%v after %v, want cool until a second is over", g.Heat, at)
		}
	}
	if g = g.Step(&BodyLadder, 65, frame); g.Heat != Burning {
		t.Fatalf("%v after a second, want burning", g.Heat)
	}
	// While it climbs, only what it was all the time is believed.
	g = Guard{}
	for at := time.Duration(0); at <= HeatConfirm; at += frame {
		g = g.Step(&BodyLadder, 46+15*at.Seconds(), frame)
	}
	if g = g.Step(&BodyLadder, 61, frame); g.Heat != Warm {
		t.Errorf("climbing through all limits in a second: %v, want warm first", g.Heat)
	}
}

// Noise of the sensor and broken readings change nothing (VEC-PWR-10).
func TestHeatIgnoresNoise(t *testing.T) {
	broken := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -273, 400}
	for seed := range rounds(20) {
		rng := rand.New(rand.NewPCG(seed, 8))
		g := Guard{}
		for range 2000 {
			c := 44.5 + 0.5*rng.NormFloat64()
			switch rng.IntN(10) {
			case 0:
				c = broken[rng.IntN(len(broken))]
			case 1:
				c = 100 * rng.Float64()
			}
			if g = g.Step(&BodyLadder, c, 20*time.Millisecond); g.Heat != Cool {
				t.Fatalf("seed %d: %v", seed, g.Heat)
			}
		}
	}
}

func TestCharging(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   ChargeInput
		want Charging
	}{
		{"away", ChargeInput{}, Away},
		{"charging without pads means nothing (VEC-PWR-52)", ChargeInput{Charging: true}, Away},
		{"on it is not charging (VEC-PWR-51)", ChargeInput{OnCharger: true, Level: Nominal}, Resting},
		{"charging (VEC-PWR-51)", ChargeInput{OnCharger: true, Charging: true, Level: Low}, Active},
		{"hot (VEC-PWR-53)", ChargeInput{OnCharger: true, Level: Nominal, Body: Hot}, Cooldown},
		{"warm is not hot", ChargeInput{OnCharger: true, Level: Nominal, Body: Warm}, Resting},
		{"full", ChargeInput{OnCharger: true, Level: Full}, Charged},
	} {
		var c Charge
		for at := time.Duration(0); at <= ChargeSettle+2*frame; at += frame {
			c = c.Step(tc.in, frame)
		}
		if c.State != tc.want || c.State.OnCharger() != tc.in.OnCharger {
			t.Errorf("%s: %v, want %v", tc.name, c.State, tc.want)
		}
	}
	for h, want := range map[Heat]bool{Cool: true, Warm: true, Hot: false, TooHot: false, Burning: false} {
		if MayCharge(h) != want {
			t.Errorf("MayCharge(%v) = %v (VEC-PWR-10: 50 degrees pause charging)", h, !want)
		}
	}
}

// VEC-PWR-51: the duration of charging is tracked, without pauses, and starts from zero with each stay.
func TestChargedTime(t *testing.T) {
	var c Charge
	run := func(in ChargeInput, d time.Duration) {
		for ; d > 0; d -= 100 * time.Millisecond {
			c = c.Step(in, 100*time.Millisecond)
		}
	}
	on := ChargeInput{OnCharger: true, Charging: true, Level: Nominal}
	hot := ChargeInput{OnCharger: true, Body: Hot, Level: Nominal}
	run(on, time.Minute)
	run(hot, time.Minute)
	run(on, time.Minute)
	if d := c.Charged - 2*time.Minute; d.Abs() > time.Second {
		t.Errorf("charged for %v, want two minutes", c.Charged)
	}
	if d := c.For - time.Minute; d.Abs() > time.Second {
		t.Errorf("in this state for %v, want a minute", c.For)
	}
	run(ChargeInput{}, time.Second)
	run(on, 10*time.Second)
	if c.Charged > 10*time.Second {
		t.Errorf("charged for %v in a stay of 10 s", c.Charged)
	}
}

func TestChargeContactsBounce(t *testing.T) {
	for seed := range rounds(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		var c Charge
		for left, on := 0, false; c.For < 10*time.Second; left-- {
			if left <= 0 { // no longer than the contacts need to settle
				left, on = 1+rng.IntN(int(ChargeSettle/frame)-1), !on
			}
			before := c.State
			if c = c.Step(ChargeInput{OnCharger: on, Charging: on}, frame); c.State != before {
				t.Fatalf("seed %d: %v", seed, c.State)
			}
		}
	}
}

// VEC-PWR-32: +1 h an hour awake, -2 h an hour asleep, never below 0.
func TestSleepDebt(t *testing.T) {
	var d Debt
	for range 3600 {
		d = d.Step(DefaultDebtRates, false, 4*time.Second)
	}
	if math.Abs(float64(d)-4) > 1e-9 {
		t.Errorf("%v h after four hours awake, want 4", d)
	}
	if d = d.Step(DefaultDebtRates, true, 90*time.Minute); math.Abs(float64(d)-1) > 1e-9 {
		t.Errorf("%v h after an hour and a half of sleep, want 1", d)
	}
	if d = d.Step(DefaultDebtRates, true, 10*time.Hour); d != 0 {
		t.Errorf("%v h after a long sleep, want 0", d)
	}
	if d = d.Step(DefaultDebtRates, false, -time.Hour); d != 0 {
		t.Errorf("%v h after time ran backwards, want 0", d)
	}
}

func TestShutdownCauses(t *testing.T) {
	for _, tc := range []struct {
		name  string
		in    ShutdownInput
		off   Off
		cause Cause
		fault faultcode.Code
	}{
		{"nothing", ShutdownInput{Body: Hot, CPU: Hot, Shed: ShedWork}, StayOn, UnknownCause, 0},
		{"button, 1 and 700 (VEC-PWR-40)", ShutdownInput{Button: true}, Clean, ButtonPress, 700},
		{"volts, 2 and 702 (VEC-PWR-07)", ShutdownInput{Shed: ShedAll}, Clean, BatteryCriticalVolt, 702},
		{"heat, 3 and 705 (VEC-PWR-10)", ShutdownInput{Body: TooHot}, Clean, BatteryCriticalTemp, 705},
		{"processor (VEC-PWR-10)", ShutdownInput{CPU: TooHot}, Clean, BatteryCriticalTemp, 705},
		{"absolute maximum (VEC-PWR-10)", ShutdownInput{Body: Burning}, Cut, BatteryCriticalTemp, 705},
		{"processor's maximum", ShutdownInput{CPU: Burning}, Cut, BatteryCriticalTemp, 705},
		{"gyro, 4 and 701 (VEC-IMU-16)", ShutdownInput{GyroFailed: true}, Clean, GyroNotCalibrating, 701},
		{"the body goes, cold (VEC-BODY-23)", ShutdownInput{Imminent: true}, Clean, BatteryCriticalVolt, 702},
		{"the body goes, hot", ShutdownInput{Imminent: true, Body: Hot}, Clean, BatteryCriticalTemp, 705},
		{"all at once", ShutdownInput{Body: Burning, Shed: ShedAll, Button: true, GyroFailed: true}, Cut, BatteryCriticalTemp, 705},
		{"critical, not confirmed", ShutdownInput{BelowCritical: true}, StayOn, UnknownCause, 0},
	} {
		s := Shutdown{}.Step(tc.in, frame)
		if s.Off != tc.off || s.Cause != tc.cause || s.Cause.Fault() != tc.fault {
			t.Errorf("%s: off %d for %v, fault %d; want %d, %v, %d", tc.name, s.Off, s.Cause, s.Cause.Fault(), tc.off, tc.cause, tc.fault)
		}
	}
	for c, want := range map[Cause]string{0: "SHUTDOWN_UNKNOWN", 1: "SHUTDOWN_BUTTON", 2: "SHUTDOWN_BATTERY_CRITICAL_VOLT",
		3: "SHUTDOWN_BATTERY_CRITICAL_TEMP", 4: "SHUTDOWN_GYRO_NOT_CALIBRATING", 5: "SHUTDOWN_5"} {
		if c.String() != want {
			t.Errorf("cause %d prints as %q, want %q (VEC-PWR-40)", uint8(c), c, want)
		}
	}
}

func TestShutdownIsDecidedOnce(t *testing.T) {
	var s Shutdown
	for at := time.Duration(0); at < CriticalConfirm-frame; at += frame {
		s = s.Step(ShutdownInput{BelowCritical: true}, frame)
	}
	if s.Off != StayOn {
		t.Fatalf("off after less than %v of critical voltage", CriticalConfirm)
	}
	s = s.Step(ShutdownInput{BelowCritical: true, OnCharger: true}, time.Minute)
	if s.Off != StayOn {
		t.Fatal("off on the charger for a critical voltage (status bit 0x1000000: only off the charger)")
	}
	s = s.Step(ShutdownInput{BelowCritical: true}, CriticalConfirm)
	if s.Off != Clean || s.Cause != BatteryCriticalVolt {
		t.Fatalf("got %+v, want a clean end for the voltage", s)
	}
	if s = s.Step(ShutdownInput{Button: true}, frame); s.Cause != BatteryCriticalVolt {
		t.Errorf("the cause became %v", s.Cause)
	}
	if s = s.Step(ShutdownInput{}, frame); s.Off != Clean {
		t.Error("it stays on after all")
	}
	if s = s.Step(ShutdownInput{CPU: Burning}, frame); s.Off != Cut || s.Cause != BatteryCriticalVolt {
		t.Errorf("burning on the way: %+v, want a cut for the first cause", s)
	}
}

// A battery that runs down ends in a clean shutdown for its voltage, with every step of shedding before it (issue: battery life).
func TestRunsDownToTheEnd(t *testing.T) {
	var b Battery
	var s Shedding
	var off Shutdown
	levels, steps := map[Level]bool{}, map[Shed]bool{}
	const step = 100 * time.Millisecond
	volts := 4.2
	for ; off.Off == StayOn && volts > 3; volts -= 0.0005 {
		b = b.Step(Input{Volts: volts}, step)
		s = s.Step(b, false, step)
		off = off.Step(ShutdownInput{Shed: s.Now}, step)
		levels[b.Level], steps[s.Now] = true, true
	}
	if off.Off != Clean || off.Cause != BatteryCriticalVolt || len(levels) != 3 || len(steps) != 5 {
		t.Errorf("at %.2f V: %+v, levels %v, shed %v", volts, off, levels, steps)
	}
}

func TestWordsOfPower(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{ShedSight.String(), "sight"}, {Shed(9).String(), "shed(9)"}, {TooHot.String(), "too hot"}, {Heat(9).String(), "heat(9)"},
		{Cooldown.String(), "cooldown"}, {Charging(9).String(), "charging(9)"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

func TestStepsOfPowerAllocateNothing(t *testing.T) {
	var b Battery
	var s Shedding
	var g Guard
	var c Charge
	var off Shutdown
	var d Debt
	if n := testing.AllocsPerRun(100, func() {
		b = b.Step(Input{Volts: 3.44}, frame)
		s = s.Step(b, false, frame)
		g = g.Step(&BodyLadder, 51, frame)
		c = c.Step(ChargeInput{OnCharger: true, Level: b.Level, Body: g.Heat}, frame)
		off = off.Step(ShutdownInput{Body: g.Heat, Shed: s.Now}, frame)
		d = d.Step(DefaultDebtRates, false, frame)
	}); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}
