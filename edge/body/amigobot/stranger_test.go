package amigobot_test

import (
	"math"
	"testing"
	"time"

	"kennel/edge/body/amigobot/amigobotsim"
	"kennel/edge/body/amigobot/sip"
	"kennel/edge/core/control"
	"kennel/edge/motion"
)

// stranger is an AmigoBot as AMRISim plays it, from its published behaviour: before a session it takes CLOSE for SYNC2; it always says that it does not move, sends headings in whole degrees
// and speeds in mm/s whatever the unit, all eight ranges in each packet, 5 m for no echo, no encoders and no gains. A collision sets both stall bits
// and takes the speed away, in a straight drive alone.
type stranger struct {
	*amigobotsim.Stepped
	parser      sip.Parser
	cycles      int
	synced      uint8 // the next SYNC; 3: OPEN, 4: it is open
	misled      bool  // by a SYNC out of turn, or CLOSE: the genuine one ends the connection soon
	motors      bool
	goal, speed [2]float64 // m/s, rad/s
	heard       [2]float64 // the goal of the cycle before, which it drives by
	pose        [3]float64
	wall, sides float64 // m from the start to a wall ahead, and to one at each side; 0: none
	person      bool    // walks ahead of it at its speed; a wall is behind it
	held, hit   bool    // a hand holds it; it is in a collision
}

const strangerNose = 0.165 // m

