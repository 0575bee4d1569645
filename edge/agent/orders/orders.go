// Package orders does what a robot is told: it keeps its documents and the settings in its body, takes commands, and drives.
package orders

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"kennel/edge/agent/commands"
	"kennel/edge/agent/docs"
	"kennel/edge/agent/host"
	"kennel/edge/agent/intents"
	"kennel/edge/agent/link"
	"kennel/edge/agent/parameters"
	"kennel/edge/agent/teleop"
	"kennel/edge/agent/teleop/simulator"
	"kennel/edge/body/monoclock"
	"kennel/edge/coreclient"
	"kennel/edge/corelink"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/events"
	"kennel/infra/api/hints"
	"kennel/infra/api/status"
	"kennel/infra/api/topics"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

// Config holds what carrying out orders needs beside the robot.
type Config struct {
	Cloud   *link.Cloud
	Core    *coreclient.Client       // the real-time core
	Memory  parameters.Memory        // settings that the body stores; nil: it stores none
	Hinted  func(map[string]uint64)  // the cloud has documents of these versions
	Restart func(why error)          // ends agentd
	Local   func() (time.Time, bool) // the time where the robot lives, if that is known
	// SendLogs collects the robot's logs for their upload and returns its name.
	SendLogs func(context.Context, commandwire.LogRequest) (name string, err error)
}

// Orders is made by New. Safe for concurrent use.
type Orders struct {
	host.Robot
	cfg        Config
	settings   jdocs.Name // the document with its settings; "": it has none
	docs       *docs.Agent
	parameters *parameters.Keeper // nil: the body stores none, or the agent is frugal
	pilot      *teleop.Pilot
	intents    *intents.Intents // nil in a recovery boot, and of a frugal agent
	commands   *commands.Agent
}

// New opens the documents, and the settings in the body.
func New(robot host.Robot, cfg Config) (*Orders, error) {
	w := &Orders{Robot: robot, cfg: cfg}
	w.settings = jdocs.SettingsOf(w.Thing.Species())
	c := docs.Config{Settings: w.settings, Root: w.Root, Remote: jdocswire.NewClient(cfg.Cloud), Log: w.Log, OnChanged: w.docChanged, OnPushed: w.docPushed, Unwatched: w.Frugal}
	if cfg.Memory != nil {
		name, stored, err := parameters.Stored(w.Root, cfg.Memory)
		if err != nil {
			return nil, err
		}
		c.Own = map[jdocs.Name]map[string]json.RawMessage{name: stored}
	}
	var err error
	if w.docs, err = docs.New(c); err != nil || cfg.Memory == nil || w.Frugal {
		return w, err
	}
	w.parameters, err = parameters.New(w.Root, cfg.Memory, w.docs, w.Emit, cfg.Cloud.Changed, w.Log)
	return w, err
}

// TakeCommands opens what is needed to take commands.
func (w *Orders) TakeCommands(context.Context) (err error) {
	if !w.Recovery && !w.Frugal {
		if w.intents, err = intents.New(intents.Config{Root: w.Root, Core: w.cfg.Core, Docs: w.docs, Settings: w.settings, Emit: w.Emit, Keep: w.Keep, Changed: w.cfg.Cloud.Changed,
			Local: w.cfg.Local, Now: w.Now, Mono: monoclock.Now, Boot: w.Boot, Log: w.Log}); err != nil {
			return err
		}
	}
	var sim teleop.Simulator
	if !w.Frugal { // which has no body, and no simulator of one
		sim = simulator.NewClient(w.Root)
	}
	w.pilot = teleop.New(w.cfg.Core, sim, w.cfg.Cloud.Publish, w.Log)
	conf := commands.Config{Root: w.Root, Executors: w.Executors(), Ask: w.cfg.Cloud, Time: w.cfg.Cloud.Time, Log: w.Log}
	if w.intents != nil {
		conf.Moves = w.intents.Moves
	}
	w.commands, err = commands.New(conf)
	return err
}

// Docs returns the robot's documents.
func (w *Orders) Docs() *docs.Agent { return w.docs }

