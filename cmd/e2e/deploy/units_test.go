package deploy

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/freeaddr"
)

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
