// Package release follows the release that the cloud wants this robot to run: it asks for it, installs it when the robot and the hour permit, and
// reports each step. People and programs at the robot ask here for an update, too. A robot without slots installs nothing and says so.
//
// What a wish of the cloud installed is withdrawn, while it waits for the reboot, as soon as the cloud wishes anything else. What a person asked for at the
// robot is not. A release that was started is on trial until Core says that the robot is well and the cloud was reached (Trial).
package release

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"kennel/edge/update"
	"kennel/infra/api/ack"
	"kennel/infra/api/topics"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/wake"
	"kennel/ota"
)

// Our own defaults. The cloud is asked after a time by chance between soonest and poll, the longest (VEC-OTA-19).
const (
	soonest    = 10 * time.Second
	poll       = time.Hour
	needs      = time.Minute      // until battery and charger are looked at again
	progress   = 30 * time.Second // between looks at how far a download is
	firstRetry = 2 * time.Second
	maxRetry   = 2 * time.Minute
)

// Updater installs releases (edge/update.Engine).
type Updater interface {
	Run(context.Context, update.Request) (update.Result, error)
	State(wish string) (update.State, error)
	Confirm(core bool) error
	RollBack(v ota.Version, why, wish string) error
	Withdraw() error
	Status() (update.Status, error)
}

// Config configures an Agent. Running, Ask, Publish and Log are required.
type Config struct {
	Running string // the robot's own name of its release
	Ask     kitmqtt.Requester
	Publish func(ctx context.Context, name string, payload []byte) error
	Updater Updater // nil: the robot installs no releases
	// Needs says what keeps the robot from an update, in words; nil: nothing does.
	Needs func(ota.Needs) error
	// Local is the time in the robot's zone, if it is known; nil: it is not.
	Local func() (time.Time, bool)
	// Core says how the real-time core is; nil: the robot has none, and a new release is well once it has reached the cloud.
	Core   func() Core
	Trial  Trial
	Reboot func(context.Context) error // nil: the robot waits for its next boot
	Root   *os.Root                    // the robot's folder, in which a file may ask for one update; nil: none does
	Log    *slog.Logger
}

// Agent follows the desired release and reports the robot's progress. Safe for concurrent use.
type Agent struct {
	cfg    Config
	wake   wake.Signal                // one slot: look again
	orders chan func(context.Context) // one slot: an order is in it or runs

	mu        sync.Mutex
	online    bool
	reached   bool // the cloud, since New
	desired   ota.Desired
	pending   *ota.Status // the report that the cloud has not confirmed yet
	said      ota.Status  // the last report that it did confirm
	try       try
	order     context.CancelFunc // ends the update that was asked for at the robot; nil: there is none
	failed    error              // how the last update ended
	reason    string             // why the desired release is not installed now
	rebooting bool
}

// try is the attempt to install a release.
type try struct {
	release ota.Version
	wish    string
	stop    context.CancelFunc // nil: it does not run
	err     error
	ended   time.Time // zero: not yet
}

// New returns an agent.
func New(cfg Config) *Agent {
	if cfg.Needs == nil {
		cfg.Needs = func(ota.Needs) error { return nil }
	}
	if cfg.Local == nil {
		cfg.Local = func() (time.Time, bool) { return time.Time{}, false }
	}
	cfg.Trial = cfg.Trial.withDefaults()
	return &Agent{cfg: cfg, wake: wake.New(), orders: make(chan func(context.Context), 1)}
}

// Connected says that the cloud can be reached now, or no longer.
func (a *Agent) Connected(yes bool) {
	a.mu.Lock()
	a.online = yes
	a.mu.Unlock()
	if yes {
		a.wake.Set()
	}
}

// Hint says that the desired release may have changed. Its payload is not trusted: the agent asks.
func (a *Agent) Hint([]byte) { a.wake.Set() }

