package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"kennel/certs/ca"
	"kennel/cloud/access"
	"kennel/cloud/app/demo"
	"kennel/cloud/app/fleet"
	"kennel/cloud/app/front"
	"kennel/cloud/app/health"
	"kennel/cloud/app/identity"
	"kennel/cloud/app/link"
	"kennel/cloud/app/orders"
	"kennel/cloud/app/people"
	"kennel/cloud/app/records"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/metrics"
	"kennel/cloud/openapi"
	"kennel/cloud/originals/originalswire"
	"kennel/cloud/web/console"
	"kennel/cloud/wire"
	"kennel/infra/blob"
	"kennel/infra/jobs"
	"kennel/infra/logging"
	"kennel/infra/migrations"
	"kennel/infra/pg"
	"kennel/infra/runner"
	"kennel/infra/secretbox"
	"kennel/infra/telemetry"
	"kennel/infra/webcert"
)

// Cloud is a process of the cloud, wired and ready; its roles say what of it runs. Values are set by Build and not changed afterwards.
type Cloud struct {
	cfg  Config
	base wire.Base
	ca   *ca.Authority

	Accounts people.Accounts
	Identity identity.Identity

	slices   wire.Slices
	doors    wire.Doors
	releases orders.Releases
	link     *link.Link
	uploads  identity.Uploads
	watched  originalswire.Watched
	acme     *webcert.ACME                        // nil: none
	intake   func(next http.Handler) http.Handler // of the port of original robots
	orders   orders.Orders
	owners   people.Owners
	speech   telemetry.Check
	ready    *telemetry.Readiness
	front    *front.Front
}

// Build opens the parts, migrates the database and wires the slices. Close gives the connections back.
func Build(ctx context.Context, cfg Config, log *slog.Logger) (*Cloud, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Cloud{cfg: cfg, base: wire.Base{Log: log}}
	if err := c.open(ctx); err != nil {
		c.Close()
		return nil, err
	}
	if err := c.wire(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// open makes the ground that all slices build on.
func (c *Cloud) open(ctx context.Context) (err error) {
	b := &c.base
	if b.Roles, err = wire.ParseRoles(c.cfg.Roles); err != nil {
		return err
	}
	if c.ca, err = ca.Load(c.cfg.CA.Dir); err != nil {
		return err
	}
	if b.Seal, err = secretbox.Load(c.cfg.CA.SealPath()); err != nil {
		return fmt.Errorf("%w; create it with kenneld ca init -dir DIR, once for all processes of a cloud", err)
	}
	tel, err := telemetry.New(ctx, telemetry.Config{Service: "kenneld", Traces: c.cfg.Traces, Log: b.Log})
	if err != nil {
		return err
	}
	if b.Meters, err = metrics.New(tel); err != nil {
		return err
	}
	if c.front, err = front.New(b.Meters, b.Log); err != nil {
		return err
	}
	dir, err := filepath.Abs(c.cfg.CA.Dir)
	if err != nil {
		return err
	}
	if b.Volumes, err = b.Meters.Volumes(append([]string{"data=" + dir}, c.cfg.Volumes...)); err != nil {
		return err
	}
	c.cfg.Postgres.Tracer = tel.PGTracer()
	c.cfg.Postgres.Full, c.cfg.S3.Full = b.Volumes.Refuser("postgres"), b.Volumes.Refuser("object store")
	if b.Pool, err = pg.Open(ctx, c.cfg.Postgres); err != nil {
		return err
	}
	if n, err := pg.Migrate(ctx, b.Pool, migrations.FS); err != nil {
		return err
	} else if n > 0 {
		b.Log.InfoContext(ctx, "database migrated", "applied", n)
	}
	if _, err := jobs.Migrate(ctx, b.Pool); err != nil {
		return err
	}
	if b.Orders, err = jobs.NewOrders(b.Pool); err != nil {
		return err
	}
	if b.Blobs, err = blob.Open(ctx, c.cfg.S3); err != nil {
		return err
	}
	return tel.Pool(b.Pool)
}

// spansTime is how long an end may take to get the last spans out.
const spansTime = 3 * time.Second

// Close gives the database connections back and sends the last spans.
func (c *Cloud) Close() {
	if c.base.Pool != nil {
		c.base.Pool.Close()
	}
	_ = c.slices.Close() // only folders
	if c.base.Meters == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), spansTime)
	defer cancel()
	if err := c.base.Meters.Close(ctx); err != nil {
		c.base.Log.Warn("last spans not sent", logging.Err, err)
	}
}

