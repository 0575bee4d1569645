package session

import (
	"math"
	"time"

	"kennel/edge/body/amigobot/sip"
)

// queue holds commands until they are sent, in order.
type queue struct {
	first, n int
	items    [16]struct {
		command sip.Command
		text    [sip.MaxText]byte
		baud    int // 0: the session's own
	}
}

// push returns ErrFull if there is no room, sip.ErrLength if the text is too long.
func (q *queue) push(c sip.Command, baud int) error {
	switch {
	case q.n == len(q.items):
		return ErrFull
	case len(c.Text) > sip.MaxText:
		return sip.ErrLength
	}
	it := &q.items[(q.first+q.n)%len(q.items)]
	q.n++
	it.command, it.baud = c, baud
	if c.Arg == sip.String {
		it.command.Text = it.text[:copy(it.text[:], c.Text)]
	}
	return nil
}

// put queues a command of the session itself. A full queue drops it; that keeps the watchdog fed as well, and a question is asked again.
func (s *Session) put(c sip.Command, baud int) { _ = s.queue.push(c, baud) }

// pop returns a command whose text is valid until the next push.
func (q *queue) pop() (sip.Command, int) {
	it := &q.items[q.first]
	q.first, q.n = (q.first+1)%len(q.items), q.n-1
	return it.command, it.baud
}

// drop replaces the matching commands with PULSE.
func (q *queue) drop(match func(number uint8) bool) {
	for i := range q.n {
		if it := &q.items[(q.first+i)%len(q.items)]; match(it.command.Number) {
			it.command = sip.Command{Number: sip.Pulse}
		}
	}
}

// goal is a set-point: a command that is sent three times when it changes and then each Idle, because some may get lost (AMIGO-PKT-11).
type goal struct {
	command sip.Command
	set     bool
	at      time.Duration // sent; never: not yet
	tries   int
}

// due reports whether it is to be sent.
func (g *goal) due(now time.Duration) bool {
	return g.set && (now-g.at >= Idle || g.tries < maxTries && now-g.at >= repeatAfter)
}

func (g *goal) to(c sip.Command) {
	if !g.set || g.command.Number != c.Number || g.command.Value() != c.Value() {
		*g = goal{command: c, set: true, at: never}
	}
}

// moves reports whether a command changes the motion of the robot.
func moves(number uint8) bool {
	switch number {
	case sip.Vel, sip.RVel, sip.Vel2, sip.Head, sip.DHead, sip.DCHead, sip.Move, sip.Rotate, sip.Stop, sip.EStop:
		return true
	}
	return false
}

// movesOrEnables also matches ENABLE.
func movesOrEnables(number uint8) bool { return moves(number) || number == sip.Enable }

// whole returns v as an integer that a command can carry; 0 if it is not a number.
func whole(v float64) int {
	if math.IsNaN(v) {
		return 0
	}
	return int(math.Round(max(-math.MaxUint16, min(v, math.MaxUint16))))
}

// Velocity sets the forward speed in m/s and the turning speed in rad/s, positive to the left. It reports whether the robot can take
// them: the session is ready and the motors are on.
func (s *Session) Velocity(v, w float64) bool {
	if !s.canMove() {
		return false
	}
	s.goals[0].to(sip.Int(sip.Vel, whole(v/sip.RangeUnit)))
	s.goals[1].to(sip.Int(sip.RVel, whole(w*180/math.Pi)))
	return true
}

// Wheels sets the speeds of both wheels in m/s, in steps of 20 mm/s up to 2.54 m/s. It reports the same as Velocity.
func (s *Session) Wheels(left, right float64) bool {
	if !s.canMove() {
		return false
	}
	step := func(v float64) byte { return byte(int8(max(-127, min(whole(v/sip.Vel2Unit), 127)))) }
	s.goals[0].to(sip.Packed(sip.Vel2, step(left), step(right)))
	s.goals[1] = goal{}
	return true
}

func (s *Session) canMove() bool {
	if s.state.Phase != Ready || !s.state.Motors {
		return false
	}
	s.forget(moves)
	return true
}

// Stop stops the robot with its set deceleration; the motors stay on. Like EStop and Enable(false) it goes before all commands that wait,
// at once, cancels those of them that move, and is sent again until something else is asked for.
func (s *Session) Stop() { s.stopWith(sip.Stop) }

