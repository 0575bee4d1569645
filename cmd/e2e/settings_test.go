package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const settingsFile = "data/data/com.anki.victor/persistent/jdocs/vic.RobotSettings.json"

// local is a robot's own copy of a document (VEC-JDS-07).
type local struct {
	Version uint64         `json:"doc_version"`
	Jdoc    map[string]any `json:"jdoc"`
}

func readLocal(root string) (local, error) {
	var l local
	b, err := os.ReadFile(filepath.Join(root, settingsFile))
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(b, &l)
}

// edit changes one setting in the robot's file, as the robot's own menu would.
func edit(t *testing.T, root, key string, value any) {
	t.Helper()
	file := filepath.Join(root, settingsFile)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	doc["jdoc"].(map[string]any)[key] = value
	if b, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".edit", b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".edit", file); err != nil {
		t.Fatal(err)
	}
}

// has waits until the robot's file says key = want.
func has(t *testing.T, root, key string, want any) time.Duration {
	t.Helper()
	return await(t, 30*time.Second, fmt.Sprintf("%s = %v in the robot's file", key, want), func() error {
		l, err := readLocal(root)
		if err != nil {
			return err
		}
		if fmt.Sprint(l.Jdoc[key]) != fmt.Sprint(want) {
			return fmt.Errorf("%s is %v (version %d)", key, l.Jdoc[key], l.Version)
		}
		return nil
	})
}

// cloudDoc is a document as kennelctl prints it.
type cloudDoc struct {
	Version uint64         `json:"doc_version"`
	Doc     map[string]any `json:"jdoc"`
}

func (h *house) cloudHas(thing, key string, want any) {
	h.t.Helper()
	await(h.t, 30*time.Second, fmt.Sprintf("%s = %v in the cloud", key, want), func() error {
		var d cloudDoc
		if err := h.ctlJSON(&d, "jdocs", "get", thing, "vic.RobotSettings"); err != nil {
			return err
		}
		if fmt.Sprint(d.Doc[key]) != fmt.Sprint(want) {
			return fmt.Errorf("%s is %v (version %d)", key, d.Doc[key], d.Version)
		}
		return nil
	})
}

// set changes a setting from the cloud. While a part is down kennelctl says so with its own exit code, and a person tries again.
func (h *house) set(thing, pair string) {
	h.t.Helper()
	await(h.t, time.Minute, "set "+pair, func() error {
		out, err := h.ctl("jdocs", "set", thing, "vic.RobotSettings", pair)
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != unavailable) {
			h.t.Fatalf("%v\n%s", err, out)
		}
		return err
	})
}

// unavailable is kennelctl's exit code for "not now".
const unavailable = 5

// wired runs one more robot of the house whose paths to the cloud can be cut.
type wired struct {
	thing, root string
	api, mqtt   *wire
}

func (h *house) wiredRobot(t *testing.T, thing string) *wired {
	return h.wiredRobotBy(t, thing, "", func(string) reach { return dial })
}

// wiredRobotBy wires a robot with settings of its agent, and files below a root, by the wires that by returns for it.
func (h *house) wiredRobotBy(t *testing.T, thing, env string, by func(root string) reach) *wired {
	t.Helper()
	r := &wired{thing: thing, root: filepath.Join(h.dir, "wired-"+strings.Replace(thing, ":", "-", 1))}
	over := by(r.root)
	strip := func(url string) string { _, addr, _ := strings.Cut(url, "://"); return strings.TrimRight(addr, "/") }
	r.api = newWireBy(t, strip(h.ready.Endpoints["api"]), over)
	r.mqtt = newWireBy(t, strip(h.ready.Endpoints["mqtt"]), over)
	var reg struct{ Secret string }
	if err := h.ctlJSON(&reg, "robots", "register", thing); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(reg.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(bin, "robotsim"), "make", "-root", r.root, "-thing", thing, "-secret-file", secret,
		"-api", "https://"+r.api.addr, "-mqtt", "ssl://"+r.mqtt.addr, "-ca", h.ready.Files["root_ca"]).CombinedOutput()
	if err != nil {
		t.Fatalf("robotsim make: %v\n%s", err, out)
	}
	if env != "" {
		if err := os.WriteFile(filepath.Join(r.root, "anki/etc/kennel-agent.env"), []byte(env), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.run(t)
	return r
}

// run boots the robot; the test's end stops it.
func (r *wired) run(t *testing.T) (stop func()) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "robotsim"), "robot", "-root", r.root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out syncBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	startLocked(t, cmd)
	done := false
	stop = func() {
		if done {
			return
		}
		done = true
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("robotsim: %v\n%s", err, tail(out.String(), 20))
		}
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(r.root, logDir, "agentd.log"))
			t.Logf("%s: agentd:\n%s", r.thing, tail(string(b), 40))
		}
	})
	return stop
}

