// Package onebox is one-machine mode, which starts its own parts and runs every role of the cloud against them (infra/adr/0003), and what an installation
// of several parts needs before it runs: install, prepare and ca.
package onebox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"kennel/certs/ca"
	"kennel/cloud/app"
	"kennel/cloud/app/demo"
	"kennel/cloud/app/fleet"
	"kennel/cloud/app/health"
	"kennel/cloud/app/identity"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/mqtt/broker"
	"kennel/infra/onebox"
	"kennel/infra/proc"
	"kennel/infra/runner"
	"kennel/infra/sdnotify"
	"kennel/infra/secretbox"
	"kennel/infra/thing"
)

// Onebox is one-machine mode.
type Onebox struct {
	Data      string
	Robots    Robots
	Demo      bool // a seeded fleet with a past, beside Robots
	Listen    Listen
	ReadyFile string
	RobotEnv  []string // KEY=VALUE for simulated robots
	Webhooks  fleet.WebhooksConfig
	Originals []string // names by which original robots call this machine
	Speech    health.SpeechConfig
	// ObjectsURL is where robots reach the object store; "": where it listens.
	ObjectsURL string
	Log        *slog.Logger
	LogLevel   string
	Out        io.Writer // where people look

	advice string // why original robots cannot upload, and what to do; "": they can, or are not expected
}

// Robots are how many simulated robots of which species there are.
type Robots []struct {
	Species thing.Species
	N       int
	Model   string // of the species; "": the usual one
}

// maxRobots is more than one machine is good for.
const maxRobots = 200

// ParseRobots reads a number of Vectors, or pairs of species and number: 5, vector:3,amigobot:2. A species may name its model: aibo/ers-210:1.
func ParseRobots(s string) (r Robots, err error) {
	all := 0
	for part := range strings.SplitSeq(s, ",") {
		name, count, ok := strings.Cut(part, ":")
		if !ok {
			name, count = thing.Vector.Name(), part
		}
		name, model, _ := strings.Cut(name, "/")
		species, err := thing.Named(name)
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(count)
		if all += n; err != nil || n < 0 || all > maxRobots {
			return nil, fmt.Errorf("%.40q: want 0 to %d in all", part, maxRobots)
		}
		for _, other := range r {
			if other.Species == species {
				return nil, fmt.Errorf("%.40q: %s given twice", part, name)
			}
		}
		r = append(r, struct {
			Species thing.Species
			N       int
			Model   string
		}{species, n, model})
	}
	return r, nil
}

