// Package registrycerts keeps in the registry what happens to robots' certificates: the steps of activation, for the doctor, and until when each robot's
// certificate is good, for the fleet's table.
package registrycerts

import (
	"context"
	"log/slog"
	"time"

	"kennel/certs"
	"kennel/cloud/fleet/registry"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// tellTime bounds the note about a certificate, which the caller of a step waits for.
const tellTime = 5 * time.Second

// Store is the storage of certificates; certspg.Store is one.
type Store interface {
	// Certificates returns those of a robot, the newest first.
	Certificates(ctx context.Context, id thing.ID) ([]certs.Record, error)
	// Newest returns until when the newest certificate of each robot after one of the order is good, and the last robot it looked at.
	Newest(ctx context.Context, after thing.ID, limit int) (until map[thing.ID]time.Time, last thing.ID, err error)
}

// Newest returns a source of the registry: the newest certificate of a robot.
func Newest(store Store) func(context.Context, thing.ID) (registry.Certificate, bool, error) {
	return func(ctx context.Context, id thing.ID) (registry.Certificate, bool, error) {
		all, err := store.Certificates(ctx, id)
		if err != nil || len(all) == 0 {
			return registry.Certificate{}, false, err
		}
		c := all[0]
		return registry.Certificate{Serial: c.Serial, NotBefore: c.NotBefore, NotAfter: c.NotAfter, Method: c.Method, Revoked: c.Revoked, Reason: c.Reason}, true, nil
	}
}

// Fleet tells the registry.
type Fleet struct {
	Registry *registry.Service
	Store    Store
	Log      *slog.Logger
}

// Steps returns the recorder that keeps each step for the doctor.
func (f Fleet) Steps() certs.Recorder { return recorder{f.Registry, f.Log} }

// Table returns a recorder that passes each step on to next, and then tells the fleet's table if the step changed a certificate.
func (f Fleet) Table(next certs.Recorder) certs.Recorder { return tableTold{next, f.changed} }

// recorder keeps activation steps with the fleet.
type recorder struct {
	registry *registry.Service
	log      *slog.Logger
}

func (r recorder) Record(ctx context.Context, s certs.Step) {
	if s.Thing == "" {
		return // no robot to show it for; the transport's log has it
	}
	if err := r.registry.Record(ctx, stepOf(s)); err != nil {
		r.log.WarnContext(ctx, "activation step not recorded", logging.Thing, s.Thing, "step", s.Step, logging.Err, err)
	}
}

// RecordAll implements certs.BatchRecorder.
func (r recorder) RecordAll(ctx context.Context, all []certs.Step) {
	steps := make([]registry.Step, 0, len(all))
	for _, s := range all {
		if s.Thing != "" {
			steps = append(steps, stepOf(s))
		}
	}
	if err := r.registry.RecordAll(ctx, steps); err != nil {
		r.log.WarnContext(ctx, "activation steps not recorded", "things", len(steps), logging.Err, err)
	}
}

func stepOf(s certs.Step) registry.Step {
	return registry.Step{Thing: s.Thing, At: s.At, Name: s.Step, OK: s.OK, Code: s.Code, Peer: s.Peer, Detail: s.Reason, Shown: registry.Shown(s.Shown)}
}

type tableTold struct {
	certs.Recorder
	changed func(ctx context.Context, id thing.ID)
}

func (t tableTold) Record(ctx context.Context, s certs.Step) {
	t.Recorder.Record(ctx, s)
	if !s.OK || s.Thing == "" {
		return
	}
	switch s.Step {
	case certs.StepEnroll, certs.StepRenew, certs.StepRevoke, certs.StepRelease:
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTime)
		defer cancel()
		t.changed(ctx, s.Thing)
	}
}

// RecordAll implements certs.BatchRecorder: a delivery changes no certificate.
func (t tableTold) RecordAll(ctx context.Context, all []certs.Step) {
	if next, ok := t.Recorder.(certs.BatchRecorder); ok {
		next.RecordAll(ctx, all)
		return
	}
	for _, s := range all {
		t.Recorder.Record(ctx, s)
	}
}

// changed tells the fleet's table until when a robot's certificate is good, after a step that may have changed it.
func (f Fleet) changed(ctx context.Context, id thing.ID) {
	cert, ok, err := Newest(f.Store)(ctx, id)
	if err == nil {
		until := cert.NotAfter
		if !ok || !cert.Revoked.IsZero() {
			until = time.Time{}
		}
		err = f.Registry.SetCertificates(ctx, map[thing.ID]time.Time{id: until})
	}
	if err != nil {
		f.Log.WarnContext(ctx, "certificate date in the registry out of date", logging.Thing, id, logging.Err, err)
	}
}

// Compare tells the table about the whole fleet: a process that died may not have told it.
func (f Fleet) Compare(ctx context.Context) error {
	for after := thing.ID(""); ; {
		until, last, err := f.Store.Newest(ctx, after, registry.MaxLimit)
		if err != nil || len(until) == 0 {
			return err
		}
		if err := f.Registry.SetCertificates(ctx, until); err != nil {
			return err
		}
		after = last
	}
}
