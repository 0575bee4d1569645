package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/edge/update"
	"kennel/infra/backoff"
	"kennel/infra/logging"
)

// Core is how the robot's real-time core is.
type Core struct {
	Heard  bool          // it spoke since this agent started, or is known to have ended
	Up     time.Duration // for how long it has answered, and its loop has stepped, without a pause; 0: it does not
	Ends   int           // how often it ended since this agent started; those of an agent before are in endsFile
	Silent bool          // it is up, and hears nothing of its body, as if that were broken
	Why    string        // why the robot does not serve although its core is up; "": it does
}

// Trial says when a new release is well and when the robot leaves it for the one before. The zero value is our own defaults.
type Trial struct {
	Settle   time.Duration // for how long the core must have been well without a pause; 0: Settle
	Ends     int           // ends of the core after which the release is left; 0: Ends
	Patience time.Duration // from the agent's start to the time at which a release is left whose core is not well; 0: Patience
}

// Our own defaults.
const (
	Settle   = time.Minute
	Ends     = 3
	Patience = 15 * time.Minute

	alone = 2 * time.Minute // from the agent's start to the time at which a robot on which no core was ever heard counts as one without
	looks = time.Second     // how often the core of a release on trial is looked at
)

func (t Trial) withDefaults() Trial {
	return Trial{cmp.Or(t.Settle, Settle), cmp.Or(t.Ends, Ends), cmp.Or(t.Patience, Patience)}
}

// prove watches a release on trial until it is confirmed or left.
func (a *Agent) prove(ctx context.Context) {
	if a.cfg.Updater == nil || a.cfg.Core == nil {
		return // step confirms it
	}
	began, said, before := time.Now(), "", a.endsBefore()
	for {
		why, done := a.judge(ctx, time.Since(began), before)
		if done {
			a.wake.Set() // an update may wait for that
			return
		}
		if why != "" {
			err := a.cfg.Updater.RollBack("", why, "")
			if err == nil {
				a.leave(ctx, why)
				return
			}
			if said != err.Error() {
				a.cfg.Log.ErrorContext(ctx, "rollback of the release on trial failed; retrying", "reason", why, logging.Err, err)
				said = err.Error()
			}
		}
		if backoff.Sleep(ctx, looks) != nil {
			return
		}
	}
}

// endsFile counts the ends of the core in a trial, for an agent that starts again in the same boot.
const endsFile = update.Dir + "core-ends"

// endsBefore returns how often the core ended in this boot while an agent before watched it.
func (a *Agent) endsBefore() int {
	if a.cfg.Root == nil {
		return 0
	}
	b, _ := robotfs.ReadFile(a.cfg.Root, endsFile) // none was counted
	n, _ := strconv.Atoi(string(b))
	return max(n, 0)
}

// keepEnds writes the count for the next agent of this boot.
func (a *Agent) keepEnds(ctx context.Context, n int) {
	if a.cfg.Root == nil || n == a.endsBefore() {
		return
	}
	if err := robotfs.WriteFile(a.cfg.Root, endsFile, strconv.AppendInt(nil, int64(n), 10), 0o644); err != nil {
		a.cfg.Log.WarnContext(ctx, "count of core exits not saved", logging.Err, err)
	}
}

// judge confirms the running release if it is well, and says why to leave it. before are ends of the core that Core does not count. done: there is nothing
// left to watch.
func (a *Agent) judge(ctx context.Context, age time.Duration, before int) (why string, done bool) {
	s, err := a.cfg.Updater.State("")
	if err != nil || s.Waits != nil { // a return to the release before it, which may be withdrawn
		return "", false
	}
	a.mu.Lock()
	reached := a.reached
	a.mu.Unlock()
	c, t := a.cfg.Core(), a.cfg.Trial
	c.Ends += before
	if s.Trial && c.Ends > before {
		a.keepEnds(ctx, c.Ends)
	}
	well := c.Up >= t.Settle && !c.Silent && c.Why == ""
	switch {
	case !s.Trial && (s.Core || age >= t.Patience):
		return "", true
	case well && (reached || !s.Trial): // a confirmed one shows that this robot has a core
		return "", a.confirm(ctx, true)
	case !s.Trial:
	case c.Ends >= t.Ends:
		return fmt.Sprintf("its real-time core ended %d times before it was well", c.Ends), false
	case !s.Core && !c.Heard:
		return "", reached && age >= alone && a.confirm(ctx, false)
	case !well && !c.Silent && age >= t.Patience:
		return fmt.Sprintf("its real-time core was not well within %v: %s", t.Patience, c.words()), false
	}
	return "", false
}

// words says in what way the core is not well.
func (c Core) words() string {
	switch {
	case c.Up == 0:
		return "it does not answer"
	case c.Why != "":
		return c.Why
	}
	return fmt.Sprintf("it pauses again and again, the last time %v ago", c.Up.Round(time.Second))
}

// confirm says that the running system is well, and reports whether the slots say so now.
func (a *Agent) confirm(ctx context.Context, core bool) bool {
	if a.cfg.Updater == nil {
		return true
	}
	err := a.cfg.Updater.Confirm(core)
	if err != nil && !errors.Is(err, update.ErrBusy) {
		a.cfg.Log.WarnContext(ctx, "boot slots not written", logging.Err, err)
	}
	return err == nil
}

// leave starts the release before the running one.
func (a *Agent) leave(ctx context.Context, why string) {
	a.cfg.Log.ErrorContext(ctx, "release on trial rolled back", "release", a.cfg.Running, "reason", why)
	a.wake.Set()
	for a.cfg.Reboot != nil {
		if !a.inhibited() {
			if err := a.cfg.Reboot(ctx); err != nil {
				a.cfg.Log.WarnContext(ctx, "robot not rebooted", logging.Err, err)
			}
		}
		if backoff.Sleep(ctx, needs) != nil {
			return
		}
	}
}
