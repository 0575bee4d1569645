// Package demo fills the empty cloud of one machine with a fleet that has a past, for people who look at Kennel before they have robots, and for the pictures of the
// documentation (kenneld onebox -demo, infra/adr/0003).
//
// The seeded robots have serials from 00e2d000 on. Nothing runs for them: they do what the story says, written by the services and stores of the product with a clock
// that can be set (clock.go), and afterwards stay online by Run. They take no command and no update, and the keys of their certificates are thrown away, so that no
// program on the network can be one of them.
//
// The story is the same at each seeding, relative to its time: a week of events and absences, a rollout that is over and one that is under way, crashes that
// most robots of the new release have in common, a fault that is spreading, and what operators did about it. Robots whose owner shares no data have no events.
//
//	fleet.go    the robots and their week         updates.go    releases and rollouts
//	clock.go    the time of the seeding           telemetry.go  events, crashes, vitals, alerts
//	people.go   owners, commands, the audit log
package demo

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"kennel/certs"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/cloud/updates/artifact"
	"kennel/cloud/wire"
	"kennel/infra/api/envelope"
	"kennel/infra/atomicfile"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Cloud holds the parts of a cloud that the seeding needs. The cloud is wired and does not run yet.
type Cloud struct {
	wire.Base
	Authority certs.Issuer
	People    *account.People
	Owners    *owner.Service
	Archives  *artifact.Service
}

// Config says where the demo is and whom it is shown to.
type Config struct {
	Dir      string          // data folder, which remembers that it is a demo
	Owner    string          // e-mail of an account, which gets two robots
	Operator string          // e-mail of who did what operators did
	Sign     *rsa.PrivateKey // signs releases
	Now      time.Time
}

// markFile says in the data folder how far the seeding came.
const markFile = "demo.json"

type mark struct {
	Begun time.Time `json:"begun"`
	Done  bool      `json:"done"`
}

// Fleet is the seeded fleet.
type Fleet struct {
	cloud  Cloud
	robots []*robot
	owner  string // e-mail of whom the first robot that runs is for; "": it was given on an earlier start
}

// Give makes the demo's owner the owner of a robot that runs, and so answers, when the demo was just seeded.
func (f *Fleet) Give(ctx context.Context, id thing.ID, name string) error {
	if f.owner == "" {
		return nil
	}
	account, err := f.cloud.People.Find(ctx, f.owner)
	if err != nil {
		return fmt.Errorf("account %s: %w", f.owner, err)
	}
	store := ownerpg.New(f.cloud.Pool)
	if _, _, err := store.Begin(ctx, id, string(account.ID), owner.HowCode, false); err != nil {
		return err
	}
	_, err = store.Rename(ctx, id, string(account.ID), name)
	return err
}

// Open seeds the fleet, or finds it seeded. Conflict "not_a_demo" for a cloud that has robots already, "demo_unfinished" after a seeding that was interrupted.
func Open(ctx context.Context, c Cloud, cfg Config) (*Fleet, error) {
	file := filepath.Join(cfg.Dir, markFile)
	cfg.Now = cfg.Now.UTC().Truncate(time.Minute)
	m := mark{Begun: cfg.Now}
	b, err := os.ReadFile(file)
	switch {
	case err == nil:
		if err := json.Unmarshal(b, &m); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if !m.Done {
			return nil, errs.Coded(errs.Conflict, "demo_unfinished", "the demo in %s was not finished when it was made: remove the folder and start again", cfg.Dir)
		}
		return &Fleet{cloud: c, robots: plan(m.Begun)}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if n, err := registrypg.New(c.Pool, c.Log).Count(ctx); err != nil {
		return nil, err
	} else if n != (registry.Count{}) {
		return nil, errs.Coded(errs.Conflict, "not_a_demo", "%s has a fleet of its own, and seeded robots would mix with it: want an empty data folder for the demo, such as -data demo", cfg.Dir)
	}
	write := func() error {
		b, err := json.Marshal(m)
		if err != nil {
			return err
		}
		return atomicfile.WriteFile(file, append(b, '\n'), 0o644)
	}
	if err := write(); err != nil {
		return nil, err
	}
	f, err := seedAll(ctx, c, cfg)
	if err != nil {
		return nil, fmt.Errorf("seed the demo: %w", err)
	}
	m.Done = true
	return f, write()
}

// seeding is the work of Open.
type seeding struct {
	Cloud
	Config
	clock  *clock
	robots []*robot
}

func seedAll(ctx context.Context, c Cloud, cfg Config) (_ *Fleet, err error) {
	clk, err := newClock(ctx, c.Pool)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, clk.close(context.WithoutCancel(ctx))) }()
	clk.set(cfg.Now)
	s := &seeding{Cloud: c, Config: cfg, clock: clk, robots: plan(cfg.Now)}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{{"audit log", s.audit}, {"identities", s.identities}, {"owners", s.owners}, {"rollouts", s.rollouts}, {"presence", s.presence}, {"events", s.events}, {"curves", s.curves}, {"alerts", s.alerts}, {"commands", s.commands}} {
		began := time.Now()
		if err := step.run(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		c.Log.DebugContext(ctx, "demo seeded", "part", step.name, "took", time.Since(began))
	}
	return &Fleet{c, s.robots, cfg.Owner}, nil
}

// The leases of seeded robots, which Run renews.
const (
	lease      = envelope.Millis(registry.MaxLease)
	renewEvery = registry.MaxLease / 3
)

// Run keeps the robots online that are.
func (f *Fleet) Run(ctx context.Context) error {
	svc := registry.New(registrypg.New(f.cloud.Pool, f.cloud.Log), nil, registry.Sources{}, f.cloud.Log)
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		if err := f.renew(ctx, svc); err != nil && ctx.Err() == nil {
			f.cloud.Log.WarnContext(ctx, "seeded robots not kept online", logging.Err, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// renew has each robot that is online say again what it said last.
func (f *Fleet) renew(ctx context.Context, svc *registry.Service) error {
	var all error
	for _, r := range f.robots {
		if n := len(r.online); n == 0 || !r.online[n-1].to.IsZero() {
			continue
		}
		t, err := svc.Thing(ctx, r.id)
		if errs.KindOf(err) == errs.NotFound && err != nil { // an operator removed it
			continue
		}
		if err == nil && t.Status != nil {
			m := *t.Status
			m.Seq++
			m.TS = time.Now().UnixMilli()
			err = svc.Apply(ctx, r.id, m)
		}
		all = errors.Join(all, err)
	}
	return all
}
