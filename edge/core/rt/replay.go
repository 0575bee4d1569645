package rt

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"

	"kennel/edge/body"
)

// Errors of a replay.
var (
	// ErrGap: the recording continues, but records before this place were lost, so that nothing after it can be replayed.
	ErrGap = errors.New("rt: the recording has a gap")
	// ErrDiffers: the tasks did something else than was recorded.
	ErrDiffers = errors.New("rt: the replay differs from the recording")
	// ErrRecording: the bytes are no recording, or a damaged one.
	ErrRecording = errors.New("rt: bad recording")
)

// Replayed says how far a replay came.
type Replayed struct {
	Bodies int           // times a body began
	Steps  uint64        // that did what was recorded
	Last   time.Duration // when the last of them began
	// Cut is why the recording ended before its end: it broke off within a record, as when the power went. nil: it is whole.
	Cut error
}

// Replay runs tasks again on the recording of a Tape: each step gets the recorded input, and must give the recorded output, bit by bit. cfg has to be
// the recorded loop's. tasks makes the loop's tasks for the first recorded body, in the state in which they were when the recording began; what they
// were told from elsewhere comes from the given Tape (Tape.Input). each, if not nil, sees every step's snapshot.
//
// Records with a good checksum count up to the first bad one. An error is ErrDiffers, ErrGap or ErrRecording, with the place.
func Replay(r io.Reader, cfg Config, tasks func(*Tape, body.Description) []Task, each func(*Snapshot)) (Replayed, error) {
	var done Replayed
	p := player{r: bufio.NewReader(r)}
	if err := p.head(); err != nil {
		return done, err
	}
	tape := &Tape{playing: true, whole: true}
	cfg.Tape = tape
	body := &playedBody{}
	var loop *Loop
	for {
		kind, payload, err := p.next()
		switch {
		case err == io.EOF:
			return done, nil
		case err != nil:
			done.Cut = err
			return done, nil
		}
		switch kind {
		case kindGap:
			return done, fmt.Errorf("%w: %d records lost before byte %d, after step %d", ErrGap, binary.LittleEndian.Uint64(payload), p.at, done.Steps)
		case kindBegin:
			now, ok := body.describe(payload, tape)
			if !ok {
				return done, fmt.Errorf("%w: cannot parse the start before byte %d", ErrRecording, p.at)
			}
			body.clock.now = now
			if loop == nil {
				if loop, err = New(cfg, &body.clock, tasks(tape, body.d)...); err != nil {
					return done, err
				}
			}
			loop.begin(body, now)
			done.Bodies++
		case kindStep:
			if done.Bodies == 0 {
				return done, fmt.Errorf("%w: a step before byte %d comes before any body", ErrRecording, p.at)
			}
			ended, err := playStep(loop, tape, body, payload)
			if err != nil {
				return done, fmt.Errorf("%w (step %d, at %v, before byte %d)", err, done.Steps+1, body.clock.now, p.at)
			}
			done.Steps++
			done.Last = body.clock.now
			if each != nil && !ended {
				var s Snapshot
				loop.Snapshot(&s)
				each(&s)
			}
		}
	}
}

