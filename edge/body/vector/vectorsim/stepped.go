package vectorsim

import (
	"time"

	"kennel/edge/body/vector"
)

// lineBuffer is how much a tty holds each way; what comes beyond it is lost.
const lineBuffer = 4096

// Stepped is a board, its serial line and its time in one goroutine: a port.Port and the clock of a loop. Time passes only while the head
// waits, a period of the board at a time: a day takes seconds, and the same head makes the same run, bit by bit. What the head sends
// arrives in the next period.
type Stepped struct {
	*Board

	// Again is how long after a power cut somebody presses the button; 0: nobody does. A body that is put on its charger comes on too
	// (VEC-BOOT-01).
	Again time.Duration
	// OnOff, if set, hears of each end of power, and why.
	OnOff func(at time.Duration, why error)
	// Each, if set, is called after every period: the hand of who stands beside the robot.
	Each func(at time.Duration)

	now, next time.Duration
	on        bool
	since     time.Duration // when the power went off
	charger   bool          // it was on the charger in the period before
	in, out   []byte        // from and to the head
}

// NewStepped returns a board that is on. Its time begins at one hour: 0 means never in many places.
func NewStepped(cfg Config) *Stepped {
	s := &Stepped{Board: New(cfg), now: time.Hour, next: time.Hour + vector.Period, in: make([]byte, 0, lineBuffer), out: make([]byte, 0, 2*lineBuffer)}
	s.Press()
	return s
}

// Press is the button: it turns the power on, or does nothing.
func (s *Stepped) Press() {
	if !s.on {
		s.on = true
		s.powerOn()
	}
}

// On reports whether the board has power.
func (s *Stepped) On() bool { return s.on }

// CutPower takes the power away at once.
func (s *Stepped) CutPower(why error) {
	if !s.on {
		return
	}
	s.on, s.since = false, s.now
	s.in = s.in[:0]
	s.powerOff()
	if s.OnOff != nil {
		s.OnOff(s.now, why)
	}
}

// period lets the time go on to the next beat of the board.
func (s *Stepped) period() {
	s.now = s.next
	s.next += vector.Period
	charger := s.State().OnCharger
	if !s.on && (s.Again > 0 && s.now-s.since >= s.Again || charger && !s.charger) {
		s.Press()
	}
	s.charger = charger
	var err error
	before := len(s.out)
	if s.on {
		s.out, err = s.tick(1, s.in, s.out)
	} else {
		s.out = s.dark(s.out)
	}
	s.in = s.in[:0]
	if len(s.out) > max(before, lineBuffer) {
		s.out = s.out[:max(before, lineBuffer)]
		s.overrun()
	}
	if err != nil {
		s.CutPower(err)
	}
	if s.Each != nil {
		s.Each(s.now)
	}
}

// Now implements port.Port and the clock of a loop.
func (s *Stepped) Now() time.Duration { return s.now }

// SleepUntil lets the time pass until t.
func (s *Stepped) SleepUntil(t time.Duration) {
	for s.next <= t {
		s.period()
	}
	s.now = max(s.now, t)
}

// Read implements port.Port.
func (s *Stepped) Read(b []byte) (int, error) {
	n := copy(b, s.out)
	s.out = s.out[:copy(s.out, s.out[n:])]
	return n, nil
}

// Write implements port.Port.
func (s *Stepped) Write(b []byte) (int, error) {
	n := min(len(b), lineBuffer-len(s.in))
	s.in = append(s.in, b[:n]...)
	return n, nil
}

// Wait implements port.Port.
func (s *Stepped) Wait(deadline time.Duration) (bool, error) {
	for len(s.out) == 0 && s.next <= deadline {
		s.period()
	}
	if len(s.out) > 0 {
		return true, nil
	}
	s.now = max(s.now, deadline)
	return false, nil
}

// DropOutput implements port.Port.
func (s *Stepped) DropOutput() error {
	s.in = s.in[:0]
	return nil
}

// Drain implements port.Port.
func (s *Stepped) Drain() error {
	if len(s.in) > 0 {
		s.period()
	}
	return nil
}

// Close implements port.Port. The board goes on, and so does its line: the next head may use it.
func (s *Stepped) Close() error {
	s.out = s.out[:0]
	return nil
}
