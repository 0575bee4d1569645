package imu

import (
	"errors"
	"fmt"
	"time"

	"kennel/edge/body"
)

// Errors of a chip that cannot be used (VEC-IMU-16: hardware failure).
var (
	// ErrNoAnswer: nothing came back from the other end of a bus.
	ErrNoAnswer = errors.New("imu: no answer")
	// ErrDead: the line is low or high whatever is asked.
	ErrDead = errors.New("imu: the chip does not drive its line")
	// ErrChip: another chip, or one that says that it failed.
	ErrChip = errors.New("imu: not a working BMI160")
	// ErrStopped: its clock has stopped.
	ErrStopped = errors.New("imu: the chip stopped measuring")
	// ErrStuck: its samples are all the same, which no sensor's are.
	ErrStuck = errors.New("imu: the chip repeats one sample")
)

// Own defaults of a session, where the data sheet gives none.
const (
	stoppedAfter = 100 * time.Millisecond
	stoppedReads = 5   // and this many in a row: two reads may be far apart in time
	stuckAfter   = 25  // samples without the least noise
	checkEvery   = 200 // samples: a chip that lost its power for a moment measures on in other units
)

// Times that the chip needs between two commands, from its data sheet, rounded up.
const (
	settle   = time.Millisecond
	resetFor = 20 * time.Millisecond
	accStart = 5 * time.Millisecond
	gyrStart = 90 * time.Millisecond
)

// session is one life of a chip, from its reset on. Times are arguments: it waits by saying when it wants to be called next.
type session struct {
	cfg    *Config
	bus    Bus
	place  int // of the start-up, len of it: it measures
	tx, rx [MaxTransfer]byte

	block   Block
	slot    uint32        // of the newest sample: how many there were by the chip's clock, as far as it counts
	old     int           // reads in a row that found no newer one
	since   time.Duration // when the first of them was
	same    int           // samples like it in a row
	samples int           // since the last look at the configuration
	begun   bool
}

func (s *session) begin(cfg *Config, bus Bus) { *s = session{cfg: cfg, bus: bus} }

// read returns n bytes from a register on, valid until the next transfer.
func (s *session) read(register byte, n int) ([]byte, error) {
	s.tx = [MaxTransfer]byte{register | ReadBit}
	if err := s.bus.Transfer(s.tx[:n+1], s.rx[:n+1]); err != nil {
		return nil, err
	}
	return s.rx[1 : n+1], nil
}

func (s *session) write(register, value byte) error {
	s.tx[0], s.tx[1] = register, value
	return s.bus.Transfer(s.tx[:2], s.rx[:2])
}

// start does one step of the start-up and says how long the chip then needs.
func (s *session) start() (wait time.Duration, err error) {
	c := s.cfg
	place := s.place
	s.place++
	switch place {
	case 0, 2: // before and after the reset it listens to its other bus
		_, err = s.read(RegSPI, 1)
		return settle, err
	case 1:
		return resetFor, s.write(RegCommand, CommandReset)
	case 3:
		p, err := s.read(RegChipID, 1)
		switch {
		case err != nil:
			return 0, err
		case p[0] == 0x00 || p[0] == 0xff:
			return 0, fmt.Errorf("%w: id reads as %#02x, want %#02x", ErrDead, p[0], ChipID)
		case p[0] != ChipID:
			return 0, fmt.Errorf("%w: id %#02x, want %#02x", ErrChip, p[0], ChipID)
		}
		return settle, nil
	case 4:
		return settle, s.write(RegAccConf, filterNormal|byte(c.Rate))
	case 5:
		return settle, s.write(RegAccRange, byte(c.Accel))
	case 6:
		return settle, s.write(RegGyrConf, filterNormal|byte(c.Rate))
	case 7:
		return settle, s.write(RegGyrRange, byte(c.Gyro))
	case 8:
		return accStart, s.write(RegCommand, CommandAccNormal)
	case 9:
		return gyrStart, s.write(RegCommand, CommandGyrNormal)
	}
	return c.Rate.Period(), s.check()
}

// lastStart is the last place of the start-up.
const lastStart = 10

// check looks whether the chip is as it was set.
func (s *session) check() error {
	p, err := s.read(RegError, 2)
	if err != nil {
		return err
	}
	if fault, power := p[0], p[1]; fault&0x01 != 0 || power&powerMask != PowerAccNormal|PowerGyrNormal {
		return fmt.Errorf("%w: errors %#02x and power %#02x, want bit 0 clear and %#02x", ErrChip, fault, power, PowerAccNormal|PowerGyrNormal)
	}
	if p, err = s.read(RegAccConf, 4); err != nil {
		return err
	}
	conf := filterNormal | byte(s.cfg.Rate)
	if want := [4]byte{conf, byte(s.cfg.Accel), conf, byte(s.cfg.Gyro)}; [4]byte(p) != want {
		return fmt.Errorf("%w: settings % x, want % x", ErrChip, p, want)
	}
	return nil
}

// step does the due work. It returns the time of its next call, and whether in holds a new sample. A new sample's in.At is later than
// the one before. The chip measured it between now and the end of the step, less its age. An error ends the session.
func (s *session) step(now time.Duration, in *body.Inertial) (next time.Duration, fresh bool, err error) {
	if s.place <= lastStart {
		wait, err := s.start()
		return s.cfg.Now() + wait, false, err // the chip heard of it no later
	}
	if s.samples >= checkEvery {
		s.samples = 0
		if err := s.check(); err != nil {
			return 0, false, err
		}
	}
	p, err := s.read(RegData, BlockSize)
	if err != nil {
		return 0, false, err
	}
	after := s.cfg.Now()
	if dead(p, 0x00) || dead(p, 0xff) {
		return 0, false, fmt.Errorf("%w: %d bytes of %#02x instead of a sample", ErrDead, BlockSize, p[0])
	}
	var b Block
	if err := b.Parse(p); err != nil {
		return 0, false, err
	}
	ticks, period := s.cfg.Rate.Ticks(), s.cfg.Rate.Period()
	slot, age := b.TimeRaw/ticks, Ticks(b.TimeRaw%ticks)
	// A little after the next sample, to allow for drift between our clock and the chip's.
	next = after - age + period + period/10
	if s.begun && slot == s.slot {
		if s.old++; s.old == 1 {
			s.since = now
		}
		if s.old >= stoppedReads && now-s.since > stoppedAfter {
			return 0, false, fmt.Errorf("%w: clock stopped at %#06x for %v", ErrStopped, b.TimeRaw, now-s.since)
		}
		return next, false, nil
	}
	s.old = 0
	// It was taken age before the chip answered, which was between the two times; its own clock says when by the sample before.
	at := now - age
	if s.begun {
		passed := (slot - s.slot) % (1 << timeBits / ticks)
		at = min(max(at, in.At+time.Duration(passed)*period), after-age)
	}
	if s.begun && b.GyroRaw == s.block.GyroRaw && b.AccelRaw == s.block.AccelRaw {
		if s.same++; s.same >= stuckAfter {
			return 0, false, fmt.Errorf("%w: acceleration %v and rate %v in counts, %d times", ErrStuck, b.AccelRaw, b.GyroRaw, s.same)
		}
	} else {
		s.same = 0
	}
	s.begun, s.block, s.slot = true, b, slot
	s.samples++
	s.cfg.convert(&b, in)
	in.At = max(at, in.At+1)
	return next, true, nil
}

// dead reports whether all measurements of a block are one byte; zero in all axes of both parts is no sample either.
func dead(p []byte, line byte) bool {
	for _, b := range p[:BlockSize-3] {
		if b != line {
			return false
		}
	}
	return true
}
