package amigobot

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/amigobot/session"
	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/port"
)

// Own defaults of the driver.
const (
	DefaultDevice = "tcp:localhost:8101" // where clients of this robot look first (AMIGO-LINK-05)
	DefaultBaud   = 9600
	SystemDevice  = "dev/ttyAmigoSystem" // the System port, below the root of a computer on its back

	step      = 20 * time.Millisecond  // between two steps of the loop: as often as a command may go out (AMIGO-PKT-12)
	stale     = 350 * time.Millisecond // three packets late: the robot stops until it is heard again
	tuneEvery = time.Second            // gains are sent again; the session tries three times within it
	silent    = 12 * time.Second       // the session connects again by itself before (AMIGO-LINK-06)
)

// Limits of motion that the driver sets, below the motors' limits (AMIGO-MOT-08). Own defaults.
var limits = session.Limits{Speed: 0.5, Accel: 0.5, Decel: 0.5, Turn: 2, TurnAccel: 2, TurnDecel: 2}

// The channels of an AmigoBot, by number.
const (
	chX, chY, chHeading, chControl = 0, 1, 2, 3
	chLeft                         = 4 // speed of the left wheel, then of the right one
	chTurn                         = 6 // position of the left wheel, then of the right one
	chStall                        = 8
	chMotors, chSonarOn, chMoving  = 10, 11, 12
	chBattery                      = 13
	chSonar                        = 14 // by AmigOS's number
	chDigin                        = chSonar + sip.Sonars
	chDigout                       = chDigin + 6
	chAnalog                       = chDigout + 6
	chGain                         = chAnalog + 5 // P, I, D of translation
	chSessions                     = chGain + 3
	channels                       = chSessions + 1
)

// The drives of an AmigoBot, by number.
const (
	drMotors = 0 // 1: on
	drX      = 1 // robot.xSpeed and robot.yawSpeed together
	drYaw    = 2
	drWheel  = 3 // left, right: instead of those
	drDigout = 5
	drGain   = drDigout + 6
	drSound  = drGain + 3 // the lowest 8 bits are its number; it is played when the value changes
	drMute   = drSound + 1
	drives   = drMute + 1
)

// description holds the fixed facts of an AmigoBot.
var description = func() body.Description {
	d := body.Description{Species: "amigo", Model: "AmigoBot", Timing: body.Timing{Step: step, Stale: stale, Silent: silent}}
	d.Channels = append(d.Channels, body.Channel{Name: "odometry.x", Unit: "m"}, body.Channel{Name: "odometry.y", Unit: "m"},
		body.Channel{Name: "odometry.heading", Unit: "rad"}, body.Channel{Name: "heading.goal", Unit: "rad"},
		body.Channel{Name: "wheelL.speed", Unit: "rad/s"}, body.Channel{Name: "wheelR.speed", Unit: "rad/s"},
		body.Channel{Name: "wheelL.position", Unit: "rad"}, body.Channel{Name: "wheelR.position", Unit: "rad"},
		body.Channel{Name: "bumperL.pressure"}, body.Channel{Name: "bumperR.pressure"},
		body.Channel{Name: "motors.on"}, body.Channel{Name: "sonars.on"}, body.Channel{Name: "robot.moving"},
		body.Channel{Name: "battery.voltage", Unit: "V"})
	for i := range sip.Sonars {
		d.Channels = append(d.Channels, body.Channel{Name: fmt.Sprintf("native sonar %d", i), Unit: "m"})
	}
	for _, c := range []struct {
		name, unit string
		n          int
	}{{"digin", "", 6}, {"digout", "", 6}, {"analog", "V", 5}} {
		for i := range c.n {
			d.Channels = append(d.Channels, body.Channel{Name: fmt.Sprintf("%s[%d].val", c.name, i), Unit: c.unit})
		}
	}
	for _, g := range gains {
		d.Channels = append(d.Channels, body.Channel{Name: "wheel." + g})
	}
	d.Channels = append(d.Channels, body.Channel{Name: "sessions"})
	d.Drives = []body.Drive{{Device: "motors", Takes: body.Level}, {Device: "robot.xSpeed", Takes: body.Speed},
		{Device: "robot.yawSpeed", Takes: body.Speed},
		{Device: "wheelL", Takes: body.Speed}, {Device: "wheelR", Takes: body.Speed}}
	for i := range 6 {
		d.Drives = append(d.Drives, body.Drive{Device: fmt.Sprintf("digout[%d]", i), Takes: body.Level})
	}
	for _, g := range gains {
		d.Drives = append(d.Drives, body.Drive{Device: "wheel." + g, Takes: body.Level})
	}
	d.Drives = append(d.Drives, body.Drive{Device: "speaker.play", Takes: body.Level}, body.Drive{Device: "speaker.mute", Takes: body.Level})
	return d
}()

