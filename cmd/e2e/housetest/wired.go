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
)

// Wired runs one more robot of the house whose paths to the cloud can be cut.
type Wired struct {
	Thing, Root string
	API, MQTT   *Wire
}

// WiredRobot registers one more robot, makes it and boots it.
func (h *House) WiredRobot(t *testing.T, thing string) *Wired {
	t.Helper()
	return h.WiredRobotBy(t, thing, "", func(string) Reach { return dial })
}

// WiredRobotBy wires a robot with settings of its agent, and files below a root, by the wires that by returns for it.
func (h *House) WiredRobotBy(t *testing.T, thing, env string, by func(root string) Reach) *Wired {
	t.Helper()
	r := &Wired{Thing: thing, Root: filepath.Join(h.Dir, "wired-"+strings.Replace(thing, ":", "-", 1))}
	over := by(r.Root)
	strip := func(url string) string { _, addr, _ := strings.Cut(url, "://"); return strings.TrimRight(addr, "/") }
	r.API = newWireBy(t, strip(h.Ready.Endpoints["api"]), over)
	r.MQTT = newWireBy(t, strip(h.Ready.Endpoints["mqtt"]), over)
	var reg struct{ Secret string }
	if err := h.CtlJSON(&reg, "robots", "register", thing); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(reg.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(Bin, "robotsim"), "make", "-root", r.Root, "-thing", thing, "-secret-file", secret,
		"-api", "https://"+r.API.Addr, "-mqtt", "ssl://"+r.MQTT.Addr, "-ca", h.Ready.Files["root_ca"]).CombinedOutput()
	if err != nil {
		t.Fatalf("robotsim make: %v\n%s", err, out)
	}
	if env != "" {
		if err := os.WriteFile(filepath.Join(r.Root, "anki/etc/kennel-agent.env"), []byte(env), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.Run(t)
	return r
}

// Run boots the robot; the test's end stops it.
func (r *Wired) Run(t *testing.T) (stop func()) {
	t.Helper()
	cmd := exec.Command(filepath.Join(Bin, "robotsim"), "robot", "-root", r.Root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out SyncBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	StartLocked(t, cmd)
	done := false
	stop = func() {
		if done {
			return
		}
		done = true
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("robotsim: %v\n%s", err, Tail(out.String(), 20))
		}
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(r.Root, logDir, "agentd.log"))
			t.Logf("%s: agentd:\n%s", r.Thing, Tail(string(b), 40))
		}
	})
	return stop
}

// Cut cuts both paths of the robot.
func (r *Wired) Cut() { r.API.Cut(); r.MQTT.Cut() }

// Mend lets both paths carry again.
func (r *Wired) Mend() { r.API.Mend(); r.MQTT.Mend() }

// AwaitAbsent waits until the cloud knows that the robot is gone.
func (h *House) AwaitAbsent(thing string) {
	h.T.Helper()
	Await(h.T, 2*time.Minute, thing+" absent", func() error {
		var row RobotRow
		if err := h.CtlJSON(&row, "robots", "show", thing); err != nil {
			return err
		}
		if row.Presence != "absent" {
			return fmt.Errorf("presence %q", row.Presence)
		}
		return nil
	})
}
