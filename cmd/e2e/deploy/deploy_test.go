package deploy

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
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

	"kennel/certs/ca"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/freeaddr"
	"kennel/infra/mqtt"
	"kennel/infra/pg/pgserver"
	"kennel/infra/proc"
)

var update = flag.Bool("update", false, "rewrite infra/compose/mosquitto")

// notHere lists the parts that cannot be started on the machines that run the tests; CONTRIBUTING.md names them under "Not started in tests".
var notHere = []string{"Docker", "Dockerfile"}

// TestComposeRules holds the file to what its first lines promise.
func TestComposeRules(t *testing.T) {
	c := housetest.LoadCompose(t, "compose.yaml", housetest.ComposeEnv)
	more := housetest.LoadCompose(t, "backup.yaml", housetest.ComposeEnv)
	maps.Copy(c.Services, more.Services)
	maps.Copy(c.Volumes, more.Volumes)
	secretName := regexp.MustCompile(`(?i)(password|secret|token|access_key)`)
	for name, s := range c.Services {
		bad := func(format string, args ...any) {
			t.Helper()
			t.Errorf("service %s: "+format, append([]any{name}, args...)...)
		}
		image, tag, _ := strings.Cut(s.Image, ":")
		if housetest.Substitutes[image] == "" {
			bad("image %q: nothing on a test machine stands for it", s.Image)
		}
		if tag == "" || tag == "latest" && !s.Ours() {
			bad("image %q: want a version", s.Image)
		}
		for k, v := range s.Environment {
			if secretName.MatchString(k) && !strings.HasPrefix(v, "/run/kennel/") {
				bad("variable %s: want a file below /run/kennel, not a secret", k)
			}
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			bad("want read_only, cap_drop: [ALL] and no-new-privileges")
		}
		uid, _, _ := strings.Cut(s.User, ":")
		if root := uid == "" || uid == "0"; root && (s.NetworkMode != "none" || !s.OneShot()) || !root && len(s.CapAdd) > 0 {
			bad("user %q with capabilities %v: only a job without a network may be root", s.User, s.CapAdd)
		}
		if s.Restart != "unless-stopped" && !s.OneShot() {
			bad("restart %q", s.Restart)
		}
		if len(s.Ports) > 0 != slices.Contains(s.Networks, "front") || len(s.Ports) > 0 && name != "proxy" {
			bad("ports %v, networks %v: the proxy is the only door", s.Ports, s.Networks)
		}
		for _, v := range s.Volumes {
			m := parseMount(v)
			switch {
			case !m.bind():
				if _, ok := c.Volumes[m.source]; !ok {
					bad("volume %q is not declared", m.source)
				}
			case m.source == "./state" && name == "install", m.source == "./state/operator" && name == "prepare": // the jobs that write
			case m.source == "./state/broker/security" && name == "broker": // and what Mosquitto's plugin keeps
			case m.source == "./state/lists" && strings.HasPrefix(name, "kenneld-"): // and the list of who is refused
			case !m.readOnly:
				bad("mount %q: want :ro", v)
			case strings.HasPrefix(m.source, "./state/"):
			default:
				if _, err := os.Stat(filepath.Join(housetest.ComposeDir, m.source)); err != nil {
					bad("mount %q: %v", v, err)
				}
			}
		}
	}
	contributing, err := os.ReadFile("../../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(contributing), "## Not started in tests")
	if !ok {
		t.Fatal("CONTRIBUTING.md has no section \"Not started in tests\"")
	}
	for _, what := range notHere {
		if !strings.Contains(section, what) {
			t.Errorf("CONTRIBUTING.md, \"Not started in tests\": %s is missing", what)
		}
	}
}

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

// TestComposeStarts (issue: what must hold 6): each service's exact command and configuration, with paths and ports of this machine, in the
// order of compose.yaml; then a robot is born, enrols through the proxy and is seen present, also after a kenneld was killed.
func TestComposeStarts(t *testing.T) {
	d := newDeployment(t)
	for len(d.done) < len(d.file.Services) {
		before := len(d.done)
		for _, name := range slices.Sorted(maps.Keys(d.file.Services)) {
			if !d.done[name] && d.may(name) {
				d.bringUp(name)
				d.done[name] = true
			}
		}
		if len(d.done) == before {
			t.Fatalf("services wait for each other; up are %v", slices.Sorted(maps.Keys(d.done)))
		}
	}
	d.awaitHealthy("a", "b")
	d.noSecretsShown()
	d.doorTellsApart()
	d.doorTellsWhoCalled()

	server := "https://" + d.addr["proxy:8443"]
	ctl := func(args ...string) (string, error) {
		c := exec.Command(filepath.Join(housetest.Bin, "kennelctl"), args...)
		c.Env = append(os.Environ(), "HOME="+d.dir, "XDG_CONFIG_HOME="+filepath.Join(d.dir, "config"))
		out, err := c.Output()
		if x, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("kennelctl %s: %w: %s", strings.Join(args, " "), err, x.Stderr)
		}
		return string(out), err
	}
	root := filepath.Join(d.dir, "state/operator/root.crt")
	if _, err := ctl("login", "-server", server, "-ca", root, "-email", "operator@kennel.local", "-password-file",
		filepath.Join(d.dir, "state/operator/first-password")); err != nil {
		t.Fatal(err)
	}
	chosen := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(chosen, []byte(housetest.OwnersPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ctl("password", "-old-file", filepath.Join(d.dir, "state/operator/first-password"), "-new-file", chosen); err != nil {
		t.Fatal(err)
	}

	// A robot as from the factory; it learns the broker's address from the cloud.
	const id = "vic:00e20c00"
	out, err := ctl("robots", "register", id, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var reg struct{ Secret string }
	if err := json.Unmarshal([]byte(out), &reg); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	secret, robot := filepath.Join(d.dir, "claim"), filepath.Join(d.dir, "robot")
	if err := os.WriteFile(secret, []byte(reg.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(housetest.Bin, "robotsim"), "make", "-root", robot, "-thing", id, "-secret-file", secret, "-api", server,
		"-ca", root).CombinedOutput(); err != nil {
		t.Fatalf("robotsim make: %v\n%s", err, out)
	}
	d.keep("robot", proc.Spec{Path: filepath.Join(housetest.Bin, "robotsim"), Args: []string{"robot", "-root", robot}})
	present := func() error {
		out, err := ctl("robots", "list", "-o", "json")
		if err != nil {
			return err
		}
		var rows []housetest.RobotRow
		if err := json.Unmarshal([]byte(out), &rows); err != nil {
			return fmt.Errorf("%w in %s", err, out)
		}
		if len(rows) != 1 || rows[0].Thing != id || rows[0].Presence != "present" {
			return fmt.Errorf("robots are %+v", rows)
		}
		return nil
	}
	took := housetest.Await(t, 2*time.Minute, "the robot is present", present)
	t.Logf("enrolled through the proxy and present after %v", took.Round(10*time.Millisecond))

	// Either kenneld may die: the other answers, and the one comes back.
	d.mu.Lock()
	pid := d.pids["kenneld-a"]
	d.mu.Unlock()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	housetest.Await(t, 20*time.Second, "the cloud answers without one kenneld", present)
	housetest.Await(t, time.Minute, "another kenneld-a runs", func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.pids["kenneld-a"] == pid || d.pids["kenneld-a"] == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	d.awaitHealthy("a", "b")
	housetest.Await(t, time.Minute, "the robot is present", present)

	// A stolen robot's certificate: kenneld writes it into the list, and Mosquitto reads that, whatever its plugin believes.
	authority, err := ca.Load(filepath.Join(d.dir, "state/kenneld/ca"))
	if err != nil {
		t.Fatal(err)
	}
	stolen, err := tls.LoadX509KeyPair(filepath.Join(robot, "persist/kennel/device.crt"), filepath.Join(robot, "persist/kennel/device.key"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := ctl("robots", "revoke", id, "-reason", "stolen"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	people := identities{t, authority, d}
	took = housetest.Await(t, 30*time.Second, "a revoked robot is refused by TLS", func() error {
		_, err := people.call("broker:8883", caller{id, stolen}, make(chan string, 1))
		if down, ok := errors.AsType[*mqtt.DownError](err); !ok || down.Step != "login" {
			return fmt.Errorf("%v, want it refused by TLS", err)
		}
		return nil
	})
	t.Logf("refused by the list %v after the order", took.Round(time.Millisecond))

	// A backup of all that, which a drill proves.
	d.file.Services["backup"] = housetest.LoadCompose(t, "backup.yaml", housetest.ComposeEnv).Services["backup"]
	d.bringUp("backup")
	if out, err := housetest.Kenneld("backup", "drill", "-in", filepath.Join(d.dir, "volumes/backup/kennel.backup"), "-scratch", d.dir, "-config",
		filepath.Join(d.dir, "backup/etc/kennel/kenneld.yaml")); err != nil || strings.Contains(out, "not recorded") {
		t.Errorf("drill: %v\n%s", err, out)
	}

	// A second `up` runs the jobs again: nothing changes.
	password, err := os.ReadFile(filepath.Join(d.dir, "state/operator/first-password"))
	if err != nil {
		t.Fatal(err)
	}
	d.bringUp("install")
	d.bringUp("prepare")
	if again, err := os.ReadFile(filepath.Join(d.dir, "state/operator/first-password")); err != nil || string(again) != string(password) {
		t.Errorf("a second up changed the first password (%v)", err)
	}
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

// doorTellsApart checks that the port of HTTPS leads to the broker for those who speak MQTT.
func (d *deployment) doorTellsApart() {
	d.t.Helper()
	pem, err := os.ReadFile(filepath.Join(d.dir, "state/operator/root.crt"))
	if err != nil {
		d.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	for protocol, want := range map[string]string{"mqtt": "broker", "h2": "localhost"} {
		// A client without a certificate learns of the broker's refusal after the handshake: whose certificate it was is enough.
		c, err := tls.Dial("tcp", d.addr["proxy:8443"], &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{protocol}})
		if err != nil {
			d.t.Errorf("%s on the port of HTTPS: %v", protocol, err)
			continue
		}
		if got := c.ConnectionState().PeerCertificates[0].Subject.CommonName; got != want {
			d.t.Errorf("%s on the port of HTTPS leads to %q, want %q", protocol, got, want)
		}
		_ = c.Close() // nothing was said
	}
}

// doorTellsWhoCalled signs in wrongly from an address of its own, and looks under which address kenneld noted it.
func (d *deployment) doorTellsWhoCalled() {
	d.t.Helper()
	const caller = "127.0.0.9"
	pem, err := os.ReadFile(filepath.Join(d.dir, "state/operator/root.crt"))
	if err != nil {
		d.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool},
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(caller)}}).DialContext}}
	resp, err := client.Post("https://"+d.addr["proxy:8443"]+"/v1/login", "application/json",
		strings.NewReader(`{"email":"stranger@kennel.test","password":"a wrong password"}`))
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		d.t.Errorf("a stranger signs in: %s", resp.Status)
	}
	housetest.Await(d.t, 10*time.Second, "kenneld notes who failed to sign in", func() error {
		for _, name := range []string{"kenneld-a", "kenneld-b"} {
			b, err := os.ReadFile(filepath.Join(d.dir, name+".log"))
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(b)) {
				if strings.Contains(line, "login refused") && strings.Contains(line, `"addr":"`+caller) {
					return nil
				}
			}
		}
		return fmt.Errorf("no login refused from %s in the logs", caller)
	})
}

// unit holds the parts of a systemd unit that the tests use.
type unit struct {
	kind string   // Type=
	exec []string // ExecStart=
}

func readUnit(t *testing.T, name string) unit {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../../infra/systemd", name))
	if err != nil {
		t.Fatal(err)
	}
	var u unit
	for line := range strings.Lines(string(b)) {
		switch k, v, _ := strings.Cut(strings.TrimSpace(line), "="); k {
		case "Type":
			u.kind = v
		case "ExecStart":
			u.exec = strings.Fields(v)
		}
	}
	return u
}

// start runs a unit's command line with paths of this machine, as systemd would: a service of type notify has begun when it says so. It
// must end with code 0 when asked to.
func (u unit) start(t *testing.T, paths *strings.Replacer, more ...string) {
	t.Helper()
	args := slices.Clone(u.exec)
	for i, a := range args {
		args[i] = paths.Replace(a)
	}
	dir, err := os.MkdirTemp("", "kennel-unit-") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { notify.Close() })
	cmd := exec.Command(args[0], append(args[1:], more...)...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(dir, "notify"), "WATCHDOG_USEC=1000000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out housetest.SyncBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	housetest.StartLocked(t, cmd)
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%v: %v\n%s", args, err, housetest.Tail(out.String(), 20))
			}
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			t.Errorf("%v does not stop\n%s", args, housetest.Tail(out.String(), 20))
		}
	})
	if u.kind != "notify" {
		return
	}
	for heard := map[string]bool{}; !heard["READY=1"] || !heard["WATCHDOG=1"]; {
		buf := make([]byte, 4096)
		if err := notify.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, err := notify.Read(buf)
		if err != nil {
			t.Fatalf("%v: heard %v: %v\n%s", args, heard, err, housetest.Tail(out.String(), 20))
		}
		heard[string(buf[:n])] = true
	}
}