// String returns how many robots there are of each species, for people.
func (r Robots) String() string {
	var parts []string
	for _, s := range r {
		if s.N > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", s.N, s.Species.Name()))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// Listen is the address of each part.
type Listen struct{ API, Console, Robots, Uploads, MQTT, Postgres, S3, Metrics string }

// DefaultListen keeps to this machine; metrics are for those who ask for them. To let robots in from the network: -listen api=0.0.0.0:8443 -listen mqtt=0.0.0.0:8883.
var DefaultListen = Listen{API: "127.0.0.1:8443", Console: "127.0.0.1:8080", Robots: "127.0.0.1:8444", MQTT: "127.0.0.1:8883", Postgres: "127.0.0.1:15432", S3: "127.0.0.1:15900"}

// Set takes one "part=host:port".
func (l *Listen) Set(s string) error {
	part, addr, ok := strings.Cut(s, "=")
	to, known := map[string]*string{"api": &l.API, "console": &l.Console, "robots": &l.Robots, "uploads": &l.Uploads, "mqtt": &l.MQTT, "postgres": &l.Postgres, "s3": &l.S3, "metrics": &l.Metrics}[part]
	if _, _, err := net.SplitHostPort(addr); !ok || !known || err != nil {
		return errs.New(errs.Invalid, "-listen %q: want part=host:port, part one of api, console, robots, uploads, mqtt, postgres, s3, metrics", s)
	}
	*to = addr
	return nil
}

// Names in the data folder.
const (
	appKeyName = "app-key" // below secrets
	mailFolder = "mail"
)

// startTimeout bounds the start of the parts; the first one makes a database cluster.
const startTimeout = 2 * time.Minute

// Run brings the house up and keeps it until ctx ends.
func (o Onebox) Run(ctx context.Context) (err error) {
	supervisor, err := sdnotify.Claim() // before the first child
	if err != nil {
		return err
	}
	inst, err := onebox.Open(o.Data, o.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inst.Close()) }()
	if err := inst.StopLeftovers(ctx); err != nil {
		return err
	}
	if err := o.checkPorts(ctx, inst); err != nil {
		return err
	}
	authority, err := ca.Init(inst.Paths.CA)
	if err != nil {
		return err
	}
	if err := writeRoot(inst, authority); err != nil {
		return err
	}
	if _, err := secretbox.Init(identity.CAConfig{Dir: inst.Paths.CA}.SealPath()); err != nil {
		return err
	}
	parts, cfg, err := o.parts(inst, authority)
	if err != nil {
		return err
	}
	h := &oneboxHouse{Onebox: o, inst: inst, parts: parts, cfg: cfg, started: time.Now(), supervisor: supervisor}
	services := make([]runner.Service, 0, len(parts)+1)
	for _, p := range parts {
		services = append(services, runner.Service{Name: p.Name(), Run: p.Run, Fatal: true})
	}
	services = append(services, runner.Service{Name: "cloud", Run: h.run, Fatal: true})
	return runner.Run(ctx, o.Log, runner.Config{StopTimeout: 30 * time.Second}, services...)
}

func (o Onebox) checkPorts(ctx context.Context, inst *onebox.Instance) error {
	for _, p := range []struct{ name, part, addr string }{
		{"public API", "api", o.Listen.API}, {"console", "console", o.Listen.Console}, {"port of original robots", "robots", o.Listen.Robots}, {"MQTT broker", "mqtt", o.Listen.MQTT},
		{"Postgres", "postgres", o.Listen.Postgres}, {"S3 gateway", "s3", o.Listen.S3}, {"metrics", "metrics", o.Listen.Metrics},
	} {
		if p.addr == "" {
			continue // metrics, unless asked for
		}
		if err := inst.FreePort(ctx, p.addr); err != nil {
			return err
		}
		if err := onebox.CheckListen(p.name, p.addr, "-listen "+p.part+"=HOST:PORT"); err != nil {
			return err
		}
	}
	return nil
}

// rootFile is the root certificate for people and robots to install. It is not one of the authorities' files: those come and go when a root
// is replaced.
func rootFile(inst *onebox.Instance) string { return filepath.Join(inst.Paths.Root, "root.crt") }

// writeRoot keeps the trusted roots where ready.json says.
func writeRoot(inst *onebox.Instance, a *ca.Authority) error {
	return os.WriteFile(rootFile(inst), a.Root(), 0o644)
}

// parts makes the database, the object store and the broker, and the configuration that kenneld serve would take from a file.
func (o Onebox) parts(inst *onebox.Instance, authority *ca.Authority) ([]onebox.Part, app.Config, error) {
	cfg := app.Defaults()
	db, err := inst.Postgres(o.Listen.Postgres)
	if err != nil {
		return nil, cfg, err
	}
	s3, s3cfg, err := inst.S3(o.Listen.S3, cfg.S3.Bucket)
	if err != nil {
		return nil, cfg, err
	}
	names, err := serverNames(o.Listen.API, o.Listen.Robots, o.Listen.MQTT)
	if err != nil {
		return nil, cfg, err
	}
	conf, err := o.brokerConfig(inst, authority, names)
	if err != nil {
		return nil, cfg, err
	}
	mq, err := inst.Child(onebox.ChildConfig{Name: "broker", Args: []string{"part", "broker", "-config", conf}, Probe: func(ctx context.Context) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", dialable(o.Listen.MQTT))
		if err != nil {
			return err
		}
		return conn.Close()
	}, Restart: proc.Restart{Limit: 20, Window: time.Minute, MinBackoff: 50 * time.Millisecond, MaxBackoff: 2 * time.Second}})
	if err != nil {
		return nil, cfg, err
	}
	cfg.Log.Level, cfg.Webhooks = o.LogLevel, o.Webhooks
	cfg.Postgres, cfg.S3 = db.Config(), s3cfg
	cfg.S3.PublicEndpoint = o.ObjectsURL
	cfg.CA.Dir = inst.Paths.CA
	cfg.Volumes = []string{"postgres=" + inst.Paths.PG, "objects=" + inst.Paths.S3}
	brokerDir := filepath.Dir(conf)
	cfg.CA.RootFile, cfg.CA.DeviceBundle, cfg.CA.ServiceBundle = rootFile(inst), filepath.Join(brokerDir, "device-ca.crt"), filepath.Join(brokerDir, "service-ca.crt")
	cfg.MQTT.URL = "ssl://" + dialable(o.Listen.MQTT)
	cfg.API.Listen, cfg.API.Names, cfg.Console.Listen = o.Listen.API, names, o.Listen.Console
	cfg.Metrics.Listen = o.Listen.Metrics
	appKey, err := inst.Secret(appKeyName)
	if err != nil {
		return nil, cfg, err
	}
	cfg.Robots.Listen, cfg.Robots.AppKeysFile = o.Listen.Robots, appKey
	cfg.Robots.Uploads, cfg.Robots.Names, cfg.Robots.Advice = o.Listen.Uploads, unique(slices.Concat(o.Originals, names)), o.advice
	// Only names after the last none count, so that a later flag can replace an earlier one.
	cfg.Speech = o.Speech
	for i, name := range o.Speech.Recognizers {
		if name == "none" {
			cfg.Speech.Recognizers = o.Speech.Recognizers[i+1:]
		}
	}
	if err := cfg.Speech.Validate(); err != nil {
		return nil, cfg, err
	}
	cfg.API.AppKeys = []string{"*"} // every holder of an account here has its password
	public, err := releaseKey(inst)
	if err != nil {
		return nil, cfg, err
	}
	cfg.Releases.Keys = []string{public}
	if err := cfg.Releases.Metadata.Develop(inst.Paths.Secrets, inst.PutSecret); err != nil {
		return nil, cfg, err
	}
	cfg.Mail.Spool = filepath.Join(inst.Paths.Root, mailFolder)
	if app.Loopback(o.Listen.API) == nil {
		// Only this machine can ask, and all its simulated robots share one address.
		cfg.Enroll = identity.EnrollConfig{PerAddressBurst: 20_000, PerAddressEvery: time.Millisecond}
	}
	return []onebox.Part{db, s3, mq}, cfg, nil
}

