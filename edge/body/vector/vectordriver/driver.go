package vectordriver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/port"
	"kennel/edge/body/vector/spine"
	"kennel/edge/faultcode"
)

// Config says how to reach a body. The zero value of all but Device works.
type Config struct {
	Device      string        // the tty; on a robot DefaultDevice below its root
	Port        port.Port     // instead of that tty, which Device then only names; the driver closes it
	Baud        int           // bit/s; 0: DefaultBaud
	Timeout     time.Duration // how long Open waits for the body; 0: 5 s (own default)
	Calibration Calibration   // zero: DefaultCalibration
	Layout      spine.Layout  // of data frames, both ways

	// Firmware is the program that the body shall run. Open installs it if the body runs another (VEC-DFU-01), which takes seconds beyond
	// Timeout. If nil, any program will do. With NoDowngrade a body with a higher version keeps it.
	Firmware    *Firmware
	NoDowngrade bool
	Progress    func(Progress) // called for each phase and block, inside Open

	// Sensors are the inertial sensors in the head, which the body's wire does not carry (package imu); nil: the robot has none.
	Sensors Sensors

	// Factory answers the command line of the charging pad; nil, as on every robot that has left the factory: it is off (VEC-CLI-01).
	Factory *Factory

	// HoldProcessor waits in a raw system call, which keeps the scheduler from giving this thread's turn to other goroutines: the
	// wake-up is sharper where those are busy. It needs GOMAXPROCS of at least 2, and a program that collects little garbage.
	HoldProcessor bool

	// Tap, if set, sees every good data frame with its raw values, also those that Read skips: microphones, logs. It runs inside
	// Read and must neither block nor keep the pointer. at is when the frame came.
	Tap func(m *spine.BodyData, at time.Duration)
}

// Sensors leaves the newest sample of the inertial sensors.
type Sensors interface {
	// Newest copies the newest sample to in; At is 0 while there is none. broken reports that the sensors exist but do not work. Read calls it
	// for each frame; it must not wait.
	Newest(in *body.Inertial) (broken bool)
}

// Own defaults of the session.
const (
	defaultTimeout  = 5 * time.Second
	askEvery        = 100 * time.Millisecond // a question is repeated after this long without an answer
	versionPatience = time.Second            // a body that sends data but not its version is taken without it
	maxReads        = 8                      // reads in a row before Read looks at the clock: a babbling line must not hold the loop
)

// commandSize is the longest frame the driver sends.
const commandSize = spine.Overhead + spine.HeadDataSize

// tailSize is the longest frame of all, of an update.
const tailSize = spine.MaxFrame

// Driver is a Vector body behind a tty: a body.Body that counts (body.Linked). One goroutine at a time.
type Driver struct {
	device  string
	port    port.Port
	parser  *spine.Parser
	conv    converter
	sensors Sensors
	tap     func(*spine.BodyData, time.Duration)

	factory *Factory

	read    Sense // as Read leaves it
	act     Act   // as Write takes it
	frame   spine.BodyData
	command spine.HeadData
	out     [commandSize]byte
	tail    []byte // of a frame the port took only in part; goes out before anything else
	rest    [tailSize]byte

	version      spine.Version
	versionKnown bool
	flowing      bool          // data frames arrive, and no boot-loader frame since
	heard        time.Duration // last good frame of any kind
	asked        time.Duration // last question of the session

	update         Update
	updating       bool          // the updater leads the session
	dataAt, bootAt time.Duration // newest data frame, and of the boot-loader
	answered       bool
	answer         spine.Ack // the newest, if answered

	broken                           error // wraps body.ErrLink once the port failed or was closed
	frames, overtaken, refused, full uint64
}