func (r *wired) cut()  { r.api.cut(); r.mqtt.cut() }
func (r *wired) mend() { r.api.mend(); r.mqtt.mend() }

// TestSettingsBothWays (issue: what must hold 3).
func TestSettingsBothWays(t *testing.T) {
	h := newHouse(t, "-robots", "0")
	h.start()
	r := h.wiredRobot(t, "vic:00e20f00")
	h.awaitPresent(1)
	h.cloudHas(r.thing, "master_volume", 4) // born with the defaults (VEC-DOC-01)
	h.cloudHas(r.thing, "eye_color", 0)

	// Connected: within a second, with a fivefold ceiling here.
	for _, v := range []int{1, 3} {
		h.set(r.thing, fmt.Sprintf("master_volume=%d", v))
		if took := has(t, r.root, "master_volume", v); took > 5*time.Second {
			t.Errorf("a setting took %v to the robot", took)
		} else {
			t.Logf("a setting took %v from the answer to kennelctl to the robot's file", took)
		}
	}

	t.Run("offline change arrives after reconnect", func(t *testing.T) {
		r.cut()
		h.awaitAbsent(r.thing)
		edit(t, r.root, "clock_24_hour", true)
		r.mend()
		h.cloudHas(r.thing, "clock_24_hour", true)
	})
	t.Run("different fields on both sides both survive", func(t *testing.T) {
		r.cut()
		h.awaitAbsent(r.thing)
		edit(t, r.root, "locale", "de-DE")
		h.set(r.thing, "time_zone=Europe/Berlin")
		r.mend()
		h.cloudHas(r.thing, "locale", "de-DE")
		h.cloudHas(r.thing, "time_zone", "Europe/Berlin")
		has(t, r.root, "locale", "de-DE")
		has(t, r.root, "time_zone", "Europe/Berlin")
	})
	t.Run("same field: the later accepted change wins, the other stays in history (VEC-JDS-08)", func(t *testing.T) {
		r.cut()
		h.awaitAbsent(r.thing)
		edit(t, r.root, "eye_color", 5)
		h.set(r.thing, "eye_color=2")
		r.mend()
		h.cloudHas(r.thing, "eye_color", 5)
		has(t, r.root, "eye_color", 5)
		out, err := h.ctl("jdocs", "history", r.thing, "vic.RobotSettings", "-o", "json")
		if err != nil {
			t.Fatal(err)
		}
		var history []cloudDoc
		if err := json.Unmarshal(out, &history); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		found := false
		for i, e := range history {
			found = found || fmt.Sprint(e.Doc["eye_color"]) == "2"
			if i > 0 && history[i-1].Version <= e.Version {
				t.Errorf("versions %d, %d: want newest first, each once", history[i-1].Version, e.Version)
			}
		}
		if !found {
			t.Errorf("the losing change is not in history: %s", out)
		}
	})
}

// awaitAbsent waits until the cloud knows that the robot is gone.
func (h *house) awaitAbsent(thing string) {
	h.t.Helper()
	await(h.t, 2*time.Minute, thing+" absent", func() error {
		var row robotRow
		if err := h.ctlJSON(&row, "robots", "show", thing); err != nil {
			return err
		}
		if row.Presence != "absent" {
			return fmt.Errorf("presence %q", row.Presence)
		}
		return nil
	})
}

// TestLargeDocument: 204,800 incompressible bytes pass both ways, although no broker message carries them.
func TestLargeDocument(t *testing.T) {
	h := newHouse(t, "-robots", "0")
	h.start()
	r := h.wiredRobot(t, "vic:00e20d00")
	h.awaitPresent(1)
	h.cloudHas(r.thing, "master_volume", 4)
	l, err := readLocal(r.root)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := json.Marshal(l.Jdoc)
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, 204_800)
	_, _ = rand.Read(raw)
	// Up to the very limit of a document (VEC-JDS-10), with the field's own name and quotes.
	blob := base64.RawStdEncoding.EncodeToString(raw)[:204_800-len(rest)-len(`,"blob":""`)]
	edit(t, r.root, "blob", blob)
	h.cloudHas(r.thing, "blob", blob)
	h.set(r.thing, "master_volume=1") // the robot now has to read all of it
	has(t, r.root, "master_volume", 1)
	has(t, r.root, "blob", blob)

	edit(t, r.root, "blob", blob+"x") // one byte too many: refused with a reason that the robot tells, and nothing is lost
	await(t, time.Minute, "the robot says why", func() error {
		out, err := h.ctl("robots", "show", r.thing, "-o", "json")
		if err != nil || !strings.Contains(string(out), "204800") {
			return fmt.Errorf("%w: %.2000s", err, out)
		}
		return nil
	})
	h.cloudHas(r.thing, "blob", blob)
}
