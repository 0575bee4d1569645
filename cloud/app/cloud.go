package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certsbroker"
	"kennel/certs/certspg"
	"kennel/cloud/access"
	"kennel/cloud/account"
	"kennel/cloud/account/accountapi"
	"kennel/cloud/account/accountoidc"
	"kennel/cloud/account/accountwebauthn"
	"kennel/cloud/app/alerts"
	"kennel/cloud/bridge"
	"kennel/cloud/bulk"
	"kennel/cloud/cohort"
	outbox "kennel/cloud/command" // this package has its own command
	"kennel/cloud/command/commandapi"
	"kennel/cloud/command/commandpg"
	"kennel/cloud/console"
	"kennel/cloud/das"
	"kennel/cloud/das/dasapi"
	"kennel/cloud/das/daspg"
	"kennel/cloud/look"
	"kennel/cloud/look/lookapi"
	"kennel/cloud/look/lookpg"
	"kennel/cloud/mail"
	"kennel/cloud/mail/mailpg"
	"kennel/cloud/mail/mailspool"
	"kennel/cloud/openapi"
	"kennel/cloud/owner"
	"kennel/cloud/owner/ownerapi"
	"kennel/cloud/owner/ownerpg"
	"kennel/cloud/registry"
	"kennel/cloud/registry/registryapi"
	"kennel/cloud/registry/registrypg"
	"kennel/cloud/sts"
	"kennel/cloud/sts/stsapi"
	"kennel/cloud/token"
	"kennel/cloud/token/tokenapi"
	"kennel/cloud/token/tokenpg"
	"kennel/cloud/vitals"
	"kennel/cloud/vitals/vitalspg"
	"kennel/cloud/webhook"
	"kennel/cloud/webhook/webhookapi"
	"kennel/infra/api/large"
	"kennel/infra/api/topics"
	"kennel/infra/auth"
	"kennel/infra/blob"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/migrations"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokeradmin"
	"kennel/infra/mqtt/brokeradmin/mosquitto"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/pg"
	"kennel/infra/queue"
	"kennel/infra/runner"
	"kennel/infra/seal"
	"kennel/infra/telemetry"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocsapi"
	"kennel/jdocs/jdocspg"
	"kennel/ota"
	"kennel/ota/otaapi"
	"kennel/ota/otapg"
)

// Attempts to enrol of one thing, beside those of one address (EnrollConfig): for a robot that is switched off and on.
const (
	enrollByThingEvery = 5 * time.Second
	enrollByThingBurst = 20
)

// Attempts to sign in from one address; each account has its own lock besides.
const (
	loginByAddrEvery = 2 * time.Second
	loginByAddrBurst = 20
)

// Cloud is every service of the cloud, wired and ready; which of them run is the roles' business. Values are set by Build and not
// changed afterwards.
type Cloud struct {
	cfg   Config
	roles []Role
	log   *slog.Logger
	pool  *pgxpool.Pool
	ca    *ca.Authority

	Certs    *certs.Service
	Accounts *account.Service
	People   *account.Owners
	Owners   *owner.Service
	Tokens   *token.Service
	Verifier *token.Verifier
	Mail     *mail.Service
	Registry *registry.Service
	Docs     jdocs.Service
	OTA      *ota.Service
	Events   *das.Service
	Commands *outbox.Service
	Cohorts  *cohort.Service
	Bulk     *bulk.Service
	Webhooks *webhook.Service
	Alerts   alerts.Slice
	Broker   brokeradmin.Admin
	bridge   *bridge.Bridge
	uplink   *queue.SQS                    // nil: the bridge's own connection
	sender   *outbox.Sender                // nil without the bridge's role
	requests map[string]kitmqtt.ReqHandler // what robots may ask, by service/method: over MQTT, and over HTTPS what is too large for it

	ingester *das.Ingester
	dasStore *daspg.Store
	cmdStore *commandpg.Store
	fleet    *registrypg.Store
	vitals   *vitalspg.Store
	Look     *look.Service
	curves   *vitals.Recorder
	jobs     *jobs.Runner
	blobs    *blob.Store
	hinter   *jdocsapi.Hinter
	docStore *jdocspg.Store

	seal          seal.Key
	revFeed       *certspg.Revocations
	revoked       *certs.Revocations
	denied        certsbroker.Source
	crls          *ca.CRLs
	tokenStore    *tokenpg.Store
	tokenKeys     *token.Keyring
	tokensRevoked *token.Revocations
	ownerStore    *ownerpg.Store
	orders        *jobs.Orders
	outbox        *mailpg.Outbox
	spool         *mailspool.Spool // nil with a mail server
	passkeys      *accountwebauthn.Passkeys
	provider      *accountoidc.Provider // nil without oidc.issuer
	grants        *sts.Grants
	uploads       sts.Personal
	door          *stsapi.Door

	tel    *telemetry.Telemetry
	meters *meters
	ready  *telemetry.Readiness
}

