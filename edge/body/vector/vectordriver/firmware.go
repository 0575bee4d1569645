package vectordriver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
	"kennel/edge/faultcode"
)

// Firmware is a program for the body's processor, as in the file syscon.dfu: the first 16 bytes are its version and are not sent
// (VEC-DFU-01).
type Firmware struct {
	Version [16]byte
	Program []byte
}

// maxProgram is the reach of 16-bit block offsets (VEC-DFU-03). The processor has less memory. Where its boot-loader ends is not known, so
// refusing a program that is too large is left to the boot-loader.
const maxProgram = 64 << 10

// ParseFirmware reads a firmware file. The program aliases b.
func ParseFirmware(b []byte) (*Firmware, error) {
	const id = len(Firmware{}.Version)
	if len(b) <= id {
		return nil, fmt.Errorf("vector: firmware file has %d bytes, want %d of version and a program", len(b), id)
	}
	if n := len(b) - id; n > maxProgram {
		return nil, fmt.Errorf("vector: program of firmware file has %d bytes, want at most %d", n, maxProgram)
	}
	return &Firmware{Version: [16]byte(b), Program: b[id:]}, nil
}

// String returns the version as text if it is printable, else in hex.
func (f *Firmware) String() string { return (&spine.Version{ID: f.Version}).String() }

// blocks returns how many frames the program takes.
func (f *Firmware) blocks() int { return (len(f.Program) + spine.BlockSize - 1) / spine.BlockSize }

// block fills m with the i-th block; the rest of its last word and of the block is 0xFF, as in erased memory.
func (f *Firmware) block(m *spine.Firmware, i int) {
	data := f.Program[i*spine.BlockSize : min((i+1)*spine.BlockSize, len(f.Program))]
	m.Offset, m.Words = uint16(i*spine.BlockSize), uint16((len(data)+3)/4)
	for at := copy(m.Data[:], data); at < len(m.Data); at++ {
		m.Data[at] = 0xff
	}
}

// Phase is a part of an update.
type Phase uint8

// The phases in their order.
const (
	AskVersion Phase = iota // which version does it run?
	EnterLoader
	Erase
	WriteBlocks
	Validate
	StartProgram
)

var phaseNames = [...]string{"ask for the version", "enter the boot-loader", "erase the program", "write the program",
	"validate the program", "start the program"}

// String returns the action of phase p.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// status returns the code that the original reports when the phase fails, in the domain Rampost (part of VEC-BOOT-09, VEC-DFU-04). A boot-loader
// that is not entered cannot be told to erase.
func (p Phase) status() faultcode.Code {
	switch p {
	case AskVersion:
		return 16
	case EnterLoader, Erase:
		return 17
	case WriteBlocks:
		return 18
	}
	return 19
}

// Progress is where an update is.
type Progress struct {
	Phase       Phase
	Attempt     int // from 1
	Done, Total int // blocks
}

// Update is the outcome of the firmware check when the body was opened (VEC-DFU-01). The zero value means that no firmware was asked for.
type Update struct {
	Installed string // its version before; "": none, or unknown
	Wanted    string // version of the file
	Skipped   string // why a different version was left as it is; ""
	Attempts  int    // 0: no update was needed
	Took      time.Duration
	Err       error // an *UpdateError: the update failed; if Open succeeded, the body runs its old program
}

// UpdateError says where an update ended. Errors before the last attempt's are in it too.
type UpdateError struct {
	Status  faultcode.Code // in the domain faultcode.Rampost: 16 to 19
	Phase   Phase
	Attempt int
	Offset  int // of the block, in WriteBlocks
	Err     error
}

func (e *UpdateError) Error() string {
	where := ""
	if e.Phase == WriteBlocks {
		where = fmt.Sprintf(" at offset %d", e.Offset)
	}
	return fmt.Sprintf("vector: update of the body's firmware: %v%s, attempt %d: %v (status %d)", e.Phase, where, e.Attempt, e.Err, int(e.Status))
}

// Unwrap returns the reason.
func (e *UpdateError) Unwrap() error { return e.Err }