// Open opens the port, stops the motors, installs cfg.Firmware if the body runs another, and brings the body to send data frames. A body
// that runs in spite of a failed update is opened: Update says what went wrong. Open returns ErrNoBody or ErrNoApplication, with a
// summary of the frames received, if that does not succeed in time.
func Open(ctx context.Context, cfg Config) (*Driver, error) {
	if cfg.Device == "" {
		return nil, errors.New("vector: want a device")
	}
	if cfg.Baud == 0 {
		cfg.Baud = DefaultBaud
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Calibration == (Calibration{}) {
		cfg.Calibration = DefaultCalibration()
	}
	if err := cfg.Calibration.Validate(); err != nil {
		return nil, err
	}
	p := cfg.Port
	if p == nil {
		t, err := port.Open(ctx, cfg.Device, cfg.Baud, cfg.HoldProcessor)
		if err != nil {
			return nil, fmt.Errorf("vector: %w", err)
		}
		p = t
		if t.Baud() == 0 && cfg.Calibration.ChargerOff|cfg.Calibration.SensorsOff == 0 {
			cfg.Calibration.ChargerOff, cfg.Calibration.SensorsOff = SimChargerOff, SimSensorsOff // only a simulated body has a socket
		}
	}
	d := &Driver{
		device: cfg.Device, port: p, parser: spine.NewParser(spine.ToHead), conv: converter{cal: cfg.Calibration},
		sensors: cfg.Sensors, tap: cfg.Tap,
	}
	d.frame.Layout, d.command.Layout = cfg.Layout, cfg.Layout
	if cfg.Factory != nil {
		d.factory = d.factoryCommands(cfg.Factory)
	}
	d.conv.restart()
	if err := d.begin(ctx, &cfg); err != nil {
		_ = d.Close() // begin's error says more
		return nil, fmt.Errorf("%s: %w", cfg.Device, err)
	}
	return d, nil
}

// begin runs the session up to the first data frame, by way of an update if one is due.
func (d *Driver) begin(ctx context.Context, cfg *Config) error {
	// An earlier owner may have died while it drove, or within a frame: then the body waits for the rest of that frame, and takes our first
	// bytes for it.
	if err := d.send(make([]byte, spine.MaxFrame)); err != nil && err != body.ErrFull {
		return err
	}
	if err := d.Halt(); err != nil {
		return err
	}
	var s Sense
	started := d.port.Now()
	settled := cfg.Firmware == nil // its program needs no change, or no further one
	for {
		now := d.port.Now()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !settled && (d.versionKnown || d.refused >= refusalsOfAsk && d.bootAt > d.dataAt):
			settled = true
			d.update.Wanted = cfg.Firmware.String()
			due := true
			if d.versionKnown {
				d.update.Installed = d.version.String()
				due, d.update.Skipped = cfg.wanted(&d.version)
			}
			if due {
				if err := d.updateTo(ctx, cfg.Firmware, cfg.Progress); err != nil {
					return err
				}
				d.flowing, d.versionKnown, started = false, false, d.port.Now()
			}
			continue
		case d.flowing && (d.versionKnown || now-started > versionPatience):
			d.refused = 0 // a boot-loader refuses the first Halt; that says nothing about the session
			if !settled {
				d.update.Wanted = cfg.Firmware.String()
				d.update.Err = &UpdateError{Status: AskVersion.status(), Phase: AskVersion, Attempt: 1, Err: fmt.Errorf("%w in %v", errNoAnswer, versionPatience)}
			}
			return nil
		case now-started >= cfg.Timeout:
			return d.whyNot(cfg.Timeout)
		}
		d.ask(now)
		if err := d.ReadSense(&s, min(now+askEvery, started+cfg.Timeout)); err != nil && !errors.Is(err, body.ErrTimeout) {
			return err
		}
	}
}

// Update returns the outcome of the firmware check in Open.
func (d *Driver) Update() Update { return d.update }

// ask takes the session a step further, at most each askEvery: the version, then the application, which a mode change starts (VEC-BODY-H05).
func (d *Driver) ask(now time.Duration) {
	if d.asked != 0 && now-d.asked < askEvery {
		return
	}
	d.asked = now
	out := d.out[:0]
	if !d.versionKnown {
		out = spine.AppendCommand(out, spine.TypeVersion)
	} else if !d.flowing {
		out = spine.AppendCommand(out, spine.TypeMode)
	} else {
		return
	}
	_ = d.send(out) // asked again soon; a broken link shows in the next read
}

func (d *Driver) whyNot(after time.Duration) error {
	c := d.parser.Counters()
	switch {
	case c.Good == 0:
		return fmt.Errorf("%w: got %d bytes and no valid frame in %v", ErrNoBody, c.Skipped, after)
	case d.update.Err != nil:
		return fmt.Errorf("%w: %w", ErrNoApplication, d.update.Err)
	case !d.versionKnown && d.refused > 0:
		return fmt.Errorf("%w: its boot-loader refused the version request %d times in %v", ErrNoApplication, d.refused, after)
	}
	return fmt.Errorf("%w: version %q known %t, no data frame in %v", ErrNoApplication, d.version.String(), d.versionKnown, after)
}

// Describe names the parts of the body; its lists are shared and not to be changed. Firmware is empty while the body kept its version to itself.
func (d *Driver) Describe() body.Description {
	desc := description
	if d.versionKnown {
		desc.Firmware = d.version.String()
	}
	return desc
}

// Read fills s from the newest data frame, with the newest sample of the inertial sensors, waiting for a frame until deadline. Sensors that do
// not work are fault 960 of a body that has no other. A silence of Calibration.LostAfter sets s.Fault to
// faultcode.BodySilent, for as long as it lasts. A body that restarted is brought back on the way.
func (d *Driver) Read(s *body.Sense, deadline time.Duration) error {
	own := &d.read
	err := d.ReadSense(own, deadline)
	if own.Fresh {
		own.Pack(s)
	} else {
		s.Fresh, s.Fault = false, own.Fault
	}
	return err
}

