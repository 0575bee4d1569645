package docs

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"kennel/edge/agent/commands"
	"kennel/edge/agent/host"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/events"
	"kennel/infra/api/hints"
	"kennel/infra/api/status"
	"kennel/infra/api/topics"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/jdocs"
)

// Part is the robot's documents as a part of agentd, which publishes each Change.
type Part struct {
	*Agent
	Settings jdocs.Name // the document with the robot's settings; "": it has none
	host     *host.Host
}

// Open opens the documents of h. own are those that only this robot's species has, by their names, with their first content.
func Open(h *host.Host, remote Remote, own map[jdocs.Name]map[string]json.RawMessage) (*Part, error) {
	p := &Part{Settings: jdocs.SettingsOf(h.Thing.Species()), host: h}
	var err error
	p.Agent, err = New(Config{Settings: p.Settings, Root: h.Root, Remote: remote, Log: h.Log, OnChanged: p.docChanged, OnPushed: p.docPushed, Unwatched: h.Frugal, Own: own,
		Owner: !h.Frugal && !h.Recovery})
	return p, err
}

// Part returns the part. After a recovery boot nothing is in step with the cloud.
func (p *Part) Part() host.Part {
	out := host.Part{
		Name: "documents",
		Down: map[string]func([]byte){topics.Jdocs: p.takeHint},
		Fill: func(m *status.Message) {
			m.Docs, m.Dirty = p.Versions(), p.Dirty()
			m.Tell(p.Problems()...)
		},
		Hears: []host.Hearing{host.On(func(host.LinkDown) { p.Disconnected() })},
	}
	if !p.host.Recovery {
		out.Hears = append(out.Hears, host.On(func(host.MaySync) { p.Connected() }))
		out.Services = []runner.Service{{Name: "documents", Run: p.Run}}
		out.Commands = map[string]commands.Executor{commandwire.Sync: func(ctx context.Context, _ json.RawMessage) (commands.Outcome, error) {
			return commands.Outcome{Detail: "documents are in step"}, p.Sync(ctx)
		}}
	}
	return out
}

func (p *Part) takeHint(payload []byte) {
	h, err := hints.ParseJdocs(payload)
	if err != nil {
		p.host.Log.Warn("hint unreadable", logging.Err, err)
		return
	}
	p.Hint(h.Docs)
	p.host.Publish(host.Hint(h.Docs))
}

// docChanged records a changed setting (VEC-DOC-13).
func (p *Part) docChanged(c Change) {
	p.host.Changed()
	p.host.Publish(c)
	if c.Doc != p.Settings {
		return
	}
	names := make([]string, 0, len(c.Fields))
	for k := range c.Fields {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		p.host.Emit(events.Event{Source: "agentd", Name: "robot.settings.updated", S1: k, S2: text(c.Fields[k]), S3: string(c.Source)})
		switch k {
		case "master_volume":
			if n, err := strconv.ParseInt(string(c.Fields[k]), 10, 64); err == nil {
				p.host.Emit(events.Event{Source: "agentd", Name: "robot.settings.volume", I1: events.Num(n)})
			}
		case "locale":
			p.host.Emit(events.Event{Source: "agentd", Name: "robot.locale", S1: text(c.Fields[k])})
			p.host.Emit(events.Event{Source: "agentd", Name: "engine.language_locale", S1: text(c.Fields[k])})
		case "time_zone":
			p.host.Emit(events.Event{Source: "agentd", Name: "robot.timezone", S1: text(c.Fields[k])})
		}
	}
}

func (p *Part) docPushed(name jdocs.Name, v uint64) {
	p.host.Changed()
	p.host.Emit(events.Event{Source: "agentd", Name: "robot.settings.passed_to_cloud_jdoc", S1: string(name), I1: events.Num(int64(v))})
}

// text returns a JSON string's text, or other JSON as it is.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
