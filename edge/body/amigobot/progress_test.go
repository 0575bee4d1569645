package amigobot_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"kennel/edge/body/amigobot/amigobotsim"
	"kennel/edge/core/control"
	"kennel/edge/motion"
	"kennel/edge/sim/plane"
	"kennel/infra/api/poke"
)

// box is a room of walls at these distances from the robot: ahead, to its left, behind and to its right, m.
func box(ahead, left, behind, right float64) *plane.Map {
	a, b, c, d := plane.Vec{ahead, left}, plane.Vec{-behind, left}, plane.Vec{-behind, -right}, plane.Vec{ahead, -right}
	return &plane.Map{Walls: []plane.Wall{{From: a, To: b}, {From: b, To: c}, {From: c, To: d}, {From: d, To: a}}}
}

func drive(v, w float64) func(p *place) control.Order {
	return func(p *place) control.Order {
		return p.set(time.Minute, map[string]float64{"robot.xSpeed": v, "robot.yawSpeed": w})
	}
}

func wheelsAt(l, r float64) func(p *place) control.Order {
	return func(p *place) control.Order {
		return p.set(time.Minute, map[string]float64{"wheelL.speed": l, "wheelR.speed": r})
	}
}

func way(k control.Kind, a float64) func(p *place) control.Order {
	return func(*place) control.Order { return control.Order{Kind: k, A: a, For: time.Minute} }
}

func hold(left, right bool) func(p *place) {
	return func(p *place) { p.sim.SetFaults(amigobotsim.Faults{Blocked: [2]bool{left, right}}) }
}

func lift(height float64) func(p *place) {
	return func(p *place) {
		if err := p.sim.InWorld(func(w *plane.World) error {
			return w.Poke(poke.Poke{Verb: poke.Lift, Args: map[string]float64{poke.Height: height}})
		}); err != nil {
			p.t.Fatal(err)
		}
	}
}

func wheelsOff(p *place) { p.sim.SetFaults(amigobotsim.Faults{Off: [2]bool{true, true}}) }

