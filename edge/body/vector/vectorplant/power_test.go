package vectorplant

import (
	"math"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/core/control"
	"kennel/edge/power"
	"kennel/edge/robot/claim"
)

// TestKeeper: what is measured reaches the keeper, and the report has what it decides (VEC-PWR-01, 07, 32, 51).
func TestKeeper(t *testing.T) {
	d := newDesk(t).calibrated()
	r := &d.rep
	d.sense.Power |= body.OnCharger | body.Charging
	d.run(time.Second)
	if r.Power.Charge.State != power.Active || r.Power.Battery.Level == power.Unknown || r.Power.Debt <= 0 {
		t.Errorf("%+v", r.Power)
	}
	d.sense.Power &^= body.OnCharger | body.Charging
	d.sense.BatteryVolts = 3.3
	d.until("all load is shed", func() bool {
		return r.Power.Shedding.Now == power.ShedAll
	})
	d.sense.Power |= body.BatteryDisconnected
	d.run(100 * ms)
	if r.Power.Battery.Level != power.Unknown || r.Power.Shutdown.Cause != power.BatteryCriticalVolt {
		t.Errorf("%+v", r.Power)
	}
}

// TestCalmAndSleep: VEC-PWR-24: it is calm while any owner asks; VEC-PWR-31: only legal changes; VEC-PWR-32: asleep the debt shrinks.
func TestCalmAndSleep(t *testing.T) {
	d := newDesk(t).calibrated()
	r := &d.rep
	calm := func() bool { d.step(); return r.Calm }
	ask := func(o control.Order, want control.Code) {
		t.Helper()
		if got := d.ask(o); got.Code != want {
			t.Errorf("%+v: %v, want %v", o, got.Code, want)
		}
	}
	ask(control.Order{Kind: control.Calm, Owner: alice, On: true}, control.OK)
	ask(control.Order{Kind: control.Calm, Owner: alice, On: true}, control.OK)
	ask(control.Order{Kind: control.Calm, Owner: bob, On: true}, control.OK)
	ask(control.Order{Kind: control.Calm, Owner: alice}, control.OK)
	if !calm() {
		t.Error("bob still asks")
	}
	d.c.Post(control.Order{Kind: control.Drop, Owner: bob})
	if calm() {
		t.Error("calm although no owner asks")
	}
	for i := range power.MaxSavers {
		ask(control.Order{Kind: control.Calm, Owner: claim.Owner(10 + i), On: true}, control.OK)
	}
	ask(control.Order{Kind: control.Calm, Owner: bob, On: true}, control.Full)

	for _, tc := range []struct {
		to   power.Sleep
		why  uint8
		want control.Code
	}{
		{power.DeepSleep, uint8(power.Sleepy), control.Invalid}, {power.Awake, 0, control.OK}, {power.Awake, 0, control.OK},
		{power.PreSleepAnimation, 0, control.OK}, {200, 0, control.Invalid},
		{power.DeepSleep, 0, control.Invalid}, {power.DeepSleep, uint8(power.Sleepy), control.OK},
	} {
		ask(control.Order{Kind: control.Sleep, Owner: alice, Sleep: tc.to, Why: tc.why}, tc.want)
	}
	awake := r.Power.Debt
	d.run(time.Second)
	if r.Power.Debt >= awake || r.Sleep.LastSleep != power.Sleepy {
		t.Errorf("debt %v after %v, %+v", r.Power.Debt, awake, r.Sleep)
	}
	ask(control.Order{Kind: control.Sleep, Owner: alice, Sleep: power.Awake}, control.Invalid)
	ask(control.Order{Kind: control.Sleep, Owner: alice, Sleep: power.Awake, Why: uint8(power.Poked)}, control.OK)
	if r.Sleep.State != power.Awake || r.Sleep.LastWake != power.Poked {
		t.Errorf("%+v", r.Sleep)
	}
}

// TestProcessorsHeat: VEC-PWR-10: what the robot itself says of its processor's temperature counts for a while.
func TestProcessorsHeat(t *testing.T) {
	d := newDesk(t).calibrated()
	r := &d.rep
	told := func(celsius float64, long time.Duration) power.Heat {
		t.Helper()
		for range long / (500 * ms) {
			if !d.c.PostHeat(celsius) {
				t.Fatal("the mailbox is full")
			}
			d.run(500 * ms)
		}
		return r.Power.CPU.Heat
	}
	for _, tc := range []struct {
		celsius float64
		want    power.Heat
		off     power.Off
	}{{70, power.Cool, power.StayOn}, {85, power.Warm, power.StayOn}, {93, power.Hot, power.StayOn}, {math.NaN(), power.Hot, power.StayOn},
		{20, power.Cool, power.StayOn},
		{96, power.TooHot, power.Clean}, {120, power.Burning, power.Cut}} {
		if got := told(tc.celsius, 2*time.Second); got != tc.want || r.Power.Shutdown.Off != tc.off || r.Power.Body.Heat != power.Cool {
			t.Errorf("at %v degrees: %v, %+v, body %v; want %v, %v", tc.celsius, got, r.Power.Shutdown, r.Power.Body.Heat, tc.want, tc.off)
		}
	}

	d = newDesk(t).calibrated()
	r = &d.rep
	if got := told(85, time.Second); got != power.Cool { // said twice, and not yet for long enough
		t.Errorf("after a second: %v", got)
	}
	d.run(10 * time.Second)
	if r.Power.CPU.Heat != power.Warm {
		t.Errorf("what was said counts for a while: %v", r.Power.CPU.Heat)
	}
	if !d.c.PostHeat(20) {
		t.Fatal("the mailbox is full")
	}
	d.step()
	if got := d.ask(control.Order{Kind: control.Heat, Owner: alice, A: 120}); got.Code != control.Invalid {
		t.Errorf("another owner says how hot it is: %v", got.Code)
	}
	d.run(6 * time.Second)
	if r.Power.CPU.Heat != power.Cool {
		t.Errorf("%v, want what the robot itself said", r.Power.CPU.Heat)
	}
	// A word that is too old proves nothing.
	d = newDesk(t).calibrated()
	r = &d.rep
	if !d.c.PostHeat(85) {
		t.Fatal("the mailbox is full")
	}
	d.step()
	d.silent = true
	d.run(5 * time.Second)
	d.silent = false
	d.run(2 * time.Second)
	if r.Power.CPU.Heat != power.Cool {
		t.Errorf("%v from a word of long ago", r.Power.CPU.Heat)
	}
}