// brokerConfig writes the broker's certificate, whom it lets in, and its configuration.
func (o Onebox) brokerConfig(inst *onebox.Instance, a *ca.Authority, names []string) (string, error) {
	dir := filepath.Join(inst.Paths.Run, "broker")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	pair, err := a.IssueServer(names, identity.ServerTTL)
	if err != nil {
		return "", err
	}
	c := broker.Config{Listen: o.Listen.MQTT, Cert: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key"),
		DeviceCA: filepath.Join(dir, "device-ca.crt"), ServiceCA: filepath.Join(dir, "service-ca.crt"), Denied: filepath.Join(inst.Paths.Root, "denied.json"), LogLevel: o.LogLevel}
	conf, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "broker.json")
	for name, b := range map[string][]byte{c.Cert: pair.Chain, c.Key: pair.Key, c.DeviceCA: a.DeviceBundle(), c.ServiceCA: a.ServiceBundle(), file: conf} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			return "", err
		}
	}
	return file, nil
}

// serverNames lists the names robots and people may call this machine by.
func serverNames(addrs ...string) ([]string, error) {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if host, err := os.Hostname(); err == nil && host != "localhost" {
		names = append(names, host)
	}
	for _, a := range addrs {
		host, _, err := net.SplitHostPort(a)
		if err != nil {
			return nil, errs.New(errs.Invalid, "address %q: want host:port", a)
		}
		ip := net.ParseIP(host)
		switch {
		case host == "" || ip != nil && ip.IsUnspecified():
			ifs, err := net.InterfaceAddrs()
			if err != nil {
				return nil, err
			}
			for _, x := range ifs {
				if n, ok := x.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() && !n.IP.IsLoopback() {
					names = append(names, n.IP.String())
				}
			}
		case ip == nil || !ip.IsLoopback():
			names = append(names, host)
		}
	}
	return unique(names), nil
}

