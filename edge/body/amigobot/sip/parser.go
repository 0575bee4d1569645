package sip

import (
	"bytes"
	"time"
)

// Counters count what a Parser met. Good packets aside, every byte is skipped or still waiting.
type Counters struct {
	Good        uint64 // whole packets returned
	BadLength   uint64
	BadChecksum uint64
	Expired     uint64 // incomplete packets given up
	Skipped     uint64 // bytes that belonged to no good packet
}

// Parser finds packets in a stream of bytes. After a bad packet it continues one byte later, so that it finds a good packet whatever
// surrounds it (AMIGO-PKT-09).
//
//	n, err := port.Read(p.Space())
//	p.Fill(n)
//	p.Expire(now)
//	for payload, ok := p.Next(); ok; payload, ok = p.Next() { ... }
//
// The zero value is ready. A Parser is not safe for concurrent use.
type Parser struct {
	start, end int // the bytes not yet looked at are buf[start:end]
	count      Counters
	passed     uint64        // bytes before start, since the beginning
	waits      bool          // for the rest of the packet
	front      uint64        // that begins there
	since      time.Duration // then
	buf        [1024]byte
}

// Patience is how long after its last byte was due at 9600 bit/s, the slowest line, a packet may still be incomplete (AMIGO-PKT-09).
const (
	Patience = 100 * time.Millisecond
	byteTime = time.Second / 960
)

// Counters returns what was met so far.
func (p *Parser) Counters() Counters { return p.count }

// Reset forgets the bytes that wait, which count as skipped; the counters stay.
func (p *Parser) Reset() { p.skip(p.end - p.start) }

// Space returns the free part of the buffer for the caller to read into. It is never empty after Next returned false. It ends the life
// of every payload that Next returned.
func (p *Parser) Space() []byte {
	p.end = copy(p.buf[:], p.buf[p.start:p.end])
	p.start = 0
	return p.buf[p.end:]
}

// Fill says that n bytes were read into Space.
func (p *Parser) Fill(n int) { p.end += n }

// Expire gives up a packet that has been incomplete for too long. now is any clock that does not go back. Next then looks behind the
// first byte of that packet.
func (p *Parser) Expire(now time.Duration) {
	switch {
	case p.start == p.end:
		p.waits = false
	case !p.waits || p.front != p.passed:
		p.waits, p.front, p.since = true, p.passed, now
	case now-p.since > Patience+p.due():
		p.waits = false
		p.count.Expired++
		p.skip(1)
	}
}

// due returns how long the packet at the start of the buffer takes on the slowest line.
func (p *Parser) due() time.Duration {
	if p.end-p.start < 3 {
		return 0
	}
	return time.Duration(3+int(p.buf[p.start+2])) * byteTime
}

// Next returns the payload of the next good packet, or false when the rest of the buffer holds none yet. The payload is valid until
// Space.
func (p *Parser) Next() ([]byte, bool) {
	for {
		i := bytes.IndexByte(p.buf[p.start:p.end], header0)
		if i < 0 {
			i = p.end - p.start
		}
		p.skip(i)
		payload, n, err := ParseFrame(p.buf[p.start:p.end])
		switch err {
		case nil:
			p.start += n
			p.passed += uint64(n)
			p.count.Good++
			return payload, true
		case ErrShort:
			return nil, false
		case ErrLength:
			p.count.BadLength++
		case ErrChecksum:
			p.count.BadChecksum++
		}
		p.skip(n)
	}
}

func (p *Parser) skip(n int) {
	p.start += n
	p.passed += uint64(n)
	p.count.Skipped += uint64(n)
}
