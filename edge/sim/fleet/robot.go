package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/agent/health/nightly"
	"kennel/edge/bodies"
	"kennel/edge/env/platform"
	"kennel/edge/sim"
	"kennel/infra/api/events"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/mqtt"
	"kennel/infra/thing"
)

// robot is one light robot over all its boots.
type robot struct {
	*Fleet
	id     thing.ID
	folder string
	plan   *Plan
	wire   *wire
	core   *core

	// The plan's side; live owns them.
	began time.Time
	step  Step
	more  bool // step is still to come

	restart chan struct{} // holds at most one

	mu       sync.Mutex
	agent    Agent // of this boot; nil: none
	up       bool
	ever     bool // was up once
	enrolled bool
	lost     time.Time // when a connection was lost that the plan did not cut
	emitted  uint64    // by agents of earlier boots
	acked    uint64
	dropped  uint64
	waiting  uint64 // when the agent of this boot began
}

// live is the robot from its birth until ctx ends. started is called when the next may begin to start. An error is one that ends the fleet.
func (r *robot) live(ctx context.Context, started func()) error {
	if err := r.birth(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	r.made.Add(1)
	patrol := time.AfterFunc(startPatrol, started)
	defer patrol.Stop()
	r.began = time.Now()
	r.step, r.more = r.plan.Next()
	clock, cold := r.plan.Clock, true
	for ctx.Err() == nil {
		again, err := r.boot(ctx, clock, cold, started)
		if err != nil && ctx.Err() == nil {
			// An agent that gives up is started again, as its supervisor on a robot would.
			r.failed("agent")
			r.cfg.Log.WarnContext(ctx, "agent exited", "thing", r.id, "err", err)
			_ = backoff.Sleep(ctx, backoff.Jitter(time.Second)) // the loop looks at ctx
		}
		if cold = again != nil; cold {
			clock = *again
			r.reboots.Add(1)
		}
	}
	return nil
}

// birth makes the robot's folder, if it is not there.
func (r *robot) birth(ctx context.Context) error {
	b := sim.Birth{Thing: r.id, Endpoints: r.cfg.Endpoints, RootPEM: r.cfg.RootPEM, OSVersion: r.cfg.OSVersion, ReleaseKey: r.cfg.ReleaseKey, ReleaseRoot: r.cfg.ReleaseRoot}
	if !r.born() {
		for pause := (backoff.Pause{Min: time.Second, Max: 10 * time.Second}); ; {
			var err error
			if b.Secret, err = r.cfg.Secrets.Secret(ctx, r.id); err == nil {
				break
			}
			if k := errs.KindOf(err); k != errs.Unavailable && k != errs.Exhausted {
				return err
			}
			r.failed("register")
			if backoff.Sleep(ctx, pause.Next(nil)) != nil {
				return err
			}
		}
	}
	return sim.Make(r.folder, b)
}

// born reports whether the folder holds a robot.
func (r *robot) born() bool {
	root, err := os.OpenRoot(r.folder)
	if err != nil {
		return false
	}
	defer root.Close() // read only
	_, err = platform.ID(root, bodies.Hardware{})
	return err == nil
}

// boot runs one agent and what the plan has for it. again is the clock of the next boot, if the plan wants one. After a cold boot run/ is
// empty, as on a robot.
func (r *robot) boot(ctx context.Context, clock Clock, cold bool, started func()) (again *Clock, err error) {
	root, err := os.OpenRoot(r.folder)
	if err != nil {
		return nil, err
	}
	defer root.Close() // what was written is synced
	if cold {
		if err := root.RemoveAll("run"); err != nil {
			return nil, err
		}
		if sys, _, err := sim.LoadSlot(root); err != nil {
			return nil, err
		} else if sys.DiesOn(r.id) {
			return &clock, backoff.Sleep(ctx, backoff.Jitter(time.Second))
		}
	}
	at := time.Now()
	a, err := r.cfg.NewAgent(root, Machine{
		Folder: r.folder, Log: r.cfg.RobotLog, Core: r.core, Now: func() time.Time { return clock.at(at, time.Now()) }, Dial: r.wire.dial,
		OnUp: func() { r.connect(); started() }, OnDown: r.disconnect,
		Status: r.cfg.Profile.Status, Flush: r.cfg.Profile.Flush, Telemetry: r.cfg.Profile.Telemetry,
	})
	if err != nil {
		return nil, err
	}
	_, spool := a.Events()
	r.mu.Lock()
	r.agent, r.waiting = a, spool.Events
	r.mu.Unlock()
	defer r.count()

	actx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1) // it ends once
	go func() { ended <- a.Run(actx) }()
	again = r.follow(actx, a, clock, ended)
	stop()
	if again != nil || ctx.Err() != nil {
		<-ended // a goodbye that fails is the wire's fault
		return again, nil
	}
	if err = <-ended; nightly.Installed(root) {
		return &clock, nil // that was why
	}
	if err == nil {
		err = errors.New("the agent exited by itself")
	}
	return nil, err
}

