package pleo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/pleo/reportline"
	"kennel/edge/body/port"
	"kennel/edge/body/scanbuf"
)

// Own defaults of the driver.
const (
	DefaultDevice = "dev/ttyPleo" // below the robot's root
	DefaultBaud   = 115200        // of both of Pleo's ports (PLEO-HST-01)

	askEvery = 200 * time.Millisecond // while it is opened
	patience = 200 * time.Millisecond // for the rest of a line
	hurry    = 1.25                   // times the speed at which a joint just arrives when its next goal comes
	nearGoal = 0.1                    // degrees by which a goal changes before it is sent again
)

// ErrNoAnswer: nothing at the other end sends reports.
var ErrNoAnswer = errors.New("the body sends no reports")

// Config says how to reach a body. The zero value of all but Device works.
type Config struct {
	Device  string        // serial:/dev/ttyUSB0?baud=115200, tcp:host:port, or the path of a tty or Unix socket
	Port    port.Port     // instead of that device, which Device then only names; the driver closes it
	Timeout time.Duration // how long Open waits for the body; 0: 3 s (own default)
}

// Driver is a Pleo behind its monitor: a body.Body that counts (body.Linked). Its joints are held one by one; those that have no goal belong to the Pleo's own
// application, and what else the monitor prints is passed over. One goroutine at a time.
type Driver struct {
	device string
	port   port.Port
	about  body.Description

	window scanbuf.Window
	report reportline.Report
	news   bool // report has not been delivered yet
	drives reportline.Drives
	minded time.Duration // when drives were heard; 0: never
	epoch  uint32
	sent   [len(joints)]float64 // degrees; no number: none
	turn   int                  // the joint whose goal is sent again, in case it was lost
	out    []byte
	sender port.Sender
	counts body.Link
	broken error // wraps body.ErrLink once the port failed or was closed
}

// Open opens the line and waits until the body was heard. Nothing moves. ErrNoAnswer if it stays silent.
func Open(ctx context.Context, cfg Config) (*Driver, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = 3 * time.Second
	}
	d := &Driver{device: cfg.Device, port: cfg.Port, out: make([]byte, 0, 1024), epoch: 1}
	var err error
	if d.about, err = describe(); err != nil {
		return nil, err
	}
	if d.port == nil {
		l, err := port.Open(ctx, cfg.Device, DefaultBaud, false)
		if err != nil {
			return nil, fmt.Errorf("pleo: %w", err)
		}
		d.port = l
	}
	d.forget()
	if err := d.meet(ctx, cfg.Timeout); err != nil {
		_ = d.Close() // err says more
		return nil, fmt.Errorf("%s: %w", cfg.Device, err)
	}
	v := d.report.Firmware
	d.about.Firmware = fmt.Sprintf("%d.%d", v/100, v%100/10)
	return d, nil
}

// forget makes all goals new.
func (d *Driver) forget() {
	for i := range d.sent {
		d.sent[i] = math.NaN()
	}
}

// meet asks for reports until one came.
func (d *Driver) meet(ctx context.Context, timeout time.Duration) error {
	until, ask := d.port.Now()+timeout, time.Duration(0)
	for !d.news {
		now := d.port.Now()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case now >= until:
			return fmt.Errorf("%w in %v (%d broken, %d other bytes)", ErrNoAnswer, timeout, d.counts.Corrupt, d.window.Skipped)
		case now >= ask:
			ask = now + askEvery
			d.out = append(strconv.AppendInt(append(d.out[:0], "\nreport "...), period.Milliseconds(), 10), '\n')
			if err := d.send(); err != nil && !errors.Is(err, body.ErrFull) {
				return err
			}
		}
		if _, err := d.port.Wait(min(until, ask)); err != nil {
			return d.fail("wait", err)
		}
		if err := d.receive(); err != nil {
			return err
		}
	}
	return nil
}

// Describe is body.Body.
func (d *Driver) Describe() body.Description { return d.about }

// Read is body.Body.
func (d *Driver) Read(s *body.Sense, deadline time.Duration) error {
	s.Fresh = false
	for {
		if err := d.receive(); err != nil {
			return err
		}
		if d.news {
			d.news = false
			at := d.port.Now()
			s.At, s.Seq, s.Epoch, s.Fresh, s.Fault = at, d.report.Seq, d.epoch, true, 0
			fill(s, &d.report, at)
			if d.minded > 0 {
				fillDrives(s, &d.drives, d.minded)
			}
			return nil
		}
		ready, err := d.port.Wait(deadline)
		if err != nil {
			return d.fail("wait", err)
		}
		if !ready && d.port.Now() >= deadline {
			return body.ErrTimeout
		}
	}
}

// receive takes what has arrived.
func (d *Driver) receive() error {
	if d.broken != nil {
		return d.broken
	}
	for {
		space := d.window.Space()
		n, err := d.port.Read(space)
		if err != nil {
			return d.fail("read", err)
		}
		d.window.Fill(n)
		d.parse()
		if n < len(space) {
			d.window.Expire(d.port.Now(), patience)
			return nil
		}
	}
}