func newStranger(t *testing.T, wall float64) (*place, *stranger) {
	t.Helper()
	r, err := amigobotsim.New(amigobotsim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := &stranger{Stepped: amigobotsim.NewStepped(r), wall: wall}
	s.Period = s.period
	return placeOf(t, s.Stepped, nil).claim("robot.body.wheel"), s
}

func (s *stranger) period() {
	s.Time = s.Next
	s.Next += 10 * ms
	n := copy(s.parser.Space(), s.In)
	s.parser.Fill(n)
	s.In = s.In[:0]
	for payload, ok := s.parser.Next(); ok; payload, ok = s.parser.Next() {
		if c, err := sip.ParseCommand(payload); err == nil {
			s.obey(c)
		}
	}
	if s.cycles++; s.cycles%10 == 0 && s.synced == 4 {
		s.move(0.1)
		s.report()
	}
}

func (s *stranger) obey(c sip.Command) {
	v := float64(c.Value())
	switch {
	case s.synced < 3 && c.Number <= sip.Sync2:
		s.misled = s.misled || c.Number != s.synced
		if s.synced = c.Number + 1; c.Number == sip.Sync2 {
			id := sip.Identity{Name: "MobileSim", Class: "Pioneer", Subclass: "amigo"}
			s.Out, _ = id.Append(s.Out)
		} else {
			s.Out, _ = c.Append(s.Out)
		}
	case s.synced < 3:
	case c.Number == sip.Close:
		s.synced, s.motors = 0, false
	case s.synced == 3:
		if c.Number == sip.Open {
			s.synced = 4
		}
	case c.Number == sip.GetConfig:
		config := sip.Config{Type: "Pioneer", Subtype: "amigo", Name: "MobileSim"}
		s.Out, _ = config.Append(s.Out)
	case c.Number == sip.Enable:
		s.motors, s.goal = v != 0, [2]float64{}
	case c.Number == sip.Vel:
		s.goal[0] = v / 1000
	case c.Number == sip.RVel:
		s.goal[1] = v * degree
	case c.Number == sip.Stop, c.Number == sip.EStop:
		s.goal = [2]float64{}
	}
}

// move lets dt seconds pass.
func (s *stranger) move(dt float64) {
	if !s.motors {
		s.goal, s.heard, s.speed = [2]float64{}, [2]float64{}, [2]float64{}
	}
	const fastest = 50 * degree                                      // rad/s, whatever it is sent
	for i, most := range [...]float64{0.5 * dt, 115 * degree * dt} { // as our driver sets them
		goal := s.heard[i]
		if i == 1 {
			goal = min(max(goal, -fastest), fastest)
		}
		s.speed[i] += min(max(goal-s.speed[i], -most), most)
	}
	s.heard = s.goal
	sin, cos := math.Sincos(s.pose[2])
	x := s.pose[0] + s.speed[0]*cos*dt
	s.hit = s.speed[0] != 0 && (s.held || s.wall > 0 && x > s.wall-strangerNose)
	if s.hit || s.held {
		s.speed = [2]float64{}
		return
	}
	s.pose = [3]float64{x, s.pose[1] + s.speed[0]*sin*dt, math.Remainder(s.pose[2]+s.speed[1]*dt, 2*math.Pi)}
}

func (s *stranger) report() {
	turn := math.Round(s.pose[2] / degree)
	coordinate := func(m float64) uint16 { return uint16(int(math.Round(m*1000)/0.5083)) & 0x7fff }
	p := sip.Standard{X: coordinate(s.pose[0]), Y: coordinate(s.pose[1]), Th: int16(turn * degree / 0.001534),
		Left: int16(1000*s.speed[0] - s.speed[1]/0.011), Right: int16(1000*s.speed[0] + s.speed[1]/0.011), Battery: 130, Flags: 0x1e,
		Extra: []byte{130, 0, 0, 0, 0, 0, 0, 0x81, 0}}
	if s.motors {
		p.Flags |= sip.FlagMotors
	}
	if s.hit {
		p.Bumpers = sip.StallLeft | sip.StallRight
	}
	for i := range byte(8) {
		r := 5.0
		if s.wall > 0 && (i == 2 || i == 3) && math.Abs(turn) < 60 {
			r = min(r, (s.wall-s.pose[0]-0.144)/math.Cos(s.pose[2]+15*degree))
		}
		if bearing := [...]float64{90, 41, 15, 15, 41, 90, 145, 145}[i]; s.sides > 0 { // without a beam, it hears a wall at any angle
			r = min(r, (s.sides-0.06)/math.Sin(bearing*degree))
		}
		switch {
		case s.person && (i == 2 || i == 3):
			r = 1
		case s.person && i > 5:
			r = (1 + s.pose[0]) / math.Cos(35*degree)
		}
		p.Sonar = append(p.Sonar, sip.Reading{Sonar: i, Range: uint16(1000 * r)})
	}
	s.Out, _ = p.Append(s.Out)
}

// TestStranger: the simulator of a stranger gives power for at most 1 s without progress, ends no drive that makes progress, and stops when a motion ends
// (issue 28: what must hold 4).
func TestStranger(t *testing.T) {
	const person = -1
	for _, tc := range []struct {
		name    string
		wall    float64
		sides   float64
		order   func(p *place) control.Order
		held    time.Duration // from then on; 0: never
		outcome motion.Outcome
	}{
		{"a wall", 0.8, 0, drive(0.3, 0), 0, motion.Blocked},
		{"a wall, slowly", 0.2, 0, drive(0.02, 0), 0, motion.Blocked},
		{"held", 0, 0, drive(0.3, 0), 2 * time.Second, motion.Blocked},
		{"held while it turns", 0, 0, drive(0, 0.8), 2 * time.Second, motion.Blocked},
		{"held from the start", 0, 0, drive(0.3, 0), 1, motion.Blocked},
		{"a way to a wall", 0.8, 0, way(control.Go, 3), 0, motion.Blocked},
		{"a hall", 0, 0, drive(0.3, 0), 0, motion.Expired},
		{"a hall, slowly", 0, 0, drive(0.02, 0), 0, motion.Expired},
		{"to a wall far away", 4.5, 0, drive(0.2, 0), 0, motion.Expired},
		{"a turn on the spot", 0, 0, drive(0, 0.5), 0, motion.Expired},
		{"a slow turn on the spot", 3, 0, drive(0, 0.05), 0, motion.Expired},
		{"a corridor", 0, 0.7, drive(0.3, 0), 0, motion.Expired},
		{"behind a person", 0, person, drive(0.2, 0), 0, motion.Expired},
		{"a curve", 0, 0, drive(0.2, 0.2), 0, motion.Expired},
		{"a way", 0, 0, way(control.Go, 0.5), 0, motion.Done},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, s := newStranger(t, tc.wall)
			s.held, s.sides, s.person = tc.held == 1, max(tc.sides, 0), tc.sides == person
			if s.misled {
				t.Fatal("the handshake misled it")
			}
			o := tc.order(p)
			o.For = 10 * time.Second
			if r := p.ask(o); r.Code != control.OK {
				t.Fatalf("%+v", r)
			}
			at, last := s.pose, p.sim.Now()
			held, ended := last+tc.held, last
			for until := last + atMost; p.report.Parts[0].Outcome == motion.Running || s.goal != [2]float64{}; p.step() {
				s.held = s.held || tc.held > 1 && p.sim.Now() > held
				if math.Hypot(s.pose[0]-at[0], s.pose[1]-at[1])+math.Abs(s.pose[2]-at[2]) > 1e-3 || !s.motors {
					at, last = s.pose, p.sim.Now()
				}
				if p.sim.Now()-last > time.Second {
					t.Fatalf("power for more than %v without progress: %+v", time.Second, s)
				}
				if p.report.Parts[0].Outcome == motion.Running {
					ended = p.sim.Now()
				}
				if p.sim.Now() > until || p.sim.Now() > ended+time.Second {
					t.Fatal("it drives on")
				}
			}
			if end := p.ended(); end.Outcome != tc.outcome {
				t.Errorf("%v, %v, want %v", end.Outcome, end.Stop.Words(), tc.outcome)
			}
		})
	}
}

// TestStrangerTurns: a turn is done when the robot is at rest, not while it is still slowing down, and the turn that it made is told
// (issue 31, 5c: up to 8 degrees more before).
func TestStrangerTurns(t *testing.T) {
	p, s := newStranger(t, 0)
	for _, want := range []float64{1.5, -3, 0.3, -0.1, math.Pi} {
		from := s.pose[2]
		if r := p.ask(way(control.Turn, want)(p)); r.Code != control.OK {
			t.Fatalf("%+v", r)
		}
		for until := p.sim.Now() + atMost; p.report.Parts[0].Outcome == motion.Running; p.step() {
			if p.sim.Now() > until {
				t.Fatal("it does not end")
			}
		}
		end := p.ended()
		for until := p.sim.Now() + time.Second; p.sim.Now() < until; p.step() {
		}
		if turned := math.Remainder(s.pose[2]-from-want, 2*math.Pi); end.Outcome != motion.Done || math.Abs(turned) > 2*degree || math.Abs(end.Moved-want) > 2*degree {
			t.Errorf("turn of %.2f: %v, off by %.1f degrees, told %.2f", want, end.Outcome, turned/degree, end.Moved)
		}
	}
}
