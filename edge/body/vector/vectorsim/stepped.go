package vectorsim

import (
	"time"

	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/sim/uart"
)

// lineBuffer is the size of a tty's buffer each way; bytes beyond it are lost.
const lineBuffer = 4096

// Stepped is a board, its serial line and its time in one goroutine: a day takes seconds, and the same head makes the same run, bit by bit.
type Stepped struct {
	*Board
	uart.Stepped

	// Again is how long after a power cut the button is pressed; 0: never. A body that is put on its charger comes on too (VEC-BOOT-01).
	Again time.Duration
	// OnOff, if set, is called at each end of power, with the reason.
	OnOff func(at time.Duration, why error)
	// Each, if set, is called after every period; a test uses it to act on the robot by hand.
	Each func(at time.Duration)

	on      bool
	since   time.Duration // when the power went off
	charger bool          // it was on the charger in the period before
}

// NewStepped returns a board that is on. Its time begins at one hour: 0 means never in many places.
func NewStepped(cfg Config) *Stepped {
	s := &Stepped{Board: New(cfg), Stepped: uart.Stepped{Time: time.Hour, Next: time.Hour + vectordriver.Period, Most: lineBuffer,
		In: make([]byte, 0, lineBuffer), Out: make([]byte, 0, 2*lineBuffer)}}
	s.Period = s.period
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
	s.on, s.since = false, s.Time
	s.In = s.In[:0]
	s.powerOff()
	if s.OnOff != nil {
		s.OnOff(s.Time, why)
	}
}

// period advances the time to the next beat of the board.
func (s *Stepped) period() {
	s.Time = s.Next
	s.Next += vectordriver.Period
	charger := s.State().OnCharger
	if !s.on && (s.Again > 0 && s.Time-s.since >= s.Again || charger && !s.charger) {
		s.Press()
	}
	s.charger = charger
	var err error
	before := len(s.Out)
	if s.on {
		s.Out, err = s.tick(1, s.In, s.Out)
	} else {
		s.Out = s.dark(s.Out)
	}
	s.In = s.In[:0]
	if len(s.Out) > max(before, lineBuffer) {
		s.Out = s.Out[:max(before, lineBuffer)]
		s.overrun()
	}
	if err != nil {
		s.CutPower(err)
	}
	if s.Each != nil {
		s.Each(s.Time)
	}
}
