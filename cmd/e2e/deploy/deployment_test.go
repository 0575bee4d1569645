package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/freeaddr"
	"kennel/infra/pg/pgserver"
	"kennel/infra/proc"
)

// mount is one entry of a service's volumes.
type mount struct {
	source, target string
	readOnly       bool
}

func parseMount(s string) mount {
	p := strings.Split(s, ":")
	return mount{p[0], p[1], len(p) > 2 && p[2] == "ro"}
}

func (m mount) bind() bool { return strings.HasPrefix(m.source, "./") }

// deployment is compose.yaml brought up with programs of this machine.
type deployment struct {
	t    *testing.T
	dir  string
	file housetest.Compose
	pg   pgserver.Binaries
	addr map[string]string // where what compose.yaml calls host:port is here

	stops []func() // of what runs, in the order of start
	mu    sync.Mutex
	pids  map[string]int
	done  map[string]bool
}

// listens says where each service listens, in the words of its command line or configuration file, and how that is said with an address of
// this machine. Every word must be found: a changed file changes this table.
var listens = map[string][]struct{ words, name, form string }{
	"postgres":  {{"listen_addresses = '*'\nport = 5432", "postgres:5432", "listen_addresses = '%[1]s'\nport = %[2]s"}},
	"s3":        {{"0.0.0.0:9000", "s3:9000", "%[1]s:%[2]s"}},
	"broker":    {{"listener 8883 0.0.0.0", "broker:8883", "listener %[2]s %[1]s"}, {"listener 8884 0.0.0.0", "broker:8884", "listener %[2]s %[1]s"}},
	"kenneld-a": {{"0.0.0.0:8443", "kenneld-a:8443", "%[1]s:%[2]s"}, {"0.0.0.0:9100", "kenneld-a:9100", "%[1]s:%[2]s"}},
	"kenneld-b": {{"0.0.0.0:8443", "kenneld-b:8443", "%[1]s:%[2]s"}, {"0.0.0.0:9100", "kenneld-b:9100", "%[1]s:%[2]s"}},
	"proxy": {{"bind :8443", "proxy:8443", "bind %[1]s:%[2]s"}, {"bind :8883", "localhost:8883", "bind %[1]s:%[2]s"},
		{"bind :8404", "proxy:8404", "bind %[1]s:%[2]s"}},
}

func newDeployment(t *testing.T) *deployment {
	t.Helper()
	dir, err := os.MkdirTemp(housetest.Work, "deploy-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := &deployment{
		t: t, dir: dir, file: housetest.LoadCompose(t, "compose.yaml", housetest.ComposeEnv), addr: map[string]string{}, pids: map[string]int{},
		done: map[string]bool{},
	}
	t.Cleanup(func() {
		for _, stop := range slices.Backward(d.stops) {
			stop()
		}
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
			for _, l := range logs {
				b, _ := os.ReadFile(l)
				t.Logf("%s:\n%s", filepath.Base(l), housetest.Tail(strings.TrimSpace(string(b)), 20))
			}
		}
		os.RemoveAll(dir)
	})
	if d.pg, err = pgserver.Find(0); err != nil {
		t.Fatal(err)
	}
	for _, all := range listens {
		for _, l := range all {
			d.addr[l.name] = freeaddr.For(t)
		}
	}
	return d
}

// may reports whether everything that a service waits for has come as far as it wants.
func (d *deployment) may(name string) bool {
	for other, on := range d.file.Services[name].DependsOn {
		if !d.done[other] {
			return false
		}
		if s := d.file.Services[other]; on.Condition == "service_completed_successfully" != s.OneShot() {
			d.t.Errorf("service %s waits for %s with %s, which never happens", name, other, on.Condition)
		}
	}
	return true
}

