package housetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/liveview"
)

// Slot is the number that a device's slot reads as; an error while it is not measured.
func Slot(r liveview.Robot, device, name string) (float64, error) {
	for _, d := range r.Devices {
		for _, s := range d.Slots {
			if d.Compact == device && s.Name == name {
				if v, ok := s.Value.(float64); ok {
					return v, nil
				}
				return 0, fmt.Errorf("%s.%s is %v", device, name, s.Value)
			}
		}
	}
	return 0, fmt.Errorf("no %s.%s among %d devices", device, name, len(r.Devices))
}

// SlotText is the text that a device's slot reads as.
func SlotText(r liveview.Robot, device, name string) string {
	for _, d := range r.Devices {
		for _, s := range d.Slots {
			if d.Compact == device && s.Name == name && s.Known {
				return fmt.Sprint(s.Value)
			}
		}
	}
	return ""
}

// Seen waits until a robot's tree says what ok accepts.
func (h *House) Seen(thing, what string, ok func(r liveview.Robot) error) (r liveview.Robot) {
	h.T.Helper()
	Await(h.T, time.Minute, what, func() error {
		r = liveview.Robot{}
		if err := h.CtlJSON(&r, "robot", "tree", thing); err != nil {
			return err
		}
		if r.Motion == nil {
			return errors.New("it says nothing of how it moves")
		}
		return ok(r)
	})
	return r
}

// WheelsOutcome says how the newest motion of the wheels went.
func WheelsOutcome(r liveview.Robot) string {
	for _, p := range r.Motion.Parts {
		if p.Name == "wheels" {
			return p.Outcome
		}
	}
	return ""
}

// AtRest returns an error while the robot moves.
func AtRest(r liveview.Robot) error {
	if r.Motion.Moving {
		return fmt.Errorf("it moves: %+v", r.Motion)
	}
	return nil
}

// ShownCode waits for the code that the robot shows.
func ShownCode(t *testing.T, root string) (code string) {
	t.Helper()
	Await(t, time.Minute, "code on the robot", func() error {
		b, err := os.ReadFile(filepath.Join(root, "run/claim-code"))
		code = strings.TrimSpace(string(b))
		return err
	})
	return code
}
