package agentapp

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"os"

	"kennel/edge/agent/activity"
	"kennel/edge/agent/commands"
	"kennel/edge/agent/das"
	"kennel/edge/agent/docs"
	"kennel/edge/agent/features"
	"kennel/edge/agent/feelings"
	"kennel/edge/agent/health"
	"kennel/edge/agent/health/diag"
	"kennel/edge/agent/health/diagnosis"
	"kennel/edge/agent/health/latency"
	"kennel/edge/agent/host"
	"kennel/edge/agent/intents"
	"kennel/edge/agent/link"
	"kennel/edge/agent/localapi"
	"kennel/edge/agent/motions"
	"kennel/edge/agent/ownership"
	"kennel/edge/agent/parameters"
	"kennel/edge/agent/photos"
	"kennel/edge/agent/release"
	"kennel/edge/agent/teleop"
	"kennel/edge/agent/teleop/simulator"
	"kennel/edge/agent/voice"
	"kennel/edge/app/agentapp/local"
	"kennel/edge/app/agentapp/recovery"
	"kennel/edge/app/agentapp/talk"
	"kennel/edge/bodies"
	"kennel/edge/body/monoclock"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/crash"
	"kennel/edge/env/platform"
	"kennel/edge/gateway"
	"kennel/edge/mind/mindlink"
	"kennel/edge/vectorsdk"
	"kennel/infra/api/events"
	"kennel/infra/api/topics"
	"kennel/infra/cli/version"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
	"kennel/ota"
)

// maker makes a part, which may use those before it in the list.
type maker = func(*host.Host) (host.Part, error)

// step is one step of the making of an agent (part of VEC-BOOT-11): what is done, then the parts that are made.
type step struct {
	name  string
	do    func(context.Context) error
	parts []maker
}

// full lists the parts of a robot's agent, in the order in which they are made and started; they stop in reverse order. First the user data of a former
// owner are erased, then the robot's identity is read, then the stores for all other parts are opened.
func (a *Agent) full() []step {
	return []step{
		{"slots", a.openSlots, []maker{a.start.part}},
		{"user_data", a.clear, nil},
		{"identity", a.readIdentity, nil},
		{"boot", a.readBoot, []maker{a.recordCrashes}},
		{"events", nil, []maker{
			a.newEvents,
			a.newLink,
		}},
		{"documents", nil, []maker{
			a.newCore,
			a.newDocuments,
			a.newParameters,
		}},
		{"parts", nil, []maker{
			a.newActivity,
			a.newVitals,
			later(func() host.Part { return a.health.Faults() }),
			later(func() host.Part { return a.health.FaultHandling() }),
			later(func() host.Part { return a.health.Crashes() }),
			later(func() host.Part { return a.health.Night() }),
			a.newLatency,
			a.newUpdates(func() release.Core { return a.health.Core() }),
		}},
		{"owner", nil, []maker{
			a.newOwnership,
			a.newIntroduction,
			a.newGateway,
			a.newUploads(func(ctx context.Context) error { return a.people.Confirm(ctx) }),
			of(localapi.Part),
		}},
		{"commands", nil, []maker{
			a.newIntents,
			later(func() host.Part { return a.feels.Part() }),
			a.newMotions,
			a.newTeleop(simulator.NewClient(a.Root)),
			a.newCommands,
			a.newVoice,
			of(a.cfg.Console.Part),
			later(func() host.Part { return local.Programs(a.Host, a.events.Manager) }),
			of(local.Experiments),
			later(func() host.Part {
				return host.Part{Name: "diagnosis", Services: []runner.Service{{Name: "diagnosis", Run: a.report.Run}}}
			}),
		}},
	}
}

// light lists the parts of an agent that is one of many in a process, or runs after a recovery boot: nothing that concerns people, and nothing that shows
// faults or handles them.
func (a *Agent) light() []step {
	return []step{
		{"slots", a.openSlots, []maker{of(recovery.Part)}},
		{"user_data", a.clear, nil},
		{"identity", a.readIdentity, nil},
		{"boot", a.readBoot, nil},
		{"events", nil, []maker{a.newEvents, a.newLink}},
		{"documents", nil, []maker{a.newCore, a.newDocuments}},
		{"parts", nil, []maker{
			a.newVitals,
			later(func() host.Part { return a.health.Faults() }),
			later(func() host.Part { return a.health.Night() }),
			a.newUpdates(nil), // its core is not watched
		}},
		{"owner", nil, []maker{
			later(func() host.Part { return ownership.Unowned(a.Host, a.link, a.link.Linked) }),
			a.newUploads(nil),
		}},
		{"commands", nil, []maker{
			of(intents.None),
			a.newTeleop(nil), // it has no body, and no simulator of one
			a.newCommands,
		}},
	}
}