// gains are the slots of a wheel that AmigOS has for both together, with the commands that set them (GOSTAI-MAP-A-02).
var (
	gains        = [...]string{"PGain", "IGain", "DGain"}
	gainCommands = [...]uint8{sip.TransKP, sip.TransKI, sip.TransKV}
)

// firing is the order of the sonars, from 1 (AMIGO-CMD-03): the two ahead each 200 ms, the others each 600 ms. Those ahead tell whether the robot gets on.
var firing = []byte{3, 4, 1, 2, 3, 4, 5, 6, 3, 4, 7, 8}

// Config says how to reach a robot. The zero value of all but Device works.
type Config struct {
	Device  string        // serial:/dev/ttyS0?baud=9600, tcp:host:8101, or the path of a tty or Unix socket
	Port    port.Port     // instead of that device, which Device then only names; the driver closes it
	Timeout time.Duration // how long Open waits for a session; 0: 15 s (own default)
	Version string        // of AmigOS, if it is not 1.3: "1.0" measures sonars in other units (AMIGO-OPEN-15)
}

// serial is a port whose speed can be changed: the session looks for a robot that was left at another one (AMIGO-SYNC-09).
type serial interface {
	Baud() int // 0: it is no serial line
	SetBaud(baud int) error
}

// Driver is an AmigoBot behind a line: a body.Body that counts (body.Linked). One goroutine at a time.
type Driver struct {
	device string
	port   port.Port
	line   serial // the port, if it is one; nil: it is not
	client *session.Session
	in     [512]byte
	tail   []byte // of a command the port took only in part; goes out before anything else
	rest   [sip.MaxFrame]byte

	sessions uint64        // that were asked for all that they can measure
	seen     time.Duration // the newest standard packet that Read delivered
	seq      uint32
	motors   bool // the robot's motors shall be on
	drives   bool // it was told a speed
	sent     [drives]float64
	was      [drives]bool  // sent says something
	tuned    time.Duration // when gains were sent
	own      [3]level      // gains of the robot's configuration, while others are set
	full     uint64
	refused  uint64
	broken   error // wraps body.ErrLink once the port failed or was closed
}

// Open opens the line and a session with the robot; nothing moves, and its motors are off (AMIGO-SYNC-11).
func Open(ctx context.Context, cfg Config) (*Driver, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = 15 * time.Second
	}
	p := cfg.Port
	if p == nil {
		l, err := port.Open(ctx, cfg.Device, DefaultBaud, false)
		if err != nil {
			return nil, fmt.Errorf("amigobot: %w", err)
		}
		p = l
	}
	sc := session.Config{Limits: limits}
	line, _ := p.(serial)
	if line != nil {
		sc.Baud = line.Baud()
	}
	if cfg.Version == "1.0" {
		sc.RangeFactor = 0.555
	}
	d := &Driver{device: cfg.Device, port: p, line: line, client: session.New(sc)}
	d.client.Open()
	var s body.Sense
	for until := p.Now() + cfg.Timeout; ; {
		err := d.Read(&s, p.Now()+step)
		st := d.client.State()
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case err != nil && !errors.Is(err, body.ErrTimeout):
		case st.Phase == session.Ready && s.At > 0:
			return d, nil
		case st.Phase == session.Lost:
			err = st.Err
		case p.Now() >= until:
			err = fmt.Errorf("%w in %v (%v, SYNC%d, %d tries)", session.ErrNoAnswer, cfg.Timeout, st.Phase, st.Sync, st.Misses)
		default:
			continue
		}
		_ = d.Close() // err says more
		return nil, fmt.Errorf("%s: %w", cfg.Device, err)
	}
}