func unique(in []string) []string {
	seen := map[string]bool{}
	out := in[:0]
	for _, s := range in {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// dialable turns an address to listen on into one to call.
func dialable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}

// oneboxHouse is the part of a run that needs the parts up.
type oneboxHouse struct {
	Onebox
	inst    *onebox.Instance
	parts   []onebox.Part
	cfg     app.Config
	started time.Time

	supervisor sdnotify.Supervisor
	token      *tokenFile

	mu     sync.Mutex
	robots []*onebox.Child
}

func (h *oneboxHouse) run(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, startTimeout)
	err := onebox.Await(wait, h.parts...)
	cancel()
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("%w; see %s", err, h.inst.Paths.Log)
	}
	c, err := app.Build(ctx, h.cfg, h.Log)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := h.people(ctx, c); err != nil {
		return err
	}
	services, err := c.Open(h.supervisor)
	if err != nil {
		return err
	}
	var seeded *demo.Fleet
	if h.Demo {
		if seeded, err = h.seedDemo(ctx, c); err != nil {
			return err
		}
		services = append(services, runner.Service{Name: "demo", Run: seeded.Run})
	}
	robots, err := h.makeRobots(ctx, c)
	if err != nil {
		return err
	}
	if seeded != nil && len(h.robots) > 0 {
		id, err := thing.New(h.Robots[0].Species, fmt.Sprintf("%08x", firstSerial))
		if err != nil {
			return err
		}
		if err := seeded.Give(ctx, id, "Nia"); err != nil {
			return fmt.Errorf("give %s to the demo's owner: %w", id, err)
		}
	}
	services = append(services, robots...)
	services = append(services, runner.Service{Name: "operator token", Run: h.token.run})
	services = append(services, runner.Service{Name: "ready", Run: func(ctx context.Context) error { return h.tell(ctx, c.Hearing) }})
	return runner.Run(ctx, h.Log, runner.Config{StopTimeout: 20 * time.Second}, services...)
}

// tell waits until the cloud hears robots, writes the ready file, says so, and writes it again whenever a part has another pid.
func (h *oneboxHouse) tell(ctx context.Context, hearing func(context.Context) error) error {
	wait, cancel := context.WithTimeout(ctx, startTimeout)
	err := hearing(wait)
	cancel()
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	told := h.describe()
	if err := h.inst.Publish(told, h.ReadyFile); err != nil {
		return err
	}
	fmt.Fprint(h.Out, h.welcome())
	paged := len(h.robots) == 0
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !paged {
			var pages string
			if pages, paged = h.robotPages(); paged {
				fmt.Fprint(h.Out, pages)
			}
		}
		now := h.describe()
		if fmt.Sprint(now.Pids) != fmt.Sprint(told.Pids) {
			if err := h.inst.Publish(now, h.ReadyFile); err != nil {
				return err
			}
			told = now
		}
	}
}

