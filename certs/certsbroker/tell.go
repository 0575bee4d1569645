package certsbroker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"kennel/certs"
	"kennel/infra/logging"
	"kennel/infra/mqtt/brokeradmin"
	"kennel/infra/thing"
)

// orderTime bounds an order to the broker that a caller waits for.
const orderTime = 5 * time.Second

// Tell returns a recorder that passes steps of activation on to next, and tells the broker of those that concern it: who is new, whose
// session must end.
func Tell(broker brokeradmin.Admin, next certs.Recorder, log *slog.Logger) certs.Recorder {
	return told{broker, next, log}
}

type told struct {
	broker brokeradmin.Admin
	next   certs.Recorder
	log    *slog.Logger
}

// RecordAll implements certs.BatchRecorder: a delivery is one order. What of it fails is made up for by the next look at the whole fleet.
func (t told) RecordAll(ctx context.Context, all []certs.Step) {
	if next, ok := t.next.(certs.BatchRecorder); ok {
		next.RecordAll(ctx, all)
	} else {
		for _, s := range all {
			t.next.Record(ctx, s)
		}
	}
	p, ok := t.broker.(brokeradmin.Provisioner)
	var ids []thing.ID
	for _, s := range all {
		if s.OK && s.Step == certs.StepRegister && s.Thing != "" {
			ids = append(ids, s.Thing)
		}
	}
	if !ok || len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), orderTime)
	defer cancel()
	if err := p.Provision(ctx, ids...); err != nil {
		t.log.WarnContext(ctx, "new things not announced to the broker", "things", len(ids), logging.Err, err)
	}
}

func (t told) Record(ctx context.Context, s certs.Step) {
	t.next.Record(ctx, s)
	if !s.OK || s.Thing == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), orderTime)
	defer cancel()
	var err error
	switch s.Step {
	case certs.StepRegister, certs.StepEnroll:
		if p, ok := t.broker.(brokeradmin.Provisioner); ok {
			err = p.Provision(ctx, s.Thing) // before the robot has its certificate; what fails is made up for
		}
		if blocker, ok := t.broker.(brokeradmin.Blocker); ok && s.Step == certs.StepEnroll {
			err = errors.Join(err, blocker.Allow(ctx, s.Thing)) // it is let in again, with another key
		}
	case certs.StepRelease:
		err = t.broker.Kick(ctx, s.Thing, "its key was given up: "+s.Reason)
	case certs.StepRevoke:
		if blocker, ok := t.broker.(brokeradmin.Blocker); ok {
			err = blocker.Block(ctx, s.Thing, s.Reason)
			break
		}
		err = t.broker.Kick(ctx, s.Thing, "its certificates were revoked: "+s.Reason)
	}
	if err != nil {
		t.log.WarnContext(ctx, "identity step not applied at the broker", logging.Thing, s.Thing, "step", s.Step, logging.Err, err)
	}
}
