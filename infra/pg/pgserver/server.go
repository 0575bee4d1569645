package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/atomicfile"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/proc"
)

// Superuser is the one role of a private cluster. It owns everything in it.
const Superuser = "kennel"

// Config says where a private cluster lives and how it is reached. Exactly one of Listen and SocketDir must be set.
type Config struct {
	Dir string // the cluster's folder; its parent must exist and be ours, it holds the temporary folder of initdb

	Listen       string // "127.0.0.1:5433": loopback TCP, password required
	PasswordFile string // with Listen: the superuser's password, read at Init and for the connections of DSN

	SocketDir string // a Unix socket in this folder and no TCP; every user who may enter the folder is trusted. At most 90 bytes.

	Database string // made when absent; "": the maintenance database "postgres"

	// Volatile trades safety against power loss for speed: for clusters that live as long as a test.
	Volatile bool

	LogFile        string
	PidFile        string
	MaxConnections int          // 0: 200
	Restart        proc.Restart // zero: 5 restarts in 60 s, pauses up to 5 s
	StopTimeout    time.Duration
}

// Validate reports the first setting that cannot work (kind Invalid).
func (c Config) Validate() error {
	switch {
	case c.Dir == "":
		return errs.New(errs.Invalid, "postgres: no cluster folder given")
	case (c.Listen == "") == (c.SocketDir == ""):
		return errs.New(errs.Invalid, "postgres: want either a TCP address or a socket folder, got %q and %q", c.Listen, c.SocketDir)
	case len(c.SocketDir) > 90: // sun_path holds 107 bytes with /.s.PGSQL.NNNNN
		return errs.New(errs.Invalid, "postgres: socket folder %s has a path of %d bytes: want at most 90", c.SocketDir, len(c.SocketDir))
	case c.Listen != "" && c.PasswordFile == "":
		return errs.New(errs.Invalid, "postgres: TCP address %s without a password file", c.Listen)
	}
	if c.Listen != "" {
		host, port, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return errs.New(errs.Invalid, "postgres: address %q: want IP:PORT", c.Listen)
		}
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			return errs.New(errs.Invalid, "postgres: address %q: want a loopback IP, because a private cluster is not for the network", c.Listen)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errs.New(errs.Invalid, "postgres: address %q: want a port from 1 to 65535", c.Listen)
		}
	}
	return nil
}

// Server is one private cluster. Its methods other than Keep may be called from any goroutine.
type Server struct {
	cfg     Config
	log     *slog.Logger
	bin     Binaries
	account Account

	mu    sync.Mutex
	pid   int
	ready chan struct{} // closed once the server accepted a query for the first time
	once  sync.Once
}

// New finds the installed Postgres (of the version that made the cluster, if there is one) and the account to run it as. It starts
// nothing.
func New(cfg Config, log *slog.Logger) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	var err error
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, err
	}
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = 200
	}
	if cfg.Restart == (proc.Restart{}) {
		cfg.Restart = proc.Restart{Limit: 5, Window: 60 * time.Second, MinBackoff: 100 * time.Millisecond, MaxBackoff: 5 * time.Second}
	}
	if cfg.StopTimeout == 0 {
		cfg.StopTimeout = 20 * time.Second
	}
	s := &Server{cfg: cfg, log: log, ready: make(chan struct{})}
	major, err := clusterMajor(cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if s.bin, err = Find(major); err != nil {
		return nil, err
	}
	if s.account, err = FindAccount(); err != nil {
		return nil, err
	}
	return s, s.account.CheckTraversable(cfg.Dir)
}

// Binaries returns the installed programs that this cluster uses.
func (s *Server) Binaries() Binaries { return s.bin }

// Ready is closed when the server accepts queries for the first time. After a crash and restart it stays closed.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Pid returns the server's pid, or 0 while it is down.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pid
}

// DSN returns the address of the cluster's database as a URL, without the password (see Password).
func (s *Server) DSN() string { return s.DSNOf(s.cfg.Database) }

