package recognizer

import (
	"context"
	"encoding/binary"
	"time"

	"kennel/infra/errs"
)

// Whole returns a stream for a recogniser that wants an utterance at its end: Finish calls decode with all of it, 16-bit little-endian samples.
// A longer utterance than longest is refused as Exhausted.
func Whole(ctx context.Context, longest time.Duration, decode func(ctx context.Context, pcm []byte) (Result, error)) Stream {
	return &whole{ctx: ctx, most: 2 * int(longest.Seconds()*Rate), decode: decode}
}

type whole struct {
	ctx    context.Context
	most   int
	decode func(ctx context.Context, pcm []byte) (Result, error)
	pcm    []byte
}

func (w *whole) Write(samples []int16) error {
	if len(w.pcm)+2*len(samples) > w.most {
		return errs.New(errs.Exhausted, "utterance longer than %v", time.Duration(w.most/2)*time.Second/Rate)
	}
	w.pcm = AppendPCM(w.pcm, samples)
	return w.ctx.Err()
}

func (w *whole) Partial() string { return "" }

func (w *whole) Finish() (Result, error) {
	if len(w.pcm) == 0 {
		return Result{}, w.ctx.Err()
	}
	return w.decode(w.ctx, w.pcm)
}

func (w *whole) Close() error {
	w.pcm = nil
	return nil
}

// AppendPCM appends samples as 16 bits, little-endian.
func AppendPCM(b []byte, samples []int16) []byte {
	for _, v := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}
