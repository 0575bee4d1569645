// Package ihex reads and writes Intel HEX files: text that holds bytes and their addresses (AMIGO-DL-02).
//
//	:LLAAAATTDD...CC    length, low half of the address, type, data, checksum; in hexadecimal
//
// A record is data (00), the end (01), bits 4 to 19 of the address (02), its upper half (04), or an address where a program starts
// (03, 05). Package ihex checks start records and ignores them, because a FLASH image does not need one.
package ihex

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Segment is bytes at one address.
type Segment struct {
	Address uint32
	Data    []byte
}

// End returns the address behind the last byte.
func (s Segment) End() int64 { return int64(s.Address) + int64(len(s.Data)) }

const (
	data byte = iota
	end
	paragraph
	startSegment
	upper
	startLinear
)

// fixed is the length of every record but data.
var fixed = [...]int{end: 0, paragraph: 2, startSegment: 4, upper: 2, startLinear: 4}

// Parse returns the bytes in file as segments that neither touch nor overlap, by address. Every record must be sound and the end record
// be the last; errors name the line.
func Parse(file string) ([]Segment, error) {
	var out []Segment
	base, ended, n := uint32(0), false, 0
	for text := range strings.Lines(file) {
		n++
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		if ended {
			return nil, fmt.Errorf("line %d: record after the end record", n)
		}
		kind, address, payload, err := record(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		switch kind {
		case data:
			at := base + uint32(address)
			if int64(base)+int64(address)+int64(len(payload)) > 1<<32 {
				return nil, fmt.Errorf("line %d: data after address 0xffffffff", n)
			}
			if last := len(out) - 1; last >= 0 && out[last].End() == int64(at) {
				out[last].Data = append(out[last].Data, payload...)
			} else if len(payload) > 0 {
				out = append(out, Segment{at, payload})
			}
		case end:
			ended = true
		case paragraph:
			base = uint32(binary.BigEndian.Uint16(payload)) << 4
		case upper:
			base = uint32(binary.BigEndian.Uint16(payload)) << 16
		}
	}
	if !ended {
		return nil, errors.New("no end record; the file is incomplete")
	}
	return join(out)
}

func record(text string) (kind byte, address uint16, payload []byte, err error) {
	digits, ok := strings.CutPrefix(text, ":")
	b, err := hex.DecodeString(digits)
	if !ok || err != nil || len(b) < 5 || len(b) != 5+int(b[0]) {
		return 0, 0, nil, errors.New(`damaged record; want ":" and the announced number of pairs of hexadecimal digits`)
	}
	sum := byte(0)
	for _, v := range b {
		sum += v
	}
	kind, payload = b[3], b[4:len(b)-1]
	switch {
	case sum != 0:
		return 0, 0, nil, fmt.Errorf("checksum %02X, want %02X", b[len(b)-1], b[len(b)-1]-sum)
	case int(kind) >= len(fixed):
		return 0, 0, nil, fmt.Errorf("record of type %02X; want 00 to 05", kind)
	case kind != data && len(payload) != fixed[kind]:
		return 0, 0, nil, fmt.Errorf("record of type %02X with %d bytes, want %d", kind, len(payload), fixed[kind])
	}
	return kind, binary.BigEndian.Uint16(b[1:]), payload, nil
}

// join sorts segments and joins those that touch.
func join(in []Segment) ([]Segment, error) {
	slices.SortStableFunc(in, func(a, b Segment) int { return cmp.Compare(a.Address, b.Address) })
	var out []Segment
	for _, s := range in {
		last := len(out) - 1
		switch {
		case last < 0 || out[last].End() < int64(s.Address):
			out = append(out, s)
		case out[last].End() == int64(s.Address):
			out[last].Data = append(out[last].Data, s.Data...)
		default:
			return nil, fmt.Errorf("two records for address %#x", s.Address)
		}
	}
	return out, nil
}

// lineSize is how many bytes of data Format puts into a record.
const lineSize = 32

// Format returns segments as the text of a file.
func Format(segments []Segment) string {
	var b strings.Builder
	base := uint32(0)
	for _, s := range segments {
		for i := 0; i < len(s.Data); {
			at := s.Address + uint32(i)
			if at&^0xFFFF != base {
				base = at &^ 0xFFFF
				line(&b, upper, 0, []byte{byte(base >> 24), byte(base >> 16)})
			}
			n := min(lineSize, len(s.Data)-i, 1<<16-int(at&0xFFFF)) // no record crosses a border of 64 kB
			line(&b, data, uint16(at), s.Data[i:i+n])
			i += n
		}
	}
	line(&b, end, 0, nil)
	return b.String()
}

func line(b *strings.Builder, kind byte, address uint16, payload []byte) {
	rec := append([]byte{byte(len(payload)), byte(address >> 8), byte(address), kind}, payload...)
	sum := byte(0)
	for _, v := range rec {
		sum += v
	}
	fmt.Fprintf(b, ":%X%02X\n", rec, -sum)
}
