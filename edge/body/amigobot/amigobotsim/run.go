package amigobotsim

import (
	"context"
	"fmt"
	"time"

	"kennel/edge/sim/uart"
)

// mostAtOnce is how many cycles pass in one turn of Run. Where the machine gives it no time for longer, its world stops as well.
const mostAtOnce = 10

// connection is a line whose other end can go away for the robot to see, unlike a cable's.
type connection interface{ HungUp() bool }

// Run serves the robot in real time, on absolute deadlines each 10 ms, until ctx ends (nil) or a line fails. A nil line is not connected. Over TCP the end of a
// client's connection ends its session.
func (r *Robot) Run(ctx context.Context, lines [Ports]uart.Line) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var out Lines
	for next := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		var in Lines
		for i, l := range lines {
			out[i] = out[i][:0]
			if l == nil {
				continue
			}
			var err error
			if in[i], err = l.Read(); err != nil {
				return fmt.Errorf("amigobotsim: read: %w", err)
			}
			if c, ok := l.(connection); ok && c.HungUp() && Port(i) == Control {
				r.HangUp()
			}
		}
		late := int(time.Since(next) / cycle)
		for range 1 + min(late, mostAtOnce-1) {
			out = r.Step(in, out)
			in = Lines{}
		}
		next = next.Add(time.Duration(1+late) * cycle)
		for i, l := range lines {
			if l == nil {
				continue
			}
			if _, err := l.Write(out[i]); err != nil {
				return fmt.Errorf("amigobotsim: write: %w", err)
			}
		}
		timer.Reset(time.Until(next))
	}
}
