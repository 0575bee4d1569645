package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
)

// TestServeAgainstParts: the roles run against parts that they did not start, and a robot lives with them.
func TestServeAgainstParts(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	api, cmd := h.Serve(t, "all")
	ctl := func(args ...string) (string, error) {
		c := exec.Command(filepath.Join(housetest.Bin, "kennelctl"), append([]string{"-server", "https://" + api, "-ca", h.Ready.Files["root_ca"]}, args...)...)
		c.Env = append(os.Environ(), "HOME="+h.Dir, "KENNEL_TOKEN_FILE="+h.Ready.Files["operator_token"])
		out, err := c.CombinedOutput()
		return string(out), err
	}
	housetest.Await(t, time.Minute, "the second kenneld answers", func() error {
		out, err := ctl("robots", "list")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	h.Ready.Endpoints["api"] = "https://" + api
	r := h.WiredRobot(t, "vic:00e20e00")
	h.AwaitPresent(1)
	out, err := ctl("events", "list", "-thing", r.Thing)
	if err != nil {
		t.Errorf("events: %v\n%s", err, out)
	}
	housetest.Await(t, time.Minute, "events of the robot's boot", func() error {
		out, err := ctl("events", "list", "-thing", r.Thing, "-o", "json")
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
		out, err := housetest.Kenneld("serve", "-config", file)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v: %s; want %q", config, err, out, want)
		}
	}
}
