package lives

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/cloud/fleet/liveview"
	"kennel/cmd/e2e/housetest"
	"kennel/edge/sim"
)

// TestAIBO: an AIBO of a chosen model at the cloud: it is itself, shows its joints and paws, turns its head when it is told to, refuses to walk, keeps the
// settings of its own schema, and is updated.
func TestAIBO(t *testing.T) {
	h := housetest.New(t, "-robots", "aibo/ers-210:1")
	h.Start()
	thing := h.AwaitPresent(1)[0]
	if thing != "aibo:00e20100" {
		t.Fatalf("present: %s", thing)
	}
	h.Seen(thing, "joints that measure", func(r liveview.Robot) error {
		if name, model := housetest.SlotText(r, "robot", "name"), housetest.SlotText(r, "robot", "model"); !strings.HasPrefix(name, "Aibo") || model != "ERS-210" {
			return fmt.Errorf("its name is %q, its model %q", name, model)
		}
		// It sleeps: the fore legs are stretched forward by 60 degrees, which the device counts backward.
		if v, err := housetest.Slot(r, "hipPitchFL", "angle"); err != nil || math.Abs(v+math.Pi/3) > 0.01 {
			return fmt.Errorf("a hip is at %v, %v", v, err)
		}
		if v, err := housetest.Slot(r, "touchFL", "pressure"); err != nil || v != 1 {
			return fmt.Errorf("a paw feels %v, %v", v, err)
		}
		return nil
	})
	housetest.Await(t, time.Minute, "a turn of the head", func() error { // a core that is late on a loaded machine stops the first tries
		_, err := h.Ctl("robot", "do", thing, "headYaw = 0.4 time:1s", "-wait")
		return err
	})
	h.Seen(thing, "its head to the left", func(r liveview.Robot) error {
		if v, err := housetest.Slot(r, "headYaw", "angle"); err != nil || math.Abs(v-0.4) > 0.05 {
			return fmt.Errorf("its head is at %v, %v", v, err)
		}
		return nil
	})
	if out, err := h.Ctl("robot", "do", thing, "robot.go(0.1)"); err == nil || !strings.Contains(err.Error()+string(out), "unable") {
		t.Errorf("it walks: %v %s", err, out)
	}
	if out, err := h.Ctl("jdocs", "set", thing, "aibo.RobotSettings", "time_zone=Europe/Zurich"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if out, err := h.Ctl("jdocs", "get", thing, "aibo.RobotSettings"); err != nil || !strings.Contains(string(out), "Europe/Zurich") {
		t.Errorf("%v %s", err, out)
	}
	if out, err := h.Ctl("jdocs", "set", thing, "aibo.RobotSettings", "eye_color=1"); err == nil {
		t.Errorf("it has eyes: %s", out)
	}
	uploadsMotions(t, h, thing)
	updates(t, h, "aibo")
}

// updates: the only robot of a house installs the release that its species is wished, and starts it.
func updates(t *testing.T, h *housetest.House, species string) {
	t.Helper()
	const version = "2.0.0.9003"
	if out, err := h.Ctl("releases", "upload", makeRelease(h, sim.System{Version: version}, 1<<10), "-species", species); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := h.Ctl("releases", "want", species, version); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	db := h.DB(t)
	housetest.Await(t, 3*time.Minute, "the release", func() error {
		if n := housetest.QueryNumber(t, db, `select count(*) from registry_facet where os = '`+version+`'`); n != 1 {
			return fmt.Errorf("%d robots run it", n)
		}
		return nil
	})
}

// killed: agentd dies by SIGKILL while it has a motion to fetch, and the next one keeps the motion.
func killed(t *testing.T, h *housetest.House, thing, file string) {
	t.Helper()
	agentd := housetest.RobotPids(h.RobotRoot(thing))["agentd"]
	if agentd == 0 {
		t.Fatal("agentd does not run")
	}
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(agentd, s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP) // so that it cannot be done before it dies
	if out, err := h.Ctl("motions", "upload", thing, "glance", file, "-wait=false"); err != nil || !strings.Contains(string(out), "waiting") {
		t.Errorf("%v %s", err, out)
	}
	signal(syscall.SIGKILL)
	housetest.Await(t, 2*time.Minute, "the motion that was on its way", func() error {
		out, err := h.Ctl("motions", "show", thing, "glance")
		if err == nil && !strings.Contains(string(out), "kept") {
			err = fmt.Errorf("%s", out)
		}
		return err
	})
}

// uploadsMotions: the robot plays a motion of its library, keeps one that is uploaded and plays it, also after its agent was killed, and refuses one that is beyond a
// joint's range, with the row, what was expected and what was found (issue 35, item 7).
func uploadsMotions(t *testing.T, h *housetest.House, thing string) {
	t.Helper()
	housetest.Await(t, time.Minute, "its library", func() error {
		out, err := h.Ctl("motions", "list", thing)
		if err == nil && !strings.Contains(string(out), "give_paw") {
			err = fmt.Errorf("it lists %s", out)
		}
		return err
	})
	play := func(name string) {
		t.Helper()
		housetest.Await(t, 3*time.Minute, name, func() error { // a core that is late on a loaded machine interrupts a motion
			out, err := h.Ctl("motions", "play", thing, name)
			if err == nil && !strings.Contains(string(out), "motion/"+name+" done in") {
				err = fmt.Errorf("%s", out)
			}
			return err
		})
	}
	play("sit")
	file := func(text string) string {
		t.Helper()
		name := filepath.Join(t.TempDir(), "motion.txt")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const head = "mtn\nformat DRX-910\nname a_sit#sit_peek\njoints HEAD_YAW\npose 0 HEAD_YAW=0\n"
	if out, err := h.Ctl("motions", "upload", thing, "peek", file(head+"pose 400ms HEAD_YAW=20\n")); err != nil || !strings.Contains(string(out), "kept") {
		t.Fatalf("%v %s", err, out)
	}
	out, err := h.Ctl("motions", "upload", thing, "twist", file(head+"pose 4s HEAD_YAW=170\n"))
	if said := fmt.Sprint(err, string(out)); err == nil || !strings.Contains(said, "HEAD_YAW: expected -") || !strings.Contains(said, "row ") {
		t.Errorf("%s", said)
	}
	if out, err := h.Ctl("motions", "play", thing, "twist"); err == nil {
		t.Errorf("it plays a motion that it refused: %s", out)
	}
	killed(t, h, thing, file(head+"pose 400ms HEAD_YAW=-20\n"))
	play("peek")
	if out, err := h.Ctl("motions", "delete", thing, "peek"); err != nil {
		t.Errorf("%v %s", err, out)
	}
	housetest.Await(t, time.Minute, "peek to be gone", func() error {
		if out, err := h.Ctl("commands", "send", thing, "play", "name=motion/peek", "-wait"); err == nil {
			return fmt.Errorf("it still plays it: %s", out)
		}
		return nil
	})
}
