package housetest

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

// Serve starts a kenneld that runs roles against the parts of the house, as if those were an outside installation.
func (h *House) Serve(t *testing.T, roles string) (api string, cmd *exec.Cmd) {
	t.Helper()
	return h.ServeWith(t, roles, "")
}

// ServeRobots starts a second kenneld with every role and a port for original robots.
func (h *House) ServeRobots(t *testing.T) (api, robots string, cmd *exec.Cmd) {
	t.Helper()
	robots = freeaddr.For(t)
	addr, cmd := h.ServeWith(t, "all", fmt.Sprintf("robots: {listen: %q, app_keys_file: %q}\nmail: {spool: %q}\n", robots,
		h.Ready.Files["app_key"], h.Ready.Files["mail"]))
	api = "https://" + addr
	p := h.Stranger(t).With(api)
	Await(t, time.Minute, "the second kenneld answers", func() error {
		resp, err := p.HTTP.Get(api + "/readyz")
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

// ServeWith is Serve with more settings, and with variables that override settings.
func (h *House) ServeWith(t *testing.T, roles, more string, env ...string) (api string, cmd *exec.Cmd) {
	t.Helper()
	strip := func(name string) string { _, addr, _ := strings.Cut(h.Ready.Endpoints[name], "://"); return addr }
	api = freeaddr.For(t)
	secrets := filepath.Join(h.Dir, "secrets")
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
%s`, strip("postgres"), secrets, strip("s3"), secrets, secrets, strip("mqtt"), h.Dir, api, more)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := Kenneld("-config", file, "-check-config"); err != nil {
		t.Fatalf("-check-config: %v\n%s", err, out)
	}
	cmd = exec.Command(filepath.Join(Bin, "kenneld"), "-roles", roles, "-config", file)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out SyncBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	StartLocked(t, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // its code is judged by those who care
		if t.Failed() {
			t.Logf("kenneld -roles %s:\n%s", roles, Tail(out.String(), 30))
		}
	})
	return api, cmd
}
