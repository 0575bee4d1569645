package agentapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"kennel/edge/agent/cloud/das"
	"kennel/edge/agent/work/commands"
	wire "kennel/infra/api/commands"
	"kennel/infra/api/events"
	"kennel/infra/cli/version"
)

// executors returns the commands that this robot takes from the cloud.
func (a *Agent) executors() map[string]commands.Executor {
	all := map[string]commands.Executor{
		wire.Ping: func(context.Context, json.RawMessage) (commands.Outcome, error) {
			return commands.Outcome{Detail: fmt.Sprintf("agentd %s, up for %v", version.String(), a.uptime().Round(time.Second))}, nil
		},
		wire.Sync: func(ctx context.Context, _ json.RawMessage) (commands.Outcome, error) {
			return commands.Outcome{Detail: "documents are in step"}, a.docs.Sync(ctx)
		},
		wire.FlushEvents: func(context.Context, json.RawMessage) (commands.Outcome, error) {
			a.das.Flush()
			return commands.Outcome{Detail: fmt.Sprintf("%d events were waiting", a.das.Stats().Events)}, nil
		},
		wire.RestartAgent: func(context.Context, json.RawMessage) (commands.Outcome, error) {
			return commands.Outcome{Detail: "agentd starts anew", After: func() { a.startAnew(errRestart) }}, nil
		},
		wire.Intent: a.takeIntent,
	}
	maps.Copy(all, a.pilot.Executors())
	if a.cfg.Recovery {
		delete(all, wire.Sync)
	}
	return all
}

// takeIntent records an intent. Nothing on the robot acts on it yet: the layer that does will take it from here. The parameters may be
// a person's words, so they are not in the event.
func (a *Agent) takeIntent(ctx context.Context, args json.RawMessage) (commands.Outcome, error) {
	i, err := wire.ParseIntent(args)
	if err != nil {
		return commands.Outcome{}, err
	}
	_, err = a.das.EmitDurable(ctx, events.Event{Source: "agentd", Name: "robot.cloud_intent", S1: i.Intent})
	if err != nil && !errors.Is(err, das.ErrOptedOut) {
		return commands.Outcome{}, err
	}
	return commands.Outcome{Detail: "kept; this robot does not act on it"}, nil
}

// errAnew ends agentd so that its supervisor restarts it.
var errAnew = errors.New("restart of agentd requested")

// errRestart is such an end.
var errRestart = errors.New("the cloud asked for it")

// startAnew ends agentd, because of why.
func (a *Agent) startAnew(why error) {
	select {
	case a.restart <- fmt.Errorf("%w: %w", errAnew, why):
	default: // asked for already
	}
}

// awaitRestart fails once a restart was asked for.
func (a *Agent) awaitRestart(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.restart:
		return err
	}
}
