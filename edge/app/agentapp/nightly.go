package agentapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kennel/edge/agent/cloud/das"
	"kennel/edge/agent/health/nightly"
	"kennel/infra/api/events"
	"kennel/infra/logging"
	"kennel/infra/proc"
	"kennel/jdocs"
)

// rebootWithin is the time limit of the program that reboots the robot; our own default.
const rebootWithin = 30 * time.Second

// errNight ends agentd so that its supervisor reboots the robot.
var errNight = errors.New("nightly reboot")

// newNightly makes the part that reboots the robot at night (VEC-BOOT-16). The look for a newer release needs no code here: the agent
// asks for one at every connection, so at every start (edge/agent/cloud/release).
func (a *Agent) newNightly() {
	var err error
	if a.night, err = nightly.Started(a.root, a.boot); err != nil {
		a.log.Warn("reboot reason unreadable", logging.Err, err)
	}
	a.nightly = nightly.New(a.nightConfig(), a.night.At)
}

func (a *Agent) nightConfig() nightly.Config {
	return nightly.Config{
		Root: a.root, BootID: a.boot, Settings: *a.cfg.Nightly, Clock: a.localTime(), Uptime: a.uptime, Resting: a.vitals.Resting, Update: a.updating,
		Record: func(ctx context.Context, e events.Event) {
			if _, err := a.das.EmitDurable(ctx, e); err != nil && !errors.Is(err, das.ErrOptedOut) {
				a.log.WarnContext(ctx, "event not recorded", "event", e.Name, logging.Err, err)
			}
		},
		Reboot: a.reboot, Log: a.log,
	}
}

// tellNight says once that this start is the end of a nightly reboot, and how much of the robot restarted.
func (a *Agent) tellNight() {
	if !a.night.News {
		return
	}
	what := "robot"
	if !a.night.Robot {
		what = "agentd"
	}
	e := events.Event{Source: "agentd", Name: nightly.Event, S1: nightly.Done, S2: what}
	if !a.night.At.IsZero() {
		e.S3 = a.night.At.Format(time.RFC3339)
	}
	a.emit(e)
	a.log.Info("nightly reboot done", "what", what)
}

// localTime returns a function for the time in the robot's zone. The time is known while the clock is right by the cloud's newest answer
// and the zone of the settings exists.
func (a *Agent) localTime() func() (time.Time, bool) {
	name, zone := "", (*time.Location)(nil)
	return func() (time.Time, bool) {
		if off, known := a.clockOff(); !known || off.Abs() > clockSlack {
			return time.Time{}, false
		}
		doc, err := a.docs.Get(jdocs.RobotSettings)
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
		return a.cfg.Now().In(zone), true
	}
}

// updating returns the progress of an update. This agent applies none; another program may, and reports it as the original does.
func (a *Agent) updating() nightly.Update {
	if _, err := a.root.Stat(nightly.DoneFile); err == nil {
		return nightly.UpdateWaits
	}
	return nightly.NoUpdate
}

// reboot asks for a reboot of the robot. Events in folders that a boot empties are moved before.
func (a *Agent) reboot(ctx context.Context) error {
	if err := a.das.Backup(); err != nil {
		a.log.WarnContext(ctx, "events not saved before the reboot", logging.Err, err)
	}
	if len(a.cfg.Reboot) == 0 {
		a.startAnew(errNight)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rebootWithin)
	defer cancel()
	if err := proc.Once(ctx, proc.Spec{Name: "reboot", Path: a.cfg.Reboot[0], Args: a.cfg.Reboot[1:]}); err != nil {
		return fmt.Errorf("reboot the robot: %w", err)
	}
	return nil
}
