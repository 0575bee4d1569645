package aibo_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/aibosim"
	"kennel/edge/body/aibo/jointlink"
	"kennel/edge/body/bodytest"
	"kennel/edge/core/control"
	"kennel/edge/core/control/controltest"
	"kennel/edge/motion"
	"kennel/edge/robot/claim"
	"kennel/edge/sim/uart"
	"kennel/infra/api/poke"
)

const (
	ms  = time.Millisecond
	deg = math.Pi / 180
)

// place is an AIBO in simulated time: loop, control and driver over the bytes of the simulated body.
type place struct {
	*controltest.Place
	sim    *aibosim.Stepped
	driver *aibo.Driver
}

func run(t *testing.T, model aibo.Model, cfg aibosim.Config, script func(p *place)) {
	t.Helper()
	r, err := aibosim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{sim: aibosim.NewStepped(r)}
	m, err := aibo.ModelOf(model)
	if err != nil {
		t.Fatal(err)
	}
	if p.driver, err = aibo.Open(t.Context(), aibo.Config{Device: "simulated", Port: p.sim}); err != nil {
		t.Fatal(err)
	}
	controltest.Run(t, m, p.sim, p.driver, func(c *controltest.Place) {
		p.Place = c
		script(p)
	})
}

// TestBody: the driver is a body as every other, on a socket in real time.
func TestBody(t *testing.T) {
	models := []aibo.Model{aibo.ERS7}
	if os.Getenv("KENNEL_SOAK") == "1" {
		models = aibo.Models
	}
	for _, m := range models {
		t.Run(m.String(), func(t *testing.T) {
			bodytest.Run(t, func(t *testing.T) body.Body {
				angles := map[string]float64{"MOUTH": -20, "TAIL_VERT": 20} // where these can move as the suite asks; not every model has them
				maps.DeleteFunc(angles, func(native string, _ float64) bool {
					return !slices.ContainsFunc(aibo.Joints(m), func(j aibo.Joint) bool { return j.Native == native })
				})
				r, err := aibosim.New(aibosim.Config{Model: m, Angles: angles})
				if err != nil {
					t.Fatal(err)
				}
				dir, err := os.OpenRoot(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				defer dir.Close() // the socket has its own
				line, err := uart.ListenSocket(dir, "body")
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error, 1)
				go func() { done <- r.Run(ctx, line) }()
				t.Cleanup(func() {
					cancel()
					if err := errors.Join(<-done, line.Close()); err != nil {
						t.Error(err)
					}
				})
				d, err := aibo.Open(t.Context(), aibo.Config{Device: dir.Name() + "/body"})
				if err != nil {
					t.Fatal(err)
				}
				return d
			})
		})
	}
}

// TestHead: the head of each model turns to the left by its standard name, in rad, and the tree says where it is (MTN-60, GOSTAI-MAP-I-04).
func TestHead(t *testing.T) {
	for _, m := range aibo.Models {
		run(t, m, aibosim.Config{Model: m}, func(p *place) {
			p.Claim("robot.body.head.yaw")
			r := p.Move(p.Goals(map[string]float64{"headYaw.angle": 0.5}))
			if r.Outcome != motion.Done || math.Abs(p.Value("headYaw.angle")-0.5) > 0.03 || math.Abs(p.sim.State().Angles["HEAD_YAW"]-0.5/deg) > 2 {
				t.Errorf("%v: %+v; the tree says %v, really %v degrees", m, r, p.Value("headYaw.angle"), p.sim.State().Angles["HEAD_YAW"])
			}
			r = p.Move(p.Goals(map[string]float64{"headYaw.angle": 3})) // beyond its range
			if hi := 89.6 * deg; m != aibo.ERS7 && (math.Abs(p.Value("headYaw.angle")-hi) > 0.03 || r.Outcome != motion.Done) {
				t.Errorf("%v: it went to %v, its range ends at %v", m, p.Value("headYaw.angle"), hi)
			}
		})
	}
}