// wire calls the wiring of every slice, each after those that it needs.
func (c *Cloud) wire(ctx context.Context) error {
	b, cfg := c.base, c.cfg
	l, err := link.Open(ctx, b, cfg.MQTT, cfg.Uplink, c.ca)
	if err != nil {
		return err
	}
	var accountSlice wire.Slice
	if c.Accounts, accountSlice, err = people.WireAccounts(ctx, b, cfg.people()); err != nil {
		return err
	}
	docs, docSlice := records.WireDocuments(b, l)
	releases, releaseSlices, err := orders.WireReleases(b, l, cfg.Releases)
	if err != nil {
		return err
	}
	cohorts := fleet.Cohorts(b)
	robots, registrySlice, err := fleet.WireRegistry(b, docs, releases.Service, cohorts)
	if err != nil {
		return err
	}
	owners, ownerSlice, err := people.WireOwners(b, cfg.people(), c.Accounts, robots)
	if err != nil {
		return err
	}
	watched, doorSlice, err := originalswire.Door(b, robots)
	if err != nil {
		return err
	}
	steps := identity.Steps{Registry: robots, Door: watched.Door, Log: b.Log}
	var uploadSlice wire.Slice
	if c.uploads, uploadSlice, err = identity.WireUploads(b, owners, robots, steps, cfg.S3.Bucket, cfg.Robots.S3Domains, cfg.Uploads.KeepDays); err != nil {
		return err
	}
	c.Identity, err = identity.Wire(ctx, b, cfg.identity(), identity.Needs{Authority: c.ca, Link: l, Registry: robots, Accounts: c.Accounts, Owners: owners, Docs: docs, Uploads: c.uploads, Steps: steps})
	if err != nil {
		return err
	}
	vitals, vitalSlice := records.WireVitals(b, robots, owners.Service)
	hooks, webhookSlice, tellings, err := fleet.WireWebhooks(b, cfg.Webhooks, robots, c.Accounts.Audit, owners.Service)
	if err != nil {
		return err
	}
	voices, hearing, voiceSlices, err := health.WireVoice(b, cfg.Speech, owners.Service, docs, c.Identity, robots)
	if err != nil {
		return err
	}
	events, eventSlices, err := records.WireEvents(b, cfg.Events, cfg.Uploads.KeepDays, owners.Service, steps.Paused, c.Accounts.Audit.Note, vitals.Erase, tellings.Erase, voices.Erase)
	if err != nil {
		return err
	}
	look, lookSlice := records.WireLook(b, l, owners.Allowed)
	if c.orders, err = orders.Wire(b, l, robots, cohorts, docs, orders.Devices{DevicesConfig: cfg.Devices, Releases: releases, Identify: c.Identity.Peers.Identify}, voices.Speech); err != nil {
		return err
	}
	motions, motionSlice := orders.Motions(b, l, owners.Service, c.orders.Commands)
	troubles := health.Troubles(func() *telemetry.Readiness { return c.ready })
	alarms, alertSlices, err := health.Wire(b, events.Service, cfg.Events.KeepDays, robots, cohorts, troubles)
	if err != nil {
		return err
	}
	mailSlice, err := people.WireMail(b, cfg.people(), c.Accounts, owners)
	if err != nil {
		return err
	}
	// The order is the one in which personal data is erased: first what acts for a person, then what is left of it. What robots sent while they
	// were the person's goes before the owner slice forgets when that was, and after the documents, whose erasure robots are told of.
	c.slices = slices.Concat(c.Identity.Slices, c.orders.Slices, wire.Slices{docSlice}, eventSlices, alertSlices, voiceSlices, releaseSlices, fleet.Wire(b, cohorts, robots, c.readiness()), wire.Slices{
		orders.Choices(b, owners.Service), motionSlice, vitalSlice, webhookSlice, ownerSlice, uploadSlice, mailSlice, accountSlice, registrySlice, lookSlice, orders.WireRollouts(b, l, robots, cohorts, releases),
		c.wireIntake(events, records.Intake{Allowed: owners.Allowed, Consent: owners.Files, Robots: robots, Door: watched.Door}), originalswire.Documents(b, docs.Robots, docs.Personal, c.Identity.Tokens, c.Accounts.Audit), doorSlice,
		people.WirePages(b, c.Accounts, owners, c.Identity.Tokens, robots, docs, c.uploads.Logs, voices.Audio, voices.Answers, releases.Service, c.orders.Says, motions),
		originalswire.Wire(b, cfg.door(), c.ca, robots, func() wire.Slices { return c.slices }),
	})
	c.owners, c.link, c.watched, c.releases, c.speech = owners, l, watched, releases, hearing
	c.doors = wire.Doors{Log: b.Log, Known: robots.Known, Owns: owners.Owns, Audit: c.Accounts.Audit.Note}
	pages := console.Config{
		Passkeys: c.Accounts.Keys, PasskeySites: c.Accounts.Passkeys.Sites(), Provider: c.Accounts.ProviderName(),
		Auth: accountapi.Browser{In: c.Accounts.SignIn, Log: b.Log}, Operators: c.Accounts.Operators, Releases: releases, Archives: releases.Archives, Webhooks: hooks,
		AuditLog: c.Accounts.Audit.Lines, VerifyAudit: c.Accounts.Audit.Verify,
		Fleet: robots, Docs: docs, Commands: c.orders.Commands, Events: events.WithRobots(robots.Selected), Vitals: vitals.List, Look: look, Cohorts: cohorts, Bulk: c.orders.Bulk, Alerts: alarms, AlertDesk: alarms,
		Troubles: troubles, Identities: c.Identity.Certs, Owners: owners, Tokens: c.Identity.Tokens, Log: b.Log,
		Mine: true, More: c.slices.Pages(), Audit: c.doors.Audit,
	}
	bridge, err := l.Serve(c.slices, robots, c.Identity.Peers.Thing)
	if err != nil {
		return err
	}
	c.slices = append(c.slices, bridge, wire.Slice{Routes: func(mux *http.ServeMux, _ wire.Doors) error { return mountConsole(mux, pages) }})
	return c.finish()
}