// Own defaults of an update; the source gives no times.
const (
	updateAttempts = 3
	askTries       = 3 // VEC-DFU-02
	enterPatience  = 3 * time.Second
	erasePatience  = 5 * time.Second
	blockPatience  = 500 * time.Millisecond
	validPatience  = 2 * time.Second
	startPatience  = 3 * time.Second
	refusalsOfAsk  = 3 // of the version, until a boot-loader without a program is believed: noise makes refusals too (VEC-BODY-08)
	modeSettle     = 2 * Period
)

// Reasons of an UpdateError.
var (
	errRefused  = errors.New("the body refused")
	errNoAnswer = errors.New("no answer")
	errLeft     = errors.New("the body left the boot-loader")
)

// wanted reports whether to install the firmware of cfg on a body that runs installed; if not, although it differs, it returns why.
func (c *Config) wanted(installed *spine.Version) (update bool, skipped string) {
	switch {
	case c.Firmware == nil || installed.ID == c.Firmware.Version:
		return false, ""
	case c.NoDowngrade && older(c.Firmware.String(), installed.String()):
		return false, "the body's is newer, and downgrades are off"
	}
	return true, ""
}

// older reports whether version a comes before b. Versions that are not numbers with dots have no order.
func older(a, b string) bool {
	x, okX := numbers(a)
	y, okY := numbers(b)
	return okX && okY && slices.Compare(x, y) < 0
}

func numbers(version string) (all []uint64, ok bool) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return nil, false
		}
		all = append(all, n)
	}
	return all, true
}

// updateTo installs the firmware, from the start again as often as it takes (VEC-DFU-05). An error means that the port can no longer be
// used; d.update has the outcome of the update.
func (d *Driver) updateTo(ctx context.Context, fw *Firmware, tell func(Progress)) error {
	began := d.port.Now()
	d.updating = true
	defer func() {
		d.updating = false
		d.update.Took = d.port.Now() - began
	}()
	if tell == nil {
		tell = func(Progress) {}
	}
	u := updater{d: d, fw: fw, tell: tell}
	for u.attempt = 1; ; u.attempt++ {
		d.update.Attempts = u.attempt
		err := u.install(ctx)
		if err == nil {
			d.update.Err = nil
			return nil
		}
		if d.broken != nil || ctx.Err() != nil {
			return err
		}
		d.update.Err = err
		if u.attempt == updateAttempts {
			return nil
		}
	}
}

// updater is one update. It speaks to the body by way of its driver.
type updater struct {
	d       *Driver
	fw      *Firmware
	tell    func(Progress)
	attempt int
	done    int
	erased  bool // by the message that entered the boot-loader
	out     [spine.MaxFrame]byte
	block   spine.Firmware
}

func (u *updater) say(p Phase) {
	u.tell(Progress{Phase: p, Attempt: u.attempt, Done: u.done, Total: u.fw.blocks()})
}

func (u *updater) fail(p Phase, err error) error {
	return &UpdateError{Status: p.status(), Phase: p, Attempt: u.attempt, Offset: u.done * spine.BlockSize, Err: err}
}

// install goes through the phases once.
func (u *updater) install(ctx context.Context) error {
	u.done, u.erased = 0, false
	for _, step := range []struct {
		phase Phase
		run   func(context.Context) error
	}{{EnterLoader, u.enter}, {Erase, u.erase}, {WriteBlocks, u.write}, {Validate, u.validate}, {StartProgram, u.start}} {
		u.say(step.phase)
		if err := step.run(ctx); err != nil {
			return u.fail(step.phase, err)
		}
	}
	return nil
}

// enter brings the body into its boot-loader. A running program enters it on any message of an update (VEC-BODY-H05), so enter sends one that
// erases, again after a data frame that the one before cannot have overtaken.
func (u *updater) enter(ctx context.Context) error {
	d := u.d
	until, asked := d.port.Now()+enterPatience, time.Duration(0)
	d.bootAt, d.dataAt = 0, 0
	for {
		if d.bootAt > d.dataAt {
			u.erased = asked > 0 && d.answered && d.answer.OK()
			return nil
		}
		if d.dataAt > asked+modeSettle {
			asked = d.port.Now()
			if err := d.Halt(); err != nil && err != body.ErrFull {
				return err
			}
			d.answered = false
			if err := u.send(spine.AppendCommand(u.out[:0], spine.TypeErase)); err != nil {
				return err
			}
		}
		if err := u.listen(ctx, until); err != nil {
			if errors.Is(err, body.ErrTimeout) {
				return fmt.Errorf("%w in %v", errNoAnswer, enterPatience)
			}
			return err
		}
	}
}