// Build opens the parts, migrates the database and wires the services. Close gives the connections back.
func Build(ctx context.Context, cfg Config, log *slog.Logger) (*Cloud, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	roles, err := ParseRoles(cfg.Roles)
	if err != nil {
		return nil, err
	}
	c := &Cloud{cfg: cfg, roles: roles, log: log}
	if c.ca, err = ca.Load(cfg.CA.Dir); err != nil {
		return nil, err
	}
	if c.seal, err = seal.Load(cfg.CA.SealPath()); err != nil {
		return nil, fmt.Errorf("%w; kenneld ca init -dir DIR makes it, once for all processes of a cloud", err)
	}
	if c.tel, err = telemetry.New(ctx, telemetry.Config{Service: "kenneld", Traces: cfg.Traces, Log: log}); err != nil {
		return nil, err
	}
	fail := func(err error) (*Cloud, error) {
		c.Close()
		return nil, err
	}
	if c.meters, err = newMeters(c.tel); err != nil {
		return fail(err)
	}
	cfg.Postgres.Tracer = c.tel.PGTracer()
	if c.pool, err = pg.Open(ctx, cfg.Postgres); err != nil {
		return fail(err)
	}
	if n, err := pg.Migrate(ctx, c.pool, migrations.FS); err != nil {
		return fail(err)
	} else if n > 0 {
		log.InfoContext(ctx, "database migrated", "applied", n)
	}
	if _, err := jobs.Migrate(ctx, c.pool); err != nil {
		return fail(err)
	}
	if c.blobs, err = blob.Open(ctx, cfg.S3); err != nil {
		return fail(err)
	}
	if err := c.wire(ctx); err != nil {
		return fail(err)
	}
	if c.ready, err = c.tel.NewReadiness(c.checks()...); err != nil {
		return fail(err)
	}
	if err := c.observe(); err != nil {
		return fail(err)
	}
	return c, nil
}

// spansTime is how long an end may take to get the last spans out.
const spansTime = 3 * time.Second

// Close gives the database connections back and sends the last spans.
func (c *Cloud) Close() {
	if c.pool != nil {
		c.pool.Close()
	}
	if c.spool != nil {
		_ = c.spool.Close() // only a folder
	}
	ctx, cancel := context.WithTimeout(context.Background(), spansTime)
	defer cancel()
	if err := c.tel.Close(ctx); err != nil {
		c.log.Warn("last spans not sent", logging.Err, err)
	}
}

func (c *Cloud) wire(ctx context.Context) error {
	// Documents.
	c.docStore = jdocspg.New(c.pool)
	c.Docs = c.meters.documents(jdocs.Logged(jdocs.New(c.docStore), c.log))
	c.hinter = jdocsapi.NewHinter(c.Docs, c.hint, c.log)

	// Releases.
	c.OTA = ota.New(otapg.New(c.pool), hintFunc(c.hint))

	// The fleet. Its doctor asks the others.
	certStore := certspg.New(c.pool)
	c.fleet = registrypg.New(c.pool, c.log)
	c.Registry = registry.New(c.fleet, c.fleet, registry.Sources{
		Certificate: newestCertificate(certStore),
		Docs:        docVersions(c.Docs),
		Owner: func(ctx context.Context, id thing.ID) (time.Time, bool, error) {
			t, err := c.Owners.Tenure(ctx, id)
			if errs.KindOf(err) == errs.NotFound {
				return time.Time{}, false, nil
			}
			return t.Since, err == nil, err
		},
		Release: func(ctx context.Context, id thing.ID) (string, time.Time, error) {
			d, err := c.OTA.Desired(ctx, id)
			return string(d.Release), d.Since, err
		},
		Names: c.robotNames, Filter: c.filterSources(),
	}, c.log)

	c.vitals = vitalspg.New(c.pool)
	c.curves = vitals.NewRecorder(c.vitals, c.log)
	c.Look = look.New(lookpg.New(c.pool), func(ctx context.Context, id thing.ID, name string, payload []byte) error {
		return c.bridge.Send(ctx, id, name, payload) // made last
	}, c.log)

	// Identity and people.
	c.revFeed = certspg.NewRevocations(c.pool, c.log)
	if err := c.wireCerts(certStore); err != nil {
		return err
	}
	if err := c.wirePeople(ctx); err != nil {
		return err
	}
	if err := c.wireUploads(certStore); err != nil {
		return err
	}
	if err := c.wireTokens(ctx); err != nil {
		return err
	}

	// Events.
	var err error
	c.dasStore = daspg.Open(c.pool)
	c.Events = das.NewService(c.dasStore)
	c.ingester, err = das.NewIngester(das.Config{Writer: c.meters.writer(c.dasStore), Blobs: rawBlobs{c.blobs}, Consent: c.Owners, Log: c.log})
	if err != nil {
		return err
	}

	// Commands, what is done to many robots, and what is done again and again.
	c.cmdStore = commandpg.New(c.pool)
	c.Commands = outbox.New(c.cmdStore)
	c.wireFleet()
	c.Alerts = alerts.Wire(c.pool, c.fleet.ProblemsByRelease, accountapi.Auditor(c.Accounts), c.log)
	if err := c.wireWebhooks(); err != nil {
		return err
	}
	if c.jobs, err = jobs.New(c.pool, c.log, c.meters.periodic(c.periodic())...); err != nil {
		return err
	}
	if err := c.jobs.Handle(c.tasks()...); err != nil {
		return err
	}
	return c.wireBridge(ctx)
}

