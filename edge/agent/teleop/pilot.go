// Package teleop gives remote people the robot's structure tree: it drives for the cloud, and shows the tree while a person looks at it.
//
//	robot_do, set_lights, robot_stop, robot_hold, robot_release ─► coreclient ─► robotd
//	down/live ─► GetTree, GetValues twice a second while a person looks ─► up/live
//	             of a simulated robot also where it really is (edge/agent/teleop/simulator)
//	robot_poke ─► the simulator of its body
//
// A line that moves something claims its actuators for as long as it may last, and no longer: robotd ends it by itself, and frees them if
// agentd dies.
package teleop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kennel/edge/agent/commands"
	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/live"
	"kennel/infra/api/poke"
	"kennel/infra/api/topics"
	"kennel/infra/logging"
	"kennel/infra/wake"
)

// Our own limits.
const (
	spare     = 2 * time.Second // for the end of a motion to come
	holdAgain = 50 * time.Millisecond
	treeEvery = 10 * time.Second // during a look: the first may be lost
	sendTime  = 5 * time.Second
)

// Publish sends on up/<name>.
type Publish func(ctx context.Context, name string, payload []byte) error

// Simulator is the simulator of the robot's body (simulator.Client).
type Simulator interface {
	// Ask returns where the robot really is; nil without an error for one that is not simulated. The pilot does not change it.
	Ask(ctx context.Context) (*live.World, error)
	// Poke pokes the body as a person beside it would. It returns an error for a robot that is not simulated.
	Poke(ctx context.Context, p poke.Poke) error
}

var errNoBody = errors.New("this robot has no body")

// Pilot is safe for concurrent use.
type Pilot struct {
	core    *coreclient.Client
	sim     Simulator
	playing func() *live.Playing // nil: it does not say
	display *display             // nil: frames have none
	publish Publish
	log     *slog.Logger
	looked  wake.Signal // one slot: a look began

	mu     sync.Mutex
	stops  uint64           // asked for so far
	motion *corelink.Motion // newest
	absent *corelink.Absent // newest
	until  time.Time        // when the look ends
}

// New returns a pilot that shows nothing until Run. sim is nil for a robot that cannot have one.
func New(core *coreclient.Client, sim Simulator, publish Publish, log *slog.Logger) *Pilot {
	return &Pilot{core: core, sim: sim, publish: publish, log: log, looked: wake.New()}
}

// Playing makes frames say what playing returns, which must not block. It is called before Run.
func (p *Pilot) Playing(playing func() *live.Playing) *Pilot {
	p.playing = playing
	return p
}

// Display makes frames show what a screen shows, once the owner's consent to data collection is known. It is called before Run.
func (p *Pilot) Display(s Screen) *Pilot {
	p.display = &display{screen: s}
	return p
}

// Handle takes every message of robotd, after core did. It does not block.
func (p *Pilot) Handle(m corelink.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m := m.(type) {
	case *corelink.Hello: // robotd restarted, or reopened its body
		p.motion, p.absent = nil, nil
	case *corelink.Motion:
		p.motion = m
	case *corelink.Absent:
		p.absent = m
	}
}

// Executors returns the executors of its commands, by kind.
func (p *Pilot) Executors() map[string]commands.Executor {
	return map[string]commands.Executor{commandwire.RobotDo: p.line, commandwire.SetLights: p.lights, commandwire.RobotStop: p.stop, commandwire.RobotHold: p.hold,
		commandwire.RobotRelease: p.release, commandwire.RobotPoke: p.poke}
}

// line runs a line. When it returns a motion has begun or, with wait, has ended.
func (p *Pilot) line(ctx context.Context, args json.RawMessage) (commands.Outcome, error) {
	d, err := commandwire.ParseDo(args)
	if err != nil {
		return commands.Outcome{}, err
	}
	detail, err := p.do(ctx, d)
	return commands.Outcome{Detail: detail}, err
}