// of and later make a part that cannot fail; later's needs parts before it.
func of(part func(*host.Host) host.Part) maker {
	return func(h *host.Host) (host.Part, error) { return part(h), nil }
}

func later(part func() host.Part) maker {
	return func(*host.Host) (host.Part, error) { return part(), nil }
}

// recordCrashes begins the record of this process after the user data of a former owner went, among which records are.
func (a *Agent) recordCrashes(h *host.Host) (host.Part, error) {
	a.crash = crash.Begin(h.Dir, "agentd", h.Hardware, h.Getenv, h.Log)
	return host.Part{Name: "crash record"}, nil
}

func (a *Agent) newEvents(h *host.Host) (host.Part, error) {
	a.report = diagnosis.NewKeeper(h.Root, a.facts, h.Now, h.Log)
	var err error
	if a.ways, err = platform.LoadUploads(h.Root, h.Getenv); err != nil {
		h.Log.Error("settings ignored", logging.Err, err)
	}
	h.Log = local.Errors(h.Log, func(e events.Event) {
		if h.Emit != nil { // else the events are not open
			h.Emit(e)
		}
	})
	a.link = link.New(h, link.Config{TracePermille: a.cfg.TracePermille, Interval: a.cfg.Status, Dial: a.cfg.Dial, OnUp: a.cfg.OnUp, OnDown: a.cfg.OnDown,
		News: a.report.Changed})
	h.Changed = a.link.Changed
	publish := a.link.Publish
	if !a.ways.Events {
		publish = nil
	}
	a.events, err = das.Open(h, publish, das.Config{Synced: a.link.ClockRight, Mirror: a.cfg.Console.Event, FlushInterval: a.cfg.Flush})
	if err != nil {
		return host.Part{}, err
	}
	return a.events.Part(), nil
}

func (a *Agent) newLink(*host.Host) (host.Part, error) { return a.link.Part(), nil }

// newCore hands robotd's messages to the parts, and starts over whenever robotd does.
func (a *Agent) newCore(h *host.Host) (host.Part, error) {
	core := a.cfg.Core
	if core == nil {
		core = corelink.NewClient(h.Dir, corelink.WithHello(corelink.Hello{Program: "agentd", Version: version.String(), PID: uint32(os.Getpid())}))
	}
	a.client = coreclient.New(core)
	return host.Part{Name: "core", Services: []runner.Service{{Name: "core", Run: func(ctx context.Context) error {
		return core.Run(ctx, func(m corelink.Message) {
			a.client.Handle(m)
			h.Publish(m)
		})
	}}}}, nil
}

func (a *Agent) newDocuments(h *host.Host) (host.Part, error) {
	var own map[jdocs.Name]map[string]json.RawMessage
	if a.memory = bodies.Memory(h.Dir, h.Thing); a.memory != nil {
		name, stored, err := parameters.Stored(h.Root, a.memory)
		if err != nil {
			return host.Part{}, err
		}
		own = map[jdocs.Name]map[string]json.RawMessage{name: stored}
	}
	var err error
	if a.docs, err = docs.Open(h, jdocswire.NewClient(a.link), own); err != nil {
		return host.Part{}, err
	}
	return a.docs.Part(), nil
}

// newParameters keeps the settings that the body stores itself, if it does.
func (a *Agent) newParameters(h *host.Host) (host.Part, error) {
	if a.memory == nil {
		return host.Part{Name: "parameters"}, nil
	}
	k, err := parameters.New(h.Root, a.memory, a.docs, h.Emit, h.Changed, h.Log)
	return k.Part(), err
}

// newActivity counts what the robot does.
func (a *Agent) newActivity(h *host.Host) (host.Part, error) {
	a.deeds = activity.New(activity.Config{Emit: h.Emit, Stats: a.docs.AddStats})
	mind := mindlink.NewClient(h.Dir)
	a.feels = feelings.New(feelings.Config{Mind: mind, Runs: (&character{mind, h.Root, a.deeds}).Runs, Emit: h.Emit, Log: h.Log, Told: func(now mindlink.Feeling) {
		if a.sdk != nil { // made before this part runs
			a.sdk.Felt(now)
		}
	}})
	return a.deeds.Part(), nil
}