// wireBridge connects the robots' topics. A process without the bridge's role still hints, so it has a connection that takes nothing in.
func (c *Cloud) wireBridge(ctx context.Context) error {
	releases := otaapi.NewMQTT(c.OTA, c.log)
	c.requests = jdocsapi.Handlers(c.Docs, jdocsapi.WithOwnerOf(c.Owners.Owner), jdocsapi.WithAccountChanged(c.accountChanged))
	c.requests["ota/desired"] = releases.Desired
	maps.Copy(c.requests, commandapi.Handlers(c.Commands))
	maps.Copy(c.requests, tokenapi.Handlers(c.Tokens, c.log))
	maps.Copy(c.requests, ownerapi.Handlers(c.Owners))
	for name := range c.requests {
		if err := access.Requests.Check(name, auth.Thing); err != nil {
			return fmt.Errorf("what robots may ask: %w", err)
		}
	}
	cfg := bridge.Config{
		MQTT: mqtt.Config{URL: c.cfg.MQTT.URL, TLS: c.serviceTLS(), Log: c.log},
		Log:  c.log,
	}
	if c.has(RoleBridge) {
		cfg.Up = c.tel.Ups(map[string]kitmqtt.UpHandler{"das": c.ingester.Handle, "status": c.curves.Handle(c.Registry.HandleStatus), "ota": releases.Report,
			topics.Live: c.Look.Handle})
		cfg.Req = c.tel.Requests(c.requests)
		if c.cfg.MQTT.embedded() {
			cfg.OnRefused, cfg.OnStats = c.refused, c.meters.brokerSays
		}
		if cfg.Fed = c.cfg.Uplink.SQS.URL != ""; cfg.Fed {
			source, err := queue.Open(ctx, c.cfg.Uplink.SQS, c.log)
			if err != nil {
				return err
			}
			c.uplink = source
		}
	}
	var err error
	if c.bridge, err = bridge.New(cfg); err != nil {
		return err
	}
	if c.has(RoleBridge) {
		c.sender = outbox.NewSender(c.cmdStore, c.bridge.Send, c.bridge.Connected, c.log)
	}
	c.Broker, err = c.brokerAdmin(ctx)
	return err
}

func (c *Cloud) has(r Role) bool { return slices.Contains(c.roles, r) }

// serviceTLS returns this process's credentials at the broker.
func (c *Cloud) serviceTLS() func() (*tls.Config, error) {
	m := c.cfg.MQTT
	var issued *ca.Renewing // made at the first use
	return func() (*tls.Config, error) {
		t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: m.ServerName, RootCAs: c.ca.RootPool()}
		if m.RootFile != "" {
			b, err := os.ReadFile(m.RootFile)
			if err != nil {
				return nil, fmt.Errorf("mqtt.root_file: %w", err)
			}
			t.RootCAs = x509.NewCertPool()
			if !t.RootCAs.AppendCertsFromPEM(b) {
				return nil, fmt.Errorf("mqtt.root_file %s holds no certificate", m.RootFile)
			}
		}
		if m.CertFile != "" {
			pair, err := tls.LoadX509KeyPair(m.CertFile, m.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("mqtt.cert_file: %w", err)
			}
			t.Certificates = []tls.Certificate{pair}
			return t, nil
		}
		if issued == nil {
			var err error
			if issued, err = ca.NewRenewing(func() (ca.Pair, error) { return c.ca.IssueService("kenneld", serviceTTL) }); err != nil {
				return nil, err
			}
		}
		t.GetClientCertificate = issued.GetClientCertificate
		return t, nil
	}
}

