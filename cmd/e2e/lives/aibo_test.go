package lives

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/liveview"
	"kennel/cmd/e2e/housetest"
)

// TestAIBO: an AIBO of a chosen model at the cloud: it is itself, shows its joints and paws, turns its head when it is told to, refuses to walk, and keeps the
// settings of its own schema.
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
	housetest.Await(t, time.Minute, "a turn of the head", func() error { // a core that is late on a loaded machine stops the first try
		_, err := h.Ctl("robot", "do", thing, "headYaw = 0.4")
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
}