// newVitals makes the parts of the robot's health, and returns the first.
func (a *Agent) newVitals(h *host.Host) (host.Part, error) {
	a.health = health.New(h, health.Config{Telemetry: a.cfg.Telemetry, Silence: a.cfg.Silence, Restart: a.cfg.Restart, Stats: a.docs.AddStats,
		Upload: a.events.AllowUpload, Nightly: a.cfg.Nightly, Reboot: a.cfg.Reboot, Backup: a.events.Backup, Send: a.events.Uploads(a.link.Upload), Host: a.name,
		Clock: a.link.ClockAgrees, Get: a.docs.Get, Simulated: simulator.NewClient(a.Root).Present})
	return a.health.Vitals(), nil
}

// newLatency measures how fast the cloud is reached.
func (a *Agent) newLatency(h *host.Host) (host.Part, error) {
	p := host.Part{Name: "latency"}
	e, err := platform.LoadEndpoints(h.Root, h.Hardware)
	if a.cfg.Latency > 0 && err == nil { // the link says what is wrong with them
		p.Services = []runner.Service{{Name: p.Name, Run: latency.Config{Endpoints: e, Emit: h.Emit, Every: a.cfg.Latency, Dial: a.cfg.Dial}.Run}}
	}
	return p, nil
}

// newUpdates follows the release that the cloud wants. core is nil for a robot without a watch on its core.
func (a *Agent) newUpdates(core func() release.Core) maker {
	return func(h *host.Host) (host.Part, error) {
		c := release.Config{Running: h.OS, Ask: a.link, Publish: a.link.Publish, Local: a.health.LocalTime(), Core: core, Trial: a.cfg.Trial, Reboot: a.health.Reboot,
			Needs: func(n ota.Needs) error { return a.health.Needs(n.Battery, n.Charger) }, Root: h.Root, Log: h.Log}
		if a.slots != nil {
			var err error
			if c.Updater, err = release.NewUpdater(h.Robot, a.slots, a.cfg.Dial, a.link, a.link.Believed); err != nil {
				h.Log.Warn("updates not available", logging.Err, err)
			}
		}
		a.updates = release.New(c)
		return a.updates.Part(), nil
	}
}

func (a *Agent) newOwnership(h *host.Host) (host.Part, error) {
	var err error
	if a.people, err = ownership.New(h, ownership.Config{Ask: a.link, Linked: a.link.Linked, Believed: a.link.Believed, Fault: a.health.Fault}); err != nil {
		return host.Part{}, err
	}
	return a.people.Part(), nil
}

// name returns the robot's name; "" while it has none.
func (a *Agent) name() string {
	if a.people == nil {
		return ""
	}
	return a.people.Name()
}

// newIntroduction sends robotd the robot's identity, for the root of its tree. It does so for each robotd, and again when the name is made.
func (a *Agent) newIntroduction(h *host.Host) (host.Part, error) {
	introduce := func() error {
		a.client.Introduce(a.name(), h.Thing.Serial(), hostAddress())
		return nil
	}
	return host.Part{Name: "introduction", Hears: []host.Hearing{
		host.Queue(4, func(context.Context, *corelink.Hello) error { return introduce() }),
		host.Queue(1, func(context.Context, host.Named) error { return introduce() }),
	}}, nil
}

// newGateway serves programs, unless the robot's operator wants none.
func (a *Agent) newGateway(h *host.Host) (host.Part, error) {
	if a.cfg.Gateway == "" {
		return host.Part{Name: "gateway"}, nil
	}
	c := gateway.Config{Addr: a.cfg.Gateway, Ears: &a.ears, Certificate: a.people.Certificate, Name: a.people.Name, Settings: a.docs.Reach(), Hand: simulator.NewClient(a.Root), Exchange: a.people.Exchange, Played: func() { a.deeds.Count(activity.AnimationPlayed) }, Client: func(ctx context.Context, bearer string) (gateway.Client, bool) {
		c, ok := a.people.Client(ctx, bearer)
		return gateway.Client{Name: cmp.Or(c.ClientName, "program"), May: c.May}, ok
	}}
	if kind, ok := bodies.Of(a.Thing.Species()); ok {
		c.Page = kind.Page
	}
	g := gateway.New(h, c)
	part := g.Part()
	if a.Thing.Species() == thing.Vector {
		sdk := vectorsdk.New(vectorsdk.Config{Gateway: g, Root: a.Root, Photos: a.album(), Intents: func() vectorsdk.Intents { return a.intents }, Log: a.Log, OS: a.OS, Build: version.String(), Exchange: a.people.Exchange,
			Documents: a.docs.Reach(), Updates: a.updates, Feel: a.feels.Feel, Check: talk.Check(h.Robot, a.link, a.cfg.Dial),
			Features: func() []features.Feature { return a.intents.Features() }, // made after this part, as the logs are
			SendLogs: func(ctx context.Context, reason string) (string, error) {
				return a.logs.Send(ctx, diag.Request{Reason: reason})
			}})
		g.Offer(sdk.Part())
		a.sdk = sdk
		part.Hears = append(part.Hears, host.On(sdk.DocumentChanged), host.On(sdk.Consented))
	}
	return part, nil
}

