package sip

import (
	"bytes"
	"time"

	"kennel/edge/body/scanbuf"
)

// Counters are a Parser's counts. Good packets aside, every byte is skipped or still waiting.
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
	scanbuf.Window
	count Counters
}

// Patience is how long after its last byte was due at 9600 bit/s, the slowest line, a packet may still be incomplete (AMIGO-PKT-09).
const (
	Patience = 100 * time.Millisecond
	byteTime = time.Second / 960
)

// Counters returns the counts so far.
func (p *Parser) Counters() Counters {
	p.count.Skipped = p.Skipped
	return p.count
}

// Expire gives up a packet that has been incomplete for too long. now is any clock that does not go back. Next then looks behind the
// first byte of that packet.
func (p *Parser) Expire(now time.Duration) {
	if p.Window.Expire(now, Patience+p.due()) {
		p.count.Expired++
	}
}

// due returns how long the packet at the start of the buffer takes on the slowest line.
func (p *Parser) due() time.Duration {
	if b := p.Bytes(); len(b) >= 3 {
		return time.Duration(3+int(b[2])) * byteTime
	}
	return 0
}

// Next returns the payload of the next good packet, or false when the rest of the buffer holds none yet. The payload is valid until
// Space.
func (p *Parser) Next() ([]byte, bool) {
	for {
		i := bytes.IndexByte(p.Bytes(), header0)
		if i < 0 {
			i = len(p.Bytes())
		}
		p.Skip(i)
		payload, n, err := ParseFrame(p.Bytes())
		switch err {
		case nil:
			p.Take(n)
			p.count.Good++
			return payload, true
		case ErrShort:
			return nil, false
		case ErrLength:
			p.count.BadLength++
		case ErrChecksum:
			p.count.BadChecksum++
		}
		p.Skip(n)
	}
}
