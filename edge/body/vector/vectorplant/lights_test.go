package vectorplant

import (
	"maps"
	"math"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/core/control"
)

func TestLights(t *testing.T) {
	d := newDesk(t)
	d.step()
	if v, ok := d.value("led[1].g"); !ok || v != 0 {
		t.Errorf("led[1].g is %v, %v; opening a body darkens it", v, ok)
	}
	all := [4]vectordriver.Light{1: {G: 255}}
	if r := d.ask(lightsTo(alice, all)); r.Code != control.OK || r.Underway || d.act.Lights != all {
		t.Errorf("%+v, lights %v", r, d.act.Lights)
	}
	if v, ok := d.value("led[1].val"); !ok || v != 1 {
		t.Errorf("led[1].val is %v, %v", v, ok)
	}
	d.claims(bob, "led[2]")
	all[1].G = 9
	if r := d.ask(lightsTo(alice, all)); r.Code != control.NotHeld || r.By != bob || d.act.Lights[1].G != 255 {
		t.Errorf("one light is another owner's: %+v, lights %v", r, d.act.Lights)
	}
	if r := d.ask(lightsTo(bob, all)); r.Code != control.OK || d.act.Lights != all {
		t.Errorf("its owner: %+v, lights %v", r, d.act.Lights)
	}

	// One colour of one light, which no other owner holds, leaves all others as they are. What the light shows of it is told (GOSTAI-IF-14.8).
	all[1].B = 128
	if r := d.ask(set(alice, map[string]float64{"led[1].b": 0.5})); r.Code != control.OK || d.act.Lights != all || r.Taken[0] != 128./255 {
		t.Errorf("one colour: %+v, lights %v", r, d.act.Lights)
	}
	for _, v := range []float64{-7, 7} {
		if r := d.ask(set(alice, map[string]float64{"led[1].b": v})); r.Code != control.OK || r.Taken[0] != min(max(v, 0), 1) {
			t.Errorf("a colour of %v: %+v", v, r)
		}
	}
	before := d.act.Lights
	if r := d.ask(set(alice, map[string]float64{"led[1].b": 0, "led[2].r": 0})); r.Code != control.NotHeld || r.By != bob {
		t.Errorf("a colour of another owner's light: %+v", r)
	}
	for name, o := range map[string]control.Order{
		"one colour is no number": set(alice, map[string]float64{"led[0].b": 1, "led[1].b": math.NaN()}),
		"a time":                  slow(set(alice, map[string]float64{"led[1].b": 0}), time.Second),
		"a speed":                 quick(set(alice, map[string]float64{"led[1].b": 0}), 1),
	} {
		if r := d.ask(o); r.Code != control.Invalid || d.act.Lights != before {
			t.Errorf("%s: %+v, lights %v, want %v", name, r, d.act.Lights, before)
		}
	}
}

// TestIndicators: part of VEC-IO-30: the lights say that it charges, cannot, needs its charger, is hot or goes off, each by its own colours, where no program
// uses or owns them; a battery that is low goes before all programs (part of VEC-LGT-06).
func TestIndicators(t *testing.T) {
	d := newDesk(t).calibrated()
	red, green, teal := vectordriver.Light{R: 255}, vectordriver.Light{G: 96}, vectordriver.Light{G: 128, B: 128}
	shows := func(what string, want ...vectordriver.Light) {
		t.Helper()
		if got := d.act.Lights; got != [4]vectordriver.Light(want) {
			t.Errorf("%s: lights %v, want %v", what, got, want)
		}
	}
	dark := vectordriver.Light{}
	shows("all is well", dark, dark, dark, dark)
	d.sense.Power |= body.OnCharger | body.Charging
	d.run(time.Second)
	shows("charging", dark, dark, dark, green)
	d.ask(lightsTo(alice, [4]vectordriver.Light{{R: 8}, {}, {}, {B: 9}}))
	shows("a program lights it", vectordriver.Light{R: 8}, dark, dark, vectordriver.Light{B: 9})
	d.ask(lightsTo(alice, [4]vectordriver.Light{}))
	shows("the program darkens it", dark, dark, dark, green)
	lease := d.claims(alice, "led[3]")
	d.step()
	shows("a program owns it", dark, dark, dark, dark)
	d.ask(control.Order{Kind: control.Release, Owner: alice, Lease: lease})

	d.sense.Power &^= body.Charging
	d.sense.BatteryVolts = 3.56
	d.run(11 * time.Second)
	shows("it does not charge although it should", teal, teal, teal, teal)
	d.sense.Power &^= body.OnCharger
	d.run(30 * time.Second)
	shows("it needs its charger", dark, dark, dark, red)
	blue := vectordriver.Light{B: 9}
	lease = d.claims(alice, "led[0]", "led[1]", "led[2]", "led[3]")
	d.ask(lightsTo(alice, [4]vectordriver.Light{blue, blue, blue, blue}))
	shows("it needs its charger, whatever a program lights", blue, blue, blue, red)
	d.ask(lightsTo(alice, [4]vectordriver.Light{}))
	d.ask(control.Order{Kind: control.Release, Owner: alice, Lease: lease})
	d.sense.BatteryVolts = 3.9
	d.run(30 * time.Second)
	shows("all is well again", dark, dark, dark, dark)
	d.sense.Temperature = 52
	d.run(2 * time.Second)
	shows("hot", dark, dark, dark, red)
	d.sense.Temperature = 57
	d.run(2 * time.Second)
	shows("it goes off", red, red, red, red)
}

