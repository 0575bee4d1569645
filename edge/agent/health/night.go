package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kennel/edge/agent/health/nightly"
	"kennel/edge/update"
	"kennel/edge/update/disk"
	"kennel/infra/api/events"
	"kennel/infra/logging"
	"kennel/infra/proc"
	"kennel/jdocs"
)

// rebootWithin is the time limit of the program that reboots the robot; our own default.
const rebootWithin = 30 * time.Second

// ErrNight ends agentd so that its supervisor reboots the robot.
var ErrNight = errors.New("nightly reboot")

// newNightly makes the part that reboots the robot at night (VEC-BOOT-16). The look for a newer release needs no code here: the agent
// asks for one at every connection, so at every start (edge/agent/release).
func (h *Health) newNightly() {
	var err error
	if h.last, err = nightly.Started(h.Root, h.Boot); err != nil {
		h.Log.Warn("reboot reason unreadable", logging.Err, err)
	}
	h.Nightly = nightly.New(h.NightConfig(), h.last.At)
}

// NightConfig returns the settings of the nightly reboot.
func (h *Health) NightConfig() nightly.Config {
	return nightly.Config{
		Root: h.Root, BootID: h.Boot, Settings: *h.cfg.Nightly, Clock: h.LocalTime(), Uptime: h.Uptime, Resting: h.vitals.Resting, Update: h.updating,
		Record: func(ctx context.Context, e events.Event) {
			if err := h.Keep(ctx, e); err != nil {
				h.Log.WarnContext(ctx, "event not recorded", "event", e.Name, logging.Err, err)
			}
		},
		Reboot: h.Reboot, Log: h.Log,
	}
}

// tellNight says once that this start is the end of a nightly reboot, and how much of the robot restarted.
func (h *Health) tellNight() {
	if !h.last.News {
		return
	}
	what := "robot"
	if !h.last.Robot {
		what = "agentd"
	}
	e := events.Event{Source: "agentd", Name: nightly.Event, S1: nightly.Done, S2: what}
	if !h.last.At.IsZero() {
		e.S3 = h.last.At.Format(time.RFC3339)
	}
	h.Emit(e)
	h.Log.Info("nightly reboot done", "what", what)
}

// LocalTime returns a function for the time in the robot's zone. The time is known while the clock is right by the cloud's newest answer
// and the zone of the settings exists.
func (h *Health) LocalTime() func() (time.Time, bool) {
	name, zone := "", (*time.Location)(nil)
	return func() (time.Time, bool) {
		if agrees, known := h.cfg.Clock(); !known || !agrees {
			return time.Time{}, false
		}
		doc, err := h.cfg.Get(jdocs.SettingsOf(h.Thing.Species()))
		if err != nil {
			return time.Time{}, false
		}
		var settings struct {
			Zone string `json:"time_zone"`
		}
		if err := json.Unmarshal([]byte(doc.JSON), &settings); err != nil || settings.Zone == "" || settings.Zone == "Local" {
			return time.Time{}, false
		}
		if settings.Zone != name {
			l, err := time.LoadLocation(settings.Zone)
			if err != nil {
				return time.Time{}, false
			}
			name, zone = settings.Zone, l
		}
		return h.Now().In(zone), true
	}
}

// updating returns the progress of an update, of this agent or another program, as the original reports it.
func (h *Health) updating() nightly.Update {
	s, err := update.ReadStatus(disk.Of(h.Root))
	switch {
	case err != nil:
		h.Log.Warn("progress of an update unreadable", logging.Err, err)
		return nightly.NoUpdate
	case s.Done:
		return nightly.UpdateWaits
	case s.Phase == update.Starting, s.Phase == update.Downloading:
		return nightly.UpdateRuns
	}
	return nightly.NoUpdate
}

// Reboot asks for a reboot of the robot. Events in folders that a boot empties are moved before.
func (h *Health) Reboot(ctx context.Context) error {
	if err := h.cfg.Backup(); err != nil {
		h.Log.WarnContext(ctx, "events not saved before the reboot", logging.Err, err)
	}
	if len(h.cfg.Reboot) == 0 {
		h.host.End(ErrNight)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rebootWithin)
	defer cancel()
	if err := proc.Once(ctx, proc.Spec{Name: "reboot", Path: h.cfg.Reboot[0], Args: h.cfg.Reboot[1:]}); err != nil {
		return fmt.Errorf("reboot the robot: %w", err)
	}
	return nil
}
