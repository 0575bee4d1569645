// Package commandapi is command over the wires: HTTP for operators and owners, MQTT for robots (req/command/pull and req/command/result, see
// infra/api/commandwire).
//
// An owner sends commands to an own robot and sees those that were given since it is theirs.
package commandapi

import (
	"context"
	"encoding/json"
	"time"

	"kennel/cloud/fleet/command"
	"kennel/infra/api/commandwire"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/op"
	"kennel/infra/thing"
)

// Handlers returns the robots' requests by "service/method".
func Handlers(svc *command.Service) map[string]kitmqtt.ReqHandler {
	return map[string]kitmqtt.ReqHandler{
		commandwire.Service + "/" + commandwire.PullMethod: kitmqtt.Handler(kitmqtt.Empty, func(ctx context.Context, id thing.ID, _ struct{}) (commandwire.Pull, error) {
			open, err := svc.Pull(ctx, id)
			p := commandwire.Pull{V: 1, Commands: make([]commandwire.Command, len(open))}
			for i, o := range open {
				p.Commands[i] = o.Wire()
			}
			return p, err
		}),
		commandwire.Service + "/" + commandwire.ResultMethod: kitmqtt.Handler(commandwire.ParseResult, func(ctx context.Context, id thing.ID, r commandwire.Result) (commandwire.Answer, error) {
			c, err := svc.Finish(ctx, id, r)
			return commandwire.Answer{V: 1, ID: c.ID, State: string(c.State)}, err
		}),
	}
}

// Config holds what the endpoints need besides the rules.
type Config struct {
	// Known returns NotFound for an unregistered thing.
	Known func(ctx context.Context, id thing.ID) error
	// Audit writes one line about what the caller in ctx does; a command whose line cannot be written is not given. Arguments are not in
	// it: they may be a person's words.
	Audit func(ctx context.Context, action, object, detail string) error
}

// own reports whether the caller owns the robot, and whether the command is from before.
func own(ctx context.Context, c command.Command) (mine, before bool) {
	since, mine := auth.OwnedSince(ctx)
	return mine, mine && c.Created.Before(since)
}

// Command is a command as the API shows it.
type Command = command.Command

// Request is the body of POST /v1/things/{thing}/commands.
type Request struct {
	Kind        string          `json:"kind"`
	Args        json.RawMessage `json:"args,omitempty"`
	ExpiresInMS int64           `json:"expires_in_ms,omitempty"` // 0: command.DefaultTTL
	Key         string          `json:"key,omitempty"`           // the caller's own, so that a request made twice is one command
}

type (
	list struct {
		Thing thing.ID `path:"thing"`
		Open  bool     `query:"open" about:"Only commands without a result." enum:"true,false"`
		Limit int      `query:"limit" about:"Maximum number of results." min:"1" max:"500" default:"50"`
	}
	one struct {
		Thing thing.ID `path:"thing"`
		ID    string   `path:"id"`
	}
	sending struct {
		Thing   thing.ID `path:"thing"`
		Request Request  `body:""`
	}
)

// Operations returns the operations on commands.
func Operations(svc *command.Service, cfg Config) op.List {
	spec := func(route, summary string, roles []auth.Role) op.Spec {
		return op.Spec{Route: route, Tag: "Commands", Summary: summary, Roles: roles, Own: true}
	}
	return op.List{
		op.Rule(op.Spec{Route: commandwire.Service + "/" + commandwire.PullMethod, Roles: []auth.Role{auth.Thing}}),
		op.Rule(op.Spec{Route: commandwire.Service + "/" + commandwire.ResultMethod, Roles: []auth.Role{auth.Thing}}),
		op.New(spec("GET /v1/things/{thing}/commands", "List a robot's commands, the newest first.", auth.Staff).With(
			op.Command{Use: "commands list THING -open -limit=20", Short: "List a robot's commands, the newest first", Example: "commands list vic:00e20100\ncommands list vic:00e20100 -open", Table: "COMMAND=.id; KIND; STATE; CREATED; BY; RESULT={{if .result}}{{or .result.detail .result.status}}{{else if eq .state `expired`}}no result in time{{end}}"}), func(ctx context.Context, r list) ([]Command, error) {
			out, err := svc.Commands(ctx, r.Thing, r.Open, r.Limit)
			var shown []Command
			for _, c := range out {
				if c, ok := show(ctx, c); ok {
					shown = append(shown, c)
				}
			}
			return shown, err
		}),
		op.New(spec("POST /v1/things/{thing}/commands", "Send a robot a command. Repeating its key does not send a second one.", auth.Changers),
			func(ctx context.Context, r sending) (Command, error) { return send(ctx, svc, cfg, r.Thing, r.Request) }),
		op.New(spec("GET /v1/things/{thing}/commands/{id}", "Show a command and its result.", auth.Staff), func(ctx context.Context, r one) (Command, error) {
			c, err := svc.Command(ctx, r.Thing, r.ID)
			if err != nil {
				return Command{}, err
			}
			c, ok := show(ctx, c)
			if !ok {
				return Command{}, errs.Coded(errs.NotFound, "no_command", "%s has no command %.64q", r.Thing, r.ID)
			}
			return c, nil
		}),
	}
}

func send(ctx context.Context, svc *command.Service, cfg Config, id thing.ID, r Request) (Command, error) {
	if most := commandwire.MaxTTL.Milliseconds(); r.ExpiresInMS < 0 || r.ExpiresInMS > most {
		return Command{}, errs.New(errs.Invalid, "expires_in_ms %d: want 0 to %d", r.ExpiresInMS, most)
	}
	d := command.Draft{Thing: id, Kind: r.Kind, Args: r.Args, TTL: time.Duration(r.ExpiresInMS) * time.Millisecond, Key: r.Key, By: auth.CallerFrom(ctx).Subject()}
	_, mine := auth.OwnedSince(ctx)
	if mine {
		d.By = command.ByOwner
	}
	if err := d.Check(); err != nil {
		return Command{}, err
	}
	if err := cfg.Known(ctx, id); err != nil {
		return Command{}, err
	}
	if err := cfg.Audit(ctx, "command.send", string(id), d.Kind); err != nil {
		return Command{}, err
	}
	c, err := svc.Send(ctx, d)
	if _, before := own(ctx, c); mine && (err == nil && before || errs.CodeOf(err) == "key_used") {
		// Perhaps by the owner of before, whose commands are not this one's business.
		return Command{}, errs.Coded(errs.Conflict, "key_used", "key %q is already used by another command", d.Key)
	}
	return c, err
}

// show returns a command as the caller may see it: an owner not those from before, nor which operator gave one.
func show(ctx context.Context, c command.Command) (command.Command, bool) {
	mine, before := own(ctx, c)
	if mine && c.By != command.ByOwner {
		c.By = "operator"
	}
	return c, !before
}