// HandleAck takes the cloud's answer to a report. It returns false if the ack is for another part.
func (a *Agent) HandleAck(k ack.Ack) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pending == nil || a.pending.ID != k.Batch {
		return false
	}
	switch k.Status {
	case ack.Stored:
		a.said, a.pending = *a.pending, nil
	case ack.Refused:
		a.cfg.Log.Error("cloud refused the update status", "code", k.Code, "reason", k.Reason)
		a.said, a.pending = *a.pending, nil // saying it again would be refused again
	case ack.RetryAfter:
		return true // the resend timer is already on
	}
	if a.said.Phase == ota.Installed {
		a.wake.Set() // the reboot waits for it
	}
	return true
}

// Run asks for the desired release on every connect, on hints and at times, installs it, and resends reports until they are confirmed.
func (a *Agent) Run(ctx context.Context) error {
	var installs sync.WaitGroup
	defer installs.Wait()
	installs.Go(func() { a.prove(ctx) })
	pause := backoff.Pause{Min: firstRetry, Max: maxRetry}
	timer := time.NewTimer(poll)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
			pause.Reset()
		case <-timer.C:
		case obey := <-a.orders:
			installs.Go(func() { obey(ctx) })
		}
		next, done := a.step(ctx, &installs)
		if done {
			next = min(next, soonest+rand.N(poll-soonest))
		} else {
			next = pause.Next(nil)
		}
		timer.Reset(next)
	}
}

// step asks, installs and reports; done is true if nothing is left to do before next.
func (a *Agent) step(ctx context.Context, installs *sync.WaitGroup) (next time.Duration, done bool) {
	a.mu.Lock()
	online := a.online
	a.mu.Unlock()
	if !online {
		return poll, true // Connected wakes us
	}
	want, err := a.pull(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.cfg.Log.WarnContext(ctx, "desired release not read", logging.Err, err)
		}
		return 0, false
	}
	a.mu.Lock()
	a.reached = true
	a.mu.Unlock()
	if a.cfg.Core == nil {
		a.confirm(ctx, false)
	}
	a.once(ctx)
	report, next := a.follow(ctx, want, installs)
	a.mu.Lock()
	if a.desired, a.reason = want, ""; report.Phase == ota.Pending || report.Phase == ota.FellBack {
		a.reason = report.Reason
	}
	if same(report, a.said) {
		a.pending = nil
	} else if a.pending == nil || !same(report, *a.pending) {
		report.ID = crand.Text()
		report.TS = time.Now().UnixMilli()
		a.pending = &report
	}
	var out []byte
	if a.pending != nil {
		out, err = a.pending.Encode()
	}
	a.mu.Unlock()
	if out == nil || err != nil {
		return next, err == nil
	}
	_ = a.cfg.Publish(ctx, topics.OTA, out) // not acknowledged: the timer says it again
	return 0, false
}

