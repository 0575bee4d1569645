package lives

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

// TestToyFromTheCloud: a body of three servos at 100 ms, which nothing between its own package and
// the wiring has heard of, is driven by an operator: from kennelctl robot do to its set-points
// (issue 7: what must hold 1).
func TestToyFromTheCloud(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	const thing = "vic:00007005"
	root, dir := filepath.Join(h.Dir, "toy"), t.TempDir()
	var reg struct{ Secret string }
	if err := h.CtlJSON(&reg, "robots", "register", thing); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte(reg.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"go", "build", "-o", filepath.Join(dir, "toyd"), "kennel/cmd/e2e/toyd"},
		{filepath.Join(housetest.Bin, "robotsim"), "make", "-root", root, "-thing", thing, "-secret-file", secret,
			"-api", h.Ready.Endpoints["api"], "-mqtt", h.Ready.Endpoints["mqtt"], "-ca", h.Ready.Files["root_ca"]},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	for _, args := range [][]string{
		{filepath.Join(dir, "toyd"), "-root", root, "-body", "toy", "-priority", "0"}, {filepath.Join(housetest.Bin, "agentd"), "-root", root},
	} {
		cmd, out := exec.Command(args[0], args[1:]...), &housetest.SyncBuffer{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.Stdout, cmd.Stderr = out, out
		housetest.StartLocked(t, cmd)
		t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil || t.Failed() {
				t.Errorf("%s: %v\n%s", filepath.Base(args[0]), err, housetest.Tail(out.String(), 30))
			}
		})
	}
	h.AwaitPresent(1)

	housetest.Await(t, time.Minute, "a set-point of the toy", func() error {
		out, err := h.Ctl("robot", "do", thing, "neckYaw = 0.3; tail = -0.2", "-wait")
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(root, "toy.log"))
		if err != nil || !strings.Contains(string(b), "neckYaw 0.300\n") || !strings.Contains(string(b), "tail -0.200\n") ||
			strings.Contains(string(b), "neckPitch") {
			return fmt.Errorf("kennelctl said %s; the toy's set-points: %.400s, %v", out, b, err)
		}
		return nil
	})
	housetest.Await(t, time.Minute, "the neck at its set-point", func() error { // the order is done a little before
		out, err := h.Ctl("robot", "do", thing, "neckYaw")
		if err == nil && !strings.HasSuffix(strings.TrimSpace(string(out)), "neckYaw = 0.3") {
			err = fmt.Errorf("it reads as %s", out)
		}
		return err
	})
	if out, err := h.Ctl("robot", "do", thing, "robot.go(1)"); err == nil {
		t.Errorf("a toy without wheels went: %s", out)
	}
}
