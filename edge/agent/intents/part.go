package intents

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"kennel/edge/agent/commands"
	"kennel/edge/agent/features"
	"kennel/edge/agent/host"
	"kennel/edge/agent/localapi"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/events"
	"kennel/infra/api/status"
	"kennel/infra/runner"
)

// FeatureChange asks for the features, after a change if there is one: an override of Feature, or the end of all overrides.
type FeatureChange struct {
	Feature  string         `json:"feature,omitempty"`
	Override features.State `json:"override,omitempty"`
	Reset    bool           `json:"reset,omitempty"`
}

// Part is the intents as a part of agentd.
func (x *Intents) Part() host.Part {
	return host.Part{
		Name:     "intents",
		Services: []runner.Service{{Name: "intents", Run: x.Run}},
		Hears:    []host.Hearing{host.On(x.Handle)},
		Commands: map[string]commands.Executor{commandwire.Intent: x.command},
		Fill:     func(m *status.Message) { m.Intents = x.Intents() },
		Local: map[string]http.Handler{"POST /features": localapi.Answer(func(_ context.Context, c FeatureChange) ([]features.Feature, error) {
			var err error
			switch {
			case c.Reset:
				err = x.gates.Reset()
			case c.Feature != "":
				err = x.gates.Override(c.Feature, c.Override)
			}
			if err == nil {
				x.cfg.Changed() // other intents may be possible
			}
			return x.gates.List(), err
		})},
	}
}

// None returns the part of a robot that acts on no intent, and says so. After a recovery boot it does not know the command.
func None(h *host.Host) host.Part {
	p := host.Part{Name: "intents"}
	if h.Recovery {
		return p
	}
	p.Commands = map[string]commands.Executor{commandwire.Intent: func(context.Context, json.RawMessage) (commands.Outcome, error) {
		return commands.Outcome{}, errors.New(NotHere)
	}}
	return p
}

// command acts on an intent, whose answer is the result. The parameters may be a person's words, so they are not in the event.
func (x *Intents) command(ctx context.Context, args json.RawMessage) (commands.Outcome, error) {
	i, err := commandwire.ParseIntent(args)
	if err != nil {
		return commands.Outcome{}, err
	}
	u, err := x.Named(i.Intent, i.Params)
	if err != nil {
		return commands.Outcome{}, err
	}
	if err := x.cfg.Keep(ctx, events.Event{Source: "agentd", Name: "robot.cloud_intent", S1: i.Intent}); err != nil {
		return commands.Outcome{}, err
	}
	o, err := x.Take(ctx, u, "cloud")
	if err == nil && !o.Done {
		err = errors.New(o.Text)
	}
	return commands.Outcome{Detail: o.Text}, err
}