// bringUp does one service: to its end if it is a job, else until it runs, and is healthy if it says how to ask.
func (d *deployment) bringUp(name string) {
	d.t.Helper()
	s := d.file.Services[name]
	paths := d.mounts(name, s)
	args := slices.Concat(s.Entrypoint, s.Command)
	switch {
	case s.Ours() && len(s.Entrypoint) > 0:
		args[0] = filepath.Join(housetest.Bin, filepath.Base(args[0]))
	case s.Ours():
		args = append([]string{filepath.Join(housetest.Bin, "kenneld")}, args...)
	default:
		args = slices.Clone(args)
		args[0] = d.program(args[0])
	}
	env := []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	for k, v := range s.Environment {
		env = append(env, k+"="+d.here(name, paths, v))
	}
	for i, a := range args[1:] {
		args[i+1] = d.here(name, paths, d.accounts(a))
	}
	// A container's working directory: accounts of less right may not enter the one that the tests run in.
	spec := proc.Spec{Path: args[0], Args: args[1:], Env: env, Dir: "/", Credential: d.account(s.User).Credential}
	switch {
	case s.OneShot():
		spec.Name, spec.LogFile = name, filepath.Join(d.dir, name+".log")
		ctx, cancel := context.WithTimeout(d.t.Context(), 2*time.Minute)
		defer cancel()
		if err := proc.Once(ctx, spec); err != nil {
			d.t.Fatal(err)
		}
		return
	case name == "postgres":
		spec.StopSignal = syscall.SIGINT // as its image asks for
		spec.Args = d.initPostgres(s, spec, paths)
	}
	d.keep(name, spec)
	if test := s.Healthcheck.Test; len(test) > 0 {
		_, port, _ := net.SplitHostPort(d.addr["postgres:5432"])
		housetest.Await(d.t, time.Minute, name+" is healthy", func() error {
			c := exec.Command(d.program(test[1]), test[2:]...)
			c.Env = []string{"PGPORT=" + port} // the one thing of it that differs here
			out, err := c.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%v: %w: %s", test, err, out)
			}
			return nil
		})
	}
}

// keep runs a service until the test ends, and starts it again when it ends before, as restart: unless-stopped does.
func (d *deployment) keep(name string, s proc.Spec) {
	s.Name, s.LogFile = name, filepath.Join(d.dir, name+".log")
	s.Restart = proc.Restart{Limit: 1000, Window: time.Minute, MinBackoff: 100 * time.Millisecond, MaxBackoff: time.Second}
	s.OnStart = func(pid int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.pids[name] = pid
	}
	s.OnExit = func(e proc.Exit) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.pids[name] = 0
		if e.Asked && e.Signal == syscall.SIGKILL {
			d.t.Errorf("%s did not stop when asked", name)
		}
	}
	d.stops = append(d.stops, d.run(s))
}

// run keeps a process running and returns what stops it and waits for its end.
func (d *deployment) run(s proc.Spec) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(d.t.Context())) // the test's own ends before its clean-up begins
	done := make(chan error, 1)                                             // the one result of Keep
	go func() { done <- proc.Keep(ctx, slog.New(slog.DiscardHandler), s) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			d.t.Error(err)
		}
	}
}

// program finds a program of Debian's packages, some of which are outside the usual search path.
func (d *deployment) program(name string) string {
	d.t.Helper()
	for _, dir := range []string{d.pg.Dir, "/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err == nil && fi.Mode()&0o111 != 0 {
			return filepath.Join(dir, name)
		}
	}
	d.t.Fatalf("no %s on this machine: run infra/setup.sh test", name)
	return ""
}