// EStop stops the robot as fast as it can (AMIGO-MOT-10).
func (s *Session) EStop() { s.stopWith(sip.EStop) }

func (s *Session) stopWith(number uint8) {
	s.forget(moves)
	s.insist(sip.Command{Number: number})
}

// Enable switches the motors on, without set-points, or off. State.Motors says when they are. It returns ErrNotReady or ErrFull.
func (s *Session) Enable(on bool) error {
	if on {
		return s.Command(sip.Switch(sip.Enable, true))
	}
	s.forget(movesOrEnables)
	s.insist(sip.Switch(sip.Enable, false))
	return nil
}

// insist makes c the only set-point. Unless it has been sent already, it does not wait for Pacing.
func (s *Session) insist(c sip.Command) {
	if p := s.state.Phase; p == Opening || p == Ready || p == Stale {
		s.goals[0].to(c)
		s.goals[1] = goal{}
		s.hurry = s.goals[0].at == never
	}
}

// rest ends the set-points when the motors are off, so that a press of the robot's motor button does not bring them back. Stops stay, and
// ENABLE 0 stays until the robot has had the time to report its effect.
func (s *Session) rest() {
	switch g := &s.goals[0]; {
	case g.command.Number == sip.Stop, g.command.Number == sip.EStop:
	case g.command.Number == sip.Enable && (g.at == never || s.now-g.at < retryAfter):
	default:
		s.goals = [2]goal{}
	}
}

// forget cancels the commands that match: those in the queue and those whose effect has not shown yet.
func (s *Session) forget(match func(number uint8) bool) {
	s.queue.drop(match)
	kept := s.checks[:0]
	for _, c := range s.checks {
		if !match(c.command.Number) {
			kept = append(kept, c)
		}
	}
	s.checks = kept
}

// Command sends any command, after the waiting ones. If the robot reports a command's effect, the
// command is sent until the effect shows, at most three times, and then counted in
// Counts.Unconfirmed (AMIGO-PKT-11). A command that moves the robot ends Velocity, Wheels and Stop.
// Command returns ErrNotReady, ErrFull or sip.ErrLength.
func (s *Session) Command(c sip.Command) error {
	if s.state.Phase != Ready {
		return ErrNotReady
	}
	if err := s.queue.push(c, 0); err != nil {
		return err
	}
	if moves(c.Number) || c.Number == sip.Enable && s.goals[0].command.Number == sip.Enable {
		s.goals = [2]goal{}
	}
	return nil
}

// send appends at most one command to s.out.
func (s *Session) send() {
	if s.now-s.sent < Pacing && !s.hurry {
		return
	}
	if s.others && !s.hurry && s.sendOther() {
		s.others = false
		return
	}
	s.hurry = false
	for range s.goals {
		g := &s.goals[s.next]
		s.next = 1 - s.next
		if g.due(s.now) {
			g.at, s.others = s.now, true
			g.tries++
			s.emit(g.command)
			return
		}
	}
	if s.sendOther() || s.now-s.sent < Idle {
		return
	}
	if p := s.state.Phase; p == Opening || p == Ready || p == Stale {
		s.emit(sip.Command{Number: sip.Pulse})
	}
}

// sendOther sends a command again whose effect did not show, or the next of the queue.
func (s *Session) sendOther() bool {
	for i := range s.checks {
		if c := &s.checks[i]; c.again {
			s.emit(c.command)
			s.track(c.command)
			return true
		}
	}
	if s.queue.n == 0 {
		return false
	}
	c, baud := s.queue.pop()
	if baud != 0 {
		s.baud = baud
	}
	s.emit(c)
	s.track(c)
	return true
}

func (s *Session) emit(c sip.Command) {
	s.out, _ = c.Append(s.out) // the queue refuses a text that is too long
	s.sent = s.now
	s.state.Counts.Sent++
}

// maxChecks is the number of commands that have an effect to be seen, SETA and SETRA twice.
const maxChecks = 20

// check is a command whose effect is awaited.
type check struct {
	command sip.Command
	config  bool // the effect shows in a Config
	tries   int
	at      time.Duration // sent
	again   bool          // to be sent again
}

