package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kennel/cloud/fleet/command"
	"kennel/infra/api/commandwire"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Commands is the pages' access to the outbox; *command.Service is one.
type Commands interface {
	Send(ctx context.Context, d command.Draft) (command.Command, error)
	Commands(ctx context.Context, id thing.ID, open bool, limit int) ([]command.Command, error)
}

// kinds says in words what a command does, and how its arguments look; "": it has none.
var kinds = []struct{ Kind, Does, Args string }{
	{commandwire.Ping, "Checks that the robot answers. Nothing else happens.", ""},
	{commandwire.Sync, "Synchronises its settings with the cloud now.", ""},
	{commandwire.FlushEvents, "Sends its waiting events now.", ""},
	{commandwire.SendLogs, "Sends its recent logs; with diagnostics, also its computer and network state.", `{"diagnostics": false, "reason": "request"}`},
	{commandwire.RestartAgent, "Restarts its agent. The robot is offline for a few seconds.", ""},
	{commandwire.Intent, "Acts as if a person had said it.", `{"intent": "intent_system_charger"}`},
	{commandwire.SetLights, "Sets the lights of its body until they are set again.", `{"lights": [{"r":0,"g":80,"b":0}, {"r":0,"g":80,"b":0}, {"r":0,"g":80,"b":0}, {"r":0,"g":0,"b":0}]}`},
}

// lives are how long a command may wait for its robot.
var lives = []struct {
	Label string
	TTL   time.Duration
}{{"a minute", time.Minute}, {"an hour", time.Hour}, {"a day", day}, {"a week", 7 * day}}

type ordersView struct {
	thingHead
	Kinds []kindView
	Lives []lifeChoice
	Args  string
	Rows  []orderRow
}

type kindView struct {
	Kind, Does, Args string
	Chosen           bool
}

type lifeChoice struct {
	Label, Value string
	Chosen       bool
}

type orderRow struct {
	command.Command
	Said string // what the robot said
	Bad  bool
	Good bool
}

// Arguments are those of the command as JSON; "": it has none.
func (o orderRow) Arguments() string {
	if s := string(o.Args); s != "{}" && s != "null" {
		return s
	}
	return ""
}

// orders is the page of a robot's commands.
func (c *console) orders(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	h, f, err := c.head(ctx, r, s, "commands")
	if err != nil {
		return "", frame{}, err
	}
	v := ordersView{thingHead: h, Args: s.Value("command", "args")}
	chosen, life := cmp.Or(s.Value("command", "kind"), commandwire.Ping), cmp.Or(s.Value("command", "ttl"), time.Hour.String())
	for _, k := range kinds {
		v.Kinds = append(v.Kinds, kindView{k.Kind, k.Does, k.Args, k.Kind == chosen})
	}
	for _, l := range lives {
		v.Lives = append(v.Lives, lifeChoice{l.Label, l.TTL.String(), l.TTL.String() == life})
	}
	list, err := c.Commands.Commands(ctx, h.ID, false, command.DefaultLimit)
	if err != nil {
		return "", frame{}, fmt.Errorf("commands of %s: %w", h.ID, err)
	}
	for _, o := range list {
		row := orderRow{Command: o, Good: o.State == command.Done, Bad: o.State == command.Failed || o.State == command.Expired}
		switch {
		case o.Result != nil && o.Result.Detail != "":
			row.Said = o.Result.Detail
		case o.State == command.Expired && o.Result == nil:
			row.Said = "the robot did not answer in time"
		}
		v.Rows = append(v.Rows, row)
	}
	f.Main = v
	return "commands", f, nil
}

// sendCommand gives a robot a command. The key of the form makes it one, however often the form is sent.
func (c *console) sendCommand(ctx context.Context, id thing.ID, _ *http.Request, v url.Values) (outcome, error) {
	d := command.Draft{Thing: id, Kind: v.Get("kind"), By: auth.CallerFrom(ctx).Subject(), Key: v.Get("key")}
	if args := strings.TrimSpace(v.Get("args")); args != "" {
		d.Args = json.RawMessage(args)
		if !json.Valid(d.Args) {
			return outcome{}, errs.New(errs.Invalid, `arguments: want JSON such as {"intent": "intent_system_charger"}`)
		}
	}
	var err error
	if d.TTL, err = time.ParseDuration(v.Get("ttl")); err != nil {
		return outcome{}, errs.New(errs.Invalid, "ttl %.20q: want a time such as 1h", v.Get("ttl"))
	}
	d.TTL = min(d.TTL, commandwire.MaxTTLOf(d.Kind)) // the form has one time for all kinds
	if v.Get("sure") != "yes" {
		return outcome{}, errs.Coded(errs.Invalid, "not_confirmed", "confirm that %s is the robot you mean", id)
	}
	if err := d.Check(); err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, "command.send", string(id), d.Kind); err != nil {
		return outcome{}, err
	}
	_, err = c.Commands.Send(ctx, d)
	return outcome{done: "command-sent"}, err
}
