// Package cluster runs an installation of several machines on one desk: three brokers, three kenneld behind HAProxy, two Postgres by Patroni, an
// S3 gateway and light robots. It is one-machine mode's sister for people who want to see what a part's death does: each part is a process of its
// own, may be killed, and is started again.
//
//	robots, people -> HAProxy -> kenneld-1..3 -> Postgres (the one of two that Patroni made primary; etcd keeps who)
//	robots         -> HAProxy -> nats-1..3    -> stream KENNEL, three copies -> kenneld-1..3
//
// All of it listens on the loopback address. The programs of others are Debian's (haproxy, patroni, etcd-server, postgresql) and a NATS server.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"kennel/certs/ca"
	"kennel/cloud/app"
	"kennel/infra/backoff"
	"kennel/infra/config"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/mqtt/brokeradmin/natsserver"
	"kennel/infra/onebox"
	"kennel/infra/pg"
	"kennel/infra/pg/pgserver"
	"kennel/infra/proc"
)

// How many there are of each.
const (
	cloudProcesses = 3
	brokerServers  = 3
)

const (
	serverTTL = 365 * 24 * time.Hour
	startTime = 3 * time.Minute
)

func kenneldName(i int) string { return fmt.Sprint("kenneld-", i+1) }
func natsName(i int) string    { return fmt.Sprint("nats-", i+1) }

// Config says where, and with how many robots.
type Config struct {
	Dir    string // data folder
	Base   int    // first of about forty ports on the loopback address
	Robots int    // light robots; 0: none
	NATS   string // the nats-server program; "": beside this program, else in the search path
	Out    io.Writer
	Log    *slog.Logger
}

// cluster is a running installation.
type cluster struct {
	layout
	cfg  Config
	inst *onebox.Instance
	log  *slog.Logger

	mu   sync.Mutex
	kids []*onebox.Child
	wg   sync.WaitGroup
}

// Run starts everything and blocks until ctx ends; then it stops everything and returns nil.
func Run(ctx context.Context, cfg Config) (err error) {
	programs, err := find(cfg.NATS)
	if err != nil {
		return err
	}
	inst, err := onebox.Open(cfg.Dir, cfg.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inst.Close()) }()
	if err := inst.StopLeftovers(ctx); err != nil {
		return err
	}
	c := &cluster{layout: layout{inst.Paths.Root, cfg.Base}, cfg: cfg, inst: inst, log: cfg.Log}
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // parts stop in an order
	defer stop()
	defer c.wg.Wait()
	defer stop()
	if err := c.start(ctx, running, programs); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	<-ctx.Done()
	fmt.Fprintln(cfg.Out, "stopping")
	return nil
}

// programs are the paths of what others wrote.
type programs struct{ nats, haproxy, patroni, etcd, postgres string }

func find(nats string) (p programs, err error) {
	bin, err := pgserver.Find(0)
	if err != nil {
		return p, err
	}
	p.postgres = bin.Dir
	if nats == "" {
		nats = "nats-server"
		if self, err := os.Executable(); err == nil {
			if beside := filepath.Join(filepath.Dir(self), nats); exists(beside) {
				nats = beside
			}
		}
	}
	var missing []string
	for _, one := range []struct {
		to           *string
		name, debian string
	}{{&p.nats, nats, "nats-server (go build -o bin/ github.com/nats-io/nats-server/v2)"}, {&p.haproxy, "haproxy", "haproxy"},
		{&p.patroni, "patroni", "patroni"}, {&p.etcd, "etcd", "etcd-server"}} {
		path, err := exec.LookPath(one.name)
		if err != nil {
			path = "/usr/sbin/" + one.name // not in everybody's search path
			if !exists(path) {
				missing = append(missing, one.debian)
			}
		}
		*one.to = path
	}
	if len(missing) > 0 {
		return p, errs.New(errs.NotFound, "missing programs: %s", strings.Join(missing, ", "))
	}
	return p, nil
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// natsRestart is the time until a NATS server that ended is started again, so that HAProxy notices and sends its robots to the other servers.
const natsRestart = 5 * time.Second

// child keeps a program running until running ends.
func (c *cluster) child(running context.Context, k onebox.ChildConfig) (*onebox.Child, error) {
	if k.Restart.Limit == 0 {
		k.Restart = proc.Restart{Limit: 1000, Window: time.Minute, MinBackoff: 200 * time.Millisecond, MaxBackoff: 2 * time.Second}
	}
	child, err := c.inst.Child(k)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.kids = append(c.kids, child)
	c.mu.Unlock()
	c.wg.Go(func() {
		if err := child.Run(running); err != nil {
			c.log.Error("part ended", "part", k.Name, "err", err)
		}
	})
	return child, nil
}

// start brings the parts up in the order in which they need each other.
func (c *cluster) start(ctx, running context.Context, p programs) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := c.install(); err != nil {
		return err
	}
	authority, err := ca.Init(filepath.Join(c.dir, "install", "ca"))
	if err != nil {
		return err
	}
	var first []*onebox.Child
	for _, f := range []func() ([]*onebox.Child, error){
		func() ([]*onebox.Child, error) { return c.startPostgres(running, p) },
		func() ([]*onebox.Child, error) { return c.startBrokers(running, p, authority) },
		func() ([]*onebox.Child, error) { return c.startS3(running) },
	} {
		kids, err := f()
		if err != nil {
			return err
		}
		first = append(first, kids...)
	}
	if err := await(ctx, first); err != nil {
		return err
	}
	cfg, err := c.writeKenneld()
	if err != nil {
		return err
	}
	if err := untilPostgres(ctx, cfg.Postgres); err != nil {
		return err
	}
	if err := settled(ctx, func() error {
		return prepare(ctx, cfg, filepath.Join(c.inst.Paths.Secrets, "operator-password"), c.log)
	}); err != nil {
		return err
	}
	kids, err := c.startCloud(running, p)
	if err != nil {
		return err
	}
	if err := c.startWatch(running); err != nil {
		return err
	}
	c.tell()
	if err := await(ctx, kids); err != nil {
		return err
	}
	return c.startRobots(ctx, running, cfg)
}