// prompt comes before a line that answers no command.
const prompt = "> "

// parse takes the whole lines that have arrived; of several reports the newest counts.
func (d *Driver) parse() {
	for {
		b := d.window.Bytes()
		n := bytes.IndexByte(b, '\n') + 1
		if n == 0 {
			if len(b) > 2*reportline.MaxLine {
				d.window.Skip(len(b) - reportline.MaxLine) // no line is so long
			}
			return
		}
		line := b[:n-1]
		for bytes.HasPrefix(line, []byte(prompt)) {
			line = line[len(prompt):]
		}
		if reportline.IsDrives(line) {
			d.takeDrives(line, n)
			continue
		}
		if !reportline.Is(line) {
			d.window.Skip(n)
			continue
		}
		seq := d.report.Seq
		if reportline.Parse(line, &d.report) != nil {
			d.counts.Corrupt++
			d.window.Skip(n)
			continue
		}
		d.window.Take(n)
		d.counts.Frames++
		if d.news {
			d.counts.Overtaken++
		}
		if d.report.Seq < seq {
			d.epoch++ // the body has restarted
			d.forget()
		}
		d.news = true
	}
}

// takeDrives takes a line of drives, n bytes with its end. It is no frame: the body is heard by its reports.
func (d *Driver) takeDrives(line []byte, n int) {
	if reportline.ParseDrives(line, &d.drives) != nil {
		d.counts.Corrupt++
		d.window.Skip(n)
		return
	}
	d.window.Take(n)
	d.minded = d.port.Now()
}

// Write is body.Body: the commands for those joints whose goals changed, and one more whose goal may have been lost.
func (d *Driver) Write(a *body.Act) error {
	if d.broken != nil {
		return d.broken
	}
	d.turn = (d.turn + 1) % len(joints)
	d.out = d.out[:0]
	for i := range joints {
		j := &joints[i]
		held := d.report.Held&(1<<i) != 0
		v := j.sign() * a.Values[i] * 180 / math.Pi
		if a.Goals[i] != body.Position || math.IsNaN(v) {
			if held || !math.IsNaN(d.sent[i]) {
				d.out = append(strconv.AppendInt(append(d.out, "joint free "...), int64(i), 10), '\n')
			}
			d.sent[i] = math.NaN()
			continue
		}
		v = min(max(v, j.min), j.max)
		if held && math.Abs(v-d.sent[i]) < nearGoal && i != d.turn {
			continue
		}
		speed := j.speed
		if held && math.Abs(v-d.sent[i]) > 0 { // as fast as it has to be, so that it moves evenly
			speed = min(math.Abs(v-d.sent[i])/period.Seconds()*hurry, speed)
		}
		d.sent[i] = v
		d.out = append(strconv.AppendInt(append(d.out, "joint hold "...), int64(i), 10), ' ')
		d.out = append(strconv.AppendFloat(d.out, v, 'f', 2, 64), ' ')
		d.out = append(strconv.AppendFloat(d.out, speed, 'f', 1, 64), '\n')
	}
	if len(d.out) == 0 {
		return nil
	}
	return d.send()
}

// send sends the commands in out. Those that find the port full are dropped: ErrFull.
func (d *Driver) send() error {
	full, err := d.sender.Send(d.port, d.out)
	switch {
	case err != nil:
		return d.fail("write", err)
	case full:
		d.forget()
		d.counts.Full++
		return body.ErrFull
	}
	return nil
}

// Halt is body.Body: motions end, the joints stop where they are, and the Pleo's application has them again.
func (d *Driver) Halt() error {
	if d.broken != nil {
		return d.broken
	}
	d.forget()
	d.out = append(d.out[:0], "joint stop\n"...)
	if err := d.send(); err != nil && !errors.Is(err, body.ErrFull) {
		return err
	}
	return nil // a port that is full: the next Halt
}

// Shutdown is body.Body: this body cannot cut its own power.
func (d *Driver) Shutdown() error { return d.Halt() }

// Link is body.Linked.
func (d *Driver) Link() body.Link {
	c := d.counts
	c.SkippedBytes = d.window.Skipped
	return c
}

// Close is body.Body.
func (d *Driver) Close() error {
	if d.port == nil {
		return nil
	}
	if d.broken == nil && d.counts.Frames > 0 {
		_ = d.Halt() // the port may be the reason for closing
	}
	err := d.port.Close()
	d.port = nil
	_ = d.fail("use", errors.New("closed"))
	if err != nil {
		return fmt.Errorf("close %s: %w", d.device, err)
	}
	return nil
}

// fail ends the use of the port.
func (d *Driver) fail(what string, err error) error {
	d.broken = fmt.Errorf("%w: %s %s: %v", body.ErrLink, what, d.device, err)
	return d.broken
}
