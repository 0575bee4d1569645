package vectorplant

import (
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/core/control"
	"kennel/edge/motion"
	"kennel/edge/power"
)

// board makes the desk's body do what act.Off says, two frames later, as a wire does.
func (d *desk) board() func() {
	var past [2]vectordriver.PowerParts
	return func() {
		d.sense.Power &^= body.SensorsOff
		if past[0]&vectordriver.SensorsPart != 0 {
			d.sense.Power |= body.SensorsOff
		}
		past[0], past[1] = past[1], d.act.Off
	}
}

// TestSensorsHavePowerBeforeTheTreads: VEC-PWR-07, VEC-PWR-22, VEC-HW-07: a battery that runs down takes the power from the range finder and with it
// from the cliff sensors; an owner that takes the treads gets both back before anything rolls.
func TestSensorsHavePowerBeforeTheTreads(t *testing.T) {
	d := newDesk(t).calibrated()
	obey := d.board()
	step := func() { obey(); d.step() }
	for range 100 {
		step()
	}
	if d.act.Off != 0 || d.p.cliffs() != 0 {
		t.Fatalf("a robot that is well: off %b, cliffs %b", d.act.Off, d.p.cliffs())
	}
	d.sense.BatteryVolts = 3.4
	for range 5000 {
		if step(); d.sense.Power.Has(body.SensorsOff) {
			break
		}
	}
	d.sense.BatteryVolts = 3.43 // above all load off
	if d.act.Off != vectordriver.SensorsPart || d.p.cliffs() == 0 {
		t.Fatalf("with little left: off %b, cliffs %b; want the sensors, all", d.act.Off, d.p.cliffs())
	}
	lease := d.claims(alice, "wheelL", "wheelR")
	if d.act.Off != 0 {
		t.Fatalf("an owner has the treads: off %b", d.act.Off)
	}
	drive := wheelsAt(alice, 0.05, 0.05, time.Minute)
	refused, blind := 0, 0
	for range 200 {
		if d.act.Motors[0] != 0 && (d.sense.Power.Has(body.SensorsOff) || !d.p.known.CliffsKnown) {
			blind++
		}
		if !d.p.now.Moving {
			if r := d.ask(drive); r.Code == control.Refused && r.Stop&motion.Cliff != 0 {
				refused++
			}
		}
		step()
	}
	if refused == 0 || blind > 0 || !d.p.now.Moving {
		t.Errorf("refused %d times, %d steps with power and no sensors, moving %t; want some, none, true", refused, blind, d.p.now.Moving)
	}
	// It gives the treads back: they stop first.
	if r := d.ask(control.Order{Kind: control.Release, Owner: alice, Lease: lease}); r.Code != control.OK {
		t.Fatal(r)
	}
	for range 400 {
		step()
		if d.act.Off&vectordriver.SensorsPart != 0 && d.p.now.Moving {
			t.Fatal("the sensors lost their power while the body moved")
		}
	}
	if d.act.Off != vectordriver.SensorsPart {
		t.Errorf("at rest, and the treads have no owner: off %b", d.act.Off)
	}
}

// TestDarkAsleep: VEC-PWR-20: lights are dark while the robot sleeps, and as they were wished for when it wakes.
func TestDarkAsleep(t *testing.T) {
	d := newDesk(t).calibrated()
	lit := [4]vectordriver.Light{{R: 200}}
	d.ask(lightsTo(alice, lit))
	if d.step(); d.act.Lights != lit {
		t.Fatalf("lights %v", d.act.Lights)
	}
	for _, o := range []control.Order{{Sleep: power.Awake}, {Sleep: power.PreSleepAnimation}, {Sleep: power.LightSleep, Why: uint8(power.Sleepy)}} {
		o.Kind, o.Owner = control.Sleep, alice
		if r := d.ask(o); r.Code != control.OK {
			t.Fatalf("%+v: %+v", o, r)
		}
	}
	if d.step(); d.act.Lights != [4]vectordriver.Light{} {
		t.Errorf("asleep: lights %v", d.act.Lights)
	}
	lit[1].G = 100
	d.ask(lightsTo(alice, lit))
	d.ask(control.Order{Kind: control.Sleep, Owner: alice, Sleep: power.Awake, Why: uint8(power.Poked)})
	if d.step(); d.act.Lights != lit {
		t.Errorf("awake again: lights %v, want %v", d.act.Lights, lit)
	}
}

// TestFewerDistances: VEC-PWR-20, VEC-PWR-10: in calm mode, asleep and warm distances count as often as is allowed, and each keeps the time when it
// was measured.
func TestFewerDistances(t *testing.T) {
	d := newDesk(t).calibrated()
	const every, samples = 6 * period, 300 // of the sensor
	count := func() int {
		n, last := 0, time.Duration(-1)
		for i := range samples * 6 {
			if i%6 == 0 {
				d.sense.ProxMetres, d.sense.ProxAt = 0.1+float64(i)/1e5, d.f.Now
			}
			metres, at := d.sense.ProxMetres, d.sense.ProxAt
			d.step()
			if h := &d.p.sense; h.ProxAt != last {
				if n, last = n+1, h.ProxAt; h.ProxAt == at && h.ProxMetres != metres {
					t.Fatalf("%v m at %v, measured were %v", h.ProxMetres, h.ProxAt, metres)
				}
			}
			if at, ok := d.p.known.Prox.At, d.p.known.Prox.At == last; !ok && at > last {
				t.Fatalf("the senses took the distance of %v, the newest that counts is of %v", at, last)
			}
		}
		return n
	}
	if n := count(); n != samples {
		t.Errorf("active: %d of %d distances count", n, samples)
	}
	d.ask(control.Order{Kind: control.Calm, Owner: alice, On: true})
	if n, want := count(), int(samples*every/(100*ms)); n < want-2 || n > want+want/4 {
		t.Errorf("calm: %d of %d distances count, want about %d", n, samples, want)
	}
	d.ask(control.Order{Kind: control.Calm, Owner: alice})
	d.sense.Temperature = 46
	d.run(2 * time.Second)
	if n, want := count(), int(samples*every/(100*ms)); n < want-2 || n > want+want/4 {
		t.Errorf("warm: %d of %d distances count, want about %d", n, samples, want)
	}
	d.sense.Temperature = 25
	d.run(2 * time.Second)
	if n := count(); n < samples {
		t.Errorf("active again: %d of %d distances count", n, samples)
	}
}

// TestHotBodyDoesNotCharge: VEC-PWR-53.
func TestHotBodyDoesNotCharge(t *testing.T) {
	d := newDesk(t).calibrated()
	d.sense.Temperature = 52
	d.until("the charger is off", func() bool { return d.act.Off == vectordriver.ChargerPart })
	d.sense.Temperature = 25
	d.until("the charger is on", func() bool { return d.act.Off == 0 })
}