// finish makes what works for all slices: the jobs, what is held about people, and what tells whether the process can work.
func (c *Cloud) finish() error {
	b := c.base
	if err := c.slices.Hold(c.Accounts.Privacy, c.owners.Ended); err != nil {
		return err
	}
	c.owners.Ended.Hear(c.link.Ended) // last: the robot finds everything ended
	work, err := jobs.New(b.Pool, b.Log, b.Meters.Periodic(c.slices.Jobs())...)
	if err != nil {
		return err
	}
	if err := work.Handle(c.slices.Tasks()...); err != nil {
		return err
	}
	c.slices = append(c.slices, wire.Slice{Runs: []wire.Run{{Name: "jobs", Run: work.Run, Role: wire.Jobs}, {Name: "volumes", Run: b.Volumes.Run}}})
	servers, err := c.cfg.Postgres.Servers()
	if err != nil {
		return err
	}
	if c.ready, err = b.Meters.NewReadiness(health.Checks(b, servers, c.link.Look, c.link.LookUplink, c.Identity.Peers.Ready, c.releases.Metadata.Check, c.speech)...); err == nil {
		c.ready.Tell(c.front.News, b.Meters.BrokerNews)
	}
	return errors.Join(err, b.Meters.Standbys(b.Pool))
}

// Hearing blocks until the cloud hears what robots publish.
func (c *Cloud) Hearing(ctx context.Context) error { return c.link.Hearing(ctx) }

// Demo returns what the seeding of a demo needs (kenneld onebox -demo).
func (c *Cloud) Demo() demo.Cloud {
	return demo.Cloud{Base: c.base, Authority: c.ca, People: c.Accounts.People, Owners: c.owners.Service, Archives: c.releases.Archives}
}

// Services returns what this process's roles run, in the order of start.
func (c *Cloud) Services() []runner.Service { return c.slices.Services(c.base.Roles) }

// Handler is the public API with the console, behind authentication.
func (c *Cloud) Handler() (http.Handler, error) {
	mux, log := http.NewServeMux(), c.base.Log
	mux.HandleFunc("GET /ok", connectionCheck)
	mux.Handle("GET /v1/health", health.Handler(c.ready))
	mux.Handle("GET /readyz", c.ready.Brief()) // the reasons are on metrics.listen
	if err := c.slices.Mount(mux, c.doors); err != nil {
		return nil, err
	}
	if err := openapi.Mount(mux); err != nil {
		return nil, err
	}
	audited := accountapi.Audited(c.Accounts.Audit, mux, log)
	return c.base.Meters.HTTP(mux, accountapi.Authenticator(c.Accounts.SignIn, log)(front.Proving(c.Identity.Peers.Knows, audited(access.HTTP.Guard(mux, log))))), nil
}