// Describe is body.Body.
func (d *Driver) Describe() body.Description {
	out := description
	out.Firmware = "AmigOS"
	if s := d.client.State(); s.ConfigAt > 0 {
		out.Firmware += " " + s.Config.Serial
	}
	return out
}

// Identity returns the robot's own identification (GOSTAI-MAP-A-01).
func (d *Driver) Identity() sip.Identity { return d.client.State().Identity }

// Read is body.Body: the newest standard packet, and the packets received beside it. It keeps the session alive; a robot that was reset is
// connected again.
func (d *Driver) Read(s *body.Sense, deadline time.Duration) error {
	s.Fresh = false
	for {
		if err := d.step(); err != nil {
			return err
		}
		st := d.client.State()
		if st.Phase == session.Lost {
			return d.fail("session", st.Err)
		}
		if st.Phase == session.Ready && st.Sessions != d.sessions {
			d.sessions = st.Sessions
			d.was = [drives]bool{} // the robot forgot its levels
			for _, c := range [...]sip.Command{sip.Switch(sip.Encoder, true), sip.Int(sip.IORequest, 2), {Number: sip.Polling, Arg: sip.String, Text: firing}} {
				_ = d.client.Command(c) // without them its slots are not measured, and the queue of a new session has room
			}
		}
		if st.At > d.seen && (st.Phase == session.Ready || st.Phase == session.Opening) {
			d.seen = st.At
			d.seq++
			d.fill(s, st)
			return nil
		}
		ready, err := d.port.Wait(min(deadline, d.port.Now()+step))
		if err != nil {
			return d.fail("wait", err)
		}
		if !ready && d.port.Now() >= deadline {
			return body.ErrTimeout
		}
	}
}

// step passes received bytes to the session and sends its bytes.
func (d *Driver) step() error {
	if d.broken != nil {
		return d.broken
	}
	for {
		n, err := d.port.Read(d.in[:])
		if err != nil {
			return d.fail("read", err)
		}
		out := d.client.Step(d.port.Now(), d.in[:n])
		if d.line != nil && len(out) > 0 && d.line.Baud() != d.client.Baud() {
			if err := d.line.SetBaud(d.client.Baud()); err != nil {
				return d.fail("change the speed of", err)
			}
		}
		if err := d.send(out); err != nil {
			return err
		}
		if n < len(d.in) {
			return nil
		}
	}
}

// send writes one command, whole or not at all as far as the robot can see. One that finds the port full is lost, as AMIGO-PKT-10 has it.
func (d *Driver) send(b []byte) error {
	if len(d.tail) > 0 {
		n, err := d.port.Write(d.tail)
		if err != nil {
			return d.fail("write", err)
		}
		if d.tail = d.tail[n:]; len(d.tail) > 0 {
			d.full++
			return nil
		}
	}
	if len(b) == 0 {
		return nil
	}
	n, err := d.port.Write(b)
	switch {
	case err != nil:
		return d.fail("write", err)
	case n == 0:
		d.full++
	default:
		d.tail = append(d.rest[:0], b[n:]...)
	}
	return nil
}