// TestNoProgress: the motors have power for at most 1 s without progress, whatever keeps the robot where it is, and the owner hears why (issue 28:
// what must hold 4).
func TestNoProgress(t *testing.T) {
	wall := &plane.Map{Walls: []plane.Wall{{From: plane.Vec{0.5, -1}, To: plane.Vec{0.5, 1}}}}
	aslant := &plane.Map{Walls: []plane.Wall{{From: plane.Vec{0.3, -1}, To: plane.Vec{0.8, 1}}}}
	for _, tc := range []struct {
		name    string
		world   *plane.Map
		order   func(p *place) control.Order
		happens func(p *place) // while it drives; nil: the world is in its way
		before  func(p *place) // the order
		outcome motion.Outcome
	}{
		{"a wall, 30 cm/s", wall, drive(0.3, 0), nil, nil, motion.Blocked},
		{"a wall, 10 cm/s", wall, drive(0.1, 0), nil, nil, motion.Blocked},
		{"a wall, 2 cm/s", &plane.Map{Walls: []plane.Wall{{From: plane.Vec{0.2, -1}, To: plane.Vec{0.2, 1}}}}, drive(0.02, 0), nil, nil, motion.Blocked},
		{"a wall behind", &plane.Map{Walls: []plane.Wall{{From: plane.Vec{-0.5, -1}, To: plane.Vec{-0.5, 1}}}}, drive(-0.2, 0), nil, nil, motion.Blocked},
		{"a wall in the way of a way", wall, way(control.Go, 2), nil, nil, motion.Blocked},
		{"a wall aslant", aslant, drive(0.3, 0), nil, nil, motion.Blocked},
		{"a wall, wheels set", wall, wheelsAt(4, 4), nil, nil, motion.Blocked},
		{"both wheels held", nil, drive(0.3, 0), hold(true, true), nil, motion.Blocked},
		{"both wheels held before the order", nil, drive(0.3, 0), nil, hold(true, true), motion.Blocked},
		{"both wheels held at 2 cm/s", nil, drive(0.02, 0), hold(true, true), nil, motion.Blocked},
		{"both wheels held at 1 cm/s", nil, drive(0.01, 0), hold(true, true), nil, motion.Blocked},
		{"the left wheel held", nil, drive(0.3, 0), hold(true, false), nil, motion.Blocked},
		{"the right wheel held", nil, wheelsAt(2, 2), hold(false, true), nil, motion.Blocked},
		{"held while it turns", nil, drive(0, 1), hold(true, true), nil, motion.Blocked},
		{"held while it turns by an angle", nil, way(control.Turn, 6), hold(true, true), nil, motion.Blocked},
		{"held in a curve", nil, drive(0.2, 0.5), hold(true, true), nil, motion.Blocked},
		{"a load that nearly stops it", nil, drive(0.3, 0), func(p *place) { p.sim.SetDrag(0.98, 0.98) }, nil, motion.Blocked},
		{"dead encoders", nil, drive(0.3, 0), func(p *place) { p.sim.SetFaults(amigobotsim.Faults{DeadEncoder: [2]bool{true, true}}) }, nil, motion.Blocked},
		{"lifted", box(1, 1.2, 1, 1.2), drive(0.3, 0), lift(0.2), nil, motion.Stopped},
		{"lifted, going back", box(0.5, 1.2, 1.4, 1.2), drive(-0.3, 0), lift(0.2), nil, motion.Stopped},
		{"lifted while it turns", box(0.9, 0.7, 1.3, 0.8), drive(0, 1), lift(0.2), nil, motion.Stopped},
		{"lifted while it turns by an angle", box(0.9, 0.7, 1.3, 0.8), way(control.Turn, 6), lift(0.2), nil, motion.Stopped},
		{"lifted above the walls", box(1.6, 1.2, 1, 1.2), drive(0.3, 0), lift(0.4), nil, motion.Stopped},
		{"lifted above the walls at 2 cm/s", box(1, 1.2, 1, 1.2), drive(0.02, 0), lift(0.4), nil, motion.Stopped},
		{"lifted before the order", box(1, 1.2, 1, 1.2), drive(0.4, 0), nil, func(p *place) { lift(0.2)(p); p.run(2 * time.Second) }, motion.Stopped},
		{"wheels off", box(1, 1.2, 1, 1.2), drive(0.3, 0), wheelsOff, nil, motion.Stopped},
		{"wheels off while it turns", box(0.9, 0.7, 1.3, 0.8), drive(0, 1), wheelsOff, nil, motion.Stopped},
		{"wheels off in a curve", box(1, 1.2, 1, 1.2), drive(0.3, 1), wheelsOff, nil, motion.Stopped},
		{"wheels off before the order", box(1, 1.2, 1, 1.2), drive(0.4, 0), nil, wheelsOff, motion.Stopped},
	} {
		for seed := range uint64(20) {
			ok := t.Run(fmt.Sprintf("%s/%d", tc.name, seed), func(t *testing.T) {
				cfg := amigobotsim.Config{World: tc.world, Seed: seed, SonarNoise: 0.01 * float64(seed%2)}
				if seed%4 > 1 {
					cfg.Memory = amigobotsim.NewMemory("1.3")
					if err := cfg.Memory.Params.Set("StallVal", "256"); err != nil { // no stall is ever reported
						t.Fatal(err)
					}
				}
				p := newPlace(t, cfg).claim("robot.body.wheel")
				p.run(time.Second)
				if tc.before != nil {
					tc.before(p)
				}
				if r := p.ask(tc.order(p)); r.Code != control.OK {
					t.Fatalf("%+v", r)
				}
				if tc.happens != nil {
					happens := p.sim.Now() + 1500*ms + time.Duration(seed)*37*ms
					p.until("it drives", func() bool { return p.sim.Now() > happens })
					tc.happens(p)
				}
				p.powered(tc.happens == nil && tc.before == nil)
				end := p.ended()
				if end.Outcome != tc.outcome || (end.Stop == motion.Lifted) != (tc.outcome == motion.Stopped) {
					t.Errorf("%v, %v; want %v", end.Outcome, end.Stop.Words(), tc.outcome)
				}
			})
			if !ok {
				break
			}
		}
	}
}

// TestRenewedOrders: an order that is given again five times a second, as by hand, gives the drive the same time.
func TestRenewedOrders(t *testing.T) {
	p := newPlace(t, amigobotsim.Config{}).claim("robot.body.wheel")
	hold(true, true)(p)
	p.ask(drive(0.3, 0)(p))
	began := p.sim.Now()
	for p.report.Parts[0].Outcome == motion.Running {
		if p.sim.Now()-began > time.Second {
			t.Fatal("it drives on")
		}
		p.request++
		o := drive(0.2+0.1*float64(p.request%2), 0)(p)
		o.Owner, o.Request = alice, p.request
		p.control.Post(o)
		p.run(200 * ms)
	}
	if got := p.report.Parts[0].Outcome; got != motion.Blocked {
		t.Errorf("it ended %v", got)
	}
}