func (u *updater) erase(ctx context.Context) error {
	if u.erased {
		return nil
	}
	return u.ask(ctx, spine.AppendCommand(u.out[:0], spine.TypeErase), erasePatience)
}

func (u *updater) write(ctx context.Context) error {
	for total := u.fw.blocks(); u.done < total; u.done++ {
		u.fw.block(&u.block, u.done)
		if err := u.ask(ctx, u.block.AppendFrame(u.out[:0]), blockPatience); err != nil {
			return err
		}
		u.say(WriteBlocks)
	}
	return nil
}

// validate makes the body check and start the program. Data frames show that it did, even if the answer was lost.
func (u *updater) validate(ctx context.Context) error {
	err := u.ask(ctx, spine.AppendCommand(u.out[:0], spine.TypeValidate), validPatience)
	if errors.Is(err, errLeft) {
		return nil
	}
	return err
}

// start waits for the program's data frames and asks whether it is the one.
func (u *updater) start(ctx context.Context) error {
	d := u.d
	until, asked := d.port.Now()+startPatience, time.Duration(0)
	d.versionKnown = false
	began := d.port.Now()
	for {
		now := d.port.Now()
		if d.dataAt > began && d.versionKnown {
			if d.version.ID != u.fw.Version {
				return fmt.Errorf("body reports version %q, want %q of the file", d.version.String(), u.fw.String())
			}
			return nil
		}
		if now-asked >= askEvery {
			asked = now
			what := spine.TypeVersion
			if d.bootAt > max(d.dataAt, began) {
				what = spine.TypeMode
			}
			if err := u.send(spine.AppendCommand(u.out[:0], what)); err != nil {
				return err
			}
		}
		if err := u.listen(ctx, min(until, asked+askEvery)); err != nil && (!errors.Is(err, body.ErrTimeout) || d.port.Now() >= until) {
			if errors.Is(err, body.ErrTimeout) {
				return fmt.Errorf("%w in %v", errNoAnswer, startPatience)
			}
			return err
		}
	}
}

// ask sends a frame to the boot-loader until it is acknowledged, at most askTries times. A refusal counts as a try: a frame that arrives
// damaged is refused too.
func (u *updater) ask(ctx context.Context, frame []byte, patience time.Duration) error {
	d := u.d
	var last error
	for range askTries {
		if err := u.quiet(ctx); err != nil {
			return err
		}
		d.answered = false
		began := d.port.Now()
		if err := u.send(frame); err != nil {
			return err
		}
		for last = nil; last == nil; {
			err := u.listen(ctx, began+patience)
			switch {
			case errors.Is(err, body.ErrTimeout):
				last = fmt.Errorf("%w in %v, %d times", errNoAnswer, patience, askTries)
			case err != nil:
				return err
			case d.answered && d.answer.OK():
				return nil
			case d.answered:
				last = fmt.Errorf("%w: answer %d", errRefused, int32(d.answer))
			case d.dataAt > began:
				return errLeft
			}
		}
	}
	return last
}

// quiet reads all bytes that have arrived, so that a late answer is not taken for the next one.
func (u *updater) quiet(ctx context.Context) error {
	for {
		err := u.listen(ctx, u.d.port.Now())
		if errors.Is(err, body.ErrTimeout) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// send sends a frame; a port that is full for now is the same as a line that loses it.
func (u *updater) send(frame []byte) error {
	if err := u.d.send(frame); err != nil && err != body.ErrFull {
		return err
	}
	return nil
}

// listen waits for bytes and parses them. body.ErrTimeout: none came until the deadline.
func (u *updater) listen(ctx context.Context, deadline time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d := u.d
	ready, err := d.port.Wait(deadline)
	switch {
	case err != nil:
		return d.fail("wait", err)
	case !ready:
		return body.ErrTimeout
	}
	n, err := d.port.Read(d.parser.Space())
	if err != nil {
		return d.fail("read", err)
	}
	d.parser.Fill(n)
	d.take()
	return nil
}
