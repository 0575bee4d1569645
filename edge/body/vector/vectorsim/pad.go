package vectorsim

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/sim/uart"
)

// The charging pad as the factory's serial line: one pin at 115,200 bit/s, so 59 characters a period at most; a frame holds 32 (VEC-CLI-01, 02, 04, part of VEC-CLI-03).
const (
	padBanner = "\xff\x92\x1f\xcf\xff\xff\xff\xff\nbooted\n" // VEC-CLI-02
	padBuffer = 4096                                         // what waits on the pin, each way; the rest is lost; own default
)

// pad holds the bytes of the pin.
type pad struct{ in, out []byte }

func (b *Board) padOut(chars []byte) {
	b.pad.out = append(b.pad.out, chars[:min(len(chars), padBuffer-len(b.pad.out))]...)
}

// padIn appends a frame of the bytes received over the pin.
func (b *Board) padIn(out []byte) []byte {
	if !b.cfg.Factory || len(b.pad.in) == 0 {
		return out
	}
	var m spine.Chars
	n := copy(m[:], b.pad.in)
	b.pad.in = b.pad.in[:copy(b.pad.in, b.pad.in[n:])]
	return m.AppendFrame(out, spine.ToHead)
}

// PadWrite is the factory's tester that sends characters into the pad. A production board (Config.Factory false) does not listen.
func (b *Board) PadWrite(chars string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cfg.Factory {
		b.pad.in = append(b.pad.in, chars[:min(len(chars), padBuffer-len(b.pad.in))]...)
	}
}

// PadRead returns the board's output on the pad since the last call.
func (b *Board) PadRead() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := string(b.pad.out)
	b.pad.out = b.pad.out[:0]
	return s
}

// ServePad connects the pad to pin, until ctx ends (nil): each period it moves the bytes of both directions.
func (b *Board) ServePad(ctx context.Context, pin syscall.Conn) error {
	w, err := uart.NewWire(pin)
	if err != nil {
		return fmt.Errorf("vectorsim: pad: %w", err)
	}
	tick := time.NewTicker(vectordriver.Period)
	defer tick.Stop()
	for {
		in, err := w.Read()
		if err != nil {
			return fmt.Errorf("vectorsim: pad: %w", err)
		}
		b.PadWrite(string(in))
		if _, err := w.Write([]byte(b.PadRead())); err != nil {
			return fmt.Errorf("vectorsim: pad: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
