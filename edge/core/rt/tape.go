package rt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sync/atomic"
	"time"

	"kennel/edge/body"
)

// A recording begins with tapeMagic; then come records, little endian:
//
//	u8 kind, u16 size, payload, u32 CRC-32 (IEEE) of all before it
//
//	begin  'B'  i64 now, i64 rhythm, step, stale, silent, then species, model, firmware as u8 length and bytes; u8 number of channels, each its
//	            name and unit; u8 number of drives, each its device and u8 what it takes
//	step   'S'  i64 now, u8 what was read, the measurement (or the fault of a silent body), commands, inputs of tasks, what was written, why it ended
//	gap    'G'  u64 records that were lost before this one: the ring was not emptied in time
//
// A measurement is i64 at, u32 seq, u32 epoch, u8 fresh, u16 fault, then for each channel u8 when it was measured (1: at, 0: never, 2: an i64
// follows) and, unless never, its f64 value. What was written is, for each drive, u8 its goal and, if it has one, the f64 set-point.
//
// The number in the magic is the version of all this: from 4 on a recording names its channels and drives, so that one of any body can be read.
const (
	tapeMagic  = "KRT4"
	recordHead = 3
	recordSum  = 4
	maxRecord  = 8 << 10
	minTape    = 64 << 10
)

// Kinds of records.
const (
	kindBegin = 'B'
	kindStep  = 'S'
	kindGap   = 'G'
)

// The result of Read.
const (
	readFresh = iota
	readTimeout
	readFailed
)

// The output of a step, as bits.
const (
	wroteAct  = 1 << iota // Write
	wroteHalt             // Halt, once or more
	wroteOff              // Shutdown
)

// When a channel was measured.
const (
	timeNever = iota
	timeAt
	timeOther
)

// Why a step ended the run.
const (
	endNot = iota
	endSilent
	endShutdown
	endOther
)

// Tape records a loop: everything that comes into a step and what comes out of it, with its times, so that the same tasks can be run again on
// it later, bit by bit (Replay). The loop writes into a ring of fixed size and never waits; another goroutine empties it with Flush.
// A record that finds no room is lost and counted, and so is every one until there is room.
type Tape struct {
	ring       []byte
	read, fill atomic.Uint64 // bytes since the beginning
	lost       atomic.Uint64 // records, in all

	// The record under way; the loop's.
	buf      [maxRecord]byte
	n        int
	whole    bool // it fits
	channels int
	drives   int
	nCmd     int // their count
	inputs   [maxInputs]struct{ from, to int }
	inCount  int
	inBytes  [maxRecord / 2]byte
	inUsed   int
	wrote    uint8 // what the step did
	failed   uint8 // of it, what failed
	broke    uint8 // and what failed because the port did
	act      body.Act
	gap      uint64
	playing  bool     // Input answers from queue
	queue    [][]byte // of the step that is played
	surprise bool     // Input was asked more often than was recorded
}

const maxInputs = 64

// NewTape returns a tape whose ring holds size bytes, at least 64 KiB: a Vector fills about 60 KiB a second.
func NewTape(size int) *Tape {
	t := &Tape{ring: make([]byte, max(size, minTape))}
	t.put([]byte(tapeMagic))
	return t
}

// Lost returns how many records found no room.
func (t *Tape) Lost() uint64 { return t.lost.Load() }

// Input hands a task what came to it in this step from elsewhere than body and mailbox: in a loop that runs it records b and returns it, in a
// replay it returns what was recorded at this place. A task asks in the same order each time. The answer is valid during the step.
// A nil Tape returns b.
func (t *Tape) Input(b []byte) []byte {
	if t == nil {
		return b
	}
	if t.playing {
		if len(t.queue) == 0 {
			t.surprise = true
			return nil
		}
		b, t.queue = t.queue[0], t.queue[1:]
		return b
	}
	if t.inCount == maxInputs || t.inUsed+len(b) > len(t.inBytes) {
		t.whole = false
		return b
	}
	from := t.inUsed
	t.inUsed += copy(t.inBytes[t.inUsed:], b)
	t.inputs[t.inCount] = struct{ from, to int }{from, t.inUsed}
	t.inCount++
	return b
}

// Flush writes what is in the ring to w and returns how much that was. It is called by one goroutine at a time, which may be any.
func (t *Tape) Flush(w io.Writer) (int, error) {
	total := 0
	for {
		from, to := t.read.Load(), t.fill.Load()
		if from == to {
			return total, nil
		}
		at := from % uint64(len(t.ring))
		part := t.ring[at:min(uint64(len(t.ring)), at+to-from)]
		n, err := w.Write(part)
		total += n
		t.read.Store(from + uint64(n))
		if err != nil {
			return total, fmt.Errorf("rt: write the recording: %w", err)
		}
	}
}

// put copies b into the ring, whole or not at all.
func (t *Tape) put(b []byte) bool {
	fill := t.fill.Load()
	if uint64(len(b)) > uint64(len(t.ring))-(fill-t.read.Load()) {
		return false
	}
	at := int(fill % uint64(len(t.ring)))
	copy(t.ring, b[copy(t.ring[at:], b):])
	t.fill.Store(fill + uint64(len(b)))
	return true
}

// The record under way is appended to.

func (t *Tape) u8(v uint8) {
	if t.n < maxRecord-recordSum {
		t.buf[t.n] = v
		t.n++
		return
	}
	t.whole = false
}

func (t *Tape) u16(v uint16) { t.u8(uint8(v)); t.u8(uint8(v >> 8)) }

func (t *Tape) u64(v uint64) {
	if t.n+8 > maxRecord-recordSum {
		t.whole = false
		return
	}
	binary.LittleEndian.PutUint64(t.buf[t.n:], v)
	t.n += 8
}

