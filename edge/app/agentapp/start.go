package agentapp

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"kennel/edge/agent/health/diagnosis"
	"kennel/edge/agent/health/vitals"
	"kennel/edge/agent/host"
	"kennel/edge/agent/ownership"
	"kennel/edge/agent/release"
	"kennel/edge/body/monoclock"
	"kennel/edge/core/corelink"
	"kennel/edge/env/platform"
	"kennel/edge/startup"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/runner"
)

// openSlots opens the slots. A robot whose record of them cannot be read lives on with the system that it has.
func (a *Agent) openSlots(context.Context) (err error) {
	if a.slots, err = release.Slots(a.Root, a.Hardware); a.slots == nil && err != nil {
		a.Log.Error("updates not available", logging.Err, err)
		return nil
	}
	return err
}

func (a *Agent) clear(context.Context) error { return ownership.Clear(a.Robot) }

func (a *Agent) readIdentity(context.Context) (err error) {
	if a.Thing, err = platform.ID(a.Root, a.Hardware); err != nil {
		return errs.New(errs.Corrupt, "%w", err) // fault 852: nothing can be done in this robot's name
	}
	a.Log = a.Log.With(logging.Thing, a.Thing)
	return nil
}

// readBoot reads the boot id and, if the system says it, the time from power on to here (VEC-BOOT-06). A program that restarts within a
// boot does not report that time.
func (a *Agent) readBoot(context.Context) (err error) {
	if a.Boot, err = platform.BootID(a.Root); err != nil {
		return err
	}
	a.OS = platform.OSVersion(a.Root)
	if first, err := platform.FirstStart(a.Root); !first {
		return err
	}
	up, err := startup.Uptime(a.Root)
	switch {
	case err == nil:
		a.start.system = max(up-(monoclock.Now()-a.start.began), time.Millisecond)
	case !errors.Is(err, fs.ErrNotExist):
		a.Log.Warn("system start time unreadable", logging.Err, err)
	}
	return nil
}

// start records agentd's start. A light agent lacks its part: the start of many robots in one process says nothing about one robot.
type start struct {
	a      *Agent
	began  time.Duration
	rec    *startup.Record
	system time.Duration // from the start of the system to agentd's start; 0: not known, or said by an agentd before this
	run    bool          // events can be recorded; set before the services run

	core, cloud chan struct{} // reached; one slot
}

func newStart(a *Agent) *start {
	s := &start{a: a, began: monoclock.Now(), core: make(chan struct{}, 1), cloud: make(chan struct{}, 1)}
	s.rec = startup.New(monoclock.Now, s.tell)
	return s
}

// tell records a step's event.
func (s *start) tell(t startup.Took) {
	if !s.run {
		return
	}
	s.a.Emit(vitals.TimeSpent("agentd", t.Name, t.Spent(), t.Begin-s.began, wordsOf(t.Err)))
}

// part reports the start.
func (s *start) part(*host.Host) (host.Part, error) {
	return host.Part{Name: "start", Begin: s.made, Services: s.services(), Hears: []host.Hearing{
		host.On(func(*corelink.Hello) { s.reached(s.core) }), host.On(func(host.LinkUp) { s.reached(s.cloud) })}}, nil
}

// made records that all parts are made and will run, and how long that took.
func (s *start) made() {
	s.run = true
	if s.system > 0 {
		s.a.Emit(vitals.TimeSpent("system", vitals.WholeStart, s.system, 0, ""))
	}
	for _, t := range s.rec.Done() {
		s.tell(t)
	}
	s.a.Emit(vitals.TimeSpent("agentd", vitals.WholeStart, monoclock.Now()-s.began, 0, ""))
}

// services wait for the two things that a robot needs to be useful, each on its own: neither needs the other, and the agent works without them.
func (s *start) services() []runner.Service {
	wait := func(name string, c <-chan struct{}) runner.Service {
		return runner.Service{Name: "start: " + name, Run: func(ctx context.Context) error {
			_ = s.rec.Walk(ctx, startup.Stage{Name: name, Do: func(ctx context.Context) error {
				select {
				case <-c:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}}) // it ended before
			return nil
		}}
	}
	return []runner.Service{wait("reach_core", s.core), wait("reach_cloud", s.cloud)}
}

// reached says that the wait for c is over.
func (s *start) reached(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // said already
	}
}

// facts is the start of the robot's programs for the report.
func (s *start) facts() (out []diagnosis.Start) {
	if s.system > 0 {
		out = append(out, diagnosis.Start{Program: "system", Step: vitals.WholeStart, TookMS: s.system.Milliseconds()})
	}
	for _, t := range s.a.health.Start().Stages {
		out = append(out, diagnosis.Start{Program: "robotd", Step: t.Name, TookMS: (t.EndedUS - t.BeganUS) / 1000, Problem: t.Error})
	}
	for _, t := range s.rec.Done() {
		out = append(out, diagnosis.Start{Program: "agentd", Step: t.Name, TookMS: t.Spent().Milliseconds(), Problem: wordsOf(t.Err)})
	}
	return out
}

// wordsOf is an error's text; "" for none.
func wordsOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