func (p *Pilot) do(ctx context.Context, d commandwire.Do) (detail string, err error) {
	o, err := core.Parse(d.Line)
	if err != nil {
		return "", err
	}
	for _, l := range o.Steps[0] {
		if within, _ := l.Within(); within > commandwire.MaxDrive {
			return "", fmt.Errorf("%s: time of %v, want at most %v", l.Name, within, commandwire.MaxDrive)
		}
	}
	o = o.For(o.For(d.For()).Longest()) // a motor has the time that its line gives it
	stops := p.stopped()
	m, err := p.core.Start(ctx, claim.Person, o)
	if err != nil {
		return "", err
	}
	switch {
	case m.Value != "" && len(o.Steps[0]) == 1:
		detail = o.Steps[0][0].Name + " = " + m.Value
	case m.Value != "":
		detail = d.Line + ": " + m.Value
	case m.Underway && !d.Wait:
		detail = fmt.Sprintf("begun: %s, for at most %v", d.Line, o.Deadline())
	case !m.Underway:
		detail = "done: " + d.Line
	default:
		detail = d.Line
	}
	if m.Note != "" {
		detail += "; " + m.Note
	}
	if !m.Underway {
		return detail, nil
	}
	if err := p.late(ctx, stops); err != nil || !d.Wait {
		return detail, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Longest()+spare)
	defer cancel()
	end, err := m.Wait(ctx)
	if err == nil && end.Outcome != corelink.Done {
		err = errors.New(end.Words())
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", detail, err)
	}
	return detail + ": " + end.Words(), nil
}

// poke pokes a simulated body as a person beside it would.
func (p *Pilot) poke(ctx context.Context, args json.RawMessage) (commands.Outcome, error) {
	x, err := poke.Parse(args)
	if err != nil {
		return commands.Outcome{}, err
	}
	if p.sim == nil {
		return commands.Outcome{}, errNoBody
	}
	return commands.Outcome{Detail: "done: " + x.String()}, p.sim.Poke(ctx, x)
}

// lights sets the lights by their names in the tree.
func (p *Pilot) lights(ctx context.Context, args json.RawMessage) (commands.Outcome, error) {
	l, err := commandwire.ParseLights(args)
	if err != nil {
		return commands.Outcome{}, err
	}
	var colours [3][]robot.Value
	for _, x := range l.Lights {
		for i, level := range [...]uint8{x.R, x.G, x.B} {
			colours[i] = append(colours[i], robot.F(float64(level)/255))
		}
	}
	line := fmt.Sprintf("led.r = %v; led.g = %v; led.b = %v", robot.L(colours[0]...), robot.L(colours[1]...), robot.L(colours[2]...))
	_, err = p.do(ctx, commandwire.Do{Line: line})
	return commands.Outcome{Detail: fmt.Sprintf("set %d lights", len(l.Lights))}, err
}

func (p *Pilot) stopped() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stops
}

// late stops a motion that began while a stop came in: robotd may have got the stop before the motion.
func (p *Pilot) late(ctx context.Context, stops uint64) error {
	if p.stopped() == stops {
		return nil
	}
	_, err := p.stop(ctx, nil)
	return errors.Join(errors.New("stopped at its start"), err)
}

// stop stops all motors. It may run beside a line that is about to begin, which then notices it.
func (p *Pilot) stop(ctx context.Context, _ json.RawMessage) (commands.Outcome, error) {
	p.mu.Lock()
	p.stops++
	p.mu.Unlock()
	return commands.Outcome{Detail: "all motors stop"}, p.core.Stop(ctx)
}

// hold halts the robot for a person, until release.
func (p *Pilot) hold(ctx context.Context, args json.RawMessage) (commands.Outcome, error) {
	h, err := commandwire.ParseHold(args)
	if err != nil {
		return commands.Outcome{}, err
	}
	for { // a robotd that restarts is held as soon as it is there
		_, err = p.core.Ask(ctx, func(n uint32) corelink.Message { return &corelink.Hold{Request: n, By: h.By, Reason: h.Reason} })
		if !errors.Is(err, coreclient.ErrLost) && !errors.Is(err, coreclient.ErrNotConnected) {
			break
		}
		select {
		case <-time.After(holdAgain):
		case <-ctx.Done():
		}
		if p.core.Ready(ctx) != nil {
			break
		}
	}
	return commands.Outcome{Detail: fmt.Sprintf("held by %s because %s, until it is released", h.By, h.Reason)}, err
}

