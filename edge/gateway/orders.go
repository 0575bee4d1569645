package gateway

import (
	"context"
	"math"
	"slices"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/infra/api/robotpb"
	"kennel/infra/errs"
)

// Bounds of an order, as edge/core/coreserver has them.
const (
	maxSteps      = 64
	maxStatements = 256
	maxFor        = time.Minute
	poseEvery     = 100 * time.Millisecond
	spare         = 2 * time.Second // that the claim of an order without a lease outlives it

	// No motor may move while the robot's loop is late or its body is not heard. That usually lasts a few steps: an order is tried again every lateEvery for lateFor.
	lateFor   = time.Second
	lateEvery = 50 * time.Millisecond
)

// do does an order and answers with its end.
func (g *Gateway) do(ctx context.Context, c caller, req *robotpb.OrderRequest) (*robotpb.Ended, error) {
	return g.act(ctx, c, req, func(*robotpb.Progress) error { return nil })
}

// order does an order and tells its progress.
func (g *Gateway) order(ctx context.Context, c caller, req *robotpb.OrderRequest, tell func(*robotpb.Progress) error) error {
	ended, err := g.act(ctx, c, req, tell)
	if err != nil {
		return err
	}
	return tell(&robotpb.Progress{Kind: &robotpb.Progress_Ended{Ended: ended}})
}

