package release

import (
	"context"
	"time"

	"kennel/edge/agent/health/nightly"
	"kennel/edge/env/platform"
	"kennel/edge/update"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/ota"
)

// Order asks for an update now: an app over the robot's API or Bluetooth, or the command line (VEC-OTA-19).
type Order struct {
	URL       string `json:"url,omitempty"`       // of the archive; "": what the cloud wants, or else what the updater's files name
	Downgrade bool   `json:"downgrade,omitempty"` // a development robot takes an older version
	Force     bool   `json:"force,omitempty"`     // whatever battery and temperature are
}

// Report says how far an update is, no matter who asked for it (VEC-OTA-21).
type Report struct {
	update.Status
	Running string      `json:"running"`             // the version that runs
	Runs    bool        `json:"in_progress"`         // an update was asked for and has not ended
	Wanted  ota.Version `json:"wanted,omitempty"`    // by the cloud, if it is another
	Waits   string      `json:"waits_for,omitempty"` // why that one is not installed now
	Why     string      `json:"why,omitempty"`       // the last update failed, with its details
	SDK     int         `json:"update_status"`
	BLE     int         `json:"ble_status"`
}

// Soon reports whether the release that the cloud wants is about to begin.
func (r Report) Soon() bool { return r.Wanted != "" && r.Waits == "" && r.Why == "" && !r.Done }

// farewell is how long the end of an update can be read before the robot reboots for it.
const farewell = 3 * time.Second

// rebooting is that in the numbers of Bluetooth (VEC-MSG-16).
const rebooting = 4

var errNone = errs.Coded(errs.Unavailable, "no_updater", "this robot does not install releases")

// Start begins an update, or says how far the one that runs is. A release that the cloud wants is installed when its window and conditions permit.
func (a *Agent) Start(o Order) (Report, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, err := a.report()
	switch {
	case err != nil, r.Done, r.Runs && o.URL == "":
		return r, err
	case r.Runs:
		return r, errs.Coded(errs.Conflict, "update_runs", "%w", update.ErrBusy)
	case o.URL == "" && r.Wanted != "":
		a.reason, a.failed, a.try.ended = "", nil, time.Time{} // look again, also after a failure
		a.wake.Set()
		return a.report()
	}
	if err := a.begin(o, func() {}); err != nil {
		return r, err
	}
	return a.report()
}

// begin hands an order to Run. The lock is held.
func (a *Agent) begin(o Order, ended func()) error {
	if !o.Force {
		if err := a.cfg.Needs(ota.Needs{Battery: true}); err != nil {
			return errs.Coded(errs.Conflict, "not_ready", "%w", err)
		}
	}
	if s, err := a.cfg.Updater.State(""); err == nil && s.Unproven {
		return errs.Coded(errs.Conflict, "on_trial", "the running release is still on trial; try again later")
	}
	ctx, stop := context.WithCancel(context.Background())
	a.order = stop
	a.orders <- func(run context.Context) { // there is one at a time
		defer context.AfterFunc(run, stop)()
		a.obey(ctx, o, ended)
	}
	return nil
}

// obey runs an order to its end.
func (a *Agent) obey(ctx context.Context, o Order, ended func()) {
	r := update.Request{Downgrade: o.Downgrade}
	if o.URL != "" {
		r.At = func(context.Context) (string, error) { return o.URL, nil }
	}
	result, err := a.cfg.Updater.Run(ctx, r)
	if err != nil {
		a.cfg.Log.WarnContext(ctx, "update failed", "code", int(ota.CodeOf(err)), logging.Err, err)
	}
	ended()
	a.mu.Lock()
	a.rebooting = err == nil && result.Reboot && a.cfg.Reboot != nil && !a.inhibited() // otherwise the nightly reboot comes
	reboot, stop := a.rebooting, a.order
	a.order, a.failed = nil, err
	a.mu.Unlock()
	if reboot && backoff.Sleep(ctx, farewell) == nil {
		if err := a.cfg.Reboot(ctx); err != nil {
			a.cfg.Log.WarnContext(ctx, "robot not rebooted after its update", logging.Err, err)
		}
	}
	stop()
	a.wake.Set()
}

// inhibited reports whether a file keeps the robot from rebooting (VEC-RBT-02).
func (a *Agent) inhibited() bool { return a.cfg.Root != nil && nightly.IsInhibited(a.cfg.Root) }

// once begins the update that a file asks for after the first network access of a boot (VEC-OTA-17, VEC-OTA-19). The file is removed at its end.
func (a *Agent) once(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cfg.Root == nil || a.cfg.Updater == nil || a.order != nil || a.try.stop != nil {
		return
	}
	if _, err := a.cfg.Root.Lstat(platform.UpdateEngineOneshotFile); err != nil {
		return
	}
	err := a.begin(Order{}, func() {
		if err := a.cfg.Root.Remove(platform.UpdateEngineOneshotFile); err != nil {
			a.cfg.Log.WarnContext(ctx, "file of a single update not removed", logging.Err, err)
		}
	})
	if err != nil {
		a.cfg.Log.InfoContext(ctx, "update of this boot postponed", logging.Err, err)
	}
}

// Report says how far an update is.
func (a *Agent) Report() (Report, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.report()
}

func (a *Agent) report() (Report, error) {
	if a.cfg.Updater == nil {
		return Report{}, errNone
	}
	s, err := a.cfg.Updater.Status()
	r := Report{Status: s, Running: a.cfg.Running, Runs: a.order != nil || a.try.stop != nil, SDK: s.SDK(), BLE: s.BLE()}
	if a.desired.Release != ota.Version(a.cfg.Running) {
		r.Wanted = a.desired.Release
	}
	switch {
	case r.Runs || r.Wanted == "":
	case !a.online:
		r.Waits = "there is no connection to the cloud"
	default:
		r.Waits = a.reason
	}
	if a.rebooting && r.Done {
		r.BLE = rebooting
	}
	if a.failed != nil && !r.Runs && !r.Done {
		r.Code, r.Error, r.Why = ota.CodeOf(a.failed), ota.CodeOf(a.failed).Words(), a.failed.Error()
	}
	return r, err
}

// Stop ends the update that runs, if there is one. The running system stays, and a release that the cloud wants is tried again later.
func (a *Agent) Stop() (Report, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.order != nil {
		a.order()
	} else if a.try.stop != nil {
		a.try.stop()
	}
	return a.report()
}

// Restart starts the system that an update installed; without one it is NotFound (part of VEC-UPD-02).
func (a *Agent) Restart(ctx context.Context) error {
	switch r, err := a.Report(); {
	case err != nil:
		return err
	case !r.Done:
		return errs.Coded(errs.NotFound, "no_update", "no update is waiting for a restart")
	case a.cfg.Reboot == nil:
		return errs.Coded(errs.Unavailable, "no_reboot", "programs on this robot may not restart it")
	}
	return a.cfg.Reboot(ctx)
}
