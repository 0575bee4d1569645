package intents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"time"

	"kennel/edge/core"
	"kennel/edge/env/robotfs"
	"kennel/edge/face/screen"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot/claim"
	"kennel/infra/api/events"
	"kennel/infra/logging"
	"kennel/infra/wake"
	"kennel/speech/intent"
)

// timerFile, below the robot's root, holds the timer that runs. It is user data: a wipe takes it along.
const timerFile = "data/kennel/timer.json"

// Our own limits. The original has one timer, and so have we.
const (
	longest   = 24 * time.Hour
	blinks    = 5
	blinkTime = 500 * time.Millisecond
)

// alarm is the timer on disk. Within the boot it was set in, the monotonic clock counts, which no correction of the time moves; after a later boot the
// wall clock does, as well as it can.
type alarm struct {
	LengthMS int64  `json:"length_ms"`
	Boot     string `json:"boot"`
	DueMono  int64  `json:"due_mono_ms"`
	Set      int64  `json:"set_ms"` // since 1970
	Due      int64  `json:"due_ms"`
}

// timer is the one timer of a robot. Safe for concurrent use.
type timer struct {
	cfg     Config
	changed wake.Signal // one slot

	mu    sync.Mutex
	set   *alarm
	left  time.Duration // to the ring, at since; of a negative one it was off
	since time.Duration // monotonic
	off   bool          // it was due while the robot was off
	hush  func()        // ends the ringing; nil: it does not ring
}

// newTimer reads the timer that was set before.
func newTimer(cfg Config) *timer {
	t := &timer{cfg: cfg, changed: wake.New()}
	b, err := robotfs.ReadFile(cfg.Root, timerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return t
	}
	var a alarm
	if err == nil {
		a, err = parseAlarm(b)
	}
	if err != nil {
		cfg.Log.Warn("timer unreadable; discarded", logging.Err, err)
		return t
	}
	t.take(a)
	return t
}

func parseAlarm(b []byte) (a alarm, err error) {
	if err := json.Unmarshal(b, &a); err != nil {
		return a, err
	}
	const ever = 1 << 50 // ms, far outside any clock
	if a.LengthMS < 0 || a.LengthMS > longest.Milliseconds() || a.DueMono < 0 || a.DueMono > ever || a.Set < -ever || a.Set > ever || a.Due < -ever || a.Due > ever {
		return a, fmt.Errorf("timer of %d ms, due at %d or %d: want at most %v", a.LengthMS, a.DueMono, a.Due, longest)
	}
	return a, nil
}

// take counts down a from now on.
func (t *timer) take(a alarm) {
	t.set, t.since = &a, t.cfg.Mono()
	now := t.cfg.Now().UnixMilli()
	switch {
	case a.Boot == t.cfg.Boot:
		t.left = time.Duration(min(a.DueMono-t.since.Milliseconds(), a.LengthMS)) * time.Millisecond
	case now < a.Set: // the clock has not been set since the start, so the time off is not known
		t.left = time.Duration(a.LengthMS) * time.Millisecond
	default:
		t.left = time.Duration(min(a.Due-now, a.LengthMS)) * time.Millisecond
		t.off = t.left <= 0
	}
}

// remaining returns how long the timer still has; false: none is set.
func (t *timer) remaining() (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.set == nil {
		return 0, false
	}
	return t.left - (t.cfg.Mono() - t.since), true
}

// counts returns how long the timer still has, and how long it was set for; false: none is set.
func (t *timer) counts() (left, of time.Duration, ok bool) {
	if left, ok = t.remaining(); !ok {
		return 0, 0, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.set == nil { // it was cancelled just now
		return 0, 0, false
	}
	return left, time.Duration(t.set.LengthMS) * time.Millisecond, true
}

func (t *timer) ringing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hush != nil
}