func (h *oneboxHouse) describe() onebox.Ready {
	r := onebox.Ready{
		Started: h.started,
		Endpoints: map[string]string{
			"api": "https://" + dialable(h.Listen.API), "console": "http://" + dialable(h.Listen.Console), "mqtt": "ssl://" + dialable(h.Listen.MQTT), "robots": "https://" + dialable(h.Listen.Robots),
			"postgres": "postgres://" + h.Listen.Postgres, "s3": "http://" + h.Listen.S3,
		},
		Pids: map[string]int{"kenneld": os.Getpid()},
		Files: map[string]string{
			"root_ca": rootFile(h.inst), "operator_token": h.secret(operatorToken), "passwords": h.secret(passwordFile), "postgres_dsn": h.secret(dsnFile),
			"app_key": h.secret(appKeyName), "release_key": h.secret(releaseKeyName), "release_pub": filepath.Join(h.inst.Paths.Root, releasePubName), "release_root": h.secret(releaseRootName), "mail": filepath.Join(h.inst.Paths.Root, mailFolder),
		},
	}
	if h.Listen.Metrics != "" {
		r.Endpoints["metrics"] = "http://" + dialable(h.Listen.Metrics) + "/metrics"
	}
	for _, p := range h.parts {
		r.Pids[p.Name()] = p.Pid()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range h.robots {
		r.Pids[k.Name()] = k.Pid()
	}
	return r
}

// welcome is the printed page: where to look, in the order people need it.
func (h *oneboxHouse) welcome() string {
	var b strings.Builder
	b.WriteString("\nKennel is ready.\n\n")
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(what, where, note string) { fmt.Fprintf(table, "  %s\t%s\t%s\n", what, where, note) }
	line("console", "http://"+dialable(h.Listen.Console), "sign in as "+operatorEmail)
	line("passwords", h.secret(passwordFile), "one-time passwords")
	line("api", "https://"+dialable(h.Listen.API), "root certificate: "+rootFile(h.inst))
	line("mqtt", "ssl://"+dialable(h.Listen.MQTT), "")
	line("originals", dialable(cmp.Or(h.Listen.Uploads, h.Listen.Robots)), "names, root and settings: "+beside("kenneld")+" originals -data "+h.inst.Paths.Root)
	if h.advice != "" {
		line("", "", h.advice)
	}
	line("releases", h.secret(releaseKeyName), "development key that signs archives; robots verify them with "+filepath.Join(h.inst.Paths.Root, releasePubName))
	line("mail", filepath.Join(h.inst.Paths.Root, mailFolder), "letters to owners, as files")
	if h.Listen.Metrics != "" {
		line("metrics", "http://"+dialable(h.Listen.Metrics)+"/metrics", "also /livez, /readyz")
	}
	line("robots", h.Robots.String(), "in "+h.inst.Paths.Robots)
	if h.Demo {
		line("demo", "http://"+dialable(h.Listen.Console)+"/rollouts", "a seeded fleet with a week behind it; also /alerts, /crashes and /health")
		line("", "http://"+dialable(h.Listen.Console)+"/my", "the owner's side: sign in as "+ownerEmail)
	}
	_ = table.Flush() // into memory
	fmt.Fprintf(&b, "\n  try        %s -onebox %s robots list\n", beside("kennelctl"), h.inst.Paths.Root)
	if folders, _ := filepath.Glob(filepath.Join(h.inst.Paths.Robots, "*")); len(folders) > 0 {
		fmt.Fprintf(&b, "  program    %s program add -root %s > robot.json    then docs/sdk.md\n", beside("agentd"), folders[0])
	}
	b.WriteString("  stop       Ctrl-C\n\n")
	return b.String()
}

// robotPages says where each robot serves its own page and programs; false: one of them does not serve them yet.
func (h *oneboxHouse) robotPages() (string, bool) {
	var b strings.Builder
	fmt.Fprintf(&b, "The robots' own pages, which ask for a token (%s program add -root DIR):\n\n", beside("agentd"))
	for _, k := range h.robots {
		dir := filepath.Join(h.inst.Paths.Robots, strings.TrimPrefix(k.Name(), "robot-"))
		addr, err := os.ReadFile(filepath.Join(dir, "run/kennel-agent/gateway"))
		if err != nil {
			return "", false
		}
		fmt.Fprintf(&b, "  %-18s  https://%s  %s\n", filepath.Base(dir), strings.TrimSpace(string(addr)), dir)
	}
	b.WriteString("\n")
	return b.String(), true
}

// seedDemo seeds the demo once, before anything runs.
func (h *oneboxHouse) seedDemo(ctx context.Context, c *app.Cloud) (*demo.Fleet, error) {
	key, err := readReleaseKey(h.secret(releaseKeyName))
	if err != nil {
		return nil, err
	}
	return demo.Open(ctx, c.Demo(), demo.Config{Dir: h.inst.Paths.Root, Owner: ownerEmail, Operator: operatorEmail, Sign: key, Now: time.Now()})
}

// beside names another of our programs as one would type it here: by its path, if it lies beside this one and not in the search path.
func beside(name string) string {
	self, err := os.Executable()
	if err != nil {
		return name
	}
	path := filepath.Join(filepath.Dir(self), name)
	if found, err := exec.LookPath(name); err == nil && found == path {
		return name
	}
	if _, err := os.Stat(path); err != nil {
		return name
	}
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil && !strings.HasPrefix(rel, "..") {
			return rel
		}
	}
	return path
}

