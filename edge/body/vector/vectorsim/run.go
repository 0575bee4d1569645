package vectorsim

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/rawfd"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/core/rt/rtlinux"
	"kennel/edge/sim/uart"
)

// Run turns the power on and speaks over wire, the master of a pseudo-terminal or a socket, until ctx ends (nil), the head shuts the
// board down (ErrShutdown) or the power is cut (ErrPowerCut). Other errors are the wire's own.
//
// It works once each 5.12 ms on absolute deadlines, without the runtime's timers, which wake up to 1 ms late: take in what the head
// sent meanwhile, let the world move, send a frame. A board that wakes a little too late skips the frames it missed. If the machine
// gave it no time for longer, its world was frozen as well: real hardware never lacks a processor, and a body that kept moving
// without control would end up where no real one does.
func (b *Board) Run(ctx context.Context, wire syscall.Conn) error {
	w, err := uart.NewWire(wire)
	if err != nil {
		return fmt.Errorf("vectorsim: %w", err)
	}
	return b.run(ctx, w)
}

// RunOn is Run with a socket as the line. Bytes that a head sent to a board without power are lost.
func (b *Board) RunOn(ctx context.Context, s *uart.Socket) error {
	if err := s.Discard(); err != nil {
		return fmt.Errorf("vectorsim: read: %w", err)
	}
	return b.run(ctx, s)
}

func (b *Board) run(ctx context.Context, w uart.Line) error {
	timer, err := rawfd.NewTimer()
	if err != nil {
		return fmt.Errorf("vectorsim: %w", err)
	}
	defer timer.Close() // nothing waits for it
	sleep := timer.SleepUntil
	if b.cfg.HoldProcessor {
		sleep = func(t time.Duration) error {
			rtlinux.Clock{}.SleepUntil(t)
			return nil
		}
	}
	b.powerOn()
	defer b.powerOff()
	defer b.turn(0, 0)
	var out []byte
	next := monoclock.Now() + vectordriver.Period
	for ctx.Err() == nil {
		if err := sleep(next); err != nil {
			return fmt.Errorf("vectorsim: sleep: %w", err)
		}
		periods := 1 + max(0, monoclock.Now()-next)/vectordriver.Period
		due := next + (periods-1)*vectordriver.Period
		next += periods * vectordriver.Period
		b.turn(due, uint64(max(0, periods-mostAtOnce)))
		periods = min(periods, mostAtOnce)

		in, err := w.Read()
		if err != nil {
			return fmt.Errorf("vectorsim: read: %w", err)
		}
		var end error
		out, end = b.tick(int(periods), in, out[:0])
		whole, err := w.Write(out)
		if err != nil {
			return fmt.Errorf("vectorsim: write: %w", err)
		}
		if !whole {
			b.overrun()
		}
		if end != nil {
			return end
		}
	}
	return nil
}

// mostAtOnce is how many periods pass in one turn: 20 ms, less than a robot takes for a silent body.
const mostAtOnce = 4

// turn notes when a turn of Run was due, and how many periods before it nothing passed.
func (b *Board) turn(due time.Duration, frozen uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turned = due
	b.state.Frozen += frozen
	b.skip(frozen)
}

func (b *Board) overrun() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state.Overrun++
}