// start sets the timer, and ends the ringing of the one before. It is on disk when start returns.
func (t *timer) start(length time.Duration) error {
	now, mono := t.cfg.Now(), t.cfg.Mono()
	a := alarm{LengthMS: length.Milliseconds(), Boot: t.cfg.Boot, DueMono: (mono + length).Milliseconds(), Set: now.UnixMilli(), Due: now.Add(length).UnixMilli()}
	b, err := json.Marshal(a)
	if err == nil {
		err = robotfs.WriteFile(t.cfg.Root, timerFile, b, 0o644)
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.set, t.left, t.since, t.off = &a, length, mono, false
	if t.hush != nil {
		t.hush() // else this one would wait for its end
	}
	t.mu.Unlock()
	t.changed.Set()
	return nil
}

// end removes the timer and reports whether there was one, or one rang.
func (t *timer) end() (was bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was = t.set != nil || t.hush != nil; t.hush != nil {
		t.hush()
	}
	if t.set == nil {
		return was, nil
	}
	t.set = nil
	t.changed.Set()
	if err := t.cfg.Root.Remove(timerFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return was, err // it rings after the next start
	}
	return was, nil
}

// run calls ring when the timer is due, until ctx ends. It rings at least once: a robot that is killed while it rings does so again.
func (t *timer) run(ctx context.Context, ring func(ctx context.Context, a alarm, late time.Duration, off bool)) {
	for {
		left, is := t.remaining()
		if is && left <= 0 {
			t.mu.Lock()
			a, off := *t.set, t.off
			rctx, hush := context.WithCancel(ctx)
			t.hush = hush
			t.mu.Unlock()
			ring(rctx, a, -left, off)
			hush()
			t.mu.Lock()
			t.hush = nil
			same := t.set != nil && *t.set == a // else it was cancelled, or set again
			t.mu.Unlock()
			if ctx.Err() != nil {
				return
			}
			if same {
				if _, err := t.end(); err != nil {
					t.cfg.Log.WarnContext(ctx, "timer not removed", logging.Err, err)
				}
			}
			continue
		}
		var due <-chan time.Time
		if is {
			due = time.After(left)
		}
		select {
		case <-ctx.Done():
			return
		case <-due:
		case <-t.changed:
		}
	}
}

// ring says that the timer is due: as an event, and with the lights that are free.
func (x *Intents) ring(ctx context.Context, a alarm, late time.Duration, off bool) {
	state := "rang"
	if off {
		state = "rang_late" // while I was off
	}
	x.cfg.Log.InfoContext(ctx, "timer ringing", "late", late.Round(time.Second), "was_off", off)
	if err := x.cfg.Keep(ctx, timerEvent(state, time.Duration(a.LengthMS)*time.Millisecond, late)); err != nil {
		x.cfg.Log.WarnContext(ctx, "event of the timer not recorded", logging.Err, err)
	}
	x.cfg.Changed()
	defer x.cfg.Begin("TimerRinging")()
	page := x.show(ctx, mindlink.Page{Timer: &screen.Timer{Of: time.Duration(a.LengthMS) * time.Millisecond, Ringing: true}}, 2*(blinks+2)*blinkTime)
	defer func() {
		if ctx.Err() != nil { // a person heard it
			x.hide(ctx, page)
		}
	}()
	can, _, _, _ := x.now()
	if len(can.lights) == 0 {
		x.with(ctx, Animation{Trigger: "TimerRing"})
		return
	}
	lease, err := x.cfg.Core.Claim(ctx, 2*(blinks+2)*blinkTime, claim.Behavior, can.lights...)
	if err != nil {
		x.cfg.Log.DebugContext(ctx, "timer ringing without lights", logging.Err, err)
		return
	}
	defer lease.Release()
	x.with(ctx, Animation{Trigger: "TimerRing"})
	for i := range 2 * blinks {
		var blink core.Order
		for _, name := range can.lights {
			blink = blink.And(core.Set(name+".val", float64(1-i%2)))
		}
		if _, err := x.cfg.Core.Do(ctx, blink); err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(blinkTime):
		}
	}
}

func timerEvent(state string, length, late time.Duration) events.Event {
	return events.Event{Source: "agentd", Name: "robot.timer", S1: state, I1: events.Num(int64(length / time.Second)), I2: events.Num(int64(late / time.Second))}
}

// follow lets "cancel it" mean the timer for a while.
func (x *Intents) follow() {
	x.mu.Lock()
	x.after = time.Now().Add(recent)
	x.mu.Unlock()
}

func (x *Intents) setTimer(ctx context.Context, u intent.User) (Outcome, error) {
	n, err := strconv.ParseFloat(text(u, "time_s"), 64)
	if err != nil || !(n >= 1 && n <= longest.Seconds()) {
		return refuse(Invalid, "a timer runs for 1 second to %d hours", longest/time.Hour)
	}
	length := time.Duration(n) * time.Second
	if err := x.timer.start(length); err != nil {
		return Outcome{}, err
	}
	x.follow()
	x.cfg.Emit(timerEvent("set", length, 0))
	x.with(ctx, Animation{Trigger: "TimerSet"})
	x.showTimer(ctx)
	return say("timer set for %s", words(length))
}

func (x *Intents) checkTimer(ctx context.Context, _ intent.User) (Outcome, error) {
	left, is := x.timer.remaining()
	if !is {
		return say("no timer is set")
	}
	x.follow()
	x.with(ctx, Animation{Trigger: "TimerCheck"})
	x.showTimer(ctx)
	return say("%s left", words(max(left, 0)))
}

func (x *Intents) cancelTimer(ctx context.Context) (Outcome, error) {
	was, err := x.timer.end()
	if err != nil {
		return Outcome{}, err
	}
	if !was {
		return say("no timer is set")
	}
	x.cfg.Emit(timerEvent("cancelled", 0, 0))
	x.with(ctx, Animation{Trigger: "TimerCancel"})
	x.show(ctx, mindlink.Page{}, 0)
	return say("timer cancelled")
}

// words says a duration: "1 hour 5 minutes".
func words(d time.Duration) string {
	d = d.Round(time.Second)
	var out []string
	for _, u := range []struct {
		name string
		of   time.Duration
	}{{"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		if n := d / u.of; n > 0 || u.of == time.Second && len(out) == 0 {
			s := ""
			if n != 1 {
				s = "s"
			}
			out = append(out, fmt.Sprintf("%d %s%s", n, u.name, s))
			d -= n * u.of
		}
	}
	return strings.Join(out, " ")
}