// TestFeltAndStatus: what the senses notice is an event (part of VEC-IO-02, 13, 14, 23, VEC-BODY-26, VEC-MCT-10), and the bits of RobotStatus are those that
// hold (VEC-IO-20, VEC-MOT-07, VEC-PWR-20).
func TestFeltAndStatus(t *testing.T) {
	d := newDesk(t)
	status := func(what string, want uint32) {
		t.Helper()
		if d.rep.Status != want {
			t.Errorf("%s: status %#x, want %#x", what, d.rep.Status, want)
		}
	}
	d.step()
	status("before it is calibrated", 0x600000)
	d.run(100 * ms)
	status("while it looks for its stops", 0x620000) // VEC-IMU-14
	d.calibrated()
	d.run(100 * ms)
	status("at rest", 0)
	d.sense.Cliffs[spine.BackLeft] = 0
	d.run(100 * ms)
	status("at an edge", 0x4000)
	d.sense.Cliffs[spine.BackLeft] = 0.6
	d.ask(control.Order{Kind: control.Calm, Owner: alice, On: true})
	d.run(100 * ms)
	status("calm", 0x400)

	d.sense.Cliffs[spine.FrontLeft] = 0.4 // a dark line
	d.run(100 * ms)
	touched := func(level float64, long time.Duration) {
		d.sense.Touch = level
		for range long / period {
			d.sense.TouchAt = d.f.Now
			d.step()
		}
	}
	touched(0.1, time.Second)
	touched(0.4, 3*time.Second)
	if !d.p.known.Petting {
		t.Error("the petting is not noticed")
	}
	touched(0.1, time.Second)
	d.sense.Power |= body.OnCharger
	touched(0.1, time.Second)
	press := func(long time.Duration) {
		d.sense.Button = true
		d.run(long)
		d.sense.Button = false
		d.run(700 * ms)
	}
	press(100 * ms)
	d.sense.Button = true
	d.run(100 * ms)
	d.sense.Button = false
	d.run(100 * ms)
	press(100 * ms)
	press(3 * time.Second)
	for range 45 { // calm: a third counts
		d.sense.ProxMetres, d.sense.ProxAt = 0.01, d.f.Now
		d.run(33 * ms)
	}
	if petted := d.rep.Totals[3]; petted < 1800 || petted > 2500 {
		t.Errorf("petted for %v ms, want about 2000", petted)
	}
	want := felt{
		"calibrate_motors": 1, "head_motor_calibrated": 1, "lift_motor_calibrated": 1, "robot.touched": 1, "robot.petted": 1,
		"touch_sensor.activate_charger_mode_check": 1, "touch_sensor.baseline_fast_calibration_finished": 2,
		"touch_sensor.charger_mode_check.no_baseline_change": 1, "robot.cliff_detected": 1, "robot.line_seen": 1, "hal.invalid_prox_reading_report": 1,
		"robot.button single": 1, "robot.button double": 1, "robot.button mute": 1,
	}
	if !maps.Equal(d.felt, want) {
		t.Errorf("felt %v\nwant %v", d.felt, want)
	}
}

// TestValues: the tree has the values of the senses.
func TestValues(t *testing.T) {
	d := newDesk(t).calibrated()
	want := func(name string, v float64) {
		t.Helper()
		if got, ok := d.value(name); !ok || math.Abs(got-v) > 1e-6 && got != v {
			t.Errorf("%s is %v, %v; want %v", name, got, ok, v)
		}
	}
	d.sense.Touch, d.sense.TouchAt = 0.1, d.f.Now
	for range time.Second / period {
		d.sense.TouchAt = d.f.Now
		d.step()
	}
	want("touch.val", 0)
	d.sense.Touch = 0.4
	for range time.Second / period {
		d.sense.TouchAt = d.f.Now
		d.step()
	}
	want("touch.val", 1)
	ahead := func(metres float64) {
		for range 5 {
			d.sense.ProxMetres, d.sense.ProxAt = metres, d.f.Now
			d.run(33 * ms)
		}
	}
	d.sense.ProxSignal, d.sense.ProxAmbient = 0.1, 1 // 0.1 / sqrt(1) of 20: too dim to count
	ahead(0.4)
	if d.p.known.Prox.Found {
		t.Errorf("a dim echo: %+v", d.p.known.Prox)
	}
	d.sense.ProxSignal = 10
	ahead(0.4)
	want("laser.val", 0.4)
	if p := d.p.known.Prox; !p.Found || math.Abs(p.Quality-0.5) > 1e-9 {
		t.Errorf("%+v, want it found with quality 0.5 (VEC-IO-24)", p)
	}
	ahead(8.19) // VEC-IO-24: free sight, as the sensor says it
	want("laser.val", math.Inf(1))
	if p := d.p.known.Prox; !p.Unobstructed || p.Found {
		t.Errorf("free sight: %+v", p)
	}
	ahead(0.3)
	want("laser.val", 0.3)
	want("cliffFL.detected", 0)
	d.sense.Cliffs[spine.BackRight] = 0
	d.run(100 * ms)
	want("cliffBR.detected", 1)
	want("battery.voltage", 3.9)
	want("temperature.val", 25)
}
