// Package liveviewapi is look over HTTP. Who asks sees what the robot said last, and makes it say more for some seconds: ask again for what is newer. An owner
// sees an own robot.
package liveviewapi

import (
	"context"

	"kennel/cloud/fleet/liveview"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/thing"
)

type robot struct {
	Thing thing.ID `path:"thing"`
}

// Operations returns the operation. known returns NotFound for an unregistered thing.
func Operations(svc *liveview.Service, known func(ctx context.Context, id thing.ID) error) op.List {
	return op.List{op.New(op.Spec{Route: "GET /v1/things/{thing}/live", Tag: "Commands", Roles: auth.Staff, Own: true,
		Summary: "Show a robot's devices and their latest values. The robot sends values for some seconds after each request, so repeat it."},
		func(ctx context.Context, q robot) (liveview.Robot, error) {
			if err := known(ctx, q.Thing); err != nil {
				return liveview.Robot{}, err
			}
			r, err := svc.Look(ctx, q.Thing)
			if since, mine := auth.OwnedSince(ctx); mine && r.Received != nil && r.Received.Before(since) { // what the former owner saw
				r = liveview.Robot{Thing: q.Thing, Devices: []liveview.Device{}}
			}
			return r, err
		})}
}