// account returns who runs what compose.yaml gives to uid:gid: the very same numbers if the test may do that, except where a program wants
// an account with a name.
func (d *deployment) account(user string) pgserver.Account {
	d.t.Helper()
	if os.Geteuid() != 0 {
		return pgserver.Account{}
	}
	if user == d.file.Services["postgres"].User {
		a, err := pgserver.FindAccount()
		if err != nil {
			d.t.Fatal(err)
		}
		return a
	}
	u, g, _ := strings.Cut(user, ":")
	uid, err1 := strconv.ParseUint(u, 10, 32)
	gid, err2 := strconv.ParseUint(g, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		d.t.Fatalf("user %q: %v", user, err)
	}
	return pgserver.Account{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

var owner = regexp.MustCompile(`^(-owner=[a-z0-9]+=)(\d+:\d+)$`)

// accounts puts the accounts of this machine into an argument that names an owner.
func (d *deployment) accounts(arg string) string {
	m := owner.FindStringSubmatch(arg)
	if m == nil {
		return arg
	}
	uid, gid := os.Geteuid(), os.Getegid()
	if c := d.account(m[2]).Credential; c != nil {
		uid, gid = int(c.Uid), int(c.Gid)
	}
	return fmt.Sprintf("%s%d:%d", m[1], uid, gid)
}

// mounts makes a service's folders and configuration files and returns where each path of the container is here.
func (d *deployment) mounts(name string, s housetest.Service) map[string]string {
	d.t.Helper()
	own := func(path string) {
		if c := d.account(s.User).Credential; c != nil {
			if err := os.Chown(path, int(c.Uid), int(c.Gid)); err != nil {
				d.t.Fatal(err)
			}
		}
	}
	folder := func(path string) string {
		if err := os.MkdirAll(path, 0o755); err != nil {
			d.t.Fatal(err)
		}
		return path
	}
	paths := map[string]string{}
	if name == "broker" {
		paths[housetest.ComposeMosquitto.Plugin] = housetest.MosquittoPlugin(d.t) // Debian has it elsewhere
	}
	for _, f := range s.Tmpfs {
		target, _, _ := strings.Cut(f, ":")
		paths[target] = folder(filepath.Join(d.dir, name, "tmpfs", target))
		own(paths[target])
	}
	var files []mount
	for _, v := range s.Volumes {
		m := parseMount(v)
		switch {
		case !m.bind():
			paths[m.target] = folder(filepath.Join(d.dir, "volumes", m.source))
			own(paths[m.target])
		case m.source == "./state" || strings.HasPrefix(m.source, "./state/"):
			paths[m.target] = folder(filepath.Join(d.dir, m.source))
		default:
			paths[m.target] = filepath.Join(d.dir, name, m.target)
			folder(filepath.Dir(paths[m.target]))
			files = append(files, m)
		}
	}
	found := map[string]bool{}
	for _, a := range s.Command {
		d.find(name, a, found)
	}
	for _, m := range files {
		b, err := os.ReadFile(filepath.Join(housetest.ComposeDir, m.source))
		if err != nil {
			d.t.Fatal(err)
		}
		d.find(name, string(b), found)
		if err := os.WriteFile(paths[m.target], []byte(d.here(name, paths, string(b))), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	for _, l := range listens[name] {
		if !found[l.words] {
			d.t.Errorf("service %s: neither its command nor its configuration says %q", name, l.words)
		}
	}
	return paths
}

func (d *deployment) find(name, text string, found map[string]bool) {
	for _, l := range listens[name] {
		if strings.Contains(text, l.words) {
			found[l.words] = true
		}
	}
}

// here returns a service's text with paths and addresses of this machine.
func (d *deployment) here(name string, paths map[string]string, text string) string {
	var pairs []string
	for _, l := range listens[name] {
		host, port, _ := net.SplitHostPort(d.addr[l.name])
		pairs = append(pairs, l.words, fmt.Sprintf(l.form, host, port))
	}
	for _, p := range slices.SortedFunc(maps.Keys(paths), func(a, b string) int { return cmp.Compare(len(b), len(a)) }) {
		pairs = append(pairs, p, paths[p])
	}
	pairs = append(pairs, d.file.Networks["back"].Subnet(), "127.0.0.0/8")
	for n, a := range d.addr {
		pairs = append(pairs, n, a)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// initPostgres does what the image does before the first start: it makes the cluster and runs the .sql files on a server that no other
// client can reach. It returns the server's arguments: the image has the cluster's folder in the environment.
func (d *deployment) initPostgres(s housetest.Service, spec proc.Spec, paths map[string]string) []string {
	d.t.Helper()
	data, sock := d.here("postgres", paths, s.Environment["PGDATA"]), paths["/var/run/postgresql"]
	password := d.here("postgres", paths, s.Environment["POSTGRES_PASSWORD_FILE"])
	once := func(name string, env []string, args ...string) {
		d.t.Helper()
		err := proc.Once(d.t.Context(), proc.Spec{
			Name: name, Path: filepath.Join(d.pg.Dir, name), Args: args, Env: env, Dir: "/", Credential: spec.Credential,
		})
		if err != nil {
			d.t.Fatal(err)
		}
	}
	once("initdb", nil, append([]string{"-D", data, "--username=postgres", "--pwfile=" + password, "--no-sync"},
		strings.Fields(s.Environment["POSTGRES_INITDB_ARGS"])...)...)
	b, err := os.ReadFile(password)
	if err != nil {
		d.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(d.addr["postgres:5432"])
	env := []string{"PGPASSWORD=" + strings.TrimSpace(string(b)), "PGHOST=" + sock, "PGPORT=" + port, "PATH=/usr/bin:/bin"}
	alone := spec
	alone.Name, alone.LogFile, alone.Args = "postgres, alone", filepath.Join(d.dir, "postgres.log"), append(slices.Clone(spec.Args), "-D",
		data, "-c", "listen_addresses=")
	defer d.run(alone)()
	housetest.Await(d.t, time.Minute, "the new cluster answers", func() error {
		return exec.Command(d.program("pg_isready"), "-h", sock, "-p", port).Run()
	})
	for target, file := range paths {
		if filepath.Dir(target) == "/docker-entrypoint-initdb.d" {
			once("psql", env, "-v", "ON_ERROR_STOP=1", "--no-psqlrc", "--username=postgres", "--no-password", "--dbname=postgres", "-f", file)
		}
	}
	return append(spec.Args, "-D", data)
}

// awaitHealthy waits until these kenneld say that they are ready, and the proxy has heard it.
func (d *deployment) awaitHealthy(servers ...string) {
	d.t.Helper()
	get := func(url string) (string, error) {
		resp, err := http.Get(url)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s: %.200s", url, resp.Status, b)
		}
		return string(b), err
	}
	took := housetest.Await(d.t, 2*time.Minute, fmt.Sprintf("kenneld %v healthy behind the proxy", servers), func() error {
		for _, s := range servers {
			if _, err := get("http://" + d.addr["kenneld-"+s+":9100"] + "/readyz"); err != nil {
				return err
			}
			seen, err := get("http://" + d.addr["proxy:8404"] + "/metrics")
			if err != nil {
				return err
			}
			for _, proxy := range []string{"kenneld-ready", "kenneld-alive"} {
				// A server's status begins with UP: what counts is that a check was made and liked.
				if want := fmt.Sprintf("haproxy_server_check_status{proxy=%q,server=%q,state=\"L7OK\"} 1\n", proxy, s); !strings.Contains(seen, want) {
					return fmt.Errorf("the proxy does not say %s", want)
				}
			}
		}
		return nil
	})
	d.t.Logf("kenneld %v healthy behind the proxy after %v", servers, took.Round(10*time.Millisecond))
}

// noSecretsShown looks where other accounts of a machine can: command lines, and what docker inspect would print, the environment.
func (d *deployment) noSecretsShown() {
	var secrets []string
	err := filepath.WalkDir(filepath.Join(d.dir, "state"), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, ".crt") {
			return err
		}
		b, err := os.ReadFile(path)
		secrets = append(secrets, strings.TrimSpace(string(b)))
		return err
	})
	if err != nil || len(secrets) < 10 {
		d.t.Fatalf("%d secrets: %v", len(secrets), err)
	}
	for name, pid := range d.pids {
		for _, p := range append(housetest.Descendants(pid), pid) {
			for _, f := range []string{"cmdline", "environ"} {
				b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p, f))
				if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
					d.t.Error(err)
				}
				for _, s := range secrets {
					if strings.Contains(string(b), s) {
						d.t.Errorf("service %s shows a secret in its %s", name, f)
					}
				}
			}
		}
	}
}