func (t *Tape) time(v time.Duration) { t.u64(uint64(v)) }
func (t *Tape) f64(v float64)        { t.u64(math.Float64bits(v)) }

func (t *Tape) flag(v bool) {
	if v {
		t.u8(1)
	} else {
		t.u8(0)
	}
}

func (t *Tape) text(s string) {
	s = s[:min(len(s), math.MaxUint8)]
	t.u8(uint8(len(s)))
	for i := range len(s) {
		t.u8(s[i])
	}
}

func (t *Tape) start(kind byte) {
	t.n, t.whole = 0, true
	t.u8(kind)
	t.u16(0)
}

// end closes the record and puts it into the ring.
func (t *Tape) end() {
	if t.whole && t.gap > 0 {
		var b [recordHead + 8 + recordSum]byte
		b[0] = kindGap
		binary.LittleEndian.PutUint64(b[recordHead:], t.gap)
		seal(b[:])
		// Both or none: a gap that is told and still grows would be told twice.
		if uint64(len(b)+t.n+recordSum) > uint64(len(t.ring))-(t.fill.Load()-t.read.Load()) || !t.put(b[:]) {
			t.whole = false
		} else {
			t.gap = 0
		}
	}
	if t.whole {
		t.whole = t.put(seal(t.buf[:t.n+recordSum]))
	}
	if !t.whole {
		t.gap++
		t.lost.Add(1)
	}
}

// seal fills in size and checksum of the record in b.
func seal(b []byte) []byte {
	binary.LittleEndian.PutUint16(b[1:], uint16(len(b)-recordHead-recordSum))
	binary.LittleEndian.PutUint32(b[len(b)-recordSum:], crc32.ChecksumIEEE(b[:len(b)-recordSum]))
	return b
}

// begin records that a body begins to be stepped.
func (t *Tape) begin(d *body.Description, now time.Duration) {
	if t == nil || t.playing {
		return
	}
	t.channels, t.drives = min(len(d.Channels), body.MaxChannels), min(len(d.Drives), body.MaxDrives)
	t.start(kindBegin)
	t.time(now)
	for _, v := range [...]time.Duration{d.Rhythm, d.Step, d.Stale, d.Silent} {
		t.time(v)
	}
	t.text(d.Species)
	t.text(d.Model)
	t.text(d.Firmware)
	t.u8(uint8(t.channels))
	for _, c := range d.Channels[:t.channels] {
		t.text(c.Name)
		t.text(c.Unit)
	}
	t.u8(uint8(t.drives))
	for _, v := range d.Drives[:t.drives] {
		t.text(v.Device)
		t.u8(uint8(v.Takes))
	}
	t.end()
}

// open begins a step's record with what was read.
func (t *Tape) open(now time.Duration, s *body.Sense, readErr error) {
	if t == nil {
		return
	}
	t.start(kindStep)
	t.inCount, t.inUsed, t.wrote, t.failed, t.broke = 0, 0, 0, 0, 0
	t.time(now)
	switch {
	case readErr == nil:
		t.u8(readFresh)
		t.sense(s)
	case errors.Is(readErr, body.ErrTimeout):
		t.u8(readTimeout)
		t.u16(s.Fault)
	default:
		t.u8(readFailed)
	}
	t.nCmd = t.n
	t.u8(0)
}

func (t *Tape) sense(s *body.Sense) {
	t.time(s.At)
	t.u64(uint64(s.Seq) | uint64(s.Epoch)<<32)
	t.flag(s.Fresh)
	t.u16(s.Fault)
	for c := range t.channels {
		switch s.Times[c] {
		case 0:
			t.u8(timeNever)
			continue
		case s.At:
			t.u8(timeAt)
		default:
			t.u8(timeOther)
			t.time(s.Times[c])
		}
		t.f64(s.Values[c])
	}
}

// Commands that are no Command of the mailbox.
const (
	tapeHalt     = 0xfe
	tapeShutdown = 0xff
)

// command records one that the step took out of the mailbox.
func (t *Tape) command(c *Command) {
	if t == nil {
		return
	}
	t.count()
	t.u8(uint8(c.Kind))
}

// asked records a halt or shutdown that was asked for.
func (t *Tape) asked(what uint8) {
	if t == nil {
		return
	}
	t.count()
	t.u8(what)
}

func (t *Tape) count() { t.buf[t.nCmd]++ }

// did records what the step did to the body, and how that went.
func (t *Tape) did(what uint8, act *body.Act, err error) {
	if t == nil {
		return
	}
	t.wrote |= what
	if act != nil {
		t.act = *act
	}
	switch {
	case err == nil:
	case errors.Is(err, body.ErrLink):
		t.broke |= what
	default:
		t.failed |= what
	}
}

// close ends the step's record.
func (t *Tape) close(err error) {
	if t == nil {
		return
	}
	t.u8(uint8(t.inCount))
	for _, in := range t.inputs[:t.inCount] {
		t.u16(uint16(in.to - in.from))
		for _, b := range t.inBytes[in.from:in.to] {
			t.u8(b)
		}
	}
	t.u8(t.wrote)
	t.u8(t.failed)
	t.u8(t.broke)
	if t.wrote&wroteAct != 0 {
		for i := range t.drives {
			t.u8(uint8(t.act.Goals[i]))
			if t.act.Goals[i] != 0 {
				t.f64(t.act.Values[i])
			}
		}
	}
	t.u8(endOf(err))
	if !t.playing {
		t.end()
	}
}

func endOf(err error) uint8 {
	switch {
	case err == nil:
		return endNot
	case errors.Is(err, ErrSilent):
		return endSilent
	case errors.Is(err, ErrShutdown):
		return endShutdown
	}
	return endOther
}