// ReadSense is Read in the body's own terms.
func (d *Driver) ReadSense(s *Sense, deadline time.Duration) error {
	s.Fresh = false
	for {
		if d.broken != nil {
			return d.broken
		}
		for range maxReads {
			n, err := d.port.Read(d.parser.Space())
			if err != nil {
				return d.fail("read", err)
			}
			if n == 0 {
				break
			}
			d.parser.Fill(n)
			d.take()
		}
		if d.conv.sense.Fresh {
			*s = d.conv.sense
			d.conv.sense.Fresh = false
			if d.sensors != nil && d.sensors.Newest(&s.Inertial) && s.Fault == 0 {
				s.Fault = uint16(faultcode.IMU) // VEC-IMU-16
			}
			return nil
		}
		ready, err := d.port.Wait(deadline)
		if err != nil {
			return d.fail("wait", err)
		}
		if !ready {
			if d.port.Now()-d.heard > d.conv.cal.LostAfter {
				s.Fault = uint16(faultcode.BodySilent)
			}
			return body.ErrTimeout
		}
	}
}

// take handles every whole frame in the parser.
func (d *Driver) take() {
	now := d.port.Now()
	d.parser.Expire(now)
	for f, ok := d.parser.Next(); ok; f, ok = d.parser.Next() {
		d.heard = now
		switch f.Type {
		case spine.TypeData:
			if d.frame.ParsePayload(f.Payload) != nil {
				continue // cannot be: the parser checked the only thing that may be wrong, the size
			}
			d.flowing, d.dataAt = true, now
			d.frames++
			if d.conv.sense.Fresh {
				d.overtaken++
			}
			d.conv.take(&d.frame, now)
			if d.tap != nil {
				d.tap(&d.frame, now)
			}
			d.sayFactory()
		case spine.TypeChars:
			d.chars(f.Payload)
		case spine.TypeBootloader:
			d.bootAt = now
			if d.flowing { // it has restarted
				d.flowing, d.versionKnown = false, false // perhaps with other firmware
				d.conv.restart()
			}
			if !d.updating {
				d.ask(now)
			}
		case spine.TypeVersion:
			if d.version.ParsePayload(f.Payload) == nil && !d.versionKnown {
				d.versionKnown = true
				d.asked = 0 // the next request need not wait
			}
		case spine.TypeAck:
			var a spine.Ack
			if a.ParsePayload(f.Payload) == nil {
				d.answered, d.answer = true, a
				if !a.OK() {
					d.refused++
				}
			}
		}
	}
}

// Write sends a as one data frame.
func (d *Driver) Write(a *body.Act) error {
	d.act.Unpack(a)
	return d.WriteAct(&d.act)
}

// WriteAct is Write in the body's own terms.
func (d *Driver) WriteAct(a *Act) error {
	d.conv.fill(&d.command, a)
	d.command.Seq++
	return d.send(d.command.AppendFrame(d.out[:0]))
}

// Halt sends a data frame with all motors at 0 and the lights as they were. If the port is full of older commands it throws them away.
func (d *Driver) Halt() error {
	d.command.Motors = [4]int16{}
	d.command.Seq++
	frame := d.command.AppendFrame(d.out[:0])
	err := d.send(frame)
	if err != body.ErrFull {
		return err
	}
	d.tail = nil
	if err := d.port.DropOutput(); err != nil {
		return d.fail("discard old commands", err)
	}
	return d.send(frame)
}

// Shutdown halts and sends the shutdown frame; the body disconnects its battery, and with it the head (VEC-BODY-H03).
func (d *Driver) Shutdown() error {
	if err := d.Halt(); err != nil {
		return err
	}
	if err := d.send(spine.AppendCommand(d.out[:0], spine.TypeShutdown)); err != nil {
		return err
	}
	if err := d.port.Drain(); err != nil {
		return d.fail("drain", err)
	}
	return nil
}

// send writes one frame, whole or not at all as far as the body can see: the rest of a frame taken in part goes out with the next.
func (d *Driver) send(frame []byte) error {
	if d.broken != nil {
		return d.broken
	}
	if len(d.tail) > 0 {
		n, err := d.port.Write(d.tail)
		if err != nil {
			return d.fail("write", err)
		}
		if d.tail = d.tail[n:]; len(d.tail) > 0 {
			d.full++
			return body.ErrFull
		}
	}
	n, err := d.port.Write(frame)
	switch {
	case err != nil:
		return d.fail("write", err)
	case n == 0:
		d.full++
		return body.ErrFull
	}
	d.tail = append(d.rest[:0], frame[n:]...)
	return nil
}

// fail ends the use of the port.
func (d *Driver) fail(what string, err error) error {
	d.broken = fmt.Errorf("%w: %s %s: %v", body.ErrLink, what, d.device, err)
	return d.broken
}

// Link returns the counts since Open.
func (d *Driver) Link() body.Link {
	c := d.parser.Counters()
	return body.Link{
		Frames:       d.frames,
		Overtaken:    d.overtaken,
		Corrupt:      c.Bad(),
		SkippedBytes: c.Skipped,
		Refused:      d.refused,
		Full:         d.full,
		ProxRefused:  d.conv.proxRefused,
		TouchRefused: d.conv.touchRefused,
	}
}

// Close halts as far as the port allows and closes it.
func (d *Driver) Close() error {
	if d.port == nil {
		return nil
	}
	_ = d.Halt() // the port may be the reason for closing
	err := d.port.Close()
	d.port = nil
	_ = d.fail("use", errors.New("closed"))
	if err != nil {
		return fmt.Errorf("close %s: %w", d.device, err)
	}
	return nil
}