// Handle takes one message of robotd.
func (w *Orders) Handle(m corelink.Message) {
	w.pilot.Handle(m)
	if w.intents != nil {
		w.intents.Handle(m)
	}
}

// Inbox takes intents; nil before TakeCommands, in a recovery boot, and of a frugal agent.
func (w *Orders) Inbox() intents.Inbox {
	if w.intents == nil {
		return nil
	}
	return w.intents
}

// Set changes settings on the robot, as its owner's app would (VEC-DOC-13).
func (w *Orders) Set(ctx context.Context, fields map[string]json.RawMessage) error {
	return w.docs.Set(ctx, w.settings, fields)
}

// Connected says that there is a connection to the cloud, or no longer. The documents wait for Sync.
func (w *Orders) Connected(yes bool) {
	if !yes {
		w.docs.Disconnected()
	}
	w.commands.Connected(yes)
}

// Sync says that the documents are the owner's, and that the cloud can be reached.
func (w *Orders) Sync() {
	if !w.Recovery {
		w.docs.Connected()
	}
}

// Down returns what the cloud sends for the work.
func (w *Orders) Down() map[string]func([]byte) {
	return map[string]func([]byte){topics.Jdocs: w.takeDocHint, topics.Cmd: w.commands.Handle, topics.Intent: w.commands.Handle, topics.Live: w.pilot.Look}
}

// Services do the work.
func (w *Orders) Services() []runner.Service {
	all := []runner.Service{{Name: "commands", Run: w.commands.Run}, {Name: "pilot", Run: w.pilot.Run}}
	if !w.Recovery {
		all = append(all, runner.Service{Name: "documents", Run: w.docs.Run})
	}
	if w.intents != nil {
		all = append(all, runner.Service{Name: "intents", Run: w.intents.Run})
	}
	if w.parameters != nil {
		all = append(all, runner.Service{Name: "parameters", Run: w.parameters.Run})
	}
	return all
}

// Fill adds the documents to a status.
func (w *Orders) Fill(m *status.Message) {
	m.Docs, m.Dirty = w.docs.Versions(), w.docs.Dirty()
	if w.intents != nil {
		m.Intents = w.intents.Intents()
	}
	m.Tell(w.docs.Problems()...)
	if w.parameters != nil && w.parameters.Waiting() != "" {
		m.Tell(status.Problem{Kind: status.KindParameters, Text: w.parameters.Waiting()})
	}
}

func (w *Orders) takeDocHint(payload []byte) {
	h, err := hints.ParseJdocs(payload)
	if err != nil {
		w.Log.Warn("hint unreadable", logging.Err, err)
		return
	}
	w.docs.Hint(h.Docs)
	w.cfg.Hinted(h.Docs)
}

// docChanged records a changed setting (VEC-DOC-13).
func (w *Orders) docChanged(c docs.Change) {
	w.cfg.Cloud.Changed()
	if w.parameters != nil {
		w.parameters.Changed(c.Doc)
	}
	if c.Doc != w.settings {
		return
	}
	names := make([]string, 0, len(c.Fields))
	for k := range c.Fields {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		w.Emit(events.Event{Source: "agentd", Name: "robot.settings.updated", S1: k, S2: text(c.Fields[k]), S3: string(c.Source)})
		switch k {
		case "master_volume":
			if n, err := strconv.ParseInt(string(c.Fields[k]), 10, 64); err == nil {
				w.Emit(events.Event{Source: "agentd", Name: "robot.settings.volume", I1: events.Num(n)})
			}
		case "locale":
			w.Emit(events.Event{Source: "agentd", Name: "robot.locale", S1: text(c.Fields[k])})
			w.Emit(events.Event{Source: "agentd", Name: "engine.language_locale", S1: text(c.Fields[k])})
		case "time_zone":
			w.Emit(events.Event{Source: "agentd", Name: "robot.timezone", S1: text(c.Fields[k])})
		}
	}
}

func (w *Orders) docPushed(name jdocs.Name, v uint64) {
	w.cfg.Cloud.Changed()
	w.Emit(events.Event{Source: "agentd", Name: "robot.settings.passed_to_cloud_jdoc", S1: string(name), I1: events.Num(int64(v))})
}

// text returns a JSON string's text, or other JSON as it is.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