func await(ctx context.Context, kids []*onebox.Child) error {
	all := make([]onebox.Part, len(kids))
	for i, k := range kids {
		all[i] = k
	}
	return onebox.Await(ctx, all...)
}

func (c *cluster) startPostgres(running context.Context, p programs) ([]*onebox.Child, error) {
	account, err := pgserver.FindAccount()
	if err != nil {
		return nil, err
	}
	if err := account.CheckTraversable(filepath.Join(c.inst.Paths.PG, "1")); err != nil {
		return nil, err
	}
	files, err := c.postgresFiles(account, p.postgres, func(name string) (string, error) {
		file, err := c.inst.Secret(name)
		if err != nil {
			return "", err
		}
		b, err := os.ReadFile(file)
		return strings.TrimSpace(string(b)), err
	})
	if err != nil {
		return nil, err
	}
	peer, client := "http://"+c.addr(portEtcdPeer), "http://"+c.addr(portEtcd)
	etcd, err := c.child(running, onebox.ChildConfig{Name: "etcd", Path: p.etcd, Args: []string{"--name", "etcd", "--data-dir", filepath.Join(c.dir, "etcd"),
		"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "etcd=" + peer}, Probe: answers(client + "/health")})
	if err != nil {
		return nil, err
	}
	kids := []*onebox.Child{etcd}
	for i, file := range files {
		k, err := c.child(running, onebox.ChildConfig{Name: fmt.Sprint("postgres-", i+1), Path: p.patroni, Args: []string{file}, Credential: account.Credential,
			Env: append(pgserver.Env(), "HOME="+filepath.Dir(file)), StopTimeout: 20 * time.Second})
		if err != nil {
			return nil, err
		}
		kids = append(kids, k)
	}
	return kids, nil
}

// untilPostgres waits until one of the two takes writes of kenneld's account. Every error is temporary: at the first start the account is made last.
func untilPostgres(ctx context.Context, cfg pg.Config) error {
	for {
		pool, err := pg.Open(ctx, cfg)
		if err == nil {
			pool.Close()
			return nil
		}
		if backoff.Sleep(ctx, 500*time.Millisecond) != nil {
			return err
		}
	}
}

// settled calls do until it succeeds or fails for good: on a busy machine the primary may change once more right after the start.
func settled(ctx context.Context, do func() error) error {
	for pause := (backoff.Pause{Min: 500 * time.Millisecond, Max: 2 * time.Second}); ; {
		err := do()
		if err == nil || errs.KindOf(err) != errs.Unavailable || backoff.Sleep(ctx, pause.Next(err)) != nil {
			return err
		}
	}
}

// answers returns a probe that wants status 200 of url.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		_ = resp.Body.Close() // only the status counts
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, resp.Status)
		}
		return nil
	}
}

