package aibo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/aibo/jointlink"
	"kennel/edge/body/port"
	"kennel/edge/body/scanbuf"
)

// Own defaults of the driver.
const (
	DefaultDevice = "dev/ttyAibo" // below the robot's root
	DefaultBaud   = 460800        // twice what 125 States a second take

	stale    = 50 * time.Millisecond  // six States late: the joints rest until the body is heard again
	silent   = 2 * time.Second        // the body is opened again
	askEvery = 200 * time.Millisecond // while it is opened
	patience = 40 * time.Millisecond  // for the rest of a frame
)

// The channels of an AIBO, by number. Its joints come after them, two each.
const (
	chModel = iota
	chVolts
	chPitch // rad, as the body looks down
	chRoll  // rad, as it leans to its right
	chCharger
	chFell
	chAsleep
	chPaw
	chJoint = chPaw + 4 // position, torque
)

// Torque is the highest effort of a joint of an AIBO, N·m: own default, several times what a standing body asks of a hip.
const Torque = 1.2

// ErrNoAnswer: nothing that speaks this protocol is at the other end.
var ErrNoAnswer = errors.New("the body does not answer")

// describe returns the fixed facts of a model. A joint that is a plain motor names its slot, which the loop then publishes; turns are the plant's.
func describe(m Model) (body.Description, error) {
	d := body.Description{Species: "aibo", Model: m.String(), Timing: body.Timing{Rhythm: jointlink.Period, Stale: stale, Silent: silent}}
	d.Channels = append(d.Channels, body.Channel{Name: "native model"}, body.Channel{Name: "battery.voltage", Unit: "V"},
		body.Channel{Name: "native pitch", Unit: "rad"}, body.Channel{Name: "native roll", Unit: "rad"},
		body.Channel{Name: "native charger"}, body.Channel{Name: "native fell"}, body.Channel{Name: "native asleep"})
	for _, leg := range [...]string{"FL", "FR", "BL", "BR"} {
		d.Channels = append(d.Channels, body.Channel{Name: "touch" + leg + ".pressure"})
	}
	tree, err := Tree(m)
	if err != nil {
		return d, err
	}
	for _, j := range Joints(m) {
		target, err := tree.Lookup(j.Path)
		if err != nil {
			return d, err
		}
		name := target.Nodes[0].Compact()
		position, torque := name+".position", name+".torque"
		if j.plain() {
			position, torque = name+".val", name+" effort"
		}
		d.Channels = append(d.Channels, body.Channel{Name: position, Unit: "rad"}, body.Channel{Name: torque, Unit: "N.m"})
		d.Drives = append(d.Drives, body.Drive{Device: name, Takes: body.Position})
	}
	return d, nil
}

// Config says how to reach a body. The zero value of all but Device works.
type Config struct {
	Device  string        // serial:/dev/ttyS0?baud=460800, tcp:host:port, or the path of a tty or Unix socket
	Port    port.Port     // instead of that device, which Device then only names; the driver closes it
	Timeout time.Duration // how long Open waits for the body; 0: 3 s (own default)
}

// Driver is an AIBO behind a line: a body.Body that counts (body.Linked). One goroutine at a time.
type Driver struct {
	device string
	port   port.Port
	about  body.Description
	joints []Joint

	window scanbuf.Window
	state  jointlink.State
	news   bool // state has not been delivered yet
	id     jointlink.Identity
	seq    uint32 // of the State that was delivered last
	epoch  uint32
	goals  jointlink.Goals
	out    []byte
	sender port.Sender
	counts body.Link
	broken error // wraps body.ErrLink once the port failed or was closed
}

// Open opens the line and waits until the body said which model it is, and was heard. Nothing moves. ErrNoAnswer if it stays silent.
func Open(ctx context.Context, cfg Config) (*Driver, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = 3 * time.Second
	}
	d := &Driver{device: cfg.Device, port: cfg.Port, out: make([]byte, 0, jointlink.MaxFrame), epoch: 1}
	if d.port == nil {
		l, err := port.Open(ctx, cfg.Device, DefaultBaud, false)
		if err != nil {
			return nil, fmt.Errorf("aibo: %w", err)
		}
		d.port = l
	}
	if err := d.meet(ctx, cfg.Timeout); err != nil {
		_ = d.Close() // err says more
		return nil, fmt.Errorf("%s: %w", cfg.Device, err)
	}
	return d, nil
}

