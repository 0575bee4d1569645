// Package nightly reboots a robot each night that it was left on, while it is not in use (VEC-BOOT-16). The reboot clears the faults of long
// runs (leaked memory, locks that hang), and the start looks for a newer release.
//
// The moment is chosen at random in a window of the robot's own day, so that a fleet does not ask for releases all at once. Then, and again until
// the window ends, the robot is rebooted unless one of these holds:
//
//	it was just booted           uptime below the minimum
//	it is inhibited              data/inhibit_reboot or run/inhibit_reboot is there; looked at again after the delay
//	an update is on its way      got or installed
//	it is not resting            neither calm power mode nor sleep, or not known
//
// One that installed an update and waits for the reboot need not rest (run/update-engine/done). A window that passed without a reboot is skipped
// until the next night. A clock that was never set has no nights: the robot's clock does not run without power (VEC-BOOT-14).
//
// The window is on the clock on the wall: 1:00 to 5:00 is that also on the days when clocks change, and an hour that a day does not have is in no
// window. A window whose end is before its beginning continues past midnight; it belongs to the evening. Both ends are in it.
package nightly

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"kennel/edge/env/platform"
	"kennel/infra/api/events"
	"kennel/infra/backoff"
	"kennel/infra/logging"
)

// Files below the robot's root; all but the content of the first are the original's.
const (
	AskedFile = "data/maintenance_reboot"      // a nightly reboot began
	AfterFile = "run/after_maintenance_reboot" // this boot is one; there for other programs, too
	DoneFile  = "run/update-engine/done"       // an update is installed and waits for a reboot
)

// Inhibitors are the files of which each keeps the robot from rebooting while it is there.
var Inhibitors = [...]string{"data/inhibit_reboot", "run/inhibit_reboot"}

// Event says whether the nightly reboot could be done: s1 is an Outcome, s2 the reason, s3 the local time.
const Event = "robot.maintenance_reboot"

// The outcomes.
const (
	Proceeding = "proceeding" // it begins
	PutOff     = "put_off"    // something prevented it after it was announced
	Skipped    = "skipped"    // not this night
	Failed     = "failed"     // it began, and the robot is still there
	Done       = "done"       // this start is its end
)

// The reasons against it.
const (
	Uptime    = "uptime"
	Inhibited = "inhibited"
	Updating  = "updating"
	NotRest   = "not_resting"
	NoClock   = "clock_not_set"
	NoWindow  = "outside_window" // it was put off until the window was over
)

// Update is the progress of an update of the robot.
type Update uint8

// The zero value is that there is none.
const (
	NoUpdate Update = iota
	UpdateRuns
	UpdateWaits // it is installed, and waits for the reboot
)

// Config configures a Rebooter. All but Pick are required.
type Config struct {
	Root     *os.Root
	BootID   string // of this boot
	Settings platform.Rebooter
	// Clock returns the time in the robot's own zone, and whether both are known: a clock without power begins anywhere, and a zone may be one
	// that this robot has no rules for.
	Clock   func() (local time.Time, set bool)
	Uptime  func() time.Duration // since the robot's programs began; a robot is never younger
	Resting func() bool          // it saves power: it is not in use
	Update  func() Update
	// Record records an event, and returns when it is on disk for good.
	Record func(context.Context, events.Event)
	// Reboot asks the robot's supervisor to reboot it. After nil the context is expected to end soon, as at every clean end.
	Reboot func(context.Context) error
	Log    *slog.Logger
	Pick   func(n time.Duration) time.Duration // one of [0, n), by chance; nil: math/rand
}

// Our own defaults.
const (
	look     = 30 * time.Second // how often the clock is looked at: it may be set at any time
	patience = 5 * time.Minute  // between a reboot that began and the end of this program
)

// Rebooter waits for the night. Run is called once.
type Rebooter struct {
	cfg    Config
	window window
	last   time.Time // of the last nightly reboot; zero: none is known
	night  night
}

// night holds the facts about one window.
type night struct {
	start, end, at time.Time
	over           bool   // the work of this night is done
	why            string // why it was put off last; "": it was not
}

// New returns the Rebooter of a robot whose last nightly reboot was at last (Started).
func New(cfg Config, last time.Time) *Rebooter {
	if cfg.Pick == nil {
		cfg.Pick = func(n time.Duration) time.Duration { return rand.N(n) }
	}
	return &Rebooter{cfg: cfg, window: newWindow(cfg.Settings), last: last}
}

// Run reboots the robot each night until ctx ends.
func (r *Rebooter) Run(ctx context.Context) error {
	for backoff.Sleep(ctx, r.step(ctx)) == nil {
	}
	return nil
}