// release ends a hold.
func (p *Pilot) release(ctx context.Context, _ json.RawMessage) (commands.Outcome, error) {
	_, err := p.core.Ask(ctx, func(n uint32) corelink.Message { return &corelink.Unhold{Request: n} })
	return commands.Outcome{Detail: "released"}, err
}

// Look takes a message of down/live: a person looks from now on, for a while. It does not block.
func (p *Pilot) Look(payload []byte) {
	l, err := live.ParseLook(payload)
	if err != nil {
		p.log.Warn("live view request unreadable", logging.Err, err)
		return
	}
	p.mu.Lock()
	if until := time.Now().Add(l.For()); until.After(p.until) {
		p.until = until
	}
	p.mu.Unlock()
	p.looked.Set()
}

// Run shows the tree during looks, until ctx ends.
func (p *Pilot) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.looked:
		}
		p.show(ctx)
	}
}

// show sends frames until the look ends.
func (p *Pilot) show(ctx context.Context) {
	tick := time.NewTicker(live.Every)
	defer tick.Stop()
	var treeAt time.Time
	shown := "" // revision of the map that was sent last
	for {
		p.mu.Lock()
		over := !time.Now().Before(p.until)
		p.mu.Unlock()
		if over {
			p.blank(ctx, &shown)
			return
		}
		withTree := time.Since(treeAt) >= treeEvery
		switch err := p.send(ctx, withTree, p.display, &shown); {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.log.DebugContext(ctx, "live tree not sent", logging.Err, err) // the next frame is soon, and the page says how old the last one is
		case withTree:
			treeAt = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// blank ends a look that showed the display with a frame without a picture, so that the cloud keeps none.
func (p *Pilot) blank(ctx context.Context, shown *string) {
	if p.display == nil || !p.display.shown {
		return
	}
	p.display.shown = false
	if err := p.send(ctx, false, nil, shown); err != nil {
		p.log.DebugContext(ctx, "end of a look not sent", logging.Err, err) // the cloud shows no old picture
	}
}

// send sends a frame with what d shows, if it is not nil. shown is the revision of the world's map that was sent last, and becomes this one's.
func (p *Pilot) send(ctx context.Context, withTree bool, d *display, shown *string) error {
	f, err := p.frame(ctx, withTree)
	if err != nil {
		return err
	}
	if d != nil {
		f.Display = d.picture(ctx, p.log)
	}
	if f.World = p.world(ctx); f.World != nil && !withTree && f.World.Rev == *shown {
		f.World.Map = nil
	}
	b, err := f.Encode()
	if len(b) > live.MaxFrame && f.Display != nil {
		f.Display = nil // the next frame has no tree
		b, err = f.Encode()
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if err := p.publish(ctx, topics.Live, b); err != nil {
		return err
	}
	if f.World != nil {
		*shown = f.World.Rev
	}
	return nil
}

// world is where the robot really is, to be changed by the caller; nil for a robot that is not simulated.
func (p *Pilot) world(ctx context.Context) *live.World {
	if p.sim == nil {
		return nil
	}
	w, err := p.sim.Ask(ctx)
	if err != nil {
		p.log.DebugContext(ctx, "true position from the simulator missing", logging.Err, err) // the robot's own estimate is shown
	}
	if w == nil {
		return nil
	}
	own := *w
	return &own
}

// frame is how the robot is now.
func (p *Pilot) frame(ctx context.Context, withTree bool) (f live.Frame, err error) {
	if withTree {
		t, err := p.core.Tree(ctx)
		if err != nil {
			return f, err
		}
		f.Tree = &t.Tree
	}
	v, err := p.core.Values(ctx)
	if err != nil {
		return f, err
	}
	f.Values = v.Values
	p.mu.Lock()
	m, absent := p.motion, p.absent
	p.mu.Unlock()
	if absent != nil {
		for _, a := range absent.Devices {
			f.Gone = append(f.Gone, live.Gone{Full: a.Full, ForMS: max(v.AtUS-a.SinceUS, 0) / 1000, Why: a.Why})
		}
	}
	if m != nil {
		f.Motion = &m.Motion
	}
	if p.playing != nil {
		f.Playing = p.playing()
	}
	return f, nil
}