// powered runs until the motors are off, and complains if they had power for more than 1 s without progress. Progress is measured in the world if
// something there is in the way, else there is none from now on.
func (p *place) powered(blocks bool) {
	p.t.Helper()
	at, last := p.truth(), p.sim.Now()
	for until := p.sim.Now() + atMost; p.sim.State().Motors || p.report.Parts[0].Outcome == motion.Running; p.step() {
		now := p.truth()
		if moved := math.Hypot(now[0]-at[0], now[1]-at[1]) + math.Abs(now[2]-at[2]); blocks && moved > 1e-3 {
			at, last = now, p.sim.Now()
		}
		if took := p.sim.Now() - last; took > time.Second && p.sim.State().PWM != [2]float64{} {
			p.t.Fatalf("power for more than %v without progress: %+v", took, p.sim.State())
		}
		if p.sim.Now() > until {
			p.t.Fatal("it drives on")
		}
	}
	p.t.Logf("%v", p.sim.Now()-last)
}

// TestDoubt: while a robot seems to be lifted it takes no new order, and says why; put down it obeys again, at once if its sonars hear something again.
func TestDoubt(t *testing.T) {
	for name, tc := range map[string]struct {
		height float64
		within time.Duration // of being put down
	}{"low": {0.2, 6 * time.Second}, "above the walls": {0.4, 2 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, amigobotsim.Config{World: box(1.6, 1.2, 1, 1.2)}).claim("robot.body.wheel")
			p.ask(drive(0.3, 0)(p))
			p.run(1500 * ms)
			lift(tc.height)(p)
			if end := p.ended(); end.Outcome != motion.Stopped || end.Stop != motion.Lifted {
				t.Fatalf("%+v", end)
			}
			if r := p.ask(drive(0.3, 0)(p)); r.Code != control.Refused || r.Stop != motion.Lifted {
				t.Errorf("another order: %+v", r)
			}
			p.run(3 * time.Second)
			if r := p.ask(way(control.Turn, 1)(p)); r.Code != control.Refused || p.sim.State().Motors {
				t.Errorf("later: %+v", r)
			}
			if err := p.sim.Poke(poke.Poke{Verb: poke.Put}); err != nil {
				t.Fatal(err)
			}
			down := p.sim.Now()
			p.until("an order is obeyed", func() bool { return p.ask(way(control.Go, 0.4)(p)).Code == control.OK })
			if took := p.sim.Now() - down; took > tc.within {
				t.Errorf("it obeys after %v, want %v", took, tc.within)
			}
			if end := p.ended(); end.Outcome != motion.Done {
				t.Errorf("%+v", end)
			}
		})
	}
}

// furnished is a room of random size with random fixed things, in whose middle is place for the robot.
func furnished(rng *rand.Rand) *plane.Map {
	m := box(1+4*rng.Float64(), 1+3*rng.Float64(), 1+4*rng.Float64(), 1+3*rng.Float64())
	m.Slip = 0.1 * rng.Float64()
	for range rng.IntN(12) {
		at := plane.Pose{8*rng.Float64() - 4, 6*rng.Float64() - 3, 0}
		if math.Hypot(at[0], at[1]) < 0.6 {
			continue
		}
		m.Objects = append(m.Objects, plane.Object{Shape: "disc", At: at, Radius: 0.02 + 0.2*rng.Float64(), Height: 0.5, Fixed: true})
	}
	return m
}