// DSNOf is DSN for another database of the cluster.
func (s *Server) DSNOf(database string) string {
	if database == "" {
		database = "postgres"
	}
	u := url.URL{Scheme: "postgres", User: url.User(Superuser), Path: "/" + database}
	if s.cfg.SocketDir != "" {
		u.RawQuery = url.Values{"host": {s.cfg.SocketDir}, "port": {socketPort}, "sslmode": {"disable"}}.Encode()
	} else {
		u.Host, u.RawQuery = s.cfg.Listen, "sslmode=disable"
	}
	return u.String()
}

// Password returns the superuser's password; "" with a socket.
func (s *Server) Password() (string, error) {
	if s.cfg.PasswordFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(s.cfg.PasswordFile)
	return strings.TrimSpace(string(b)), err
}

// Connect opens one connection as superuser.
func (s *Server) Connect(ctx context.Context, database string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(s.DSNOf(database))
	if err != nil {
		return nil, err
	}
	if cfg.Password, err = s.Password(); err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, cfg)
}

// socketPort only names the socket file.
const socketPort = "5432"

// unfinished is the suffix of a cluster's folder name while initdb works on it.
const unfinished = ".new"

// Init makes the cluster if its folder is empty or absent, and otherwise does nothing. It may be interrupted at any point and called
// again.
func (s *Server) Init(ctx context.Context) error {
	if _, err := clusterMajor(s.cfg.Dir); err == nil {
		return nil
	}
	if old, err := os.ReadDir(s.cfg.Dir); err == nil && len(old) > 0 {
		return errs.New(errs.Conflict, "postgres: folder %s has %d entries but no cluster (no PG_VERSION): move them away", s.cfg.Dir, len(old))
	}
	tmp := s.cfg.Dir + unfinished
	pwfile := s.cfg.Dir + ".pw"
	if err := RemoveCluster(ctx, s.log, tmp); err != nil {
		return fmt.Errorf("postgres: remove interrupted initdb: %w", err)
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	if err := s.account.Own(tmp); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	args := []string{"-D", tmp, "-U", Superuser, "-E", "UTF8", "--no-locale", "--no-instructions"}
	if s.cfg.Volatile {
		args = append(args, "--no-sync")
	}
	if s.cfg.PasswordFile == "" {
		args = append(args, "-A", "trust")
	} else {
		// The password's own file is not readable for the account; initdb gets a copy that lives as long as it runs.
		pw, err := s.Password()
		if err != nil {
			return fmt.Errorf("postgres: password: %w", err)
		}
		defer os.Remove(pwfile)
		if err := errors.Join(os.WriteFile(pwfile, []byte(pw+"\n"), 0o600), s.account.Own(pwfile)); err != nil {
			return fmt.Errorf("postgres: password for initdb: %w", err)
		}
		args = append(args, "-A", "scram-sha-256", "--pwfile", pwfile)
	}
	err := proc.Once(ctx, proc.Spec{Name: "initdb", Path: s.bin.Path("initdb"), Args: args, Env: Env(), Dir: "/",
		Credential: s.account.Credential, LogFile: s.cfg.LogFile})
	if err != nil {
		return fmt.Errorf("postgres: create cluster %s as %s: %w", s.cfg.Dir, s.account.Name, err)
	}
	if err := os.Remove(s.cfg.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("postgres: %w", err)
	}
	if err := os.Rename(tmp, s.cfg.Dir); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return atomicfile.Sync(filepath.Dir(s.cfg.Dir))
}

// Keep makes the cluster if needed, ends servers that an earlier run of the program left on it, and runs the server until ctx ends,
// restarting it when it fails. It returns nil after a clean stop.
func (s *Server) Keep(ctx context.Context) error {
	if err := s.Init(ctx); err != nil {
		return err
	}
	if _, err := StopLeftovers(ctx, s.log, s.cfg.Dir); err != nil {
		return err
	}
	if s.cfg.SocketDir != "" {
		if err := os.MkdirAll(s.cfg.SocketDir, 0o700); err != nil {
			return fmt.Errorf("postgres: %w", err)
		}
		if err := s.account.Own(s.cfg.SocketDir); err != nil {
			return fmt.Errorf("postgres: %w", err)
		}
	}
	kctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	probing := make(chan struct{})
	go func() {
		defer close(probing)
		if err := s.awaitReady(kctx); err != nil {
			stop(err)
		}
	}()
	err := proc.Keep(kctx, s.log, proc.Spec{
		Name: "postgres", Path: s.bin.Path("postgres"), Args: s.args(), Env: Env(), Dir: "/",
		Credential: s.account.Credential, LogFile: s.cfg.LogFile, PidFile: s.cfg.PidFile,
		// SIGINT is Postgres's fast stop: sessions end, a checkpoint is written. SIGQUIT ends it without one.
		StopSignal: syscall.SIGINT, StopTimeout: s.cfg.StopTimeout, Deathsig: syscall.SIGQUIT,
		Restart: s.cfg.Restart,
		OnStart: func(pid int) { s.setPid(pid) },
		OnExit:  func(proc.Exit) { s.setPid(0) },
	})
	failed := kctx.Err() != nil && ctx.Err() == nil // the probe gave up
	cause := context.Cause(kctx)
	stop(nil)
	<-probing
	if err == nil && failed {
		err = cause
	}
	return err
}

func (s *Server) setPid(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pid = pid
}

func (s *Server) args() []string {
	a := []string{"-D", s.cfg.Dir}
	set := func(k, v string) { a = append(a, "-c", k+"="+v) }
	if s.cfg.SocketDir != "" {
		set("listen_addresses", "")
		set("unix_socket_directories", s.cfg.SocketDir)
		set("port", socketPort)
	} else {
		host, port, _ := net.SplitHostPort(s.cfg.Listen) // Validate has seen it
		set("listen_addresses", host)
		set("unix_socket_directories", "")
		set("port", port)
	}
	set("max_connections", strconv.Itoa(s.cfg.MaxConnections))
	set("timezone", "UTC")
	set("log_timezone", "UTC")
	set("cluster_name", "kennel")
	set("logging_collector", "off")
	set("huge_pages", "off")
	if s.cfg.Volatile {
		set("fsync", "off")
		set("synchronous_commit", "off")
		set("full_page_writes", "off")
		set("autovacuum", "off")
		set("shared_buffers", "32MB")
		set("max_wal_senders", "0")
		set("wal_level", "minimal")
		set("max_wal_size", "256MB")
	}
	return a
}

// awaitReady tries to connect until the server answers, makes the database if it is absent, and closes ready. It returns an error only for
// permanent failures: a wrong password, a cluster that refuses us.
func (s *Server) awaitReady(ctx context.Context) error {
	for pause := (backoff.Pause{Min: 5 * time.Millisecond, Max: 200 * time.Millisecond}); ; {
		err := s.makeDatabase(ctx)
		if err == nil {
			s.once.Do(func() { close(s.ready) })
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		var pe interface{ SQLState() string }
		if errors.As(err, &pe) && !slices.Contains([]string{"57P03", "57P01", "57P02", "53300"}, pe.SQLState()) {
			return fmt.Errorf("postgres: cluster %s is running, but refuses connections: %w", s.cfg.Dir, err)
		}
		if backoff.Sleep(ctx, pause.Next(nil)) != nil {
			return nil
		}
	}
}

func (s *Server) makeDatabase(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := s.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	if s.cfg.Database == "" {
		return nil
	}
	var there bool
	if err := c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", s.cfg.Database).Scan(&there); err != nil || there {
		return err
	}
	_, err = c.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{s.cfg.Database}.Sanitize())
	return err
}

// Env is a small, known environment: settings such as PGDATA or LC_ALL of the caller would leak into the server.
func Env() []string { return []string{"PATH=/usr/bin:/bin", "LANG=C", "LC_ALL=C", "TZ=UTC"} }
