package orders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"kennel/edge/agent/commands"
	"kennel/edge/agent/intents"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/events"
	"kennel/infra/cli/version"
)

// Executors returns the commands that this robot takes from the cloud.
func (w *Orders) Executors() map[string]commands.Executor {
	all := map[string]commands.Executor{
		commandwire.Ping: func(context.Context, json.RawMessage) (commands.Outcome, error) {
			return commands.Outcome{Detail: fmt.Sprintf("agentd %s, up for %v", version.String(), w.Uptime().Round(time.Second))}, nil
		},
		commandwire.Sync: func(ctx context.Context, _ json.RawMessage) (commands.Outcome, error) {
			return commands.Outcome{Detail: "documents are in step"}, w.docs.Sync(ctx)
		},
		commandwire.FlushEvents: func(context.Context, json.RawMessage) (commands.Outcome, error) {
			w.cfg.Cloud.Events().Flush()
			return commands.Outcome{Detail: fmt.Sprintf("%d events were waiting", w.cfg.Cloud.Events().Stats().Events)}, nil
		},
		commandwire.SendLogs: func(ctx context.Context, args json.RawMessage) (commands.Outcome, error) {
			r, err := commandwire.ParseLogRequest(args)
			if err != nil {
				return commands.Outcome{}, err
			}
			name, err := w.cfg.SendLogs(ctx, r)
			return commands.Outcome{Detail: commandwire.Queued(name)}, err
		},
		commandwire.RestartAgent: func(context.Context, json.RawMessage) (commands.Outcome, error) {
			return commands.Outcome{Detail: "agentd restarts", After: func() { w.cfg.Restart(errRestart) }}, nil
		},
		commandwire.Intent: w.takeIntent,
	}
	maps.Copy(all, w.pilot.Executors())
	if w.Recovery {
		delete(all, commandwire.Sync)
		delete(all, commandwire.Intent)
	}
	return all
}

// takeIntent acts on an intent, whose answer is the result. The parameters may be a person's words, so they are not in the event.
func (w *Orders) takeIntent(ctx context.Context, args json.RawMessage) (commands.Outcome, error) {
	i, err := commandwire.ParseIntent(args)
	if err != nil {
		return commands.Outcome{}, err
	}
	if w.intents == nil {
		return commands.Outcome{}, errors.New(intents.NotHere)
	}
	u, err := w.intents.Named(i.Intent, i.Params)
	if err != nil {
		return commands.Outcome{}, err
	}
	if err := w.Keep(ctx, events.Event{Source: "agentd", Name: "robot.cloud_intent", S1: i.Intent}); err != nil {
		return commands.Outcome{}, err
	}
	o, err := w.intents.Take(ctx, u, "cloud")
	if err == nil && !o.Done {
		err = errors.New(o.Text)
	}
	return commands.Outcome{Detail: o.Text}, err
}

// errRestart ends agentd.
var errRestart = errors.New("the cloud asked for it")