// TestProgress: nothing ends a drive that gets on: in a bare hall, along walls, slowly, on a soft carpet, on the spot.
func TestProgress(t *testing.T) {
	hall := &plane.Map{}
	wallLeft := func(y float64) plane.Wall { return plane.Wall{From: plane.Vec{-30, y}, To: plane.Vec{30, y}} }
	corridor := func(left, right float64, ends ...plane.Wall) *plane.Map {
		return &plane.Map{Walls: append([]plane.Wall{wallLeft(left), wallLeft(-right)}, ends...)}
	}
	carpet := func(p *place) { p.sim.SetDrag(0.2, 0.2) }
	mouth := &plane.Map{Walls: []plane.Wall{{From: plane.Vec{-9, 0.4}, To: plane.Vec{2, 0.4}}, {From: plane.Vec{-9, -0.4}, To: plane.Vec{2, -0.4}}}}
	for _, tc := range []struct {
		name   string
		world  *plane.Map
		order  func(p *place) control.Order
		before func(p *place)
		takes  time.Duration // until its deadline; 0: it has an end of its own
	}{
		{"an empty hall", hall, drive(0.3, 0), nil, 50 * time.Second},
		{"an empty hall, slowly", hall, drive(0.02, 0), nil, 50 * time.Second},
		{"an empty hall, a carpet", hall, drive(0.3, 0), carpet, 20 * time.Second},
		{"a carpet, slowly", hall, drive(0.02, 0), carpet, 20 * time.Second},
		{"a carpet, at 5 mm/s", hall, drive(0.005, 0), func(p *place) { p.sim.SetDrag(0.1, 0.1) }, 20 * time.Second},
		{"slower than the robot's steps", hall, drive(0.0004, 0.008), nil, 20 * time.Second},
		{"much slower than before", hall, drive(0.02, 0), func(p *place) { p.ask(drive(0.5, 0)(p)); p.run(3 * time.Second) }, 5 * time.Second},
		{"the other way", hall, drive(0.02, 0), func(p *place) { p.ask(drive(-0.5, 0)(p)); p.run(3 * time.Second) }, 5 * time.Second},
		{"the other way round", hall, drive(0, 0.1), func(p *place) { p.ask(drive(0, -2)(p)); p.run(3 * time.Second) }, 5 * time.Second},
		{"a carpet, slowly on the spot", hall, drive(0, 0.2), carpet, 20 * time.Second},
		{"a carpet, a way", hall, way(control.Go, 0.3), carpet, 0},
		{"a carpet, a short way", hall, way(control.Go, 0.02), carpet, 0},
		{"along a wall", &plane.Map{Walls: []plane.Wall{wallLeft(0.5)}}, drive(0.3, 0), nil, 50 * time.Second},
		{"along a wall, going back", &plane.Map{Walls: []plane.Wall{wallLeft(-0.4)}}, drive(-0.4, 0), nil, 50 * time.Second},
		{"along a wall, slowly", &plane.Map{Walls: []plane.Wall{wallLeft(0.3)}}, drive(0.02, 0), nil, 50 * time.Second},
		{"along a corridor", corridor(0.6, 0.7), drive(0.3, 0), nil, 50 * time.Second},
		{"along a corridor, going back", corridor(0.6, 0.7), drive(-0.3, 0), nil, 50 * time.Second},
		{"out of a corridor", mouth, drive(0.3, 0), nil, 20 * time.Second},
		{"out of a corridor, fast", mouth, drive(0.5, 0), nil, 15 * time.Second},
		{"to a wall, slowly", box(1, 1, 1, 1), drive(0.02, 0), nil, 30 * time.Second},
		{"to a wall far away", box(4, 3, 4, 3), drive(0.1, 0), nil, 35 * time.Second},
		{"from a wall", box(4, 3, 0.3, 3), drive(0.2, 0), nil, 15 * time.Second},
		{"to a wall aslant", &plane.Map{Walls: []plane.Wall{{From: plane.Vec{-2, -3}, To: plane.Vec{4, 3}}}}, drive(0.1, 0), nil, 8 * time.Second},
		{"on the spot in a square", box(1, 1, 1, 1), drive(0, 0.5), nil, 50 * time.Second},
		{"on the spot in a square, fast", box(1.5, 1.5, 1.5, 1.5), drive(0, 2), nil, 50 * time.Second},
		{"on the spot in a room", box(2, 1, 3, 0.7), drive(0, 1), nil, 50 * time.Second},
		{"on the spot in a corridor", corridor(0.7, 0.8), drive(0, -0.8), nil, 50 * time.Second},
		{"on the spot in a hall", hall, drive(0, 1), nil, 50 * time.Second},
		{"on the spot, slowly", box(2, 1, 3, 0.7), drive(0, 0.1), nil, 50 * time.Second},
		{"in a circle", box(1.5, 2, 1.5, 0.7), drive(0.2, 0.4), nil, 50 * time.Second},
		{"a turn", box(2, 1, 3, 0.7), way(control.Turn, 3), nil, 0},
		{"a slow turn of the wheels", hall, wheelsAt(-0.4, 0.4), nil, 20 * time.Second},
		{"a link that loses packets", hall, drive(0.02, 0), func(p *place) { p.sim.SetFaults(amigobotsim.Faults{Loss: 0.02}) }, 20 * time.Second},
		{"a slow link", hall, drive(0.3, 0), func(p *place) { p.sim.SetFaults(amigobotsim.Faults{Delay: 30 * ms}) }, 5 * time.Second},
		{"lifted where nothing is heard, which cannot be told from a hall", hall, drive(0.3, 0), lift(0.2), 5 * time.Second},
		{"a start", hall, drive(0.5, 0), nil, 2 * time.Second},
	} {
		for seed := range uint64(6) {
			if !t.Run(fmt.Sprintf("%s/%d", tc.name, seed), func(t *testing.T) {
				p := newPlace(t, amigobotsim.Config{World: tc.world, Seed: seed, SonarNoise: 0.01 * float64(seed%2), Throttle: seed%3 == 0}).claim("robot.body.wheel")
				if tc.before != nil {
					tc.before(p)
				}
				p.run(time.Duration(seed) * 137 * ms)
				o := tc.order(p)
				if tc.takes > 0 {
					o.For = tc.takes
				}
				if r := p.ask(o); r.Code != control.OK {
					t.Fatalf("%+v", r)
				}
				want := motion.Expired
				if tc.takes == 0 {
					want = motion.Done
				}
				end := p.ended()
				if end.Outcome == motion.Cancelled {
					end = p.ended() // of the order before
				}
				if end.Outcome != want {
					t.Errorf("it ended %v, %v at %v, want %v", end.Outcome, end.Stop.Words(), p.truth(), want)
				}
			}) {
				break
			}
		}
	}
}