// album returns the robot's photos; nil if they cannot be read.
func (a *Agent) album() vectorsdk.Photos {
	trees, err := platform.LoadTrees(a.Root)
	if err == nil {
		var album *photos.Album
		if album, err = photos.Open(a.Root, trees.Persistent); err == nil {
			return album
		}
	}
	a.Log.Error("photos not available", logging.Err, err)
	return nil
}

// hostAddress returns the address at which others reach this robot; "" if it has none yet.
func hostAddress() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}

// newUploads sends the robot's logs. confirm is nil for a robot that asks for no owner.
func (a *Agent) newUploads(confirm func(context.Context) error) maker {
	return func(h *host.Host) (host.Part, error) {
		a.logs = diag.New(h.Robot, diag.Config{Ways: a.ways, Allowed: a.events.AllowUpload, Profile: a.events.ProfileID, Confirm: confirm,
			Upload: a.events.Uploads(a.link.Upload)})
		return a.logs.Part(), nil
	}
}

func (a *Agent) newIntents(h *host.Host) (host.Part, error) {
	var err error
	mind := mindlink.NewClient(h.Dir)
	c := intents.Config{Speaker: mind, Display: mind, Root: h.Root, Core: a.client, Docs: a.docs, Settings: a.docs.Settings, Emit: h.Emit, Keep: h.Keep, Changed: h.Changed, Local: a.health.LocalTime(), Now: h.Now,
		Mono: monoclock.Now, Boot: h.Boot, Begin: a.deeds.Begin, Mood: a.feels.Now, Character: &character{mind, h.Root, a.deeds}, Log: h.Log}
	if a.sdk != nil {
		c.Photograph, c.Heard = a.sdk.TakePhoto, a.sdk.IntentHeard
		c.GoHome = func(ctx context.Context) (bool, error) { return a.sdk.GoHome(ctx, a.client) }
	}
	if a.intents, err = intents.New(c); err != nil {
		return host.Part{}, err
	}
	return a.intents.Part(), nil
}

// newMotions keeps the motions of the robot's owner.
func (a *Agent) newMotions(h *host.Host) (host.Part, error) {
	k := motions.New(h, mindlink.NewClient(h.Dir), a.link)
	a.playing = k.Playing
	return k.Part(), nil
}

func (a *Agent) newTeleop(sim teleop.Simulator) maker {
	return func(h *host.Host) (host.Part, error) {
		return teleop.New(a.client, sim, a.link.Publish, h.Log).Playing(a.playing).Display(mindlink.NewClient(h.Dir)).Part(), nil
	}
}

// newCommands takes the commands of the cloud for all parts.
func (a *Agent) newCommands(h *host.Host) (host.Part, error) {
	conf := commands.Config{Root: h.Root, Executors: h.Commands(), Ask: a.link, Time: a.link.Time, Log: h.Log}
	if a.intents != nil {
		conf.Moves = a.intents.Moves
	}
	c, err := commands.New(conf)
	if err != nil {
		return host.Part{}, err
	}
	return host.Part{
		Name:     "commands",
		Services: []runner.Service{{Name: "commands", Run: c.Run}},
		Hears:    []host.Hearing{host.On(func(host.LinkUp) { c.Connected(true) }), host.On(func(host.LinkDown) { c.Connected(false) })},
		Down:     map[string]func([]byte){topics.Cmd: c.Handle, topics.Intent: c.Handle},
	}, nil
}

// heard passes events of the voice on.
func (a *Agent) heard(e voice.Event) {
	a.deeds.Heard(e)
	if w := e.WakeWord; w != nil && a.sdk != nil {
		if w.End == nil {
			a.sdk.WakeWordHeard()
		} else {
			a.sdk.WakeWordAnswered(w.End.Heard, w.End.JSON)
		}
	}
	a.feels.Heard(e)
}

func (a *Agent) newVoice(h *host.Host) (host.Part, error) {
	return talk.Part(h.Robot, talk.Config{Cloud: a.link, Core: a.client, Docs: a.docs.Get, Allowed: a.events.AllowUpload, Inbox: a.intents, Fault: a.health.Fault,
		Told: a.heard, Ears: &a.ears, Dial: a.cfg.Dial}), nil
}
