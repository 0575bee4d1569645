package onebox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"kennel/infra/backoff"
	"kennel/infra/logging"
	"kennel/infra/pg"
	"kennel/infra/pg/pgserver"
	"kennel/infra/proc"
)

// Part is something that runs beside the roles of the cloud.
type Part interface {
	Name() string
	// Run keeps the part running until ctx ends, restarting it when it fails, and returns nil after a clean stop.
	Run(ctx context.Context) error
	// Ready is closed when the part has answered for the first time.
	Ready() <-chan struct{}
	// Pid is 0 while the part is down.
	Pid() int
}

// Await returns nil once all parts are ready, or an error that names those that are not when ctx ends.
func Await(ctx context.Context, parts ...Part) error {
	for _, p := range parts {
		select {
		case <-p.Ready():
		case <-ctx.Done():
			var missing []string
			for _, p := range parts {
				select {
				case <-p.Ready():
				default:
					missing = append(missing, p.Name())
				}
			}
			return fmt.Errorf("not ready: %s: %w", strings.Join(missing, ", "), context.Cause(ctx))
		}
	}
	return nil
}

// leftoverPatience is how long a leftover may take to stop before SIGKILL.
const leftoverPatience = 5 * time.Second

// StopLeftovers ends what an earlier process on this data folder left running: recorded children and the Postgres server. Call it before
// ports are checked and parts are started.
func (i *Instance) StopLeftovers(ctx context.Context) error {
	records, err := os.ReadDir(i.Paths.parts())
	if err != nil {
		return err
	}
	var all []error
	for _, e := range records {
		name, isRecord := strings.CutSuffix(e.Name(), ".json")
		if !isRecord || name == postgresName { // Postgres knows better signals
			continue
		}
		stopped, err := proc.StopLeftover(ctx, filepath.Join(i.Paths.parts(), e.Name()), syscall.SIGTERM, leftoverPatience)
		if stopped {
			i.log.Warn("leftover process of an earlier run stopped", logging.Part, name)
		}
		all = append(all, err)
	}
	_, err = pgserver.StopLeftovers(ctx, i.log, i.Paths.cluster())
	return errors.Join(append(all, err)...)
}

const postgresName = "postgres"

// Database is the name of the instance's database.
const Database = "kennel"

// Postgres is the private Postgres of an instance.
type Postgres struct {
	*pgserver.Server
	password string // file
}

// Postgres returns the part that runs the cluster in pg/data on a loopback TCP address; Run makes the cluster at the first start. The
// error says what is missing: installed binaries, an account to run as, or a way for it through the folders above.
func (i *Instance) Postgres(listen string) (*Postgres, error) {
	pw, err := i.Secret("postgres")
	if err != nil {
		return nil, err
	}
	return newPostgres(i.Paths, i.log, listen, pw)
}

// newPostgres returns the server at a loopback TCP address, or at a Unix socket in the folder with that absolute path.
func newPostgres(p Paths, log *slog.Logger, at, password string) (*Postgres, error) {
	cfg := pgserver.Config{Dir: p.cluster(), Listen: at, PasswordFile: password, Database: Database, LogFile: p.log(postgresName), PidFile: p.pid(postgresName)}
	if filepath.IsAbs(at) {
		cfg.Listen, cfg.SocketDir = "", at
	}
	s, err := pgserver.New(cfg, log.With(logging.Part, postgresName))
	if err != nil {
		return nil, err
	}
	return &Postgres{s, password}, nil
}

// Name returns "postgres".
func (p *Postgres) Name() string { return postgresName }

// Run keeps the server running until ctx ends. A stop with its checkpoint takes up to 20 s on a busy database.
func (p *Postgres) Run(ctx context.Context) error { return p.Keep(ctx) }

// Config says how to open a pool on the instance's database.
func (p *Postgres) Config() pg.Config { return pg.Config{DSN: p.DSN(), PasswordFile: p.password} }

// ChildConfig describes a part that is a program of its own, usually our own binary again.
type ChildConfig struct {
	Name string // of the part, its log and its pid record: letters, digits, dashes
	Path string // program; "": this one
	Args []string
	Env  []string // nil: as ours
	// Probe returns nil when the part answers. It is tried until then; nil: ready as soon as it runs.
	Probe       func(ctx context.Context) error
	StopTimeout time.Duration // between SIGTERM and SIGKILL; 0: 10 s
	Restart     proc.Restart  // zero: 5 restarts in 60 s with pauses up to 5 s

	Credential *syscall.Credential // run as another user; nil: as ours
}

// Child is a part that is a program of its own. It dies with this process, writes to log/NAME.log, and is recorded in run/parts.
type Child struct {
	cfg  ChildConfig
	spec proc.Spec
	log  *slog.Logger

	ready chan struct{}
	once  sync.Once
	mu    sync.Mutex
	pid   int
}

// Child returns the part; Run starts it.
func (i *Instance) Child(c ChildConfig) (*Child, error) {
	if c.Path == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("part %s: own program: %w", c.Name, err)
		}
		c.Path = self
	}
	if c.Restart == (proc.Restart{}) {
		c.Restart = proc.Restart{Limit: 5, Window: 60 * time.Second, MinBackoff: 100 * time.Millisecond, MaxBackoff: 5 * time.Second}
	}
	k := &Child{cfg: c, log: i.log.With(logging.Part, c.Name), ready: make(chan struct{})}
	k.spec = proc.Spec{Name: c.Name, Path: c.Path, Args: c.Args, Env: c.Env, LogFile: i.Paths.log(c.Name), PidFile: i.Paths.pid(c.Name),
		StopTimeout: c.StopTimeout, Restart: c.Restart, Credential: c.Credential,
		OnStart: k.setPid, OnExit: func(proc.Exit) { k.setPid(0) }}
	return k, nil
}

// Name returns the part's name.
func (k *Child) Name() string { return k.cfg.Name }

// Ready is closed when the part has answered its probe for the first time.
func (k *Child) Ready() <-chan struct{} { return k.ready }

// Pid returns the child's pid, or 0 while it is down.
func (k *Child) Pid() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pid
}

func (k *Child) setPid(pid int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pid = pid
	if pid != 0 && k.cfg.Probe == nil {
		k.once.Do(func() { close(k.ready) })
	}
}

// Run keeps the child running until ctx ends.
func (k *Child) Run(ctx context.Context) error {
	pctx, stop := context.WithCancel(ctx)
	defer stop()
	probing := make(chan struct{})
	go func() {
		defer close(probing)
		k.probe(pctx)
	}()
	err := proc.Keep(ctx, k.log, k.spec)
	stop()
	<-probing
	return err
}

// probe asks until the child answers. Only a child that runs is asked: another program may listen on the address of one that cannot
// start.
func (k *Child) probe(ctx context.Context) {
	if k.cfg.Probe == nil {
		return
	}
	for pause := (backoff.Pause{Min: 10 * time.Millisecond, Max: 250 * time.Millisecond}); ctx.Err() == nil; {
		if k.Pid() != 0 {
			actx, cancel := context.WithTimeout(ctx, 5*time.Second)
			err := k.cfg.Probe(actx)
			cancel()
			if err == nil && ctx.Err() == nil {
				k.once.Do(func() { close(k.ready) })
				return
			}
			k.log.Debug("part not ready yet", logging.Err, err)
		}
		_ = backoff.Sleep(ctx, pause.Next(nil)) // the loop looks at ctx
	}
}