const serviceTTL = 30 * 24 * time.Hour

// hint tells a robot that something changed; it may be called before the bridge runs.
func (c *Cloud) hint(ctx context.Context, id thing.ID, name string, payload []byte) {
	c.meters.hints.WithLabelValues(name).Inc()
	c.bridge.Hint(ctx, id, name, payload)
}

type hintFunc func(ctx context.Context, id thing.ID, name string, payload []byte)

func (f hintFunc) Hint(ctx context.Context, id thing.ID, name string, payload []byte) {
	f(ctx, id, name, payload)
}

// Services returns what this process's roles run, in the order of start.
func (c *Cloud) Services() []runner.Service {
	out := []runner.Service{{Name: "registry", Run: c.Registry.Run}, {Name: "accounts", Run: c.Accounts.Run}, {Name: "owners", Run: c.Owners.Run}}
	out = append(out, c.identityServices()...)
	if c.has(RoleBridge) {
		out = append(out, runner.Service{Name: "events", Run: c.ingester.Run}, runner.Service{Name: "curves", Run: c.curves.Run}, runner.Service{Name: "consents", Run: func(ctx context.Context) error {
			return c.ownerStore.Watch(ctx, c.log, func(_ context.Context, id thing.ID) { c.ingester.ConsentChanged(id) })
		}})
	}
	if c.has(RoleJobs) {
		listener := &jdocspg.Listener{Pool: c.pool, Log: c.log, Changed: c.hinter.DocChanged}
		out = append(out, runner.Service{Name: "documents", Run: listener.Run}, runner.Service{Name: "jobs", Run: c.jobs.Run},
			runner.Service{Name: "webhooks", Run: c.Webhooks.Run})
	}
	out = append(out, runner.Service{Name: "event tails", Run: func(ctx context.Context) error { return c.dasStore.Listen(ctx, c.log, c.Events.Wake) }})
	if c.sender != nil {
		out = append(out, runner.Service{Name: "commands", Run: c.sender.Run})
	}
	if a, ok := c.Broker.(interface{ Run(context.Context) error }); ok {
		out = append(out, runner.Service{Name: "broker orders", Run: a.Run})
	}
	if b, ok := c.Broker.(brokeradmin.Blocker); ok && !c.cfg.MQTT.embedded() { // the embedded one is told by its own connection
		out = append(out, runner.Service{Name: "broker denials", Run: func(ctx context.Context) error {
			return brokeradmin.Keep(ctx, b, c.denied.Blocked, c.denied.Changed, c.log)
		}})
	}
	if c.cfg.MQTT.CRLFile != "" {
		out = append(out, runner.Service{Name: "revocation list", Run: func(ctx context.Context) error {
			return c.crls.Keep(ctx, c.cfg.MQTT.CRLFile, nil, func(err error) { c.log.WarnContext(ctx, "revocation list not written", logging.Err, err) })
		}})
	}
	if c.cfg.MQTT.PIDFile != "" {
		out = append(out, runner.Service{Name: "broker lists", Run: mosquitto.Reloader{List: c.cfg.MQTT.CRLFile, PIDFile: c.cfg.MQTT.PIDFile, Log: c.log}.Run})
	}
	if c.uplink != nil {
		out = append(out, runner.Service{Name: "uplink queue", Run: func(ctx context.Context) error { return c.uplink.Run(ctx, c.bridge.Take) }})
	}
	return append(out, runner.Service{Name: "bridge", Run: c.bridge.Run})
}

