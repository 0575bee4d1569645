package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/infra/freeaddr"
)

// serve starts a kenneld that runs roles against the parts of the house, as if those were an outside installation.
func (h *house) serve(t *testing.T, roles string) (api string, cmd *exec.Cmd) {
	t.Helper()
	return h.serveWith(t, roles, "")
}

// serveRobots starts a second kenneld with every role and a port for original robots.
func (h *house) serveRobots(t *testing.T) (api, robots string, cmd *exec.Cmd) {
	t.Helper()
	robots = freeaddr.For(t)
	addr, cmd := h.serveWith(t, "all", fmt.Sprintf("robots: {listen: %q, app_keys_file: %q}\nmail: {spool: %q}\n", robots,
		h.ready.Files["app_key"], h.ready.Files["mail"]))
	api = "https://" + addr
	p := h.stranger(t).with(api)
	await(t, time.Minute, "the second kenneld answers", func() error {
		resp, err := p.http.Get(api + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 {
			return fmt.Errorf("readyz: %s", resp.Status)
		}
		return nil
	})
	return api, robots, cmd
}

// serveWith is serve with more settings, and with variables that override settings.
func (h *house) serveWith(t *testing.T, roles, more string, env ...string) (api string, cmd *exec.Cmd) {
	t.Helper()
	strip := func(name string) string { _, addr, _ := strings.Cut(h.ready.Endpoints[name], "://"); return addr }
	api = freeaddr.For(t)
	secrets := filepath.Join(h.dir, "secrets")
	file := filepath.Join(t.TempDir(), "kenneld.yaml")
	config := fmt.Sprintf(`
log: {level: info, format: json}
postgres:
  dsn: postgres://kennel@%s/kennel?sslmode=disable
  password_file: %s/postgres
s3:
  endpoint: http://%s
  bucket: kennel
  path_style: true
  access_key_file: %s/s3-access-key
  secret_key_file: %s/s3-secret-key
mqtt: {url: "ssl://%s"}
ca: {dir: %s/ca}
api: {listen: "%s"}
%s`, strip("postgres"), secrets, strip("s3"), secrets, secrets, strip("mqtt"), h.dir, api, more)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := kenneld("-config", file, "-check-config"); err != nil {
		t.Fatalf("-check-config: %v\n%s", err, out)
	}
	cmd = exec.Command(filepath.Join(bin, "kenneld"), "-roles", roles, "-config", file)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out syncBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	startLocked(t, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // its code is judged by those who care
		if t.Failed() {
			t.Logf("kenneld -roles %s:\n%s", roles, tail(out.String(), 30))
		}
	})
	return api, cmd
}

// TestServeAgainstParts: the roles run against parts that they did not start, and a robot lives with them.
func TestServeAgainstParts(t *testing.T) {
	h := newHouse(t, "-robots", "0")
	h.start()
	api, cmd := h.serve(t, "all")
	ctl := func(args ...string) (string, error) {
		c := exec.Command(filepath.Join(bin, "kennelctl"), append([]string{"-server", "https://" + api, "-ca", h.ready.Files["root_ca"]}, args...)...)
		c.Env = append(os.Environ(), "HOME="+h.dir, "KENNEL_TOKEN_FILE="+h.ready.Files["operator_token"])
		out, err := c.CombinedOutput()
		return string(out), err
	}
	await(t, time.Minute, "the second kenneld answers", func() error {
		out, err := ctl("robots", "list")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	h.ready.Endpoints["api"] = "https://" + api
	r := h.wiredRobot(t, "vic:00e20e00")
	h.awaitPresent(1)
	out, err := ctl("events", "list", "-thing", r.thing)
	if err != nil {
		t.Errorf("events: %v\n%s", err, out)
	}
	await(t, time.Minute, "events of the robot's boot", func() error {
		out, err := ctl("events", "list", "-thing", r.thing, "-o", "json")
		if err != nil || !strings.Contains(out, "robot.boot_info") {
			return fmt.Errorf("%w: %.300s", err, out)
		}
		return nil
	})
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// TestConfigMistakesAreNamed: a wrong setting ends the start with its name and what was expected.
func TestConfigMistakesAreNamed(t *testing.T) {
	for config, want := range map[string]string{
		"mqtt: {ulr: x}":    `unknown setting "mqtt.ulr"`,
		"postgres: {dsn: }": "dsn is empty",
		"roles: [cook]":     `role "cook"`,
		"a: [":              "yaml",
	} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := kenneld("serve", "-config", file)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v: %s; want %q", config, err, out, want)
		}
	}
}