// Files in secrets/ and the people of a fresh house.
const (
	operatorToken = "operator.token"
	passwordFile  = "first-passwords.json"
	dsnFile       = "postgres.dsn"
	operatorEmail = "operator@kennel.local"
	ownerEmail    = "owner@kennel.local"
	tokenTTL      = 7 * 24 * time.Hour
)

func (h *oneboxHouse) secret(name string) string { return filepath.Join(h.inst.Paths.Secrets, name) }

// credentials are a person's first e-mail and password.
type credentials struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

// people makes the demonstration's operator and owner once, and begins to keep a session for the operator of this machine.
func (h *oneboxHouse) people(ctx context.Context, c *app.Cloud) error {
	var pw struct {
		Operator credentials `json:"operator"`
		Owner    credentials `json:"owner"`
	}
	for _, p := range []struct {
		email string
		role  auth.Role
		to    *credentials
	}{{operatorEmail, auth.Admin, &pw.Operator}, {ownerEmail, auth.Owner, &pw.Owner}} {
		_, password, err := c.Accounts.People.CreateAccount(ctx, p.email, auth.Role(p.role), "")
		if err != nil && errs.CodeOf(err) != "email_taken" {
			return fmt.Errorf("account %s: %w", p.email, err)
		}
		*p.to = credentials{p.email, password.Reveal()}
	}
	if pw.Operator.Password != "" || pw.Owner.Password != "" {
		b, err := json.MarshalIndent(pw, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(h.secret(passwordFile), append(b, '\n'), 0o600); err != nil {
			return err
		}
	}
	h.token = &tokenFile{in: c.Accounts.SignIn, people: c.Accounts.People, email: operatorEmail, ttl: tokenTTL, file: h.secret(operatorToken), now: time.Now, log: h.Log,
		write: func(b []byte) error { return h.inst.PutSecret(operatorToken, b) }}
	if err := h.token.check(ctx); err != nil {
		return err
	}
	password, err := os.ReadFile(h.cfg.Postgres.PasswordFile)
	if err != nil {
		return err
	}
	dsn := strings.Replace(h.cfg.Postgres.DSN, "@", ":"+strings.TrimSpace(string(password))+"@", 1)
	return os.WriteFile(h.secret(dsnFile), []byte(dsn+"\n"), 0o600)
}

// firstSerial is the one of the first simulated robot of each species; serials of engineering units begin with 00e (VEC-STOR-03).
const firstSerial = 0x00e20100

// worlds are where the simulated robots are, one after the other (robotsim -world): the fifth is on its charger, for which it needs a room.
var worlds = [...]string{"room", "table", "empty", "table", "room"}

// makeRobots registers the robots that are not yet there, makes their folders, and returns the services that run them.
func (h *oneboxHouse) makeRobots(ctx context.Context, c *app.Cloud) ([]runner.Service, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	robotsim := filepath.Join(filepath.Dir(self), "robotsim")
	for _, kind := range h.Robots {
		for i := range kind.N {
			if err := h.addRobot(ctx, c, robotsim, kind.Species, kind.Model, i); err != nil {
				return nil, err
			}
		}
	}
	if len(h.robots) == 0 {
		return nil, nil
	}
	// One service for all: they stop together, not one after the other.
	return []runner.Service{{Name: "robots", Run: func(ctx context.Context) error {
		var wg sync.WaitGroup
		errc := make(chan error, len(h.robots)) // one each
		for _, k := range h.robots {
			wg.Go(func() { errc <- k.Run(ctx) })
		}
		wg.Wait()
		close(errc)
		var all error
		for err := range errc {
			all = errors.Join(all, err)
		}
		return all
	}}}, nil
}

// addRobot makes the ith robot of a species.
func (h *oneboxHouse) addRobot(ctx context.Context, c *app.Cloud, robotsim string, species thing.Species, model string, i int) error {
	if _, err := os.Stat(robotsim); err != nil {
		return fmt.Errorf("simulated robots need robotsim beside kenneld (make build), or -robots 0: %w", err)
	}
	id, err := thing.New(species, fmt.Sprintf("%08x", firstSerial+i))
	if err != nil {
		return err
	}
	root := filepath.Join(h.inst.Paths.Robots, id.Slug())
	if err := h.makeRobot(ctx, c, robotsim, id, root, model, i); err != nil {
		return fmt.Errorf("robot %s: %w", id, err)
	}
	world := "room"
	if species == thing.Vector { // which sees the edge of a table
		world = worlds[i%len(worlds)]
	}
	k, err := h.inst.Child(onebox.ChildConfig{
		Name: "robot-" + id.Slug(), Path: robotsim, Args: []string{"robot", "-root", root, "-world", world, "-log-level", h.LogLevel},
		Env: append(os.Environ(), h.RobotEnv...), StopTimeout: 15 * time.Second,
		Restart: proc.Restart{Limit: 20, Window: time.Minute, MinBackoff: 100 * time.Millisecond, MaxBackoff: 5 * time.Second},
	})
	if err == nil {
		h.robots = append(h.robots, k)
	}
	return err
}

// makeRobot is the factory: a serial, a claim secret, a folder. A robot that has a folder is kept; its endpoints may have moved.
func (h *oneboxHouse) makeRobot(ctx context.Context, c *app.Cloud, robotsim string, id thing.ID, root, model string, i int) error {
	args := []string{"make", "-root", root, "-thing", string(id), "-ca", rootFile(h.inst),
		"-api", "https://" + dialable(h.Listen.API), "-mqtt", "ssl://" + dialable(h.Listen.MQTT),
		"-seed", strconv.Itoa(i + 1), "-release-key", filepath.Join(h.inst.Paths.Root, releasePubName), "-release-root", h.secret(releaseRootName)}
	if id.Species() == thing.Vector {
		args = append(args, "-battery", strconv.FormatFloat(3.75+0.09*float64(i%5), 'f', 2, 64))
	}
	if model != "" {
		args = append(args, "-model", model)
	}
	if i%5 == 4 {
		args = append(args, "-on-charger")
	}
	// The medical record is written last: a folder without it is one that a kill left unfinished.
	if _, err := os.Stat(filepath.Join(root, "dev/block/bootdevice/by-name/emr")); errors.Is(err, fs.ErrNotExist) {
		secret, err := c.Identity.Certs.Register(ctx, id)
		if err != nil {
			return err
		}
		file := filepath.Join(h.inst.Paths.Run, id.Slug()+".secret")
		if err := os.WriteFile(file, []byte(secret.Reveal()+"\n"), 0o600); err != nil {
			return err
		}
		defer os.Remove(file) // the robot has it now
		args = append(args, "-secret-file", file)
	}
	h.Log.DebugContext(ctx, "robot created", logging.Thing, id)
	return proc.Once(ctx, proc.Spec{Name: "robotsim make", Path: robotsim, Args: args})
}
