package aibosim

import (
	"context"
	"fmt"
	"time"

	"kennel/edge/sim/uart"
)

// mostAtOnce is how many rows pass in one turn of Run. Where the machine gives it no time for longer, its world stops as well.
const mostAtOnce = 10

// Run serves the body in real time on absolute deadlines, until ctx ends (nil) or the line fails.
func (r *Robot) Run(ctx context.Context, line uart.Line) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var out []byte
	for next := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		in, err := line.Read()
		if err != nil {
			return fmt.Errorf("aibosim: read: %w", err)
		}
		late := int(time.Since(next) / period)
		out = out[:0]
		for range 1 + min(late, mostAtOnce-1) {
			out, in = r.Step(in, out), nil
		}
		if _, err := line.Write(out); err != nil {
			return fmt.Errorf("aibosim: write: %w", err)
		}
		next = next.Add(time.Duration(1+late) * period)
		timer.Reset(time.Until(next))
	}
}

// Stepped is a body, its line and its time in one goroutine.
type Stepped struct {
	*Robot
	uart.Stepped
}

// NewStepped returns a body that is on. Its time begins at one hour: 0 means never in many places.
func NewStepped(r *Robot) *Stepped {
	s := &Stepped{r, uart.Stepped{Time: time.Hour, Next: time.Hour + period}}
	s.Period = func() {
		s.Time = s.Next
		s.Next += period
		s.Out = r.Step(s.In, s.Out)
		s.In = s.In[:0]
	}
	return s
}