// TestSigns: a knee that bends forward as AIBO counts turns by a negative angle of the device, an outward right leg too (MTN-60).
func TestSigns(t *testing.T) {
	run(t, aibo.ERS210, aibosim.Config{Model: aibo.ERS210}, func(p *place) {
		p.Claim("robot.body.leg")
		p.Move(p.Goals(map[string]float64{"kneeFL.angle": -1, "hipRollFR.angle": -0.5, "hipRollFL.angle": 0.5}))
		a := p.sim.State().Angles
		for native, want := range map[string]float64{"FL_LEG_KNEE": 1 / deg, "FR_LEG_LAT": 0.5 / deg, "FL_LEG_LAT": 0.5 / deg} {
			if math.Abs(a[native]-want) > 2 {
				t.Errorf("%s is at %v degrees, want %v", native, a[native], want)
			}
		}
	})
}

// TestStandUp: the body gets up from sleep to stand by way of sitting, does not fall, feels its four paws, and holds its weight when its owner is gone.
func TestStandUp(t *testing.T) {
	for _, m := range aibo.Models {
		run(t, m, aibosim.Config{Model: m}, func(p *place) {
			p.Claim("robot.body")
			for _, word := range []string{"sit", "stand"} {
				if r := p.Move(within(p.to(m, word), 2*time.Second)); r.Outcome != motion.Done {
					t.Fatalf("%v, %s: %+v, %+v", m, word, r, p.sim.State())
				}
			}
			s := p.sim.State()
			if s.Falls != 0 || s.Stance.Paws() != 15 || p.Value("touchFL.pressure") != 1 || p.Value("touchBR.pressure") != 1 || p.Report.Posture != "on its paws" {
				t.Errorf("%v on its paws: %+v, %q", m, s, p.Report.Posture)
			}
			high := s.Stance.Height
			p.Control.Post(control.Order{Kind: control.Drop, Owner: controltest.Alice})
			p.Wait(time.Second)
			if s := p.sim.State(); s.Asleep || math.Abs(s.Stance.Height-high) > 0.003 {
				t.Errorf("%v: alone it is %v high, before it was %v", m, s.Stance.Height, high)
			}
		})
	}
}

// to returns the order to a nominal posture.
func (p *place) to(m aibo.Model, word string) control.Order {
	p.Helper()
	angles, _ := aibo.Posture(m, word)
	goals := map[string]float64{}
	for _, j := range aibo.Joints(m) {
		if j.Speed > 0 && j.Native != "MOUTH" && j.Native[:4] != "TAIL" {
			goals[j.Path+".angle"] = float64(j.Sign) * angles[j.Native] * deg
		}
	}
	return p.Goals(goals)
}

func within(o control.Order, d time.Duration) control.Order {
	o.Within = d
	return o
}

// TestFalls: a body whose legs swing back falls on its nose; its programs hear of it, and a person puts it on its paws again.
func TestFalls(t *testing.T) {
	angles, _ := aibo.Posture(aibo.ERS7, "stand")
	run(t, aibo.ERS7, aibosim.Config{Angles: angles}, func(p *place) {
		p.Wait(100 * ms)
		if s := p.sim.State(); s.Fell || s.Stance.Paws() != 15 {
			t.Fatalf("it begins with %+v", s)
		}
		p.Claim("robot.body")
		p.Move(within(p.Goals(map[string]float64{"robot.body.leg[front][left].hip.pitch.angle": 1.2, "robot.body.leg[front][right].hip.pitch.angle": 1.2,
			"robot.body.leg[back][left].hip.pitch.angle": 1.2, "robot.body.leg[back][right].hip.pitch.angle": 1.2}), time.Second))
		s := p.sim.State()
		heard := slices.ContainsFunc(p.Events, func(e control.Event) bool { return e.Name == "robot.fell" && e.Warning })
		if !s.Fell || s.Falls == 0 || !heard || p.Report.Posture != "fallen" {
			t.Errorf("%+v, events %+v, posture %q", s, p.Events, p.Report.Posture)
		}
		for side, want := range map[string]string{poke.Back: "on its back", poke.Left: "on its side"} {
			if err := p.sim.Poke(poke.Poke{Verb: poke.Turn, Side: side}); err != nil {
				t.Error(err)
			}
			p.Wait(50 * ms)
			if p.Report.Posture != want {
				t.Errorf("laid on its %s it is %q", side, p.Report.Posture)
			}
		}
		if err := p.sim.Poke(poke.Poke{Verb: poke.Lift}); err != nil {
			t.Error(err)
		}
		p.Move(within(p.to(aibo.ERS7, "stand"), time.Second))
		if p.Value("touchFL.pressure") != 0 {
			t.Error("a paw feels the floor in the air")
		}
		if err := p.sim.Poke(poke.Poke{Verb: poke.Put}); err != nil {
			t.Error(err)
		}
		p.Wait(50 * ms)
		if s := p.sim.State(); s.Fell || s.Stance.Paws() != 15 || p.Value("touchFL.pressure") != 1 {
			t.Errorf("put down: %+v", s)
		}
	})
}