// fill writes a packet as the frame that the loop carries. The robot counts nothing: every packet is the next one.
func (d *Driver) fill(s *body.Sense, st *session.State) {
	at := st.At
	s.At, s.Seq, s.Epoch, s.Fresh, s.Fault = at, d.seq, uint32(st.Sessions), true, 0
	s.Set(chX, st.X, at)
	s.Set(chY, st.Y, at)
	s.Set(chHeading, st.Heading, at)
	s.Set(chControl, st.Control, at)
	for i, v := range [...]float64{st.Left, st.Right} {
		s.Set(chLeft+i, v/radius, at)
	}
	for i, on := range [...]bool{st.StallLeft, st.StallRight} {
		s.Set(chStall+i, number(on), at)
	}
	for i, on := range [...]bool{st.Motors, st.SonarOn, st.Moving} {
		s.Set(chMotors+i, number(on), at)
	}
	s.Set(chBattery, st.Battery, at)
	for i, r := range st.Ranges {
		s.Set(chSonar+i, r.Metres, r.At)
	}
	for i := range 6 {
		s.Set(chDigin+i, float64(st.Digin>>i&1), at)
		s.Set(chDigout+i, float64(st.Digout>>i&1), at)
	}
	for i, ticks := range [...]int32{st.Encoders.Left, st.Encoders.Right} {
		s.Set(chTurn+i, float64(ticks)*2*math.Pi/ticksPerTurn, st.EncodersAt)
	}
	for i, v := range st.IO.Analog[:min(len(st.IO.Analog), 5)] {
		s.Set(chAnalog+i, float64(v)*sip.AnalogUnit, st.IOAt)
	}
	for i, v := range [...]uint16{st.Config.TransKp, st.Config.TransKi, st.Config.TransKv} {
		s.Set(chGain+i, float64(v), st.ConfigAt)
	}
	s.Set(chSessions, float64(st.Sessions), at)
}

// Write is body.Body. Motors that are told to be on are switched on once: a person who presses the robot's own button keeps them off until the
// set-point was 0.
func (d *Driver) Write(a *body.Act) error {
	if d.broken != nil {
		return d.broken
	}
	if on := a.Goals[drMotors] == body.Level && a.Values[drMotors] > 0; on != d.motors {
		d.motors = on
		if d.client.Enable(on) != nil {
			d.refused++
			d.motors = !on // and again in the next frame
		}
	}
	switch {
	case a.Goals[drWheel] == body.Speed || a.Goals[drWheel+1] == body.Speed:
		d.client.Wheels(speedOf(a, drWheel)*radius, speedOf(a, drWheel+1)*radius) // false while the motors come on
	case a.Goals[drX] == body.Speed || a.Goals[drYaw] == body.Speed:
		d.client.Velocity(speedOf(a, drX), speedOf(a, drYaw))
	case d.motors && (d.drives || d.client.State().Moving): // AMRISim always says that it does not move
		d.client.Stop()
	}
	d.drives = a.Goals[drWheel] == body.Speed || a.Goals[drWheel+1] == body.Speed || a.Goals[drX] == body.Speed || a.Goals[drYaw] == body.Speed
	for i := range 6 {
		d.change(a, drDigout+i, func(v float64) sip.Command {
			return sip.Packed(sip.DigOut, 1<<i, byte(math.Round(min(max(v, 0), 1)))<<i)
		})
	}
	d.change(a, drMute, func(v float64) sip.Command { return sip.Switch(sip.SoundTog, v == 0) })
	d.change(a, drSound, func(v float64) sip.Command { return sip.Int(sip.Sound, int(v)&0xFF) })
	d.tune(a)
	return d.step()
}

// tune sends the gains that the robot's configuration does not show, again until it does: AMIGO-PKT-11, also over sessions.
func (d *Driver) tune(a *body.Act) {
	st := d.client.State()
	if st.ConfigAt == 0 || st.At-d.tuned < tuneEvery {
		return
	}
	for i, shown := range [...]uint16{st.Config.TransKp, st.Config.TransKi, st.Config.TransKv} {
		v := a.Values[drGain+i]
		switch {
		case a.Goals[drGain+i] != body.Level || math.IsNaN(v):
			d.own[i] = level{}
			continue
		case !d.own[i].set:
			d.own[i] = level{true, float64(shown)}
		}
		if v == float64(shown) {
			continue
		}
		d.tuned = st.At
		if d.client.Command(sip.Int(gainCommands[i], int(math.Round(min(max(v, 0), math.MaxInt16))))) != nil {
			d.refused++
		}
	}
}

