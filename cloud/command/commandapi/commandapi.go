// Package commandapi is command over the wires: HTTP for operators and owners, MQTT for robots.
//
//	POST /v1/things/{thing}/commands {kind, args, expires_in_ms, key}   -> the command; the same key again is the same command
//	GET  /v1/things/{thing}/commands?open=&limit=                       -> the newest first
//	GET  /v1/things/{thing}/commands/{id}
//	req/command/pull, req/command/result                                (infra/api/commands)
//
// An owner sends commands to an own robot and sees those that were given since it is theirs.
package commandapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/command"
	"kennel/infra/api/commands"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/thing"
)

// MaxLimit is how many commands one answer lists at most.
const MaxLimit = command.MaxLimit

const (
	timeout = 10 * time.Second
	maxBody = 16 << 10 // bytes
)

// Handlers returns the robots' requests by "service/method".
func Handlers(svc *command.Service) map[string]kitmqtt.ReqHandler {
	return map[string]kitmqtt.ReqHandler{
		commands.Service + "/" + commands.PullMethod: kitmqtt.Handler(kitmqtt.Empty, func(ctx context.Context, id thing.ID, _ struct{}) (commands.Pull, error) {
			open, err := svc.Pull(ctx, id)
			p := commands.Pull{V: 1, Commands: make([]commands.Command, len(open))}
			for i, o := range open {
				p.Commands[i] = o.Wire()
			}
			return p, err
		}),
		commands.Service + "/" + commands.ResultMethod: kitmqtt.Handler(commands.ParseResult, func(ctx context.Context, id thing.ID, r commands.Result) (commands.Answer, error) {
			c, err := svc.Finish(ctx, id, r)
			return commands.Answer{V: 1, ID: c.ID, State: string(c.State)}, err
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
	// Owns lets owners through to their own robots; nil: operators alone.
	Owns auth.Owns
	Log  *slog.Logger
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

type listRequest struct {
	id    thing.ID
	open  bool
	limit int
}

type oneRequest struct {
	id   thing.ID
	name string
}

// Mount adds the HTTP endpoints to mux. The caller's role comes from the context (infra/kit).
func Mount(mux *http.ServeMux, svc *command.Service, cfg Config) {
	wrap := endpoint.Chain(kit.Recover(cfg.Log), kit.Timeout(timeout))
	lists := endpoint.Chain(wrap, auth.RequireOwn(cfg.Owns, func(q listRequest) thing.ID { return q.id }, auth.Staff...))
	reads := endpoint.Chain(wrap, auth.RequireOwn(cfg.Owns, func(q oneRequest) thing.ID { return q.id }, auth.Staff...))
	sends := endpoint.Chain(wrap, auth.RequireOwn(cfg.Owns, func(d command.Draft) thing.ID { return d.Thing }, auth.Changers...))

	mux.Handle("POST /v1/things/{thing}/commands", kithttp.Handler(sends(kit.Typed(func(ctx context.Context, d command.Draft) (command.Command, error) {
		d.By = auth.CallerFrom(ctx).Subject()
		_, mine := auth.OwnedSince(ctx)
		if mine {
			d.By = command.ByOwner
		}
		if err := d.Check(); err != nil {
			return command.Command{}, err
		}
		if err := cfg.Known(ctx, d.Thing); err != nil {
			return command.Command{}, err
		}
		if err := cfg.Audit(ctx, "command.send", string(d.Thing), d.Kind); err != nil {
			return command.Command{}, err
		}
		c, err := svc.Send(ctx, d)
		if _, before := own(ctx, c); mine && (err == nil && before || errs.CodeOf(err) == "key_used") {
			// Perhaps by the owner of before, whose commands are not this one's business.
			return command.Command{}, errs.Coded(errs.Conflict, "key_used", "key %q already names another command", d.Key)
		}
		return c, err
	})), decodeDraft))

	mux.Handle("GET /v1/things/{thing}/commands", kithttp.Handler(lists(kit.Typed(func(ctx context.Context, q listRequest) ([]command.Command, error) {
		out, err := svc.Commands(ctx, q.id, q.open, q.limit)
		shown := []command.Command{}
		for _, c := range out {
			if c, ok := show(ctx, c); ok {
				shown = append(shown, c)
			}
		}
		return shown, err
	})), decodeList))

	mux.Handle("GET /v1/things/{thing}/commands/{id}", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, q oneRequest) (command.Command, error) {
		c, err := svc.Command(ctx, q.id, q.name)
		if err != nil {
			return command.Command{}, err
		}
		c, ok := show(ctx, c)
		if !ok {
			return command.Command{}, errs.Coded(errs.NotFound, "no_command", "%s has no command %.64q", q.id, q.name)
		}
		return c, nil
	})), func(r *http.Request) (any, error) {
		id, err := kithttp.Thing(r)
		return oneRequest{id, r.PathValue("id")}, err
	}))
}

// show returns a command as the caller may see it: an owner not those from before, nor which operator gave one.
func show(ctx context.Context, c command.Command) (command.Command, bool) {
	mine, before := own(ctx, c)
	if mine && c.By != command.ByOwner {
		c.By = "operator"
	}
	return c, !before
}

func decodeDraft(r *http.Request) (any, error) {
	id, err := kithttp.Thing(r)
	if err != nil {
		return nil, err
	}
	var body Request
	if err := kithttp.ReadJSON(r, &body, maxBody); err != nil {
		return nil, err
	}
	if body.ExpiresInMS < 0 || body.ExpiresInMS > commands.MaxTTL.Milliseconds() {
		return nil, errs.New(errs.Invalid, "expires_in_ms %d: want 0 to %d", body.ExpiresInMS, commands.MaxTTL.Milliseconds())
	}
	return command.Draft{Thing: id, Kind: body.Kind, Args: body.Args, TTL: time.Duration(body.ExpiresInMS) * time.Millisecond, Key: body.Key}, nil
}

func decodeList(r *http.Request) (any, error) {
	id, err := kithttp.Thing(r)
	if err != nil {
		return nil, err
	}
	q, v := listRequest{id: id, limit: command.DefaultLimit}, r.URL.Query()
	if s := v.Get("open"); s != "" {
		if q.open, err = strconv.ParseBool(s); err != nil {
			return nil, errs.New(errs.Invalid, "open %.20q: want true or false", s)
		}
	}
	if s := v.Get("limit"); s != "" {
		if q.limit, err = strconv.Atoi(s); err != nil || q.limit < 1 || q.limit > command.MaxLimit {
			return nil, errs.New(errs.Invalid, "limit %.20q: want 1 to %d", s, command.MaxLimit)
		}
	}
	return q, nil
}