// TestOwners: a joint is its owner's alone, two programs share a body, an order for what a body cannot do is refused, and so is one beyond reason.
func TestOwners(t *testing.T) {
	run(t, aibo.ERS310, aibosim.Config{Model: aibo.ERS310}, func(p *place) {
		o := p.Goals(map[string]float64{"headYaw.angle": 0.3})
		if r := p.Ask(o); r.Code != control.NotHeld {
			t.Errorf("without a claim: %+v", r)
		}
		p.Claim("robot.body.head.yaw")
		bob := claim.Owner(3)
		set, err := p.Control.Actuators("robot.body.neck.pitch")
		if err != nil {
			t.Fatal(err)
		}
		p.Control.Post(control.Order{Kind: control.Claim, Owner: bob, Request: 900, Set: set, Priority: claim.Person})
		if r := p.Result("bob's claim", func(r control.Result) bool { return r.Owner == bob }); r.Code != control.OK {
			t.Errorf("the neck is another's: %+v", r)
		}
		if r := p.Ask(control.Order{Kind: control.Go, A: 1, For: time.Second}); r.Code != control.Unable && r.Code != control.NotHeld {
			t.Errorf("it walks: %+v", r)
		}
		bad := p.Goals(map[string]float64{"headYaw.angle": math.NaN()})
		if r := p.Ask(bad); r.Code != control.Invalid {
			t.Errorf("not a number: %+v", r)
		}
	})
}

// TestEars: an ear knows two positions (MTN-U03), and the mouth is a plain motor in rad.
func TestEars(t *testing.T) {
	run(t, aibo.ERS7, aibosim.Config{}, func(p *place) {
		p.Claim("robot.body.head")
		p.Move(p.Goals(map[string]float64{"earL.val": 0.2, "earR.val": 0.05, "mouth.val": -0.5}))
		a := p.sim.State().Angles
		for native, want := range map[string]float64{"LEFT_EAR": aibo.EarTurn / deg, "RIGHT_EAR": 0, "MOUTH": -0.5 / deg} {
			if math.Abs(a[native]-want) > 2 {
				t.Errorf("%s is at %v degrees, want %v", native, a[native], want)
			}
		}
		if math.Abs(p.Value("mouth.val")+0.5) > 0.03 {
			t.Errorf("the mouth reads %v", p.Value("mouth.val"))
		}
	})
}

// TestBlocked: a joint that a hand holds is blocked, works at its limit meanwhile, and reaches its goal when it is let go.
func TestBlocked(t *testing.T) {
	run(t, aibo.ERS220, aibosim.Config{Model: aibo.ERS220}, func(p *place) {
		p.Claim("robot.body.head.yaw")
		if err := p.sim.Hold("HEAD_YAW", true); err != nil {
			t.Fatal(err)
		}
		o := p.Goals(map[string]float64{"headYaw.angle": -0.4})
		if r := p.Move(o); r.Outcome != motion.Blocked || p.Value("headYaw.torque") > -0.9*aibo.Torque {
			t.Errorf("%+v, torque %v", r, p.Value("headYaw.torque"))
		}
		if err := p.sim.Hold("HEAD_YAW", false); err != nil {
			t.Fatal(err)
		}
		if r := p.Move(o); r.Outcome != motion.Done {
			t.Errorf("let go: %+v", r)
		}
		if p.sim.Hold("MOUTH", true) == nil {
			t.Error("an ERS-220 has no mouth")
		}
	})
}