// change sends the command of a level that differs from the one that was sent last.
func (d *Driver) change(a *body.Act, drive int, command func(v float64) sip.Command) {
	v := a.Values[drive]
	if a.Goals[drive] != body.Level || math.IsNaN(v) || d.was[drive] && d.sent[drive] == v {
		return
	}
	if d.client.Command(command(v)) != nil {
		d.refused++
		return
	}
	d.was[drive], d.sent[drive] = true, v
}

// speedOf returns the speed that a drive is told; 0 without that goal.
func speedOf(a *body.Act, drive int) float64 {
	v := a.Values[drive]
	if a.Goals[drive] != body.Speed || math.IsNaN(v) {
		return 0
	}
	return min(max(v, -1e3), 1e3)
}

// Halt is body.Body: the robot brakes as hard as it can and its motors go off (AMIGO-MOT-10, AMIGO-MOT-11).
func (d *Driver) Halt() error {
	if d.broken != nil {
		return d.broken
	}
	d.motors = false
	_ = d.client.Enable(false) // it stops at once and never refuses
	return d.step()
}

// Shutdown is body.Body: an AmigoBot cannot cut its own power.
func (d *Driver) Shutdown() error { return d.Halt() }

// Link is body.Linked.
func (d *Driver) Link() body.Link {
	c := &d.client.State().Counts
	return body.Link{
		Frames: c.Standard, Corrupt: c.BadLength + c.BadChecksum + c.Malformed, SkippedBytes: c.Skipped,
		Refused: d.refused + c.Unconfirmed, Full: d.full,
	}
}

// closeTime is the time that Close gives the end of session to reach the robot; own default.
const closeTime = 200 * time.Millisecond

// Close is body.Body: the motors go off, the session is closed (AMIGO-SYNC-13), and so is the line.
func (d *Driver) Close() error {
	if d.port == nil {
		return nil
	}
	d.untune()
	d.client.Close()
	for until := d.port.Now() + closeTime; d.broken == nil && d.client.State().Phase != session.Closed && d.port.Now() < until; {
		if d.step() != nil {
			break // the port may be the reason for closing
		}
		if _, err := d.port.Wait(d.port.Now() + session.Pacing); err != nil {
			break
		}
	}
	err := d.port.Close()
	d.port = nil
	_ = d.fail("use", errors.New("closed"))
	if err != nil {
		return fmt.Errorf("close %s: %w", d.device, err)
	}
	return nil
}

// untune sets the robot's own gains again, which no later session would know. The motors go off first.
func (d *Driver) untune() {
	own := d.own
	var a body.Act
	for i, g := range own {
		if g.set {
			a.Set(drGain+i, body.Level, g.v)
		}
	}
	if own == ([3]level{}) || d.Halt() != nil {
		return
	}
	d.tuned = 0
	for until := d.port.Now() + 2*closeTime; d.port.Now() < until; {
		d.tune(&a)
		if d.step() != nil {
			return
		}
		c, same := &d.client.State().Config, true
		for i, shown := range [...]uint16{c.TransKp, c.TransKi, c.TransKv} {
			same = same && (!own[i].set || own[i].v == float64(shown))
		}
		if _, err := d.port.Wait(d.port.Now() + session.Pacing); same || err != nil {
			return
		}
	}
}

// fail ends the use of the port.
func (d *Driver) fail(what string, err error) error {
	d.broken = fmt.Errorf("%w: %s %s: %v", body.ErrLink, what, d.device, err)
	return d.broken
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