func (c *cluster) startBrokers(running context.Context, p programs, authority *ca.Authority) ([]*onebox.Child, error) {
	keys, err := natsserver.ReadKeys(c.secretFile())
	if err != nil {
		return nil, err
	}
	pair, err := authority.IssueServer([]string{"localhost", "127.0.0.1"}, serverTTL)
	if err != nil {
		return nil, err
	}
	l := natsserver.Layout{Dir: filepath.Join(c.dir, "nats"), Chain: pair.Chain, Key: pair.Key, Devices: authority.DeviceBundle(), Services: authority.ServiceBundle()}
	for i := range brokerServers {
		at := portNATS + 4*i
		l.Places = append(l.Places, natsserver.Place{Name: natsName(i), MQTT: c.addr(at), Services: c.addr(at + 1), Cluster: c.addr(at + 2), Monitor: c.addr(at + 3)})
	}
	files, err := l.Write(keys)
	if err != nil {
		return nil, err
	}
	var kids []*onebox.Child
	for i, file := range files {
		k, err := c.child(running, onebox.ChildConfig{Name: natsName(i), Path: p.nats, Args: []string{"-c", file},
			Probe:   answers("http://" + l.Places[i].Monitor + "/healthz?js-meta-only=true"),
			Restart: proc.Restart{Limit: 1000, Window: time.Minute, MinBackoff: natsRestart, MaxBackoff: natsRestart}})
		if err != nil {
			return nil, err
		}
		kids = append(kids, k)
	}
	return kids, nil
}

func (c *cluster) startS3(running context.Context) ([]*onebox.Child, error) {
	program, err := c.inst.Program("s3d")
	if err != nil {
		return nil, err
	}
	in := filepath.Join(c.dir, "install", "s3")
	k, err := c.child(running, onebox.ChildConfig{Name: "s3", Path: program, Args: []string{"-dir", c.inst.Paths.S3, "-listen", c.addr(portS3),
		"-access-key-file", filepath.Join(in, "access-key"), "-secret-key-file", filepath.Join(in, "secret-key")}})
	return []*onebox.Child{k}, err
}

// writeKenneld writes the configuration of each kenneld and returns the first one.
func (c *cluster) writeKenneld() (app.Config, error) {
	cfg := app.Defaults()
	for i := cloudProcesses - 1; i >= 0; i-- {
		if err := os.WriteFile(c.kenneldFile(i), c.kenneld(i), 0o600); err != nil {
			return cfg, err
		}
	}
	if err := config.Load(&cfg, c.kenneldFile(0), app.EnvPrefix, nil); err != nil {
		return cfg, err
	}
	return cfg, cfg.Validate()
}

func (c *cluster) kenneldFile(i int) string { return filepath.Join(c.dir, kenneldName(i)+".yaml") }

func (c *cluster) startCloud(running context.Context, p programs) ([]*onebox.Child, error) {
	var kids []*onebox.Child
	for i := range cloudProcesses {
		k, err := c.child(running, onebox.ChildConfig{Name: kenneldName(i), Args: []string{"serve", "-config", c.kenneldFile(i)},
			Probe: answers("http://" + c.addr(portMetrics+i) + "/metrics")})
		if err != nil {
			return nil, err
		}
		kids = append(kids, k)
	}
	text, err := c.haproxy(c.root())
	if err != nil {
		return nil, err
	}
	file := filepath.Join(c.dir, "haproxy.cfg")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	k, err := c.child(running, onebox.ChildConfig{Name: "haproxy", Path: p.haproxy, Args: []string{"-db", "-f", file}})
	return append(kids, k), err
}

func (c *cluster) root() string { return filepath.Join(c.dir, "install", "operator", "root.crt") }

// startRobots makes a session for their registration and runs them.
func (c *cluster) startRobots(ctx, running context.Context, cfg app.Config) error {
	var token logging.Secret
	if err := settled(ctx, func() (err error) { token, err = session(ctx, cfg); return err }); err != nil {
		return err
	}
	if err := c.inst.PutSecret("operator.token", []byte(token.Reveal()+"\n")); err != nil {
		return err
	}
	if c.cfg.Robots == 0 {
		return nil
	}
	program, err := c.inst.Program("robotsim")
	if err != nil {
		return err
	}
	_, err = c.child(running, onebox.ChildConfig{Name: "robots", Path: program, Args: []string{"fleet", "-n", strconv.Itoa(c.cfg.Robots), "-root", c.inst.Paths.Robots,
		"-api", "https://localhost:" + strconv.Itoa(c.base+portAPI), "-ca", c.root(), "-token-file", filepath.Join(c.inst.Paths.Secrets, "operator.token"),
		"-profile", "lively", "-status", c.addr(portFleet)}})
	return err
}

func (c *cluster) tell() {
	fmt.Fprintf(c.cfg.Out, `console   https://localhost:%d  (%s; one-time password in %s)
robots    ssl://localhost:%d
status    http://%s  (kenneld cluster status)
logs      %s
Kill any part (kill -9 PID): it is started again. Ctrl-C stops everything.
`, c.base+portAPI, adminEmail, filepath.Join(c.inst.Paths.Secrets, "operator-password"), c.base+portMQTT, c.addr(portStatus), c.inst.Paths.Log)
}
