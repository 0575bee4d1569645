// Package toysim is a body of three servos that answers every 100 ms, in this process: the proof that a new species costs its own package and
// its wiring, and nothing between an order and a set-point.
package toysim

import (
	"io"
	"math"
	"strconv"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/monoclock"
	"kennel/edge/core/control"
	"kennel/edge/core/rt"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/robot/state"
)

// Facts of the body.
const (
	Period = 100 * time.Millisecond
	reach  = 1.2 // rad, each way
	speed  = 2.0 // rad/s
)

var servos = [...]struct{ path, name string }{{"body.neck.yaw", "neckYaw"}, {"body.neck.pitch", "neckPitch"}, {"body.tail.yaw", "tail"}}

// Body is the driver and the servos behind it. Each set-point that differs from the one before goes to its log, as "neckYaw 0.3".
type Body struct {
	log    io.Writer
	line   []byte
	period time.Duration
	next   time.Duration
	last   time.Duration
	seq    uint32
	angle  [len(servos)]float64
	act    body.Act
	closed bool
}

// Open returns a body that writes its set-points to log.
func Open(log io.Writer) *Body { return open(log, Period) }

func open(log io.Writer, period time.Duration) *Body {
	return &Body{log: log, line: make([]byte, 0, 64), period: period, next: monoclock.Now() + period}
}

// Describe is body.Body.
func (b *Body) Describe() body.Description {
	d := body.Description{Species: "toy", Model: "Toy", Firmware: "1", Timing: body.Timing{Rhythm: b.period, Stale: 3 * b.period, Silent: 20 * b.period}}
	for _, s := range servos {
		d.Channels = append(d.Channels, body.Channel{Name: s.name + ".position", Unit: "rad"})
		d.Drives = append(d.Drives, body.Drive{Device: s.name, Takes: body.Position})
	}
	return d
}

// Read is body.Body: the servos move towards their set-points between two frames.
func (b *Body) Read(s *body.Sense, deadline time.Duration) error {
	s.Fresh = false
	if b.closed {
		return body.ErrLink
	}
	if b.next > max(deadline, monoclock.Now()) {
		time.Sleep(deadline - monoclock.Now())
		return body.ErrTimeout
	}
	time.Sleep(b.next - monoclock.Now())
	now := monoclock.Now()
	for b.next <= now {
		b.next += b.period
		b.seq++
	}
	for i := range b.angle {
		if b.act.Goals[i] == body.Position {
			way := b.act.Values[i] - b.angle[i]
			b.angle[i] += min(max(way, -speed*(now-b.last).Seconds()), speed*(now-b.last).Seconds())
		}
	}
	b.last = now
	s.At, s.Seq, s.Epoch, s.Fresh = now, b.seq, 1, true
	for i, a := range b.angle {
		s.Set(i, a, now)
	}
	return nil
}

// Write is body.Body.
func (b *Body) Write(a *body.Act) error {
	if b.closed {
		return body.ErrLink
	}
	for i := range b.angle {
		v := min(max(a.Values[i], -reach), reach)
		if a.Goals[i] != body.Position || math.IsNaN(v) {
			b.act.Set(i, 0, 0)
			continue
		}
		if b.act.Goals[i] != body.Position || b.act.Values[i] != v {
			b.line = append(strconv.AppendFloat(append(append(b.line[:0], servos[i].name...), ' '), v, 'f', 3, 64), '\n')
			_, _ = b.log.Write(b.line) // a test that cannot read it fails anyway
		}
		b.act.Set(i, body.Position, v)
	}
	return nil
}

// Halt is body.Body.
func (b *Body) Halt() error {
	if b.closed {
		return body.ErrLink
	}
	b.act = body.Act{}
	return nil
}

// Shutdown is body.Body.
func (b *Body) Shutdown() error { return b.Halt() }

// Close is body.Body.
func (b *Body) Close() error {
	b.closed = true
	return nil
}

// Model returns the body as the control loop sees it.
func Model() (control.Model, error) {
	parts := []robot.Part{{Path: "robot", Is: []string{"Identity", "Network"}}}
	var all []control.Part
	for _, s := range servos {
		parts = append(parts, robot.Part{Path: s.path, Is: []string{"RotationalMotor"}, Ranges: map[string]robot.Range{"angle": {Min: -reach, Max: reach}}})
		all = append(all, control.Part{Name: s.name, Devices: []string{"robot." + s.path}})
	}
	tree, err := robot.Build("toy", robot.FrameFor(false, true, true, true), parts)
	if err != nil {
		return control.Model{}, err
	}
	m := control.Model{Tree: tree, Parts: all, Slots: map[int]int{}}
	var slots [len(servos)]int
	f := robot.Finder{Tree: tree}
	for i, s := range servos {
		slots[i] = f.Slot(s.name + ".turn")
		m.Slots[slots[i]] = i
	}
	m.Make = func(board *state.Board, _ func(control.Event), _ func(int) bool) (control.Plant, error) {
		p := &plant{board: board, slots: slots}
		for i := range p.servos {
			var err error
			if p.servos[i], err = motion.NewServo(motion.ServoConfig{
				Range: [2]float64{-reach, reach}, Most: motion.Ramp{Speed: speed / 2, Accel: 4, Decel: 4}, Tolerance: 0.02, Patience: time.Second,
			}); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
	return m, f.Err
}

// plant leads the three servos.
type plant struct {
	board  *state.Board
	slots  [len(servos)]int
	servos [len(servos)]*motion.Servo
	angle  [len(servos)]float64
	report control.Report
}

func (p *plant) Feel(m *control.Moment, f *rt.Frame) motion.Reason {
	if f.Sense.At == 0 {
		return motion.Link
	}
	for i, slot := range p.slots {
		p.angle[i] = f.Sense.Values[i]
		p.board.Set(slot, p.angle[i]/(2*math.Pi), f.Sense.Times[i])
	}
	return 0
}

func (p *plant) Begin(_ *control.Moment, part int, o *control.Order, r *control.Result) error {
	if p.report.Stop != 0 {
		return motion.ErrStopped
	}
	for i, g := range o.Goals[:o.N] {
		if g.Slot != p.slots[part] {
			continue
		}
		taken, takes, err := p.servos[part].MoveTo(p.angle[part], g.Value*2*math.Pi, motion.Ramp{Speed: o.Speed * 2 * math.Pi}, o.Within)
		if err != nil {
			return err
		}
		r.Taken[i], r.Takes = taken/(2*math.Pi), takes
	}
	return nil
}

func (p *plant) Step(m *control.Moment, stop motion.Reason, act *body.Act) {
	p.report.Stop, p.report.Moving = stop, false
	for i, s := range p.servos {
		if stop != 0 {
			s.Release(motion.Stopped)
		}
		if v, on := s.Step(m.DT, p.angle[i]); on {
			act.Set(i, body.Position, v)
			p.report.Moving = true
		}
		p.report.Parts[i] = control.PartReport{Outcome: s.Outcome(), Known: true}
	}
}

func (p *plant) Outcome(part int) motion.Outcome { return p.servos[part].Outcome() }

func (p *plant) Rest(part int, letGo bool) {
	if p.servos[part].Stop(); letGo {
		p.servos[part].Release(motion.Cancelled)
	}
}

func (p *plant) Home(int) error             { return control.ErrUnable }
func (p *plant) Homed(int) bool             { return true }
func (p *plant) Report(out *control.Report) { *out = p.report }
