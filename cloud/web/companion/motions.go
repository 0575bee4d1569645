package companion

import (
	"context"
	"html/template"
	"net/http"

	"kennel/cloud/fleet/motion/motionapi"
	"kennel/infra/thing"
)

// Motions knows which robots move by motions; *motion.Service does.
type Motions interface {
	Has(ctx context.Context, id thing.ID) (bool, error)
}

// motionsPage is the page of what a robot can do by its joints.
type motionsPage struct {
	said
	robotView
	Part template.HTML
}

func (c *companion) motions(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	t, err := c.mine(ctx, r)
	if err != nil {
		return "", frame{}, err
	}
	v := motionsPage{said: s}
	if v.robotView, err = c.newRobot(ctx, t, nil); err != nil {
		return "", frame{}, err
	}
	if v.Tab = "motions"; v.Moves {
		v.Part, err = motionapi.Part(t.Thing, true)
	}
	return "motions", frame{Title: v.Title, Main: v}, err
}
