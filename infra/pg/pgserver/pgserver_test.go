package pgserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/errs"
	"kennel/infra/freeaddr"
	"kennel/infra/proc"
)

var quiet = slog.New(slog.DiscardHandler)

// TestMain lets the test binary play the program that dies with a server under it.
func TestMain(m *testing.M) {
	if dir := os.Getenv("PGSERVER_TEST_PARENT"); dir != "" {
		parent(dir)
	}
	os.Exit(m.Run())
}

func parent(dir string) {
	s, err := New(config(dir, os.Getenv("PGSERVER_TEST_LISTEN")), quiet)
	if err != nil {
		panic(err)
	}
	go func() {
		<-s.Ready()
		fmt.Println(s.Pid())
	}()
	panic(s.Keep(context.Background()))
}

func config(dir, listen string) Config {
	return Config{Dir: filepath.Join(dir, "pg"), Listen: listen, PasswordFile: filepath.Join(dir, "password"), Database: "kennel",
		LogFile: filepath.Join(dir, "log")}
}

// workDir makes a folder that the server's account can reach (t.TempDir's parents are closed to others) with a password in it.
func workDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kennel-pgserver-")
	if err != nil {
		t.Fatal(err)
	}
	janitor, err := proc.RemoveAfterDeath(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { janitor.Close() })
	if err := errors.Join(os.Chmod(dir, 0o711), os.WriteFile(filepath.Join(dir, "password"), []byte("p'w d\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start keeps s until stop is called and waits until it is ready.
func start(t *testing.T, s *Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Keep(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("keep = %v, want nil", err)
		}
	}
	t.Cleanup(stop)
	select {
	case <-s.Ready():
	case err := <-done:
		stopped = true
		t.Fatalf("keep = %v before ready", err)
	case <-time.After(60 * time.Second):
		t.Fatal("not ready after 60 s")
	}
	return stop
}

// sql runs one statement, trying again while the server restarts.
func sql(t *testing.T, s *Server, stmt string) string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got, err := try(t.Context(), s, stmt)
		if err == nil {
			return got
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", stmt, err)
		}
	}
}

func try(ctx context.Context, s *Server, stmt string) (string, error) {
	c, err := s.Connect(ctx, "kennel")
	if err != nil {
		return "", err
	}
	defer c.Close(ctx)
	var got string
	if err = c.QueryRow(ctx, stmt).Scan(&got); errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return got, err
}

func TestServerKeepsItsDataThroughEveryEnd(t *testing.T) {
	dir, listen := workDir(t), freeaddr.For(t)
	first, err := New(config(dir, listen), quiet)
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, first)
	sql(t, first, "CREATE TABLE n (v text)")
	sql(t, first, "INSERT INTO n VALUES ('x') RETURNING v")

	// Killed servers come back by themselves.
	for range 3 {
		pid := first.Pid()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for first.Pid() == pid || first.Pid() == 0 {
			time.Sleep(time.Millisecond)
		}
		sql(t, first, "INSERT INTO n VALUES ('k') RETURNING v")
	}
	stop()
	if _, err := os.Stat(filepath.Join(dir, "pg", "postmaster.pid")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("postmaster.pid after a clean stop: %v", err)
	}

	// The program above it is killed: the server goes with it, and a new start continues.
	for range 2 {
		pid := killedParent(t, dir, listen)
		id, err := proc.Identify(pid)
		if err == nil {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if err := id.Wait(ctx); err != nil {
				t.Errorf("server %d of a killed program: %v", pid, err)
			}
			cancel()
		}
		s, err := New(config(dir, listen), quiet)
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, s)
		if got := sql(t, s, "SELECT count(*)::text FROM n"); got != "4" {
			t.Errorf("%s rows after the restart, want 4", got)
		}
		stop()
	}

	// A server that outlived its program: the next program ends it first.
	orphan := exec.Command(first.bin.Path("postgres"), first.args()...)
	orphan.Env, orphan.Dir = Env(), "/"
	orphan.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: first.account.Credential}
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan error, 1)
	go func() { reaped <- orphan.Wait() }()
	sql(t, first, "SELECT 'up'")
	s, err := New(config(dir, listen), quiet)
	if err != nil {
		t.Fatal(err)
	}
	start(t, s)
	<-reaped
	if got := sql(t, s, "SELECT count(*)::text FROM n"); got != "4" {
		t.Errorf("%s rows after the orphan, want 4", got)
	}
}

// killedParent starts this binary as a program with a server, kills it with SIGKILL and returns the server's pid.
func killedParent(t *testing.T, dir, listen string) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "PGSERVER_TEST_PARENT="+dir, "PGSERVER_TEST_LISTEN="+listen)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestInterruptedInitIsNoCluster(t *testing.T) {
	dir := workDir(t)
	half := filepath.Join(dir, "pg.new")
	if err := errors.Join(os.Mkdir(half, 0o700), os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := New(config(dir, freeaddr.For(t)), quiet)
	if err != nil {
		t.Fatal(err)
	}
	start(t, s)
	if got := sql(t, s, "SELECT 'well'"); got != "well" {
		t.Errorf("got %q", got)
	}
	for _, left := range []string{half, filepath.Join(dir, "pg.pw")} {
		if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", left, err)
		}
	}
	// A wrong password does not pass.
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := try(t.Context(), s, "SELECT 'x'"); err == nil || !strings.Contains(err.Error(), "password") {
		t.Errorf("wrong password: %v", err)
	}
}