// step does what is to be done now, and returns when to look again.
func (r *Rebooter) step(ctx context.Context) time.Duration {
	now, set := r.cfg.Clock()
	if !set {
		return look // the state of this night is kept: the clock may be set again within it
	}
	r.plan(ctx, now)
	n := &r.night
	switch {
	case n.over:
		return look
	case now.Before(n.at):
		return min(n.at.Sub(now), look)
	}
	if why := r.against(); why != "" {
		r.putOff(ctx, why)
	} else {
		r.reboot(ctx)
	}
	return max(r.cfg.Settings.InhibitorDelay, time.Second)
}

// plan chooses the moment of the window that now is in, or of the next, once for each. A clock or a zone that was changed has other windows.
func (r *Rebooter) plan(ctx context.Context, now time.Time) {
	start, end := r.window.next(now)
	n := &r.night
	if n.start.Equal(start) && n.end.Equal(end) {
		return
	}
	if !n.over && n.why != "" {
		r.record(ctx, Skipped, n.why)
	}
	from := start
	if now.After(start) {
		from = now
	}
	*n = night{start: start, end: end, at: from.Add(r.cfg.Pick(end.Sub(from) + 1))}
	n.over = !r.last.Before(start) && !r.last.After(end) // this window had its reboot
	if r.cfg.Settings.Verbose && !n.over {
		r.cfg.Log.InfoContext(ctx, "next nightly reboot", "at", n.at.Format(time.DateTime), "window_ends", end.Format(time.DateTime))
	}
}

// putOff keeps why the robot is not rebooted now.
func (r *Rebooter) putOff(ctx context.Context, why string) {
	if r.night.why == why {
		return
	}
	r.night.why = why
	level := slog.LevelDebug
	if r.cfg.Settings.Verbose {
		level = slog.LevelInfo
	}
	r.cfg.Log.Log(ctx, level, "nightly reboot postponed", "reason", why)
}

// against returns the reason against a reboot at this moment; "" if there is none.
func (r *Rebooter) against() string {
	now, set := r.cfg.Clock()
	switch {
	case !set:
		return NoClock
	case !r.window.holds(now):
		return NoWindow
	case r.cfg.Uptime() < r.cfg.Settings.MinimumUptime:
		return Uptime
	}
	update := r.cfg.Update()
	if update == UpdateRuns {
		return Updating
	}
	if update == NoUpdate && !r.cfg.Resting() {
		return NotRest
	}
	if IsInhibited(r.cfg.Root) { // last: a file may appear while the others are asked
		return Inhibited
	}
	return ""
}

// IsInhibited reports whether a file keeps the robot from rebooting. One that cannot be looked at counts.
func IsInhibited(root *os.Root) bool {
	return slices.ContainsFunc(Inhibitors[:], func(name string) bool {
		_, err := root.Lstat(name)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// reboot reboots the robot. The file and the event are written before; because that takes time, all conditions are checked again after it.
func (r *Rebooter) reboot(ctx context.Context) {
	now, _ := r.cfg.Clock()
	if err := writeMark(r.cfg.Root, mark{at: now, boot: r.cfg.BootID}); err != nil {
		r.fail(ctx, err)
		return
	}
	r.record(ctx, Proceeding, "")
	if why := r.against(); why != "" {
		r.takeBack(ctx)
		r.record(ctx, PutOff, why)
		r.putOff(ctx, why)
		return
	}
	r.cfg.Log.WarnContext(ctx, "nightly reboot started")
	r.night.over = true
	if err := r.cfg.Reboot(ctx); err != nil {
		r.fail(ctx, err)
		return
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
		r.fail(ctx, fmt.Errorf("program still running after %v", patience))
	}
}

// fail ends this night's try: another would not go better.
func (r *Rebooter) fail(ctx context.Context, err error) {
	r.night.over = true
	if ctx.Err() != nil {
		return // it ends, whichever request came first
	}
	r.cfg.Log.ErrorContext(ctx, "nightly reboot", logging.Err, err)
	r.takeBack(ctx)
	r.record(ctx, Failed, err.Error())
}

// takeBack removes the file that says that a reboot began.
func (r *Rebooter) takeBack(ctx context.Context) {
	if err := r.cfg.Root.Remove(AskedFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.cfg.Log.ErrorContext(ctx, "nightly reboot marker not removed", logging.Err, err)
	}
}

func (r *Rebooter) record(ctx context.Context, outcome, why string) {
	e := events.Event{Source: "agentd", Name: Event, S1: outcome, S2: why, I1: events.Num(int64(r.cfg.Uptime() / time.Second))}
	if outcome == Failed {
		e.Level = events.Error
	}
	if now, set := r.cfg.Clock(); set {
		e.S3 = now.Format(time.RFC3339)
	}
	r.cfg.Record(ctx, e)
}