// Handler is the public API with the console, behind authentication.
func (c *Cloud) Handler() (http.Handler, error) {
	mux := http.NewServeMux()
	c.mountIdentity(mux)
	accountapi.Mount(mux, c.Accounts, c.log)
	if err := accountapi.MountOwners(mux, accountapi.OwnersConfig{Owners: c.People, AppKeys: c.cfg.API.AppKeys, Site: c.cfg.Mail.Site, Log: c.log}); err != nil {
		return nil, err
	}
	c.mountSignIn(mux)
	ownerapi.Mount(mux, c.Owners, ownerapi.Config{Known: c.known, Audit: accountapi.Auditor(c.Accounts), Log: c.log})
	registryapi.Mount(mux, c.Registry, registryapi.WithOwns(c.Owners.Owns), registryapi.WithAudit(accountapi.Auditor(c.Accounts)))
	c.mountFleet(mux)
	c.Alerts.Mount(mux)
	jdocsapi.Mount(mux, c.Docs, jdocsapi.WithNotifier(c.hinter), jdocsapi.WithThings(c.known), jdocsapi.WithOwns(c.Owners.Owns), jdocsapi.WithAccountChanged(c.accountChanged))
	otaapi.Mount(mux, c.OTA)
	dasapi.Mount(mux, c.Events, dasapi.WithOwns(c.Owners.Owns))
	commandapi.Mount(mux, c.Commands, commandapi.Config{Known: c.known, Owns: c.Owners.Owns, Audit: accountapi.Auditor(c.Accounts), Log: c.log})
	lookapi.Mount(mux, c.Look, lookapi.Config{Known: c.known, Owns: c.Owners.Owns, Log: c.log})
	webhookapi.Mount(mux, c.Webhooks, webhookapi.Config{Audit: accountapi.Auditor(c.Accounts), Log: c.log})
	mux.Handle("POST "+large.Path("{service}", "{method}"), bridge.Large(c.requests, c.thingOf, c.log))
	mux.HandleFunc("GET /v1/health", c.health)
	if err := openapi.Mount(mux); err != nil {
		return nil, err
	}
	mux.Handle("GET /readyz", c.ready.Brief()) // the reasons are on metrics.listen
	if err := console.Mount(mux, c.console()); err != nil {
		return nil, err
	}
	refusals := accountapi.Refusals(c.Accounts, mux, c.log)
	return c.tel.HTTP(mux, accountapi.Authenticator(c.Accounts, c.log)(refusals(access.HTTP.Guard(mux, c.log)))), nil
}

// health answers 200 while this process can do its work.
func (c *Cloud) health(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := c.pool.Ping(ctx); err != nil || !c.bridge.Connected() {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintf(w, "{\"postgres\":%v,\"broker\":%v}\n", err == nil, c.bridge.Connected())
		return
	}
	_, _ = w.Write([]byte("{\"postgres\":true,\"broker\":true}\n"))
}

// known returns NotFound for an unregistered thing.
func (c *Cloud) known(ctx context.Context, id thing.ID) error {
	_, err := c.Registry.Thing(ctx, id)
	return err
}

// refused keeps why the broker turned a robot away, for its doctor.
func (c *Cloud) refused(ctx context.Context, r brokerapi.Refusal) {
	name := r.CN
	if name == "" {
		name = r.ClientID
	}
	id, err := thing.Parse(name)
	if err != nil {
		c.log.InfoContext(ctx, "client refused by the broker", logging.Addr, r.Addr, "client_id", r.ClientID,
			"cn", r.CN, "code", r.Code, "reason", r.Reason)
		return
	}
	step := registry.Step{Thing: id, At: r.At, Name: registry.StepBroker, Code: r.Code, Peer: r.Addr, Detail: r.Reason}
	if r.Serial != "" {
		step.Shown = &registry.ShownCertificate{CN: r.CN, Issuer: r.Issuer, Serial: r.Serial, NotAfter: r.NotAfter}
	}
	if err := c.Registry.Record(ctx, step); err != nil {
		c.log.WarnContext(ctx, "refusal not recorded", logging.Thing, id, logging.Err, err)
	}
}

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

func newestCertificate(store *certspg.Store) func(context.Context, thing.ID) (registry.Certificate, bool, error) {
	return func(ctx context.Context, id thing.ID) (registry.Certificate, bool, error) {
		all, err := store.Certificates(ctx, id)
		if err != nil || len(all) == 0 {
			return registry.Certificate{}, false, err
		}
		c := all[0]
		return registry.Certificate{Serial: c.Serial, NotBefore: c.NotBefore, NotAfter: c.NotAfter, Method: c.Method, Revoked: c.Revoked, Reason: c.Reason}, true, nil
	}
}

func docVersions(docs jdocs.Service) func(context.Context, thing.ID) (map[string]uint64, error) {
	return func(ctx context.Context, id thing.ID) (map[string]uint64, error) {
		list, err := docs.List(ctx, id)
		out := map[string]uint64{}
		for _, l := range list {
			out[string(l.Name)] = l.Version
		}
		return out, err
	}
}

// rawBlobs keeps raw event batches in the bucket.
type rawBlobs struct{ store *blob.Store }

func (r rawBlobs) Put(ctx context.Context, key string, body []byte) error {
	return r.store.Put(ctx, key, bytes.NewReader(body), int64(len(body)), blob.PutOptions{})
}