func (g *Gateway) act(ctx context.Context, c caller, req *robotpb.OrderRequest, tell func(*robotpb.Progress) error) (*robotpb.Ended, error) {
	o, err := read(req)
	if err != nil {
		return nil, err
	}
	needed, err := g.needs(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, right := range needed.rights {
		if !c.may(right) {
			return nil, missing(right)
		}
	}
	if req.Lease != "" {
		l, err := g.leases.get(c, req.Lease)
		if err != nil {
			return nil, err
		}
		n := l.newest.Add(1)
		m, err := begin(ctx, l.peer, o, func() bool { return l.newest.Load() == n })
		if err != nil {
			return nil, err
		}
		ended, err := g.follow(ctx, c, m, l.peer, o, tell)
		if err != nil {
			g.rest(l, n, m)
		}
		return ended, err
	}
	p, err := g.peers.take(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	var held *coreclient.Lease
	if names := needed.claims; len(names) > 0 {
		if held, err = p.Claim(ctx, o.Longest()+spare, claim.Program, names...); err != nil {
			g.peers.put(p)
			return nil, err
		}
	}
	defer g.peers.put(p)
	defer end(ctx, held)
	m, err := begin(ctx, p, o, func() bool { return true })
	if err != nil {
		return nil, err
	}
	return g.follow(ctx, c, m, p, o, tell)
}

// begin gives an order, and tries again for up to lateFor while the reason for a refusal is passing and wanted reports true.
func begin(ctx context.Context, p *peer, o core.Order, wanted func() bool) (*coreclient.Motion, error) {
	for until := time.Now().Add(lateFor); ; {
		m, err := p.Do(ctx, o)
		if !coreclient.Passing(corelink.Ended{}, err) || time.Now().After(until) {
			return m, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(lateEvery):
		}
		if !wanted() {
			return nil, err
		}
	}
}

// end gives a claim back, also for a client that has gone, before its parts are needed by the next. A robotd that is gone holds nothing.
func end(ctx context.Context, held *coreclient.Lease) { _ = held.End(context.WithoutCancel(ctx)) }

// follow tells how an order goes until its end.
func (g *Gateway) follow(ctx context.Context, c caller, m *coreclient.Motion, p *peer, o core.Order, tell func(*robotpb.Progress) error) (*robotpb.Ended, error) {
	if err := tell(&robotpb.Progress{Kind: &robotpb.Progress_Begun{Begun: &robotpb.Begun{Note: m.Note}}}); err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(ctx, o.Longest()+spare)
	defer cancel()
	over := make(chan struct{})
	m.Then(func() { close(over) })
	tick := time.NewTicker(poseEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-over:
			end, err := m.Wait(limit)
			if err != nil {
				return nil, err
			}
			return &robotpb.Ended{Outcome: end.Outcome, Reasons: end.Reasons, Words: end.Words(), Moved: end.Moved, Of: end.Of, Unit: end.Unit,
				Pose: &robotpb.Pose{X: end.X, Y: end.Y, Theta: end.Theta}, Note: m.Note}, nil
		case <-limit.Done():
			return nil, limit.Err()
		case <-tick.C:
			at, ok := g.core.Place(ctx)
			if !ok {
				at = p.place()
			}
			if err := tell(&robotpb.Progress{Kind: &robotpb.Progress_Pose{Pose: &robotpb.Pose{X: at.X, Y: at.Y, Theta: at.Theta}}}); err != nil {
				return nil, err
			}
			if n%int(beat/poseEvery) == 0 {
				if err := g.still(ctx, c, ""); err != nil {
					return nil, err
				}
			}
		}
	}
}

// stop stops all motors.
func (g *Gateway) stop(ctx context.Context, _ caller, _ *robotpb.StopRequest) (*robotpb.StopResponse, error) {
	return &robotpb.StopResponse{}, g.core.Stop(ctx)
}

// soft are the interfaces whose parts the right to talk is for.
var soft = []string{"Led", "RGBLed", "AudioOut", "TextToSpeech"}

// need holds the needs of an order: rights, and claims of actuators.
type need struct{ rights, claims []string }

// needs returns what o needs: the right to talk for lights and sounds, the camera's for its settings, which no claim is for, and to move for all else.
func (g *Gateway) needs(ctx context.Context, o core.Order) (n need, err error) {
	names := o.Moves()
	if len(names) == 0 {
		return need{rights: []string{Look}}, nil
	}
	t, err := g.core.Tree(ctx)
	if err != nil {
		return n, err
	}
	for _, name := range names {
		right := Move
		for _, node := range t.Nodes {
			if !owns(node.Full, node.Compact, node.Aliases, name) {
				continue
			}
			own := interfaces(node.Interface)
			switch {
			case slices.ContainsFunc(own, func(i string) bool { return slices.Contains(soft, i) }):
				right = Talk
			case slices.Contains(own, "VideoIn"):
				right = Camera
			}
			break
		}
		if right != Camera {
			n.claims = append(n.claims, name)
		}
		if !slices.Contains(n.rights, right) {
			n.rights = append(n.rights, right)
		}
	}
	if slices.Contains(n.rights, Move) { // who may move may talk
		n.rights = slices.DeleteFunc(n.rights, func(r string) bool { return r == Talk })
	}
	return n, nil
}

// read returns the order that a program sent.
func read(req *robotpb.OrderRequest) (core.Order, error) {
	if time.Duration(req.ForMs)*time.Millisecond > maxFor {
		return core.Order{}, invalid("for_ms: %d, want at most %d", req.ForMs, maxFor.Milliseconds())
	}
	o := core.Order{ForMS: req.ForMs}
	if (req.Text == "") == (len(req.Steps) == 0) {
		return o, invalid("want steps or a text, one of the two")
	}
	if req.Text != "" {
		parsed, err := core.Parse(req.Text)
		if err != nil {
			return o, err
		}
		o.Steps = parsed.Steps
		return o, writes(o)
	}
	n := 0
	for i, step := range req.Steps {
		var lines []robot.Line
		for k, s := range step.GetStatements() {
			l, err := statement(s)
			if err != nil {
				return o, errs.Coded(errs.Invalid, "invalid", "step %d, statement %d: %w", i+1, k+1, err)
			}
			lines = append(lines, l)
		}
		n += len(lines)
		o.Steps = append(o.Steps, lines)
	}
	if len(o.Steps) > maxSteps || n > maxStatements {
		return o, invalid("%d steps with %d statements, want at most %d with %d", len(o.Steps), n, maxSteps, maxStatements)
	}
	return o, writes(o)
}

// writes returns an error for an order of which a step writes and calls nothing.
func writes(o core.Order) error {
	for i, step := range o.Steps {
		if !slices.ContainsFunc(step, func(l robot.Line) bool { return l.Verb != robot.Get }) {
			return invalid("step %d writes nothing; slots are read by the call read", i+1)
		}
	}
	return nil
}

func statement(s *robotpb.Statement) (robot.Line, error) {
	l := robot.Line{Name: s.GetName(), Speed: s.GetSpeed()}
	var err error
	switch what := s.GetWhat().(type) {
	case *robotpb.Statement_Set:
		l.Verb = robot.Put
		l.Value, err = value(what.Set)
	case *robotpb.Statement_Call:
		l.Verb = robot.Call
		for _, a := range what.Call.GetItems() {
			v, verr := value(a)
			if verr != nil {
				err = verr
			}
			l.Args = append(l.Args, v)
		}
	default:
		err = invalid("%.80s: want a value to set, or a call with its arguments", s.GetName())
	}
	if err == nil {
		l.Time, err = duration("time_s", s.GetTimeS())
	}
	if err == nil {
		l.Adaptive, err = duration("adaptive_s", s.GetAdaptiveS())
	}
	if err != nil {
		return l, err
	}
	return l, l.Check()
}

func duration(name string, seconds float64) (time.Duration, error) {
	if seconds < 0 || seconds > time.Hour.Seconds() || math.IsNaN(seconds) {
		return 0, invalid("%s: %v, want 0.001 to 3600", name, seconds)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

func value(v *robotpb.Value) (robot.Value, error) {
	switch k := v.GetKind().(type) {
	case *robotpb.Value_Number:
		return robot.F(k.Number), nil
	case *robotpb.Value_Text:
		return robot.S(k.Text), nil
	case *robotpb.Value_List:
		var items []robot.Value
		for _, x := range k.List.GetItems() {
			if _, nested := x.GetKind().(*robotpb.Value_List); nested {
				return robot.Value{}, invalid("list within a list, want numbers and texts")
			}
			i, err := value(x)
			if err != nil {
				return robot.Value{}, err
			}
			items = append(items, i)
		}
		return robot.L(items...), nil
	}
	return robot.Value{}, invalid("empty value, want a number, a text or a list")
}
