package agentapp

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"kennel/edge/agent/cloud/das"
	"kennel/edge/agent/cloud/docs"
	"kennel/edge/agent/cloud/presence"
	"kennel/edge/agent/cloud/release"
	"kennel/edge/agent/health/diagnosis"
	"kennel/edge/agent/health/vitals"
	"kennel/edge/agent/info/platform"
	"kennel/edge/agent/people/wipe"
	"kennel/edge/agent/work/commands"
	"kennel/edge/agent/work/parameters"
	"kennel/edge/agent/work/pilot"
	"kennel/edge/agent/work/simulator"
	"kennel/edge/body/mono"
	"kennel/edge/coreclient"
	"kennel/edge/corelink"
	"kennel/edge/stages"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

// making lists the steps that make an agent, in order (VEC-BOOT-11): first the user data of a former owner are erased, then the robot's identity is
// read, then the stores for all other parts are opened. Each step may use the results of the steps before it.
func (a *Agent) making() []stages.Stage {
	return []stages.Stage{
		{Name: "user_data", Do: a.clearData},
		{Name: "identity", Do: a.readIdentity},
		{Name: "boot", Do: a.readBoot},
		{Name: "events", Do: a.openEvents},
		{Name: "documents", Do: a.openDocuments},
		{Name: "parts", Do: a.makeParts},
		{Name: "owner", Do: a.makeOwned},
		{Name: "commands", Do: a.makeCommands},
	}
}

// clearData carries out a requested wipe, so that no part uses a former owner's data.
func (a *Agent) clearData(context.Context) error {
	_, err := wipe.Resume(wipe.Config{Root: a.root, Log: a.cfg.Log})
	return err
}

func (a *Agent) readIdentity(context.Context) (err error) {
	if a.id, err = platform.ID(a.root); err != nil {
		return errs.New(errs.Corrupt, "%w", err) // fault 852: nothing can be done in this robot's name
	}
	a.log = a.cfg.Log.With(logging.Thing, a.id)
	return nil
}

// readBoot reads the boot id and, if the system says it, the time from power on to here (VEC-BOOT-06). A program that restarts within a
// boot does not report that time.
func (a *Agent) readBoot(context.Context) (err error) {
	_, known := a.root.Stat(platform.BootIDFile)
	if a.boot, err = platform.BootID(a.root); err != nil {
		return err
	}
	a.os = platform.OSVersion(a.root)
	if !errors.Is(known, fs.ErrNotExist) {
		return nil
	}
	up, err := stages.Uptime(a.root)
	switch {
	case err == nil:
		a.start.system = max(up-(mono.Now()-a.start.began), time.Millisecond)
	case !errors.Is(err, fs.ErrNotExist):
		a.log.Warn("system start time unreadable", logging.Err, err)
	}
	return nil
}

func (a *Agent) openEvents(context.Context) (err error) {
	a.das, err = das.New(das.Config{Root: a.root, Thing: a.id, BootID: a.boot, RobotVersion: a.os, Uptime: a.uptime, Synced: a.clockRight,
		Now: a.cfg.Now, Log: a.log,
		FlushInterval: a.cfg.Flush, Frugal: a.cfg.Frugal})
	if err == nil && a.cfg.Recovery {
		err = a.das.SetAllowUpload(false)
	}
	return err
}

func (a *Agent) openDocuments(context.Context) (err error) {
	a.presence = presence.New(a.boot, a.status, presence.Every(a.cfg.Status), presence.Clock(a.cfg.Now))
	cfg := docs.Config{Root: a.root, Remote: jdocswire.NewClient(requester{a}), Log: a.log, OnChanged: a.docChanged, OnPushed: a.docPushed,
		Unwatched: a.cfg.Frugal}
	memory := memoryOf(a.cfg.Root, a.id)
	if memory != nil {
		name, stored, err := parameters.Stored(a.root, memory)
		if err != nil {
			return err
		}
		cfg.Own = map[jdocs.Name]map[string]json.RawMessage{name: stored, jdocs.RobotSettings: plainSettings()}
	}
	if a.docs, err = docs.New(cfg); err != nil || memory == nil || a.cfg.Frugal {
		return err
	}
	a.parameters, err = parameters.New(a.root, memory, a.docs, a.emit, a.presence.Changed, a.log)
	return err
}

func (a *Agent) makeParts(context.Context) error {
	a.vitals = vitals.New(a.emit, a.presence.Changed, a.docs.AddStats)
	a.release = release.New(a.os, requester{a}, a.publish, a.log)
	if a.core == nil {
		hello := corelink.Hello{Program: "agentd", Version: version.String(), PID: uint32(os.Getpid())}
		a.core = corelink.NewClient(a.cfg.Root, corelink.WithHello(hello))
	}
	a.client = coreclient.New(a.core)
	var sim pilot.Simulator
	if !a.cfg.Frugal { // which has no body, and no simulator of one
		sim = simulator.NewClient(a.root)
	}
	a.pilot = pilot.New(a.client, sim, a.publish, a.log)
	if a.cfg.Nightly != nil && !a.cfg.Recovery {
		a.newNightly()
	}
	a.teller = wipe.NewTeller(a.root, requester{a}, a.emitKept, a.log)
	a.newFaults()
	a.checkFactory()
	return nil
}

func (a *Agent) makeOwned(context.Context) error {
	if a.cfg.Frugal {
		return nil
	}
	return a.newOwned()
}

func (a *Agent) makeCommands(context.Context) (err error) {
	a.commands, err = commands.New(commands.Config{Root: a.root, Executors: a.executors(), Ask: requester{a}, Log: a.log})
	return err
}

// start records agentd's start. A frugal agent does not report it: the start of many robots in one process says nothing about one robot.
type start struct {
	a      *Agent
	began  time.Duration
	rec    *stages.Record
	system time.Duration // from the start of the system to agentd's start; 0: not known, or said by an agentd before this
	run    bool          // events can be recorded; set before the services run

	core, cloud chan struct{} // reached; one slot
}

func newStart(a *Agent) *start {
	s := &start{a: a, began: mono.Now(), core: make(chan struct{}, 1), cloud: make(chan struct{}, 1)}
	s.rec = stages.New(mono.Now, s.tell)
	return s
}

// tell records a step's event.
func (s *start) tell(t stages.Took) {
	if !s.run {
		return
	}
	s.a.emit(vitals.TimeSpent("agentd", t.Name, t.Spent(), t.Begin-s.began, wordsOf(t.Err)))
}

// made records that all parts are made and will run, and how long that took.
func (s *start) made() {
	s.run = true
	if s.a.cfg.Frugal {
		return
	}
	if s.system > 0 {
		s.a.emit(vitals.TimeSpent("system", vitals.WholeStart, s.system, 0, ""))
	}
	for _, t := range s.rec.Done() {
		s.tell(t)
	}
	s.a.emit(vitals.TimeSpent("agentd", vitals.WholeStart, mono.Now()-s.began, 0, ""))
}

// services wait for the two things that a robot needs to be useful, each on its own: neither needs the other, and the agent works without them.
func (s *start) services() []runner.Service {
	if s.a.cfg.Frugal {
		return nil
	}
	wait := func(name string, c <-chan struct{}) runner.Service {
		return runner.Service{Name: "start: " + name, Run: func(ctx context.Context) error {
			_ = s.rec.Walk(ctx, stages.Stage{Name: name, Do: func(ctx context.Context) error {
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
	for _, t := range s.a.vitals.Start().Stages {
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
