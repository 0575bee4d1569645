package power

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// VEC-PWR-04: the table reads between its points, and what it suggests falls as the battery fills.
func TestGauge(t *testing.T) {
	for volts, want := range map[float64]time.Duration{
		3.0: 0, 3.35: 0, 3.6: 10 * time.Minute, 3.65: 13*time.Minute + 30*time.Second, 4.2: 42 * time.Minute, 5: 42 * time.Minute,
	} {
		if got := PlayLeft(DefaultGauge, volts); (got - want).Abs() > time.Second {
			t.Errorf("%v V: %v left, want %v", volts, got, want)
		}
	}
	if got := PlayLeft(DefaultGauge, math.NaN()); got != 0 {
		t.Errorf("no number: %v left", got)
	}
	for v, last := 3.3, time.Duration(0); v < 4.3; v += 0.001 {
		if got := PlayLeft(DefaultGauge, v); got < last {
			t.Fatalf("%v at %v V, less than below", got, v)
		} else {
			last = got
		}
	}
}

// VEC-PWR-24: several requests, several who ask; calm until the last of them is taken back.
func TestSaver(t *testing.T) {
	var s Saver
	for _, tc := range []struct {
		what string
		do   func() bool
		ok   bool
		calm bool
	}{
		{"nobody is no behaviour", func() bool { return s.Request(0) }, false, false},
		{"one asks", func() bool { return s.Request(7) }, true, true},
		{"and again", func() bool { return s.Request(7) }, true, true},
		{"another", func() bool { return s.Request(8) }, true, true},
		{"a stranger releases", func() bool { return s.Release(9) }, false, true},
		{"nobody releases", func() bool { return s.Release(0) }, false, true},
		{"first", func() bool { return s.Release(7) }, true, true},
		{"second", func() bool { return s.Release(7) }, true, true},
		{"third, which it has not", func() bool { return s.Release(7) }, false, true},
		{"the last", func() bool { return s.Release(8) }, true, false},
	} {
		if ok := tc.do(); ok != tc.ok || s.Calm() != tc.calm {
			t.Errorf("%s: %t, calm %t; want %t, %t", tc.what, ok, s.Calm(), tc.ok, tc.calm)
		}
	}
	for b := range Behavior(MaxSavers) {
		if !s.Request(b + 1) {
			t.Fatalf("behaviour %d of %d is refused", b+1, MaxSavers)
		}
	}
	if s.Request(99) {
		t.Error("one more than there is room for is taken")
	}
	s.Request(3)
	s.End(3) // a behaviour that ended asks for nothing any more
	if s.Release(3) || !s.Request(99) {
		t.Error("after its end a behaviour still holds its place")
	}
}

// VEC-PWR-05, VEC-PWR-20, VEC-PWR-33: active, calm and asleep, each takes less; VEC-PWR-07: each step of shedding takes its parts, and what
// was taken stays taken.
func TestAllowances(t *testing.T) {
	active, calm, asleep := Allow(false, false, Cool, ShedNothing), Allow(true, false, Cool, ShedNothing), Allow(true, true, Cool, ShedNothing)
	if !(calm.CameraHz < active.CameraHz && calm.ProxEvery > active.ProxEvery && calm.CPUMHz < active.CPUMHz) {
		t.Errorf("calm %+v, active %+v: want sensors, processor and camera reduced", calm, active)
	}
	if !(asleep.CameraHz == 0 && asleep.CPUMHz < calm.CPUMHz && asleep.ProxEvery > calm.ProxEvery) || active.CPUMHz != 533 || StatusCalm != 0x400 {
		t.Errorf("asleep %+v: want the camera suspended and less than calm", asleep)
	}
	for _, mode := range []struct{ calm, asleep bool }{{}, {calm: true}, {asleep: true}} {
		for s := ShedNothing; s <= ShedAll; s++ {
			a, most := Allow(mode.calm, mode.asleep, Cool, s), Allow(mode.calm, mode.asleep, Cool, ShedNothing)
			want := most
			if s >= ShedTalk {
				want.Cloud = false
			}
			if s >= ShedSight {
				want.CameraHz, want.Display, want.ProxEvery = 0, false, 0
			}
			if s >= ShedWork {
				want.CPUMHz = 200
			}
			if a != want {
				t.Errorf("%+v, shed %v: %+v, want %+v", mode, s, a, want)
			}
		}
	}
}