func TestForeignFolderIsLeftAlone(t *testing.T) {
	dir := workDir(t)
	c := config(dir, freeaddr.For(t))
	if err := errors.Join(os.Mkdir(c.Dir, 0o700), os.WriteFile(filepath.Join(c.Dir, "photo.jpg"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := New(c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(t.Context()); errs.KindOf(err) != errs.Conflict || !strings.Contains(err.Error(), c.Dir) {
		t.Errorf("keep = %v, want a conflict that names the folder", err)
	}
}

func TestClosedParentFolderIsNamed(t *testing.T) {
	a := Account{Name: "postgres", Credential: &syscall.Credential{Uid: 65000, Gid: 65000}}
	dir := t.TempDir()
	open, closed := filepath.Join(dir, "open"), filepath.Join(dir, "closed")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Mkdir(open, 0o755), os.Mkdir(closed, 0o700),
		os.Symlink(filepath.Join(closed, "deep"), filepath.Join(open, "link")), os.Mkdir(filepath.Join(closed, "deep"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := a.CheckTraversable(filepath.Join(open, "pg")); err != nil {
		t.Errorf("open: %v", err)
	}
	for _, d := range []string{filepath.Join(closed, "pg"), filepath.Join(closed, "deep", "pg"), filepath.Join(open, "link", "pg")} {
		err := a.CheckTraversable(d)
		if errs.KindOf(err) != errs.Denied || !strings.Contains(err.Error(), "folder "+closed+" ") {
			t.Errorf("%s: %v, want denied, naming %s", d, err, closed)
		}
	}
	if err := (Account{}).CheckTraversable(filepath.Join(closed, "pg")); err != nil {
		t.Errorf("own account: %v", err)
	}
}

// fake makes a folder with programs that claim to be Postgres v.
func fake(t *testing.T, v string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), v, "bin")
	script := []byte("#!/bin/sh\necho 'postgres (PostgreSQL) " + v + " (Debian)'\n")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		if err := os.WriteFile(filepath.Join(dir, p), script, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	for _, v := range []string{"9", "15.18", "17.2"} {
		if err := os.Rename(filepath.Dir(fake(t, v)), filepath.Join(root, v)); err != nil {
			t.Fatal(err)
		}
	}
	all, own := filepath.Join(root, "*", "bin"), fake(t, "16.1")
	linked, half := t.TempDir(), t.TempDir() // a link to the server alone; a server without its companions
	if err := errors.Join(os.Symlink(filepath.Join(own, "postgres"), filepath.Join(linked, "postgres")),
		os.WriteFile(filepath.Join(half, "postgres"), nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		major int
		path  []string
		want  int
	}{
		"newest":               {0, nil, 17},
		"PATH first":           {0, []string{"", "/nonexistent", own}, 16},
		"link in PATH":         {0, []string{half, linked}, 16},
		"cluster's version":    {15, []string{own}, 15},
		"cluster's from PATH":  {16, []string{own}, 16},
		"version not in stock": {12, []string{own}, 0},
	} {
		b, err := find(c.major, c.path, all)
		if b.Major != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%s: %+v, %v; want %d", name, b, err, c.want)
		}
	}
	_, err := find(0, nil, filepath.Join(root, "none", "*"))
	if errs.KindOf(err) != errs.NotFound || !strings.Contains(err.Error(), "apt-get install postgresql") {
		t.Errorf("nothing installed: %v, want not found, naming the package", err)
	}
	if _, err = find(12, nil, all); !strings.Contains(err.Error(), "postgresql-12") {
		t.Errorf("version 12: %v, want the package's name", err)
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", "postgres (PostgreSQL) 19beta1", "(PostgreSQL) x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := parseVersion(s); err == nil && (v < 0 || !strings.Contains(s, "(PostgreSQL) ")) {
			t.Errorf("%q is version %d", s, v)
		}
	})
}

func TestConfigValidate(t *testing.T) {
	ok := Config{Dir: "d", Listen: "127.0.0.1:5433", PasswordFile: "p"}
	if err := ok.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"no dir":      func(c *Config) { c.Dir = "" },
		"no address":  func(c *Config) { c.Listen = "" },
		"both":        func(c *Config) { c.SocketDir = "/run/x" },
		"no password": func(c *Config) { c.PasswordFile = "" },
		"no port":     func(c *Config) { c.Listen = "127.0.0.1" },
		"port 0":      func(c *Config) { c.Listen = "127.0.0.1:0" },
		"network":     func(c *Config) { c.Listen = "0.0.0.0:5433" },
		"name":        func(c *Config) { c.Listen = "localhost:5433" },
		"long socket": func(c *Config) { c.Listen, c.SocketDir = "", strings.Repeat("x", 91) },
	} {
		c := ok
		change(&c)
		if err := c.Validate(); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
}
