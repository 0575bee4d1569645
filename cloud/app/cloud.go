package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certspg"
	"kennel/cloud/access"
	"kennel/cloud/account"
	"kennel/cloud/account/accountapi"
	"kennel/cloud/app/alerts"
	"kennel/cloud/app/fleet"
	"kennel/cloud/app/identity"
	"kennel/cloud/app/link"
	"kennel/cloud/app/meters"
	"kennel/cloud/app/orders"
	"kennel/cloud/app/people"
	"kennel/cloud/app/records"
	"kennel/cloud/app/wire"
	"kennel/cloud/console"
	"kennel/cloud/openapi"
	"kennel/cloud/owner"
	"kennel/cloud/owner/ownerpg"
	"kennel/cloud/registry"
	"kennel/cloud/sts/stsapi"
	"kennel/infra/blob"
	"kennel/infra/jobs"
	"kennel/infra/logging"
	"kennel/infra/migrations"
	"kennel/infra/notice"
	"kennel/infra/pg"
	"kennel/infra/runner"
	"kennel/infra/seal"
	"kennel/infra/telemetry"
)

// Cloud is a process of the cloud, wired and ready; its roles say what of it runs. Values are set by Build and not changed afterwards.
type Cloud struct {
	cfg  Config
	base wire.Base
	ca   *ca.Authority

	Accounts *account.Service
	Certs    *certs.Service

	slices wire.Slices
	doors  wire.Doors
	link   *link.Link
	peers  identity.Peers
	door   *stsapi.Door
	orders orders.Orders
	ready  *telemetry.Readiness
	close  []func() error // of what holds files, in the order in which it was opened
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
	if b.Seal, err = seal.Load(c.cfg.CA.SealPath()); err != nil {
		return fmt.Errorf("%w; kenneld ca init -dir DIR makes it, once for all processes of a cloud", err)
	}
	tel, err := telemetry.New(ctx, telemetry.Config{Service: "kenneld", Traces: c.cfg.Traces, Log: b.Log})
	if err != nil {
		return err
	}
	if b.Meters, err = meters.New(tel); err != nil {
		return err
	}
	c.cfg.Postgres.Tracer = tel.PGTracer()
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
	for _, f := range c.close {
		_ = f() // only folders
	}
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
	accounts, accountSlice, err := people.WireAccounts(ctx, b, cfg.people())
	if err != nil {
		return err
	}
	owned := ownerpg.New(b.Pool)
	docs, docSlice := records.WireDocuments(b, l, owned)
	releases, releaseSlice := records.WireReleases(b, l)
	cohorts := fleet.Cohorts(b)
	robots, registrySlice, err := fleet.WireRegistry(b, docs, releases, cohorts, certspg.New(b.Pool), owned)
	if err != nil {
		return err
	}
	var ended notice.Of[owner.Tenure]
	owners, ownerSlice, err := people.WireOwners(b, cfg.people(), accounts, docs, robots, &ended)
	if err != nil {
		return err
	}
	uploads, uploadSlice, err := identity.WireUploads(b, owners.Whose, robots, cfg.S3.Bucket, cfg.Robots.S3Domains)
	if err != nil {
		return err
	}
	who, err := identity.Wire(ctx, b, cfg.identity(), identity.Needs{
		Authority: c.ca, Link: l, Registry: robots, People: accounts.People, Owners: owners, Docs: docs, Uploads: uploads, Ended: &ended,
	})
	if err != nil {
		return err
	}
	events, eventSlice, err := records.WireEvents(b, cfg.Events.KeepDays, owners, owned)
	if err != nil {
		return err
	}
	vitals, vitalSlice := records.WireVitals(b, robots)
	look, lookSlice := records.WireLook(b, l)
	told, err := orders.Wire(b, l, robots, cohorts, docs)
	if err != nil {
		return err
	}
	webhookSlice, err := fleet.WireWebhooks(b, cfg.Webhooks, robots, accounts.Service)
	if err != nil {
		return err
	}
	alarms, alertSlice, err := alerts.Wire(b, robots)
	if err != nil {
		return err
	}
	spool, mailSlice, err := people.WireMail(b, cfg.people(), accounts, owners)
	if err != nil {
		return err
	}
	if spool != nil {
		c.close = append(c.close, spool.Close)
	}
	// The order is the one in which personal data is erased: first what acts for a person, then what is left of it.
	all := slices.Concat(who.Slices, told.Slices, wire.Slices{
		docSlice, ownerSlice, uploadSlice, mailSlice, accountSlice, registrySlice, releaseSlice, eventSlice, vitalSlice, lookSlice, webhookSlice, alertSlice,
		fleet.WireCohorts(b, cohorts, robots), people.WirePages(b, accounts, owners, who.Tokens, robots, docs),
	})
	pages := console.Config{
		Passkeys: accounts, PasskeySites: accounts.Passkeys.Sites(), Provider: accounts.ProviderName(), Auth: accountapi.Browser{Accounts: accounts.Service, Log: b.Log},
		Fleet: robots, Docs: docs, Commands: told.Commands, Events: events, Vitals: vitals.List, Look: look, Cohorts: cohorts, Bulk: told.Bulk, Alerts: alarms, Identities: who.Certs, Owners: owners,
		Tokens: who.Tokens, Operators: accounts, AuditLog: accounts.AuditLog, VerifyAudit: accounts.VerifyAudit, Audit: accountapi.Auditor(accounts.Service), Log: b.Log,
	}
	all = append(all, wire.Slice{Routes: func(mux *http.ServeMux, _ wire.Doors) error { return console.Mount(mux, pages) }})
	c.Accounts, c.Certs, c.link, c.peers, c.door, c.orders = accounts.Service, who.Certs, l, who.Peers, uploads.Door, told
	c.doors = wire.Doors{Known: robots.Known, Owns: owners.Owns, Audit: pages.Audit}
	return c.finish(all, accounts.People, robots)
}

