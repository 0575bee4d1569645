package agentapp

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"time"

	"kennel/edge/agent/cloud"
	"kennel/edge/agent/health"
	"kennel/edge/agent/health/diagnosis"
	"kennel/edge/agent/health/vitals"
	"kennel/edge/agent/orders"
	"kennel/edge/agent/ownership"
	"kennel/edge/app/agentapp/local"
	"kennel/edge/app/agentapp/talk"
	"kennel/edge/bodies"
	"kennel/edge/body/monoclock"
	"kennel/edge/coreclient"
	"kennel/edge/corelink"
	"kennel/edge/env/platform"
	"kennel/edge/startup"
	"kennel/infra/api/events"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/runner"
)

// making lists the steps that make an agent, in order (VEC-BOOT-11): first the user data of a former owner are erased, then the robot's identity is
// read, then the stores for all other parts are opened. Each step may use the results of the steps before it.
func (a *Agent) making() []startup.Stage {
	return []startup.Stage{
		{Name: "slots", Do: a.openSlots},
		{Name: "user_data", Do: func(context.Context) error { return ownership.Clear(a.Robot) }},
		{Name: "identity", Do: a.readIdentity},
		{Name: "boot", Do: a.readBoot},
		{Name: "events", Do: a.openEvents},
		{Name: "documents", Do: a.openDocuments},
		{Name: "parts", Do: a.makeParts},
		{Name: "owner", Do: a.meetPeople},
		{Name: "commands", Do: a.takeOrders},
	}
}

// openSlots opens the slots. A robot whose record of them cannot be read lives on with the system that it has.
func (a *Agent) openSlots(context.Context) (err error) {
	if a.slots, err = cloud.OpenSlots(a.Robot); a.slots == nil && err != nil {
		a.Log.Error("the robot installs no releases", logging.Err, err)
		return nil
	}
	return err
}

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
	if !a.Frugal { // after the user data of a former owner went, among which records are
		a.crash = health.Record(a.Robot)
	}
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

func (a *Agent) openEvents(context.Context) (err error) {
	a.report = diagnosis.NewKeeper(a.Root, a.facts, a.Now, a.Log)
	ways, err := platform.LoadUploads(a.Root, a.Getenv)
	if err != nil {
		a.Log.Error("settings ignored", logging.Err, err)
	}
	a.Log = local.Errors(a.Log, func(e events.Event) {
		if c := a.cloud; c != nil { // else the events are not open
			c.Emit(e)
		}
	})
	var core func() cloud.Core
	if !a.Frugal { // its core is not watched
		core = func() cloud.Core { return a.health.Core() }
	}
	a.cloud, err = cloud.New(a.Robot, cloud.Config{TracePermille: a.cfg.TracePermille, KeepEvents: !ways.Events, Consented: a.consented, Doubted: func() { a.people.Look() }, Flush: a.cfg.Flush, Interval: a.cfg.Status, Status: a.status,
		Core: core, Trial: a.cfg.Trial, Dial: a.cfg.Dial, OnUp: a.cfg.OnUp, OnDown: a.cfg.OnDown, Changed: a.report.Changed, Mirror: a.cfg.Console.Event, Slots: a.slots,
		Needs:  func(battery, charger bool) error { return a.health.Needs(battery, charger) },
		Local:  func() (time.Time, bool) { return a.localTime() },
		Reboot: func(ctx context.Context) error { return a.health.Reboot(ctx) }})
	if err == nil {
		a.Robot.Emit, a.Robot.Keep = a.cloud.Emit, a.cloud.Keep
		a.logs = health.OpenLogs(a.Robot, ways, a.cloud.Events().AllowUpload, a.cloud.Events().ProfileID, a.cloud.Upload)
	}
	return err
}

func (a *Agent) openDocuments(context.Context) (err error) {
	if a.core == nil {
		a.core = corelink.NewClient(a.Dir, corelink.WithHello(corelink.Hello{Program: "agentd", Version: version.String(), PID: uint32(os.Getpid())}))
	}
	a.client = coreclient.New(a.core)
	a.orders, err = orders.New(a.Robot, orders.Config{Cloud: a.cloud, Core: a.client, Memory: bodies.Memory(a.Dir, a.Thing),
		Hinted: func(docs map[string]uint64) { a.people.Hinted(docs) }, Restart: a.startAnew,
		Local: func() (time.Time, bool) { return a.localTime() }, SendLogs: a.sendLogs})
	return err
}

func (a *Agent) makeParts(context.Context) error {
	d := a.orders.Docs()
	a.health = health.New(a.Robot, health.Config{Telemetry: a.cfg.Telemetry, Silence: a.cfg.Silence, Restart: a.cfg.Restart, Changed: a.cloud.Changed,
		Stats: d.AddStats, Upload: a.cloud.Events().AllowUpload, Nightly: a.cfg.Nightly, Reboot: a.cfg.Reboot, End: a.startAnew,
		Backup: a.cloud.Events().Backup, Send: a.cloud.Upload, Host: func() string { return a.people.Name() }, Clock: a.cloud.ClockAgrees, Get: d.Get})
	a.localTime = a.health.LocalTime()
	return nil
}

func (a *Agent) meetPeople(context.Context) (err error) {
	a.people, err = ownership.New(a.Robot, ownership.Config{Ask: a.cloud, Linked: a.cloud.Linked, Believed: a.cloud.Believed, Fault: a.health.Fault,
		Consent: a.cloud.Consent, Former: a.cloud.Former, Named: a.meetCore, Restart: a.startAnew, Local: a.requests()})
	return err
}

// requests are those that other programs of the robot make on agentd's socket, beside those about people.
func (a *Agent) requests() map[string]http.Handler {
	all := updateRequests(a.cloud.Release())
	maps.Copy(all, logRequests(a.logs))
	maps.Copy(all, talk.Requests(func() *talk.Talk { return a.talk })) // it is made later
	maps.Copy(all, local.Requests(a.Root, a.cloud.Events()))
	return all
}

// takeOrders opens what the robot needs to be told what to do, by the cloud and by voice.
func (a *Agent) takeOrders(ctx context.Context) error {
	err := a.orders.TakeCommands(ctx)
	if inbox := a.orders.Inbox(); inbox != nil && err == nil {
		a.talk = talk.New(a.Robot, talk.Config{Cloud: a.cloud, Core: a.client, Docs: a.orders.Docs().Get, Inbox: inbox, Fault: a.health.Fault, Dial: a.cfg.Dial})
	}
	return err
}

// start records agentd's start. A frugal agent does not report it: the start of many robots in one process says nothing about one robot.
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

// made records that all parts are made and will run, and how long that took.
func (s *start) made() {
	s.run = true
	if s.a.Frugal {
		return
	}
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
