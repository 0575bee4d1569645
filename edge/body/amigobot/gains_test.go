package amigobot_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"kennel/edge/body/amigobot/amigobotsim"
	"kennel/edge/core/control"
	"kennel/edge/robot/claim"
)

const bob = claim.Owner(3)

// TestGains: gains of the wheels need a claim of the wheels, and return to those of the robot's configuration however that claim ends, also if a
// command is lost or the session begins again: AmigOS itself keeps them until it is reset (AMIGO-PID-05).
func TestGains(t *testing.T) {
	factory := map[string]float64{"wheelL.PGain": 40, "wheelL.DGain": 80, "wheelL.IGain": 0}
	at := func(p *place, want map[string]float64) bool {
		for name, v := range want {
			if p.value(name) != v {
				return false
			}
		}
		return true
	}
	p := newPlace(t, amigobotsim.Config{})
	p.until("gains", func() bool { return at(p, factory) })
	set, err := p.control.Actuators("robot.body.wheel")
	if err != nil {
		t.Fatal(err)
	}
	if r := p.ask(p.set(0, map[string]float64{"wheelL.PGain": 55})); r.Code != control.NotHeld {
		t.Fatalf("without a claim: %+v", r)
	}
	for name, end := range map[string]func(){
		"the owner leaves":      func() { p.control.Post(control.Order{Kind: control.Drop, Owner: alice}) },
		"the claim is released": func() { p.control.Post(control.Order{Kind: control.Release, Owner: alice, Lease: p.lease}) },
		"the claim ends by itself": func() {
			p.ask(control.Order{Kind: control.Renew, Lease: p.lease, TTL: 100 * ms})
		},
		"a person takes over": func() {
			p.control.Post(control.Order{Kind: control.Claim, Owner: bob, Set: set, Priority: claim.Safety, TTL: time.Second})
		},
		"another owner follows at once": func() {
			p.control.Post(control.Order{Kind: control.Drop, Owner: alice})
			p.control.Post(control.Order{Kind: control.Claim, Owner: bob, Set: set, Priority: claim.Person})
			o := p.set(0, map[string]float64{"wheelL.IGain": 0})
			o.Owner = bob
			p.control.Post(o)
		},
		"the owner leaves and half of the packets are lost": func() {
			p.sim.SetFaults(amigobotsim.Faults{Loss: 0.5})
			p.control.Post(control.Order{Kind: control.Drop, Owner: alice})
		},
		"the owner leaves while the robot is not heard": func() {
			p.sim.SetFaults(amigobotsim.Faults{Loss: 1})
			p.run(10 * time.Second)
			p.control.Post(control.Order{Kind: control.Drop, Owner: alice})
			p.run(time.Second)
			p.sim.SetFaults(amigobotsim.Faults{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p.t = t
			p.claim("robot.body.wheel")
			if r := p.ask(p.set(0, map[string]float64{"wheelL.PGain": 55, "wheelR.DGain": 60})); r.Code != control.OK || r.Underway {
				t.Fatalf("%+v", r)
			}
			p.until("own gains", func() bool {
				return at(p, map[string]float64{"wheelL.PGain": 55, "wheelR.PGain": 55, "wheelL.DGain": 60})
			})
			p.ask(control.Order{Kind: control.Stop})
			p.run(time.Second)
			if !at(p, map[string]float64{"wheelL.PGain": 55}) {
				t.Error("a stop of the motion ends the gains")
			}
			end()
			p.until("the robot's own gains", func() bool { return at(p, factory) })
			p.sim.SetFaults(amigobotsim.Faults{})
			p.control.Post(control.Order{Kind: control.Drop, Owner: alice})
			p.control.Post(control.Order{Kind: control.Drop, Owner: bob})
			p.run(2 * time.Second)
			if !at(p, factory) {
				t.Error("they did not stay")
			}
		})
	}
	p.t = t
	p.claim("robot.body.wheel")
	if r := p.ask(p.set(0, map[string]float64{"wheelL.PGain": math.NaN()})); r.Code != control.Invalid {
		t.Errorf("no number: %+v", r)
	}
	p.ask(p.set(0, map[string]float64{"wheelL.PGain": 55, "wheelL.IGain": 3}))
	p.until("own gains", func() bool { return at(p, map[string]float64{"wheelL.PGain": 55, "wheelL.IGain": 3}) })
	p.end() // robotd ends while the owner is there
	p = placeOf(t, p.sim, nil)
	p.until("gains", func() bool { return p.value("wheelL.PGain") > 0 })
	if !at(p, factory) {
		t.Errorf("the next robotd finds a P gain of %v and an I gain of %v", p.value("wheelL.PGain"), p.value("wheelL.IGain"))
	}
}

// TestSounds: a stored sound plays by its number, also twice, without a claim; mute silences all until it is taken back (AMIGO-SND-04).
func TestSounds(t *testing.T) {
	var played []int
	p := newPlace(t, amigobotsim.Config{OnSound: func(s amigobotsim.Sound) { played = append(played, s.Number) }})
	p.run(time.Second)
	played = nil
	for _, goal := range []map[string]float64{{"speaker.play": 5}, {"speaker.play": 5}, {"speaker.play": 6}, {"speaker.mute": 1}, {"speaker.play": 7},
		{"speaker.mute": 0}, {"speaker.play": 8}} {
		if goal["speaker.play"] == 7 { // in another session
			p.sim.BrownOut()
			p.run(10 * time.Second)
			played = played[:3]
		}
		if r := p.ask(p.set(0, goal)); r.Code != control.OK || r.Underway {
			t.Errorf("%v: %+v", goal, r)
		}
		p.run(time.Second)
	}
	if want := []int{5, 5, 6, 8}; !slices.Equal(played, want) {
		t.Errorf("played %v, want %v", played, want)
	}
	for _, n := range []float64{0, 256, -1, math.NaN()} {
		if r := p.ask(p.set(0, map[string]float64{"speaker.play": n})); r.Code != control.Invalid {
			t.Errorf("sound %v: %+v, want it refused", n, r)
		}
	}
}
