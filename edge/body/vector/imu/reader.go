package imu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/monoclock"
	"kennel/edge/body/rawfd"
	"kennel/edge/core/rt"
	"kennel/infra/logging"
)

// Config says which chip and how. The zero value of all but Device works.
type Config struct {
	Device string // a spidev channel, or a Unix socket of a simulated chip
	// Expected: the robot has the sensors, so a missing device counts as broken. Otherwise only a device that exists and does not work does.
	Expected bool
	Open     func() (Bus, error) // instead of Device, which then only names it
	// Now is the clock of Step's times; nil: package monoclock's, which Run needs.
	Now func() time.Duration

	Hertz uint32     // clock of the bus, at most 10 MHz; 0: 1 MHz (own default)
	Rate  Rate       // of samples; 0: 200 Hz (VEC-IMU-01; own default)
	Accel AccelRange // 0: 8 g, more than detecting a fall's impact needs (VEC-IMU-07; own default)
	Gyro  GyroRange  // 0 is Gyro2000, 35 rad/s
	// Axes[i] is the axis of the chip, 1 to 3, that points where axis i of the head does; negative: against it. Zero: the chip sits as the head does.
	Axes [3]int8
}

// mostHertz is the fastest bus the chip takes.
const mostHertz = 10_000_000

func (c *Config) defaults() {
	if c.Hertz == 0 {
		c.Hertz = 1_000_000
	}
	if c.Rate == 0 {
		c.Rate = Hz200
	}
	if c.Accel == 0 {
		c.Accel = Accel8G
	}
	if c.Axes == [3]int8{} {
		c.Axes = [3]int8{1, 2, 3}
	}
	if c.Now == nil {
		c.Now = monoclock.Now
	}
	if c.Open == nil {
		path, hertz := c.Device, c.Hertz
		c.Open = func() (Bus, error) { return open(path, hertz) }
	}
}

// validate names the first setting that cannot be, after defaults.
func (c *Config) validate() error {
	var seen [4]bool
	for i, a := range c.Axes {
		if a < 0 {
			a = -a
		}
		if a < 1 || a > 3 || seen[a] {
			return fmt.Errorf("imu: axes %v: entry %d, want 1, 2 and 3 once each, negative where an axis points the other way", c.Axes, i)
		}
		seen[a] = true
	}
	switch {
	case c.Device == "":
		return errors.New("imu: want a device")
	case c.Hertz > mostHertz:
		return fmt.Errorf("imu: clock of %d Hz, want at most %d", c.Hertz, mostHertz)
	case !c.Rate.valid():
		return fmt.Errorf("imu: rate %d, want %d to %d", c.Rate, Hz25, Hz1600)
	case c.Accel.PerCount() == 0:
		return fmt.Errorf("imu: acceleration range %#02x, want 2, 4, 8 or 16 g", byte(c.Accel))
	case c.Gyro.PerCount() == 0:
		return fmt.Errorf("imu: range of the gyro %d, want 0 to %d", c.Gyro, Gyro125)
	}
	return nil
}

// convert turns counts of the chip's axes into SI of the head's.
func (c *Config) convert(b *Block, in *body.Inertial) {
	accel, gyro := c.Accel.PerCount(), c.Gyro.PerCount()
	for i, a := range c.Axes {
		if a > 0 {
			in.Accel[i], in.Gyro[i] = float64(b.AccelRaw[a-1])*accel, float64(b.GyroRaw[a-1])*gyro
		} else {
			in.Accel[i], in.Gyro[i] = -float64(b.AccelRaw[-a-1])*accel, -float64(b.GyroRaw[-a-1])*gyro
		}
	}
}

// Own defaults of trying again. One program reads one chip on its own bus, so that nothing is gained by jitter.
const (
	minPause  = 100 * time.Millisecond
	maxPause  = 10 * time.Second
	probation = 50              // samples after a failure before the chip is believed again
	patience  = 2 * time.Second // without a believed sample for this long the sensors are broken
)

// nothingYet marks that no reason has been logged yet.
const nothingYet = "nothing yet"

// newest is the result that a reader leaves for the loop.
type newest struct {
	sample body.Inertial
	broken bool
}

// Reader keeps a chip measuring, restarts it after failures, and publishes its newest sample. One goroutine calls Run, or Step; another may
// call Newest.
type Reader struct {
	cfg Config
	log *slog.Logger

	bus     Bus
	session session
	sample  body.Inertial
	trial   int           // samples that are still to be good
	begun   bool          //
	good    time.Duration // time of the newest accepted sample; at first the reader's begin
	again   time.Duration // no attempt before
	pause   time.Duration
	err     error // why there is no sample; nil: there is one
	said    string

	out  *rt.Latest[newest]
	seen newest // Newest's
}