// playStep runs one recorded step. ended: it was the last of its run.
func playStep(l *Loop, t *Tape, b *playedBody, payload []byte) (ended bool, err error) {
	f := fields{b: payload}
	now := f.time()
	b.clock.now = now
	var readErr error
	switch f.u8() {
	case readFresh:
		f.sense(&l.sense, t)
	case readTimeout:
		readErr, l.sense.Fault = body.ErrTimeout, f.u16()
	default:
		readErr = errReadFailed
	}
	for n := f.u8(); n > 0 && f.ok(); n-- {
		switch kind := f.u8(); kind {
		case tapeHalt:
			l.Halt()
		case tapeShutdown:
			l.Shutdown()
		default:
			if !l.Post(Command{Kind: CommandKind(kind)}) {
				return false, fmt.Errorf("%w: more commands than a step takes", ErrRecording)
			}
		}
	}
	t.queue = t.queue[:0]
	for n := f.u8(); n > 0 && f.ok(); n-- {
		t.queue = append(t.queue, f.bytes(int(f.u16())))
	}
	want := f.u8()
	b.failed, b.broke = f.u8(), f.u8()
	var act body.Act
	if want&wroteAct != 0 {
		for i := range t.drives {
			if act.Goals[i] = body.Goals(f.u8()); act.Goals[i] != 0 {
				act.Values[i] = f.f64()
			}
		}
	}
	end := f.u8()
	if !f.ok() || len(f.b) != 0 {
		return false, fmt.Errorf("%w: cannot parse a step of %d bytes", ErrRecording, len(payload))
	}
	t.surprise = false
	got := l.Step(now, readErr)
	switch {
	case t.surprise || len(t.queue) > 0:
		return false, fmt.Errorf("%w: the tasks read other inputs than recorded", ErrDiffers)
	case endOf(got) != end:
		return false, fmt.Errorf("%w: ends with %v, recorded end %d", ErrDiffers, got, end)
	case t.wrote != want:
		return false, fmt.Errorf("%w: action %03b on the body, recorded %03b (write 1, halt 2, shut down 4)", ErrDiffers, t.wrote, want)
	case want&wroteAct == 0:
	default:
		for i := range t.drives {
			if t.act.Goals[i] != act.Goals[i] || act.Goals[i] != 0 && math.Float64bits(t.act.Values[i]) != math.Float64bits(act.Values[i]) {
				return false, fmt.Errorf("%w: %s gets %v (goal %b), recorded %v (goal %b)",
					ErrDiffers, b.d.Drives[i].Device, t.act.Values[i], t.act.Goals[i], act.Values[i], act.Goals[i])
			}
		}
	}
	return end != endNot, nil
}

var errReadFailed = errors.New("rt: the body's port failed during the recording")

// player takes a recording apart into records.
type player struct {
	r   *bufio.Reader
	at  int64
	buf [maxRecord]byte
}

func (p *player) head() error {
	var magic [len(tapeMagic)]byte
	if _, err := io.ReadFull(p.r, magic[:]); err != nil || string(magic[:]) != tapeMagic {
		const name = len(tapeMagic) - 1
		if err == nil && string(magic[:name]) == tapeMagic[:name] {
			return fmt.Errorf("%w: version %q, want %q: replay it with the release that recorded it", ErrRecording, magic[name:], tapeMagic[name:])
		}
		return fmt.Errorf("%w: starts with %q, want %q", ErrRecording, magic[:], tapeMagic)
	}
	p.at = int64(len(magic))
	return nil
}

// next returns the next good record; io.EOF at the end of a whole recording.
func (p *player) next() (kind byte, payload []byte, err error) {
	if _, err := io.ReadFull(p.r, p.buf[:recordHead]); err != nil {
		if err == io.EOF {
			return 0, nil, io.EOF
		}
		return 0, nil, fmt.Errorf("%w: truncated in the record at byte %d: %w", ErrRecording, p.at, err)
	}
	size := int(binary.LittleEndian.Uint16(p.buf[1:]))
	if recordHead+size+recordSum > maxRecord {
		return 0, nil, fmt.Errorf("%w: record of %d bytes at byte %d, want at most %d", ErrRecording, size, p.at, maxRecord-recordHead-recordSum)
	}
	all := p.buf[:recordHead+size+recordSum]
	if _, err := io.ReadFull(p.r, all[recordHead:]); err != nil {
		return 0, nil, fmt.Errorf("%w: truncated in the record at byte %d: %w", ErrRecording, p.at, err)
	}
	kind, payload = all[0], all[recordHead:recordHead+size]
	switch sum := binary.LittleEndian.Uint32(all[recordHead+size:]); {
	case sum != crc32.ChecksumIEEE(all[:recordHead+size]):
		return 0, nil, fmt.Errorf("%w: wrong checksum of the record at byte %d", ErrRecording, p.at)
	case kind != kindBegin && kind != kindStep && kind != kindGap || kind == kindGap && size != 8:
		return 0, nil, fmt.Errorf("%w: record of kind %q with %d bytes at byte %d", ErrRecording, kind, size, p.at)
	}
	p.at += int64(len(all))
	return kind, payload, nil
}

