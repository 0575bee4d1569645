//go:build !js

package pleosim

import (
	"context"
	"fmt"
	"time"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/sim/uart"
)

// mostAtOnce is how many Steps pass in one turn of Run. Where the machine gives it no time for longer, its world stops as well.
const mostAtOnce = 20

// Line is a port of the body. Connected reports whether a peer has it open.
type Line interface {
	uart.Line
	Connected() bool
}

// Run serves the body in real time on absolute deadlines, on a serial port for the computer and a USB port for people (nil: not connected), until ctx ends
// (nil) or a line fails (PLEO-HST-01, PLEO-ARC-12).
func (r *Robot) Run(ctx context.Context, serial, usb Line) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for next := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		late := int(time.Since(next) / period)
		if err := r.turn(1+min(late, mostAtOnce-1), serial, usb); err != nil {
			return err
		}
		next = next.Add(time.Duration(1+late) * period)
		timer.Reset(time.Until(next))
	}
}

// turn lets n Steps pass.
func (r *Robot) turn(n int, serial, usb Line) error {
	ports := [...]struct {
		line Line
		t    *terminal
	}{{serial, &r.serial}, {usb, &r.usb}}
	r.mu.Lock()
	defer r.mu.Unlock()
	var typed [len(ports)][]byte
	for i, p := range ports {
		if p.line == nil {
			continue
		}
		in, err := p.line.Read()
		if err != nil {
			return fmt.Errorf("pleosim: read: %w", err)
		}
		typed[i] = in
		there := p.line.Connected()
		if there && !p.t.there && p.t == &r.usb {
			p.t.out = append(p.t.out[:0], lifeos.Prompt...)
		}
		if p.t.there = there; !there {
			p.t.line, p.t.out = p.t.line[:0], p.t.out[:0]
		}
	}
	for range n {
		r.step(typed[0], typed[1])
		typed[0], typed[1] = nil, nil
	}
	for _, p := range ports {
		if p.line == nil {
			continue
		}
		if _, err := p.line.Write(p.t.out); err != nil {
			return fmt.Errorf("pleosim: write: %w", err)
		}
		p.t.out = p.t.out[:0]
	}
	r.changed.Broadcast()
	return nil
}

// Stepped is a body, its serial port and its time in one goroutine.
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
