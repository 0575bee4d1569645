package spine

import (
	"bytes"
	"time"

	"kennel/edge/body/scanbuf"
)

// Counters are a Parser's counts. Good frames aside, every byte is skipped or still waiting.
type Counters struct {
	Good        uint64 // whole frames returned
	BadChecksum uint64
	UnknownType uint64
	BadSize     uint64 // size does not belong to the type
	Skipped     uint64 // bytes that belonged to no good frame
}

// Bad returns the number of frames that began well and were dropped.
func (c Counters) Bad() uint64 { return c.BadChecksum + c.UnknownType + c.BadSize }

// Parser finds the frames of one direction in a stream of bytes. After a bad frame it continues one byte later, so that it finds every good
// frame, even inside the length that a damaged header claims (VEC-BODY-07). A damaged header or a cut frame delays the frames behind it
// until the bytes it claims have arrived, 2.6 ms for a data frame at 3 Mbit/s, or until Expire gives it up.
//
//	n, err := port.Read(p.Space())
//	p.Fill(n)
//	p.Expire(now)
//	for f, ok := p.Next(); ok; f, ok = p.Next() { ... }
//
// The zero value parses ToBody frames. A Parser is not safe for concurrent use.
type Parser struct {
	scanbuf.Window
	dir   Direction
	count Counters
}

// Patience is how long a frame may take from its first byte to its last (own default). The longest takes 3.5 ms on the line; a head on a desk may
// write byte by byte. It is below the 1.024 s after which a board cuts the power of a silent head.
const Patience = 800 * time.Millisecond

// NewParser returns a parser for frames of direction d.
func NewParser(d Direction) *Parser { return &Parser{dir: d} }

// Counters returns the counts so far.
func (p *Parser) Counters() Counters {
	p.count.Skipped = p.Skipped
	return p.count
}

// Expire gives up a frame that began Patience ago and is still incomplete; its sender will not finish it. Next then looks behind its first
// byte. now is a time of any clock that never goes back.
func (p *Parser) Expire(now time.Duration) { p.Window.Expire(now, Patience) }

// Next returns the next good frame, or false when the rest of the buffer holds none yet. The payload is valid until Space.
func (p *Parser) Next() (Frame, bool) {
	for {
		waiting := p.Bytes()
		i := bytes.IndexByte(waiting, syncByte)
		if i < 0 {
			i = len(waiting)
		}
		p.Skip(i)
		waiting = waiting[i:]
		if len(waiting) == 0 {
			return Frame{}, false
		}
		f, n, err := ParseFrame(p.dir, waiting)
		switch err {
		case nil:
			p.Take(n)
			p.count.Good++
			return f, true
		case ErrShort:
			return Frame{}, false
		case ErrChecksum:
			p.count.BadChecksum++
		case ErrType:
			p.count.UnknownType++
		case ErrSize:
			p.count.BadSize++
		}
		p.Skip(1)
	}
}
