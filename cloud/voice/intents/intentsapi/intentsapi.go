// Package intentsapi is say over HTTP. GET /v1/things/{thing}/commands/{id} has the robot's answer.
package intentsapi

import (
	"context"

	"kennel/cloud/fleet/command"
	"kennel/cloud/voice/intents"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/thing"
)

// Config holds what the operations need besides the rules.
type Config struct {
	Known func(ctx context.Context, id thing.ID) error // NotFound for an unregistered thing
	// Audit writes one line about what the caller in ctx does, without their words; what cannot be written down is not done.
	Audit func(ctx context.Context, action, object, detail string) error
}

type telling struct {
	Thing thing.ID       `path:"thing"`
	Wish  intents.Saying `body:""`
}

// Operations returns the operations: one for owners, one for all who may.
func Operations(svc *intents.Service, cfg Config) op.List {
	tell := func(ctx context.Context, q telling) (intents.Said, error) {
		by := auth.CallerFrom(ctx).Subject()
		if _, mine := auth.OwnedSince(ctx); mine {
			by = command.ByOwner
		}
		if err := cfg.Known(ctx, q.Thing); err != nil {
			return intents.Said{}, err
		}
		m, err := svc.Find(ctx, q.Thing, q.Wish)
		if err != nil {
			return intents.Said{}, err
		}
		if err := cfg.Audit(ctx, "intent.send", string(q.Thing), m.UserIntent); err != nil {
			return intents.Said{}, err
		}
		return svc.Say(ctx, q.Thing, by, m)
	}
	return op.List{
		op.New(op.Spec{Route: "POST /v1/my/robots/{thing}/intents", Tag: "Own robots", Roles: []auth.Role{auth.Owner}, Own: true,
			Summary: "Tell a robot what to do, in words or by intent. The returned command gets its answer."}, tell),
		op.New(op.Spec{Route: "POST /v1/things/{thing}/intents", Tag: "Commands", Roles: auth.Changers, Own: true,
			Summary: "Tell your robot what to do, in words or by intent."}, tell),
	}
}