// fields reads a payload. After the end all is 0 and ok is false.
type fields struct {
	b     []byte
	short bool
}

func (f *fields) ok() bool { return !f.short }

func (f *fields) bytes(n int) []byte {
	if n > len(f.b) {
		f.short, f.b = true, nil
		return nil
	}
	b := f.b[:n:n]
	f.b = f.b[n:]
	return b
}

func (f *fields) u8() uint8 {
	if b := f.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) u16() uint16 {
	if b := f.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (f *fields) u64() uint64 {
	if b := f.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (f *fields) time() time.Duration { return time.Duration(f.u64()) }
func (f *fields) f64() float64        { return math.Float64frombits(f.u64()) }
func (f *fields) flag() bool          { return f.u8() != 0 }
func (f *fields) text() string        { return string(f.bytes(int(f.u8()))) }

func (f *fields) sense(s *body.Sense, t *Tape) {
	s.At = f.time()
	both := f.u64()
	s.Seq, s.Epoch = uint32(both), uint32(both>>32)
	s.Fresh, s.Fault = f.flag(), f.u16()
	for c := range t.channels {
		s.Values[c], s.Times[c] = 0, 0
		switch f.u8() {
		case timeNever:
			continue
		case timeAt:
			s.Times[c] = s.At
		default:
			s.Times[c] = f.time()
		}
		s.Values[c] = f.f64()
	}
}

// playedBody is the recorded body and its clock.
type playedBody struct {
	d             body.Description
	clock         playedClock
	failed, broke uint8 // in the step that is played
}

type playedClock struct{ now time.Duration }

func (c *playedClock) Now() time.Duration       { return c.now }
func (c *playedClock) SleepUntil(time.Duration) {}

// describe takes a begin record.
func (b *playedBody) describe(payload []byte, t *Tape) (now time.Duration, ok bool) {
	f := fields{b: payload}
	now = f.time()
	b.d = body.Description{Timing: body.Timing{Rhythm: f.time(), Step: f.time(), Stale: f.time(), Silent: f.time()}}
	good := min(b.d.Rhythm, b.d.Step, b.d.Stale, b.d.Silent) >= 0
	b.d.Species, b.d.Model, b.d.Firmware = f.text(), f.text(), f.text()
	b.d.Channels = make([]body.Channel, f.u8())
	for i := range b.d.Channels {
		b.d.Channels[i] = body.Channel{Name: f.text(), Unit: f.text()}
	}
	b.d.Drives = make([]body.Drive, f.u8())
	for i := range b.d.Drives {
		b.d.Drives[i] = body.Drive{Device: f.text(), Takes: body.Goals(f.u8())}
	}
	t.channels, t.drives = len(b.d.Channels), len(b.d.Drives)
	return now, f.ok() && len(f.b) == 0 && good && t.channels <= body.MaxChannels && t.drives <= body.MaxDrives
}

// The loop does to it what it did to the body; the tape sees that.

func (b *playedBody) Describe() body.Description            { return b.d }
func (b *playedBody) Read(*body.Sense, time.Duration) error { return body.ErrTimeout }
func (b *playedBody) Write(*body.Act) error                 { return b.as(wroteAct) }
func (b *playedBody) Halt() error                           { return b.as(wroteHalt) }
func (b *playedBody) Shutdown() error                       { return b.as(wroteOff) }
func (b *playedBody) Close() error                          { return nil }

// as fails as the recorded body did.
func (b *playedBody) as(what uint8) error {
	switch {
	case b.broke&what != 0:
		return body.ErrLink
	case b.failed&what != 0:
		return body.ErrFull
	}
	return nil
}