// finish makes what works for all slices: the jobs, the bridge, and what tells whether the process can work.
func (c *Cloud) finish(all wire.Slices, people *account.Owners, robots *registry.Service) error {
	b := c.base
	if err := people.Hold(wire.Collect(all, func(s wire.Slice) []account.Holder { return s.Personal })...); err != nil {
		return err
	}
	work, err := jobs.New(b.Pool, b.Log, b.Meters.Periodic(wire.Collect(all, func(s wire.Slice) []jobs.Job { return s.Jobs }))...)
	if err != nil {
		return err
	}
	if err := work.Handle(wire.Collect(all, func(s wire.Slice) []jobs.Task { return s.Tasks })...); err != nil {
		return err
	}
	bridge, err := c.link.Serve(all, robots, c.peers.Thing)
	if err != nil {
		return err
	}
	c.slices = append(all, wire.Slice{Runs: []wire.Run{{Name: "jobs", Run: work.Run, Role: wire.Jobs}}}, bridge)
	c.ready, err = b.Meters.NewReadiness(c.checks()...)
	return err
}

// Services returns what this process's roles run, in the order of start.
func (c *Cloud) Services() []runner.Service { return c.slices.Services(c.base.Roles) }

// Handler is the public API with the console, behind authentication.
func (c *Cloud) Handler() (http.Handler, error) {
	mux, log := http.NewServeMux(), c.base.Log
	mux.HandleFunc("GET /ok", connectionCheck)
	mux.HandleFunc("GET /v1/health", c.health)
	mux.Handle("GET /readyz", c.ready.Brief()) // the reasons are on metrics.listen
	if err := c.slices.Mount(mux, c.doors); err != nil {
		return nil, err
	}
	if err := openapi.Mount(mux); err != nil {
		return nil, err
	}
	refusals := accountapi.Refusals(c.Accounts, mux, log)
	return c.base.Meters.HTTP(mux, accountapi.Authenticator(c.Accounts, log)(refusals(access.HTTP.Guard(mux, log)))), nil
}