// TestProgressOfRandomDrives: in random rooms no random drive is taken for one of a lifted robot, and none for a blocked one that moves.
func TestProgressOfRandomDrives(t *testing.T) {
	const life = 2 * time.Minute
	seeds := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 53, 58, 363} // the last four have things that are easily taken for one that stays where it is
	if os.Getenv("KENNEL_SOAK") == "1" {
		seeds = make([]uint64, 400)
		for i := range seeds {
			seeds[i] = uint64(i)
		}
	}
	lifted, blocked, drives := 0, 0, 0
	for _, seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 77))
		p := newPlace(t, amigobotsim.Config{World: furnished(rng), Seed: seed, SonarNoise: 0.01}).claim("robot.body.wheel")
		touched := time.Duration(0) // when something was in the way
		for end := p.sim.Now() + life; p.sim.Now() < end; {
			o := [...]func() control.Order{
				func() control.Order { return drive(rng.Float64()-0.5, 0)(p) },
				func() control.Order { return drive(0, 4*rng.Float64()-2)(p) },
				func() control.Order { return drive(rng.Float64()-0.5, 2*rng.Float64()-1)(p) },
				func() control.Order { return way(control.Go, 2*rng.NormFloat64())(p) },
				func() control.Order { return way(control.Turn, 2*rng.NormFloat64())(p) },
				func() control.Order { return drive(0.1*rng.Float64()-0.05, 0)(p) },
			}[rng.IntN(6)]()
			o.For = time.Duration(1+rng.IntN(6)) * time.Second
			drives++
			if r := p.ask(o); r.Code != control.OK {
				p.run(time.Second)
				continue
			}
			p.until("its end", func() bool {
				_ = p.sim.InWorld(func(w *plane.World) error {
					if w.State().Blocked {
						touched = p.sim.Now()
					}
					return nil
				})
				return slices.ContainsFunc(p.results, func(r control.Result) bool { return r.Code == control.Ended })
			})
			switch e := p.ended(); e.Outcome {
			case motion.Stopped:
				lifted++
				t.Logf("seed %d: %+v ended %v at %v", seed, o.Goals[:2], e.Stop.Words(), p.truth())
			case motion.Blocked:
				blocked++
				if p.sim.Now()-touched > time.Second {
					t.Errorf("seed %d: blocked by nothing at %v, touched %v ago; %v %v %v %+v", seed, p.truth(), p.sim.Now()-touched, o.Kind, o.A, o.Goals[:2], p.sim.State())
				}
			}
		}
		p.end()
	}
	t.Logf("%d drives, %d blocked, %d taken for lifted", drives, blocked, lifted)
	if lifted > 0 {
		t.Errorf("%d of %d drives were taken for lifted", lifted, drives)
	}
}