// same reports whether b sets the same quantity as a. A negative SETA or SETRA is a deceleration (AMIGO-CMD-05).
func same(a, b sip.Command) bool {
	return a.Number == b.Number && (a.Arg == b.Arg || a.Number != sip.SetA && a.Number != sip.SetRA)
}

// track awaits the effect of a command that was sent.
func (s *Session) track(c sip.Command) {
	_, _, config := s.setting(c)
	if config {
		if s.state.ConfigAt == 0 {
			return // the robot has none to show
		}
		s.ask()
	} else if _, known := s.shows(&check{command: c}); !known || s.state.Phase == Closing {
		return
	}
	if c.Number == sip.SoundTog {
		s.put(sip.Int(sip.GetPlaylist, 1), 0)
	}
	for i := range s.checks {
		if k := &s.checks[i]; same(k.command, c) {
			if !k.again {
				k.tries = 0
			}
			k.command, k.at, k.again = c, s.now, false
			k.tries++
			return
		}
	}
	s.checks = append(s.checks, check{command: c, config: config, tries: 1, at: s.now})
}

// confirm looks for the effects of commands in a new Config or in a new standard packet.
func (s *Session) confirm(config bool) {
	kept := s.checks[:0]
	for _, c := range s.checks {
		if c.config == config && !c.again {
			done, _ := s.shows(&c)
			switch {
			case done && c.command.Number == sip.SetO:
				s.place()
				continue
			case done:
				continue
			case !config && s.now-c.at < retryAfter:
			case c.tries >= maxTries || config && s.asks == configTries:
				s.state.Counts.Unconfirmed++
				s.state.Unconfirmed = c.command
				continue
			default:
				c.again = true
			}
		}
		kept = append(kept, c)
	}
	s.checks = kept
}

// shows reports whether the effect of a command shows, and whether it can show at all.
func (s *Session) shows(c *check) (done, known bool) {
	st, v := &s.state, c.command.Value()
	switch c.command.Number {
	case sip.Enable:
		return st.Motors == (v != 0), true
	case sip.Sonar:
		return st.SonarOn == (v != 0), true
	case sip.ADSel:
		return st.AnalogPort == v, true
	case sip.DigOut:
		mask, state := c.command.Unpack()
		return (st.Digout^state)&mask == 0, true
	case sip.Head:
		return near(st.Control, float64(v)*math.Pi/180), true
	case sip.SoundTog:
		return st.PlaylistAt > c.at && st.Playlist.On == (v != 0), true
	case sip.SetO:
		return s.atOrigin(), true
	}
	is, top, known := s.setting(c.command)
	return is == min(c.command.Int, top), known
}

// atOrigin reports whether the newest standard packet has the pose of a robot that has just set its origin. One that moves may have come
// as far as it can in a cycle, 256 units or an eighth of a turn.
func (s *Session) atOrigin() bool {
	x, y, th := sip.Unwrap(0, s.lastX), sip.Unwrap(0, s.lastY), s.state.Heading
	if !s.state.Moving {
		return x == 0 && y == 0 && th == 0
	}
	const cycle = 256
	return max(x, -x, y, -y) <= cycle && math.Abs(th) <= math.Pi/4
}

// setting returns the value in Config that a command sets, and its hard limit.
func (s *Session) setting(c sip.Command) (is, top uint16, known bool) {
	k := &s.state.Config
	const none = math.MaxUint16
	decel := c.Arg == sip.Negative
	switch c.Number {
	case sip.SetV:
		return k.TransVelMax, k.TransVelTop, true
	case sip.SetRV:
		return k.RotVelMax, k.RotVelTop, true
	case sip.SetA:
		if decel {
			return k.TransDecel, k.TransAccTop, true
		}
		return k.TransAcc, k.TransAccTop, true
	case sip.SetRA:
		if decel {
			return k.RotDecel, k.RotAccTop, true
		}
		return k.RotAcc, k.RotAccTop, true
	case sip.RotKP:
		return k.RotKp, none, true
	case sip.RotKV:
		return k.RotKv, none, true
	case sip.RotKI:
		return k.RotKi, none, true
	case sip.TransKP:
		return k.TransKp, none, true
	case sip.TransKV:
		return k.TransKv, none, true
	case sip.TransKI:
		return k.TransKi, none, true
	case sip.RevCount:
		return k.RevCount, none, true
	}
	return 0, 0, false
}