// New returns a reader that has read nothing. It logs each reason for a missing sample once.
func New(cfg Config, log *slog.Logger) (*Reader, error) {
	cfg.defaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Reader{cfg: cfg, log: log, pause: minPause, said: nothingYet, out: rt.NewLatest[newest]()}, nil
}

// Newest copies the newest sample to in: its At is 0 while there is none. broken reports that the robot has the sensors and they have not
// worked for two seconds (VEC-IMU-16: fault 960). Only one goroutine may call it; it does not wait and does not allocate.
func (r *Reader) Newest(in *body.Inertial) (broken bool) {
	r.out.GetAlone(&r.seen)
	*in = r.seen.sample
	return r.seen.broken
}

// Run reads until ctx ends, and gives the device back.
func (r *Reader) Run(ctx context.Context) error {
	defer r.close()
	t, err := rawfd.NewTimer()
	if err != nil {
		return fmt.Errorf("imu: %w", err)
	}
	defer t.Close() // nothing waits for it
	defer context.AfterFunc(ctx, func() { _ = t.Close() })()
	for ctx.Err() == nil {
		next := r.Step(r.cfg.Now())
		r.tell(ctx)
		if err := t.SleepUntil(next); err != nil && ctx.Err() == nil {
			return fmt.Errorf("imu: %w", err)
		}
	}
	return nil
}

// Step does the work due at now and returns the time of the next call. A caller with simulated time uses it instead of Run.
func (r *Reader) Step(now time.Duration) (next time.Duration) {
	if !r.begun {
		r.begun, r.good = true, now
	}
	if r.bus == nil {
		if now < r.again {
			return r.wait(now)
		}
		bus, err := r.cfg.Open()
		if err != nil {
			return r.fail(now, err)
		}
		r.bus = bus
		r.session.begin(&r.cfg, bus)
	}
	next, fresh, err := r.session.step(now, &r.sample)
	if err != nil {
		return r.fail(now, err)
	}
	switch {
	case !fresh:
	case r.trial > 0:
		r.trial--
	default:
		r.err, r.good, r.pause = nil, now, minPause
		r.leave(r.sample, false)
	}
	if r.err != nil {
		r.leave(body.Inertial{}, r.broken(now))
	}
	return next
}

// fail ends a session; the next one begins after a pause that doubles.
func (r *Reader) fail(now time.Duration, err error) time.Duration {
	r.close()
	r.err, r.trial = err, probation
	r.again = now + r.pause
	r.pause = min(2*r.pause, maxPause)
	return r.wait(now)
}

// wait says how it is until the next attempt, and when that is, or when the patience ends.
func (r *Reader) wait(now time.Duration) time.Duration {
	r.leave(body.Inertial{}, r.broken(now))
	if end := r.good + patience + 1; end > now {
		return min(r.again, end)
	}
	return r.again
}

// absent: the robot has no such sensors.
func (r *Reader) absent() bool { return !r.cfg.Expected && errors.Is(r.err, fs.ErrNotExist) }

func (r *Reader) broken(now time.Duration) bool { return !r.absent() && now-r.good > patience }

func (r *Reader) leave(sample body.Inertial, broken bool) {
	n := r.out.Next()
	n.sample, n.broken = sample, broken
	r.out.Publish()
}

func (r *Reader) close() {
	if r.bus != nil {
		_ = r.bus.Close() // its error would say nothing new
		r.bus = nil
	}
}

// tell logs once why there is no sample, and when there is one again.
func (r *Reader) tell(ctx context.Context) {
	why := ""
	switch {
	case r.err == nil && r.sample.At == 0:
		return // it begins
	case r.err != nil && r.trial < probation:
		return // on probation: the reason is kept
	case r.err != nil:
		why = r.err.Error()
	}
	if why == r.said {
		return
	}
	switch r.said = why; {
	case why == "":
		r.log.InfoContext(ctx, "inertial sensors connected", "device", r.cfg.Device)
	case r.absent():
		r.log.DebugContext(ctx, "no inertial sensors", "device", r.cfg.Device, logging.Err, r.err)
	default:
		r.log.WarnContext(ctx, "inertial sensors silent; retrying", "device", r.cfg.Device, logging.Err, r.err)
	}
}
