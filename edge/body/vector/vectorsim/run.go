package vectorsim

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kennel/edge/body/mono"
	"kennel/edge/body/rawio"
	"kennel/edge/body/vector"
	"kennel/edge/rt/rtlinux"
)

// Run turns the power on and speaks over wire, the master of a pseudo-terminal or a socket, until ctx ends (nil), the head shuts the
// board down (ErrShutdown) or the power is cut (ErrPowerCut). Other errors are the wire's own.
//
// It works once each 5.12 ms on absolute deadlines, without the runtime's timers, which wake up to 1 ms late: take in what the head
// sent meanwhile, let the world move, send a frame. A board that wakes a little too late skips the frames it missed. Where the machine gave it no
// time for longer, its world stood still as well: hardware is never without a processor, and a body that went on with nobody at the helm
// would end where no real one does.
func (b *Board) Run(ctx context.Context, wire syscall.Conn) error {
	w, err := newWire(wire)
	if err != nil {
		return fmt.Errorf("vectorsim: %w", err)
	}
	return b.run(ctx, w)
}

// line is the board's end of a wire; neither call waits.
type line interface {
	read() ([]byte, error)                // what has arrived
	write(b []byte) (whole bool, _ error) // what it does not take is lost
}

func (b *Board) run(ctx context.Context, w line) error {
	timer, err := rawio.NewTimer()
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
	next := mono.Now() + vector.Period
	for ctx.Err() == nil {
		if err := sleep(next); err != nil {
			return fmt.Errorf("vectorsim: sleep: %w", err)
		}
		periods := 1 + max(0, mono.Now()-next)/vector.Period
		due := next + (periods-1)*vector.Period
		next += periods * vector.Period
		b.turn(due, uint64(max(0, periods-mostAtOnce)))
		periods = min(periods, mostAtOnce)

		in, err := w.read()
		if err != nil {
			return fmt.Errorf("vectorsim: read: %w", err)
		}
		var end error
		out, end = b.tick(int(periods), in, out[:0])
		whole, err := w.write(out)
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

// wire reads and writes without ever waiting, like the registers of a UART. The closures are made once, so that a period does not
// allocate.
type wire struct {
	conn    syscall.RawConn
	readFn  func(fd uintptr) bool
	writeFn func(fd uintptr) bool
	in, out []byte
	n       int
	err     error
}

func newWire(c syscall.Conn) (*wire, error) {
	conn, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &wire{conn: conn, in: make([]byte, 4096)}
	w.readFn = func(fd uintptr) bool { w.n, w.err = rawio.Read(int(fd), w.in); return true }
	w.writeFn = func(fd uintptr) bool { w.n, w.err = rawio.Write(int(fd), w.out); return true }
	var blocking error
	err = conn.Control(func(fd uintptr) { blocking = unix.SetNonblock(int(fd), true) })
	return w, errors.Join(err, blocking)
}

// read returns what has arrived; a line nobody holds the other end of is silent.
func (w *wire) read() ([]byte, error) {
	if err := w.conn.Read(w.readFn); err != nil {
		return nil, err
	}
	switch w.err {
	case nil:
		return w.in[:w.n], nil
	case unix.EAGAIN, unix.EINTR, unix.EIO:
		return nil, nil
	}
	return nil, w.err
}

// write reports whether the line took all of b; what it does not take is lost, as in a UART nobody listens to.
func (w *wire) write(b []byte) (whole bool, err error) {
	if len(b) == 0 {
		return true, nil
	}
	w.out = b
	if err := w.conn.Write(w.writeFn); err != nil {
		return false, err
	}
	switch w.err {
	case nil:
		return w.n == len(b), nil
	case unix.EAGAIN, unix.EINTR, unix.EIO:
		return false, nil
	}
	return false, w.err
}