// TestBattery: the level is published, low is an event, and an empty battery moves nothing.
func TestBattery(t *testing.T) {
	run(t, aibo.ERS7, aibosim.Config{Volts: 7.4}, func(p *place) {
		p.Wait(50 * ms)
		if v, remain := p.Value("battery.voltage"), p.Value("battery.remain"); math.Abs(v-7.4) > 0.01 || math.Abs(remain-0.5) > 0.01 {
			t.Errorf("%v V, %v left", v, remain)
		}
		p.sim.SetVolts(6.9)
		p.Wait(50 * ms)
		if !slices.ContainsFunc(p.Events, func(e control.Event) bool { return e.Name == "battery.low" }) {
			t.Errorf("events %+v", p.Events)
		}
		before := p.sim.State().Volts
		p.Wait(20 * time.Second)
		if after := p.sim.State().Volts; after >= before {
			t.Errorf("%v V became %v", before, after)
		}
		p.sim.Charge(true)
		p.Wait(20 * time.Second)
		if s := p.sim.State(); s.Volts <= before-0.01 || p.Report.Supply&body.OnCharger == 0 {
			t.Errorf("on its charger: %v V, %v", s.Volts, p.Report.Supply)
		}
	})
}

// TestWatchdog: a body that hears nothing takes the power from its joints, and the loop that hears nothing of its body stops them.
func TestWatchdog(t *testing.T) {
	r, err := aibosim.New(aibosim.Config{Model: aibo.ERS210})
	if err != nil {
		t.Fatal(err)
	}
	g := jointlink.Goals{N: 20, Joints: [jointlink.MaxJoints]jointlink.Goal{1: {Held: true, Position: 1_500_000}}} // the head, to its left
	out := r.Step(jointlink.AppendGoals(nil, &g), nil)
	for range 10 {
		out = r.Step(nil, out[:0])
	}
	moving := r.State()
	for range 200 {
		r.Step(nil, nil)
	}
	asleep := r.State()
	for range 20 {
		r.Step(nil, nil)
	}
	if later := r.State(); moving.Asleep || !asleep.Asleep || later.Angles["HEAD_YAW"] != asleep.Angles["HEAD_YAW"] || asleep.Angles["HEAD_YAW"] < moving.Angles["HEAD_YAW"]+3 {
		t.Errorf("at %v, then %v and %v", moving.Angles["HEAD_YAW"], asleep.Angles["HEAD_YAW"], later.Angles["HEAD_YAW"])
	}
	for _, bad := range []jointlink.Goals{{N: 19}, {N: 0}} {
		r.Step(jointlink.AppendGoals(nil, &bad), nil)
	}
	if n := r.State().Refused; n != 2 {
		t.Errorf("%d frames refused, want those with another number of joints", n)
	}
}

// TestOtherBody: a loop made for one model leads no other one, and says that it does not hear its body.
func TestOtherBody(t *testing.T) {
	run(t, aibo.ERS7, aibosim.Config{Model: aibo.ERS210}, func(p *place) {
		p.Claim("robot.body.head.yaw")
		if r := p.Ask(p.Goals(map[string]float64{"headYaw.angle": 0.3})); r.Code != control.Refused || r.Stop&motion.Link == 0 {
			t.Errorf("%+v", r)
		}
	})
}

// TestNobody: a line at whose end nothing answers, or something else does.
func TestNobody(t *testing.T) {
	for name, says := range map[string][]byte{
		"silent":          nil,
		"noise":           []byte("hello, is this the robot?"),
		"another version": append(jointlink.AppendIdentity(nil, jointlink.Identity{Version: 9, Model: 7, Joints: 20}), jointlink.AppendState(nil, &jointlink.State{N: 20})...),
		"another model":   append(jointlink.AppendIdentity(nil, jointlink.Identity{Version: 1, Model: 999, Joints: 20}), jointlink.AppendState(nil, &jointlink.State{N: 20})...),
		"too few joints":  append(jointlink.AppendIdentity(nil, jointlink.Identity{Version: 1, Model: 7, Joints: 3}), jointlink.AppendState(nil, &jointlink.State{N: 3})...),
	} {
		line := &uart.Stepped{Time: time.Hour, Next: time.Hour + 8*ms}
		line.Period = func() {
			line.Time, line.Next = line.Next, line.Next+8*ms
			line.Out = append(line.Out, says...)
			line.In = line.In[:0]
		}
		d, err := aibo.Open(t.Context(), aibo.Config{Device: name, Port: line})
		if err == nil || d != nil || (len(says) == 0) != errors.Is(err, aibo.ErrNoAnswer) && name != "noise" {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}