// meet asks the body who it is until it has said so, and waits for its first State.
func (d *Driver) meet(ctx context.Context, timeout time.Duration) error {
	until, ask := d.port.Now()+timeout, time.Duration(0)
	for d.id.Model == 0 || !d.news {
		now := d.port.Now()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case now >= until:
			return fmt.Errorf("%w in %v (%d frames, %d broken)", ErrNoAnswer, timeout, d.counts.Frames, d.counts.Corrupt)
		case now >= ask:
			ask = now + askEvery
			d.out = jointlink.AppendAsk(d.out[:0])
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
	if d.id.Version != jointlink.Version {
		return fmt.Errorf("version of the joint protocol: expected %d, found %d", jointlink.Version, d.id.Version)
	}
	m := Model(d.id.Model)
	if !slices.Contains(Models, m) {
		return fmt.Errorf("model: expected one of %v, found ERS-%d", Models, d.id.Model)
	}
	d.joints = Joints(m)
	if int(d.id.Joints) != len(d.joints) {
		return fmt.Errorf("joints of %v: expected %d, found %d", m, len(d.joints), d.id.Joints)
	}
	var err error
	d.about, err = describe(m)
	d.about.Firmware = fmt.Sprintf("%d.%d", d.id.Firmware>>8, d.id.Firmware&0xff)
	return err
}

// Model returns which model it is.
func (d *Driver) Model() Model { return Model(d.id.Model) }

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
			d.fill(s)
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

// parse takes the whole frames that have arrived; of several States the newest counts.
func (d *Driver) parse() {
	for {
		kind, payload, n, err := jointlink.ParseFrame(d.window.Bytes())
		switch {
		case errors.Is(err, jointlink.ErrShort):
			return
		case err != nil:
			if errors.Is(err, jointlink.ErrChecksum) {
				d.counts.Corrupt++
			}
			d.window.Skip(n)
			continue
		}
		switch kind {
		case jointlink.StateType:
			seq := d.state.Seq
			if jointlink.ParseState(payload, &d.state) != nil || d.joints != nil && d.state.N != len(d.joints) {
				d.counts.Corrupt++
				d.state.Seq = seq
				break
			}
			d.counts.Frames++
			if d.news {
				d.counts.Overtaken++
			}
			if d.state.Seq < seq {
				d.epoch++ // the body has restarted
			}
			d.news = true
		case jointlink.IdentityType:
			if id, err := jointlink.ParseIdentity(payload); err == nil && d.joints == nil {
				d.id = id
			}
		default:
			d.counts.Corrupt++
		}
		d.window.Take(n)
	}
}

// fill writes the newest State as the frame that the loop carries.
func (d *Driver) fill(s *body.Sense) {
	at, st := d.port.Now(), &d.state
	s.At, s.Seq, s.Epoch, s.Fresh, s.Fault = at, st.Seq, d.epoch, true, 0
	s.Set(chModel, float64(d.id.Model), at)
	s.Set(chVolts, float64(st.MilliVolts)/1000, at)
	s.Set(chPitch, float64(st.Pitch)/1000, at)
	s.Set(chRoll, float64(st.Roll)/1000, at)
	for ch, bit := range [...]jointlink.Status{chCharger: jointlink.Charger, chFell: jointlink.Fell, chAsleep: jointlink.Asleep,
		chPaw: jointlink.PawFL, chPaw + 1: jointlink.PawFR, chPaw + 2: jointlink.PawBL, chPaw + 3: jointlink.PawBR} {
		if bit != 0 {
			s.Set(ch, number(st.Status.Has(bit)), at)
		}
	}
	for i := range d.joints {
		sign := float64(d.joints[i].Sign)
		s.Set(chJoint+2*i, sign*float64(st.Joints[i].Position)/1e6, at)
		s.Set(chJoint+2*i+1, sign*float64(st.Joints[i].Load)/1000*Torque, at)
	}
}

// Write is body.Body.
func (d *Driver) Write(a *body.Act) error {
	if d.broken != nil {
		return d.broken
	}
	d.goals.N = len(d.joints)
	for i := range d.joints {
		j := &d.joints[i]
		v := float64(j.Sign) * a.Values[i]
		if a.Goals[i] != body.Position || math.IsNaN(v) {
			d.goals.Joints[i] = jointlink.Goal{}
			continue
		}
		lo, hi := j.Span()
		d.goals.Joints[i] = jointlink.Goal{Held: true, Position: int32(math.Round(min(max(v, lo), hi) * 1e6))}
	}
	d.out = jointlink.AppendGoals(d.out[:0], &d.goals)
	return d.send()
}

// send sends the frame in out. One that finds the port full is dropped whole: ErrFull.
func (d *Driver) send() error {
	full, err := d.sender.Send(d.port, d.out)
	switch {
	case err != nil:
		return d.fail("write", err)
	case full:
		d.counts.Full++
		return body.ErrFull
	}
	return nil
}

// Halt is body.Body: the joints lose their power, and their gears hold them.
func (d *Driver) Halt() error {
	var none body.Act
	if err := d.Write(&none); err != nil && !errors.Is(err, body.ErrFull) {
		return err
	}
	return nil // a port that is full: the next Halt, or the body's watchdog
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
	if d.broken == nil && d.joints != nil {
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

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