// TestUnitsStart starts the command line of every unit: the server's two, and a robot's two, which find each other and the cloud.
func TestUnitsStart(t *testing.T) {
	dir, err := os.MkdirTemp(housetest.Work, "units-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &housetest.House{T: t, Dir: filepath.Join(dir, "onebox")}
	paths := strings.NewReplacer("/usr/bin/", housetest.Bin+"/", "/var/lib/kennel", h.Dir, "/etc/kennel", dir, "%i", "all", "/var/lib/robot",
		filepath.Join(dir, "robot"), "/dev/ttyHS0", filepath.Join(dir, "no-body"))

	readUnit(t, "kenneld-onebox.service").start(t, paths, append(housetest.ListenArgs(t), "-ready-file", filepath.Join(dir, "ready.json"))...)
	housetest.Await(t, time.Minute, "one-machine mode is ready", func() error { return housetest.ReadJSON(filepath.Join(dir, "ready.json"), &h.Ready) })
	addr := func(name string) string { _, a, _ := strings.Cut(h.Ready.Endpoints[name], "://"); return a }
	secrets := filepath.Join(h.Dir, "secrets")
	config := fmt.Sprintf(`
postgres: {dsn: "postgres://kennel@%s/kennel?sslmode=disable", password_file: %q}
s3: {endpoint: "http://%s", bucket: kennel, path_style: true, access_key_file: %q, secret_key_file: %q}
mqtt: {url: "ssl://%s"}
ca: {dir: %q}
api: {listen: %q}
`, addr("postgres"), filepath.Join(secrets, "postgres"), addr("s3"), filepath.Join(secrets, "s3-access-key"),
		filepath.Join(secrets, "s3-secret-key"), addr("mqtt"), filepath.Join(h.Dir, "ca"), freeaddr.For(t))
	if err := os.WriteFile(filepath.Join(dir, "kenneld.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	readUnit(t, "kenneld@.service").start(t, paths)

	const id = "vic:00e20d00"
	var reg struct{ Secret string }
	if err := h.CtlJSON(&reg, "robots", "register", id); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "claim")
	if err := os.WriteFile(secret, []byte(reg.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(housetest.Bin, "robotsim"), "make", "-root", filepath.Join(dir, "robot"), "-thing", id, "-secret-file", secret,
		"-api", h.Ready.Endpoints["api"], "-mqtt", h.Ready.Endpoints["mqtt"], "-ca", h.Ready.Files["root_ca"]).CombinedOutput(); err != nil {
		t.Fatalf("robotsim make: %v\n%s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(dir, "robot/run"), 0o755); err != nil { // as robot.tmpfiles does
		t.Fatal(err)
	}
	readUnit(t, "robotd.service").start(t, paths)
	readUnit(t, "agentd.service").start(t, paths)
	h.AwaitPresent(1)
}
