package vectorplant

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/power"
	"kennel/edge/robot/claim"
)

// TestKeeper: what is measured reaches the keeper, and the battery of the frame is its (VEC-PWR-01, 07, 32, 51).
func TestKeeper(t *testing.T) {
	d := newDesk(t).calibrated()
	var r Report
	d.sense.Power |= body.OnCharger | body.Charging
	d.run(time.Second)
	if d.h.Report(&r); r.Power.Charge.State != power.Active || r.Power.Battery.Level == power.Unknown || d.f.Battery != r.Power.Battery || r.Power.Debt <= 0 {
		t.Errorf("%+v, frame %+v", r.Power, d.f.Battery)
	}
	d.sense.Power &^= body.OnCharger | body.Charging
	d.sense.BatteryVolts = 3.3
	d.until("all load is shed", func() bool {
		d.h.Report(&r)
		return r.Power.Shedding.Now == power.ShedAll
	})
	d.sense.Power |= body.BatteryDisconnected
	d.run(100 * ms)
	if d.h.Report(&r); r.Power.Battery.Level != power.Unknown || r.Power.Shutdown.Cause != power.BatteryCriticalVolt {
		t.Errorf("%+v", r.Power)
	}
}

// TestCalmAndSleep: VEC-PWR-24: it is calm while anybody asks; VEC-PWR-31: only legal changes; VEC-PWR-32: asleep the debt shrinks.
func TestCalmAndSleep(t *testing.T) {
	d := newDesk(t).calibrated()
	var r Report
	calm := func() bool { d.step(); d.h.Report(&r); return r.Calm }
	ask := func(o Order, want Code) {
		t.Helper()
		if got := d.ask(o); got.Code != want {
			t.Errorf("%+v: %v, want %v", o, got.Code, want)
		}
	}
	ask(Order{Kind: Calm, Owner: alice, On: true}, OK)
	ask(Order{Kind: Calm, Owner: alice, On: true}, OK)
	ask(Order{Kind: Calm, Owner: bob, On: true}, OK)
	ask(Order{Kind: Calm, Owner: alice}, OK)
	if !calm() {
		t.Error("bob still asks")
	}
	d.h.Post(Order{Kind: Drop, Owner: bob})
	if calm() {
		t.Error("calm although nobody asks")
	}
	for i := range power.MaxSavers {
		ask(Order{Kind: Calm, Owner: claim.Owner(10 + i), On: true}, OK)
	}
	ask(Order{Kind: Calm, Owner: bob, On: true}, Full)

	for _, tc := range []struct {
		to   power.Sleep
		why  uint8
		want Code
	}{
		{power.DeepSleep, uint8(power.Sleepy), Invalid}, {power.Awake, 0, OK}, {power.Awake, 0, OK}, {power.PreSleepAnimation, 0, OK}, {200, 0, Invalid},
		{power.DeepSleep, 0, Invalid}, {power.DeepSleep, uint8(power.Sleepy), OK},
	} {
		ask(Order{Kind: Sleep, Owner: alice, Sleep: tc.to, Why: tc.why}, tc.want)
	}
	d.h.Report(&r)
	awake := r.Power.Debt
	d.run(time.Second)
	if d.h.Report(&r); r.Power.Debt >= awake || r.Sleep.LastSleep != power.Sleepy {
		t.Errorf("debt %v after %v, %+v", r.Power.Debt, awake, r.Sleep)
	}
	ask(Order{Kind: Sleep, Owner: alice, Sleep: power.Awake}, Invalid)
	ask(Order{Kind: Sleep, Owner: alice, Sleep: power.Awake, Why: uint8(power.Poked)}, OK)
	if d.h.Report(&r); r.Sleep.State != power.Awake || r.Sleep.LastWake != power.Poked {
		t.Errorf("%+v", r.Sleep)
	}
}

// TestOrderAsBytes: an order comes back from the tape as it was.
func TestOrderAsBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		o := Order{
			Kind: Kind(rng.Uint32()), Owner: claim.Owner(rng.Uint32()), Request: rng.Uint32(), Priority: claim.Priority(rng.Uint32()), Sleep: power.Sleep(rng.Uint32()),
			Why: uint8(rng.Uint32()), On: rng.IntN(2) == 0, TTL: time.Duration(rng.Uint64()), For: time.Duration(rng.Uint64()), Lease: rng.Uint64(),
			A: rng.NormFloat64(), B: rng.NormFloat64(), Speed: rng.NormFloat64(), Accel: rng.NormFloat64(), Set: claim.Set{rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64()},
		}
		for i := range o.Lights {
			o.Lights[i] = body.Light{R: uint8(rng.Uint32()), G: uint8(rng.Uint32()), B: uint8(rng.Uint32())}
		}
		b := o.append(nil)
		var got Order
		if got.parse(b); got != o || len(b) != orderSize {
			t.Fatalf("%d bytes, want %d; got\n%+v, want\n%+v", len(b), orderSize, got, o)
		}
	}
}

// TestProcessorsHeat: VEC-PWR-10: what the helm is told of the processor's temperature counts for a while, as long as the helm itself says so.
func TestProcessorsHeat(t *testing.T) {
	d := newDesk(t).calibrated()
	var r Report
	told := func(celsius float64, long time.Duration) power.Heat {
		t.Helper()
		for range long / (500 * ms) {
			if !d.h.PostHeat(celsius) {
				t.Fatal("the mailbox is full")
			}
			d.run(500 * ms)
		}
		d.h.Report(&r)
		return r.Power.CPU.Heat
	}
	for _, tc := range []struct {
		celsius float64
		want    power.Heat
		off     power.Off
	}{{70, power.Cool, power.StayOn}, {85, power.Warm, power.StayOn}, {93, power.Hot, power.StayOn}, {math.NaN(), power.Hot, power.StayOn}, {20, power.Cool, power.StayOn},
		{96, power.TooHot, power.Clean}, {120, power.Burning, power.Cut}} {
		if got := told(tc.celsius, 2*time.Second); got != tc.want || r.Power.Shutdown.Off != tc.off || r.Power.Body.Heat != power.Cool {
			t.Errorf("at %v degrees: %v, %+v, body %v; want %v, %v", tc.celsius, got, r.Power.Shutdown, r.Power.Body.Heat, tc.want, tc.off)
		}
	}

	d = newDesk(t).calibrated()
	if got := told(85, time.Second); got != power.Cool { // said twice, and not yet for long enough
		t.Errorf("after a second: %v", got)
	}
	d.run(10 * time.Second)
	if d.h.Report(&r); r.Power.CPU.Heat != power.Warm {
		t.Errorf("what was said counts for a while: %v", r.Power.CPU.Heat)
	}
	if !d.h.PostHeat(20) {
		t.Fatal("the mailbox is full")
	}
	d.step()
	if got := d.ask(Order{Kind: Heat, Owner: alice, A: 120}); got.Code != Invalid {
		t.Errorf("somebody else says how hot it is: %v", got.Code)
	}
	d.run(6 * time.Second)
	if d.h.Report(&r); r.Power.CPU.Heat != power.Cool {
		t.Errorf("%v, want what the helm itself said", r.Power.CPU.Heat)
	}
	// A word that is too old proves nothing.
	d = newDesk(t).calibrated()
	if !d.h.PostHeat(85) {
		t.Fatal("the mailbox is full")
	}
	d.step()
	d.silent = true
	d.run(cpuKeeps)
	d.silent = false
	d.run(2 * time.Second)
	if d.h.Report(&r); r.Power.CPU.Heat != power.Cool {
		t.Errorf("%v from a word of long ago", r.Power.CPU.Heat)
	}
}