func (a *Agent) pull(ctx context.Context) (ota.Desired, error) {
	body, err := json.Marshal(ota.DesiredRequest{V: 1, Running: a.cfg.Running})
	if err != nil {
		return ota.Desired{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	resp, err := a.cfg.Ask.Do(ctx, "ota", "desired", body)
	if err != nil {
		return ota.Desired{}, fmt.Errorf("ask for the desired release: %w", err)
	}
	d, err := ota.ParseDesired(resp)
	if err != nil {
		return ota.Desired{}, errs.New(errs.Corrupt, "answer of the cloud: %w", err)
	}
	return d, nil
}

// follow does what the wish asks for now, and returns the robot's report and when to look again.
func (a *Agent) follow(ctx context.Context, want ota.Desired, installs *sync.WaitGroup) (ota.Status, time.Duration) {
	s := ota.Status{Release: want.Release, Since: want.Since, Running: a.cfg.Running, Phase: ota.Current}
	a.mu.Lock()
	defer a.mu.Unlock()
	wanted := want.Release != "" && string(want.Release) != a.cfg.Running
	if t := &a.try; t.wish != wish(want) || !wanted {
		if t.stop != nil {
			t.stop() // its end wakes us
			s.Phase, s.Reason = ota.Pending, "the update to "+string(t.release)+" ends first"
			return s, poll
		}
		*t = try{release: want.Release, wish: wish(want)}
	}
	t := &a.try
	if t.stop != nil {
		s.Phase, s.Percent = ota.Downloading, a.percent()
		return s, progress
	}
	now, err := a.slots(ctx, want, wanted)
	w := now.Waits
	if w != nil {
		s.Next = w.Version
	}
	switch {
	case err != nil:
		s.Phase, s.Code, s.Reason = ota.Failed, int(ota.SlotFailed), short(err.Error())
		return s, needs
	case !wanted:
		return s, poll
	case now.Fall != nil:
		s.Phase, s.Code, s.Reason = ota.FellBack, int(ota.Other), short(now.Fall.Why)
		return s, poll
	case w != nil && (w.Wish != "" || w.Version == want.Release):
		if s.Phase = ota.Installed; now.Plain && !w.Back {
			s.Reason = plain
		}
		return s, a.reboot(ctx, want, s, w.Reboot || w.Back)
	case w != nil:
		s.Phase, s.Reason = ota.Pending, "release "+string(w.Version)+", asked for at the robot, waits for its reboot"
		return s, poll
	case t.err != nil:
		s.Phase, s.Code, s.Reason = ota.Failed, int(ota.CodeOf(t.err)), short(t.err.Error())
		left := poll - time.Since(t.ended)
		if !passes(t.err) || left > 0 {
			return s, max(left, time.Second)
		}
	}
	if why, wait, next := a.notNow(want, now); why != "" {
		s.Phase, s.Code, s.Reason, s.Waits = ota.Pending, 0, short(why), wait
		return s, next
	}
	s.Phase, s.Code, s.Reason = ota.Downloading, 0, ""
	ictx, stop := context.WithCancel(ctx)
	t.stop, t.ended, t.err = stop, time.Time{}, nil
	installs.Go(func() { a.install(ictx, want) })
	return s, poll
}

// slots returns the state of the slots, after what waits for the next boot and came by another wish of the cloud was withdrawn.
func (a *Agent) slots(ctx context.Context, want ota.Desired, wanted bool) (s update.State, err error) {
	if a.cfg.Updater == nil || a.order != nil {
		return s, nil
	}
	if s, err = a.cfg.Updater.State(wish(want)); err != nil || s.Waits == nil || s.Waits.Wish == "" || wanted && s.Waits.Wish == wish(want) {
		return s, err
	}
	if err := a.cfg.Updater.Withdraw(); err != nil {
		return s, fmt.Errorf("withdraw release %s before the reboot: %w", s.Waits.Version, err)
	}
	a.cfg.Log.InfoContext(ctx, "installed release withdrawn", "release", s.Waits.Version, "desired", want.Release)
	return a.cfg.Updater.State(wish(want))
}

// passes reports whether an update that failed may succeed if it is tried again.
func passes(err error) bool {
	switch ota.CodeOf(err) {
	case ota.BadURL, ota.DiskFailed, ota.TimedOut, ota.Other:
		return true
	}
	return errors.Is(err, errUnvouched)
}

// notNow says why the robot does not begin, in words and as a word, and when to look again. That its owner postponed the release ends by the cloud's clock.
func (a *Agent) notNow(want ota.Desired, now update.State) (why string, wait ota.Cause, next time.Duration) {
	switch {
	case a.order != nil:
		return "another update runs", "", poll // its end wakes us
	case a.cfg.Updater == nil:
		return "not supported by this robot: it does not install releases", ota.WaitNever, poll
	case !want.NotBefore.IsZero() && !want.Rollback:
		return "postponed by its owner until " + want.NotBefore.In(a.local().Location()).Format("2 January 15:04"), ota.WaitOwner, max(needs, min(poll, time.Until(want.NotBefore)))
	case want.URL == "" && !want.Rollback:
		return "the cloud has no archive of it", ota.WaitArchive, poll
	case now.Unproven && !want.Rollback:
		return "the running release is on trial", ota.WaitTrial, poll // its end wakes us
	}
	if want.Window != nil {
		if open, until := want.Window.At(a.local()); !open {
			return "outside its window until " + until.Format("Mon 15:04"), ota.WaitWindow, min(poll, time.Until(until)+time.Second)
		}
	}
	if want.Needs != nil {
		if err := a.cfg.Needs(*want.Needs); err != nil {
			return err.Error(), ota.Cause(errs.CodeOf(err)), needs
		}
	}
	return "", "", 0
}

// percent is how much of the archive has been downloaded, in steps of ten, so that a download makes few reports.
func (a *Agent) percent() int {
	s, err := a.cfg.Updater.Status()
	if err != nil || s.Expected <= 0 {
		return 0
	}
	return min(int(s.Progress*10/s.Expected), 10) * 10
}

// local is the robot's local time; UTC if its zone is not known.
func (a *Agent) local() time.Time {
	if now, known := a.cfg.Local(); known {
		return now
	}
	return time.Now().UTC()
}

// reboot starts the new system within the window, after the report s, if it is asked for; otherwise the nightly reboot does. The lock is held.
func (a *Agent) reboot(ctx context.Context, want ota.Desired, s ota.Status, asked bool) time.Duration {
	if a.cfg.Reboot == nil || !asked {
		return poll
	}
	if want.Window != nil {
		if open, until := want.Window.At(a.local()); !open {
			return min(poll, time.Until(until)+time.Second)
		}
	}
	if !same(s, a.said) {
		return needs // the report goes first, and its acknowledgement comes
	}
	if a.inhibited() {
		return needs
	}
	if err := a.cfg.Reboot(ctx); err != nil {
		a.cfg.Log.WarnContext(ctx, "robot not rebooted after its update", logging.Err, err)
	}
	return needs
}

// install runs an update to its end.
func (a *Agent) install(ctx context.Context, want ota.Desired) {
	first := true
	at := func(ctx context.Context) (string, error) {
		if first {
			first = false
			return want.URL, nil
		}
		now, err := a.pull(ctx)                                                   // a signed address ends
		if err == nil && !now.NotBefore.IsZero() && now.Release == want.Release { // what has begun is finished
			return want.URL, nil
		}
		if err == nil && now.Release != want.Release {
			err = ota.Fail(ota.Other, "the cloud no longer wants %s", want.Release)
		}
		return now.URL, err
	}
	var err error
	if want.Rollback {
		err = a.cfg.Updater.RollBack(want.Release, "the cloud asked for it", wish(want))
	} else {
		_, err = a.cfg.Updater.Run(ctx, update.Request{At: at, Wish: wish(want), Rate: want.Rate})
	}
	if errors.Is(err, update.ErrWaits) { // an order at the robot was quicker
		err = nil
	}
	if err != nil {
		a.cfg.Log.WarnContext(ctx, "update failed", "release", want.Release, "code", int(ota.CodeOf(err)), logging.Err, err)
	}
	a.mu.Lock()
	a.try.stop()
	a.try.stop, a.try.err, a.try.ended, a.failed = nil, err, time.Now(), err
	a.mu.Unlock()
	a.wake.Set()
}

// wish names what the cloud asks for. The same release asked for again later is another wish. A store of the cloud may keep microseconds of a time that it has
// told in full.
func wish(d ota.Desired) string {
	return string(d.Release) + " " + d.Since.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
}

// short keeps a reason within what a report holds.
func short(s string) string { return s[:min(len(s), 1000)] }

func same(x, y ota.Status) bool {
	return x.Release == y.Release && x.Since.Equal(y.Since) && x.Phase == y.Phase && x.Running == y.Running && x.Next == y.Next && x.Code == y.Code && x.Reason == y.Reason && x.Waits == y.Waits && x.Percent == y.Percent
}