// crash reports a crash; false: no agent runs.
func (r *robot) crash() bool {
	r.mu.Lock()
	a := r.agent
	r.mu.Unlock()
	if a != nil {
		a.Emit(events.Event{Source: "robotsim", Level: events.Error, Name: "robot.crash", S1: "robotsim", S2: "planted", S3: r.cfg.OSVersion, I1: events.Num(time.Now().UnixMilli())})
	}
	return a != nil
}

// follow does the plan's steps until one is a reboot, the robot is told to reboot (it keeps its clock), the agent ended, or ctx.
func (r *robot) follow(ctx context.Context, a Agent, clock Clock, ended chan error) (again *Clock) {
	for r.more {
		switch r.await(ctx, r.began.Add(r.cfg.Profile.real(r.step.At)), ended) {
		case restarted:
			return &clock
		case over:
			return nil
		}
		s := r.step
		r.step, r.more = r.plan.Next()
		switch s.Kind {
		case Emit:
			a.Emit(events.Event{Source: "robotsim", Name: "robotsim.event", S1: strconv.FormatUint(s.N, 10)})
			r.emits.Add(1)
		case Change:
			err := a.Set(ctx, map[string]json.RawMessage{s.Field: json.RawMessage(s.Value)})
			if err != nil && ctx.Err() == nil {
				r.failed("setting")
				continue
			}
			r.changed.Add(1)
		case Drop:
			r.drops.Add(1)
			r.wire.cut()
		case Leave:
			r.forgive()
			r.wire.leave()
		case Return:
			r.wire.back()
		case Reboot:
			return &s.Clock
		}
	}
	if r.await(ctx, time.Time{}, ended) == restarted {
		return &clock
	}
	return nil
}

// The ends of await.
type waited int

const (
	due waited = iota
	restarted
	over // the agent or ctx ended before
)

// await waits for a time; the zero time never comes. What ended the agent stays in ended.
func (r *robot) await(ctx context.Context, at time.Time, ended chan error) waited {
	var tick <-chan time.Time
	if !at.IsZero() {
		t := time.NewTimer(time.Until(at))
		defer t.Stop()
		tick = t.C
	}
	select {
	case <-tick:
		return due
	case <-r.restart:
		return restarted
	case <-ctx.Done():
	case err := <-ended:
		ended <- err
	}
	return over
}

// reboot restarts the robot's computer; one that boots just now does so when it is through.
func (r *robot) reboot() {
	select {
	case r.restart <- struct{}{}:
	default: // it is asked to already
	}
}

// connect counts a login: from the dial to the subscription.
func (r *robot) connect() {
	now := time.Now()
	login := now.Sub(r.wire.lastDial())
	r.mu.Lock()
	ever, lost := r.ever, r.lost
	r.up, r.ever, r.lost = true, true, time.Time{}
	r.mu.Unlock()
	r.connects.Add(1)
	if ever {
		r.reconnects.Add(1)
	}
	r.Fleet.mu.Lock()
	defer r.Fleet.mu.Unlock()
	r.logins.add(login)
	if !lost.IsZero() {
		r.absence.add(now.Sub(lost))
	}
}

// disconnect counts why there is no connection.
func (r *robot) disconnect(err error) {
	reason := devicecert.Explain(err).Code
	if d, ok := errors.AsType[*mqtt.DownError](err); ok {
		reason = fmt.Sprintf("%s/%s", d.Step, d.Reason)
		if _, trust := errors.AsType[*devicecert.TrustError](err); trust {
			reason = d.Step + "/" + devicecert.Explain(err).Code
		}
	}
	r.failed(reason)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.up {
		r.up = false
		if !r.wire.isAway() {
			r.lost = time.Now()
		}
	}
}

// forgive makes the coming absence one that the plan wants: it is no measure of how a fleet is served.
func (r *robot) forgive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = time.Time{}
}

func (r *robot) connected() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.up
}

// count adds what the agent of this boot did to the robot's sums, and lets it go.
func (r *robot) count() {
	e := r.events()
	r.identity()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.emitted, r.acked, r.dropped, r.waiting = e.Emitted, e.Acked, e.Dropped, 0
	r.agent, r.up, r.lost = nil, false, time.Time{}
}

// events counts what became of the robot's events.
func (r *robot) events() Events {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := Events{Emitted: r.emitted, Acked: r.acked, Dropped: r.dropped}
	if r.agent == nil {
		return e
	}
	emitted, spool := r.agent.Events()
	e.Emitted += emitted
	e.Waiting = spool.Events
	e.Quarantined = spool.Quarantined
	e.Dropped += spool.Dropped
	// The cloud has every event that neither waits nor was lost.
	if all, kept := r.waiting+emitted, spool.Events+spool.Dropped+spool.Quarantined; all > kept {
		e.Acked += all - kept
	}
	return e
}

// identity reports whether the robot has a certificate; if not, problem is the reason, if known.
func (r *robot) identity() (enrolled bool, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.enrolled || r.agent == nil {
		return r.enrolled, ""
	}
	switch st, ok := r.agent.Identity(); {
	case ok && !st.NotAfter.IsZero():
		r.enrolled = true
	case ok && st.Code != "":
		problem = st.Step + "/" + st.Code
	}
	return r.enrolled, problem
}
