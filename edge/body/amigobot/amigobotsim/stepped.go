package amigobotsim

import (
	"time"

	"kennel/edge/sim/uart"
)

// Stepped is a robot, its Control line and its time in one goroutine.
type Stepped struct {
	*Robot
	uart.Stepped
}

// NewStepped returns a robot that is on. Its time begins at one hour: 0 means never in many places.
func NewStepped(r *Robot) *Stepped {
	s := &Stepped{r, uart.Stepped{Time: time.Hour, Next: time.Hour + cycle}}
	s.Period = s.period
	return s
}

// period lets a control cycle pass.
func (s *Stepped) period() {
	s.Time = s.Next
	s.Next += cycle
	out := s.Step(Lines{Control: s.In}, Lines{Control: s.Out})
	s.In, s.Out = s.In[:0], out[Control]
}
