package mindapp

import (
	"context"
	"maps"
	"slices"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/infra/errs"
)

// gesture is a small motion of one joint, for bodies that have the joint and no library of motions.
type gesture struct {
	joint  string // full name
	angles []float64
	each   time.Duration // rad, from one to the next
}

// gestures are our own, by the names of moods.json. Their angles are within what every body with such a joint reaches, and no leg moves, so nothing falls.
var gestures = map[string]gesture{
	"wag":         {"robot.body.tail.yaw", []float64{0.6, -0.6, 0.6, -0.6, 0}, 500 * time.Millisecond},
	"look_around": {"robot.body.neck.yaw", []float64{0.6, -0.6, 0}, 1200 * time.Millisecond},
	"nod":         {"robot.body.neck.pitch", []float64{-0.3, 0.3, 0}, time.Second},
	"droop":       {"robot.body.neck.pitch", []float64{0.8, 0.6, 0.8, 0}, 1500 * time.Millisecond},
}

func (g *gesture) span() time.Duration { return time.Duration(len(g.angles)) * g.each }

// order returns the gesture as a trajectory.
func (g *gesture) order() (o core.Order) {
	for _, rad := range g.angles {
		o.Steps = append(o.Steps, []robot.Line{{Name: g.joint, Verb: robot.Put, Value: robot.F(rad), Time: g.each}})
	}
	return o
}

// gesturesOf returns the names of the gestures that the robot's body can make, sorted; errNoMotions: none.
func gesturesOf(ctx context.Context, c *coreclient.Client) ([]string, error) {
	t, err := c.Tree(ctx)
	if err != nil {
		return nil, err
	}
	can := slices.DeleteFunc(slices.Sorted(maps.Keys(gestures)), func(name string) bool {
		for i := range t.Nodes {
			if n := &t.Nodes[i]; n.Actuator && n.Full == gestures[name].joint {
				return false
			}
		}
		return true
	})
	if len(can) == 0 {
		return nil, errNoMotions()
	}
	return can, nil
}

func errNoMotions() error {
	return errs.Coded(errs.Invalid, "unable", "this body has no library of motions")
}

// listGestures lists what the body can make.
func listGestures(ctx context.Context, c *coreclient.Client) (out []mindlink.Clip, err error) {
	names, err := gesturesOf(ctx, c)
	for _, name := range names {
		g := gestures[name]
		out = append(out, mindlink.Clip{Name: name, SpanMS: g.span().Milliseconds(), Tracks: []string{"joints"}})
	}
	return out, err
}

// planGesture plans a gesture by its name.
func planGesture(ctx context.Context, c *coreclient.Client, name string) (mind.Planned, error) {
	names, err := gesturesOf(ctx, c)
	if err != nil {
		return mind.Planned{}, err
	}
	if !slices.Contains(names, name) {
		return mind.Planned{}, errs.Coded(errs.NotFound, "not_found", "motion %.60q: expected one of %s", name, errs.List(names))
	}
	g := gestures[name]
	return mind.Planned{Span: g.span(), Do: func(ctx context.Context, p claim.Priority) error { return c.Run(ctx, p, g.order()) }}, nil
}