// VEC-PWR-10, VEC-PWR-12: a warm robot slows down as in calm mode, a hot one more than that; heat never gives back what sleep took.
func TestHeatSlowsDown(t *testing.T) {
	calm := Allow(true, false, Cool, ShedNothing)
	hot := calm
	hot.CPUMHz = 200
	for heat, want := range map[Heat]Allowance{Cool: Allow(false, false, Cool, ShedNothing), Warm: calm, Hot: hot, TooHot: hot, Burning: hot} {
		if got := Allow(false, false, heat, ShedNothing); got != want {
			t.Errorf("%v: %+v, want %+v", heat, got, want)
		}
	}
	if got := Allow(false, true, Warm, ShedNothing); got != Allow(false, true, Cool, ShedNothing) {
		t.Errorf("asleep and warm: %+v", got)
	}
	k := Keeper{Body: Guard{Heat: Warm}, CPU: Guard{Heat: Hot}}
	if k.Hottest() != Hot {
		t.Errorf("the hottest is %v", k.Hottest())
	}
}

// VEC-PWR-31: every pair of states, with every reason.
func TestSleepTransitions(t *testing.T) {
	// From a state (line) to a state (column): . none, x legal.
	const table = `
		Nothing           .x.........x
		Awake             x..xx....x.x
		CheckingForPerson .x...xx.x..x
		GoingToCharger    .x..x......x
		PreSleepAnimation .x...xx.x..x
		LightSleep        .xx...x.x..x
		DeepSleep         .xx..x.xx..x
		Comatose          .x......x..x
		SleepOnCharger    .xx..x.x...x
		HeldInPalmSleep   .x........xx
		SleepOnPalm       .x...x...x.x
		EmergencySleep    .x......x...`
	rows := map[string]string{}
	for line := range strings.Lines(table) {
		if words := strings.Fields(line); len(words) == 2 {
			rows[words[0]] = words[1]
		}
	}
	if len(rows) != int(numSleeps) {
		t.Fatalf("%d rows, want %d", len(rows), numSleeps)
	}
	for from := range numSleeps {
		for to := range numSleeps {
			legal := rows[from.String()][to] == 'x'
			s := Sleeper{State: from}
			fell, err := s.FallAsleep(to, Sleepy)
			if want := legal && to.Asleep() && to != EmergencySleep; (err == nil) != want || err == nil && (fell.State != to ||
				!from.Asleep() && fell.LastSleep != Sleepy) {
				t.Errorf("%v to %v, sleepy: %+v, %v; want legal %t", from, to, fell, err, want)
			}
			fell, err = s.FallAsleep(to, Emergency)
			if want := legal && to == EmergencySleep; (err == nil) != want || err == nil && fell.LastSleep != Emergency {
				t.Errorf("%v to %v in an emergency: %+v, %v; want legal %t", from, to, fell, err, want)
			}
			if _, err = s.FallAsleep(to, 0); err == nil {
				t.Errorf("%v to %v without a reason is legal", from, to)
			}
			went, err := s.Go(to)
			if want := legal && !to.Asleep() && !(from.Asleep() && to == Awake); (err == nil) != want || err == nil && went.State != to {
				t.Errorf("%v to %v: %+v, %v; want legal %t", from, to, went, err, want)
			}
			var illegal IllegalSleep
			if err != nil && (!errors.As(err, &illegal) || illegal.From != from || illegal.To != to) {
				t.Errorf("%v to %v: %v does not say so", from, to, err)
			}
		}
		for why := range NotSleepy + 2 {
			woke, err := Sleeper{State: from}.WakeUp(why)
			want := (from.Asleep() || from == CheckingForPerson) && why >= Jolted && why <= NotSleepy
			if (err == nil) != want || err == nil && (woke.State != Awake || woke.LastWake != why) {
				t.Errorf("%v wakes for %v: %+v, %v; want legal %t", from, why, woke, err, want)
			}
		}
	}
	for got, want := range map[string]string{Sleepy.String(): "Sleepy", Emergency.String(): "Emergency",
		SleepReason(9).String(): "SleepReason(9)", NotInAir.String(): "NotInAir",
		LightsOn.String(): "LightsOn", WakeReason(9).String(): "WakeReason(9)", Sleep(99).String(): "Sleep(99)"} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	s := Sleeper{State: LightSleep, LastSleep: Sleepy}
	if s, err := s.FallAsleep(DeepSleep, Sleepy); err != nil || s.LastSleep != Sleepy {
		t.Errorf("deeper asleep: %+v, %v", s, err)
	}
}

func TestKeeperAllocatesNothing(t *testing.T) {
	var k Keeper
	if n := testing.AllocsPerRun(100, func() {
		k = k.Step(KeeperInput{Volts: 3.5, BodyCelsius: 30, CPUCelsius: 60}, frame)
		_ = Allow(false, false, k.Hottest(), k.Shedding.Now)
	}); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}
