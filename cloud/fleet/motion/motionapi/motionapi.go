// Package motionapi is motion over the wires: HTTP for owners and operators, MQTT for robots (infra/api/motionwire), and a tab of a robot's page in the console.
package motionapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/motion"
	"kennel/infra/api/motionwire"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/op"
	"kennel/infra/thing"
)

// Handlers returns the robots' requests by "service/method".
func Handlers(svc *motion.Service) map[string]kitmqtt.ReqHandler {
	as := func(method string) string { return motionwire.Service + "/" + method }
	return map[string]kitmqtt.ReqHandler{
		as(motionwire.SyncMethod): kitmqtt.Handler(motionwire.ParseHave, svc.Sync),
		as(motionwire.FileMethod): kitmqtt.Handler(motionwire.ParseRef, svc.Fetch),
		as(motionwire.VerdictMethod): kitmqtt.Handler(motionwire.ParseVerdict, func(ctx context.Context, id thing.ID, v motionwire.Verdict) (struct{}, error) {
			return struct{}{}, svc.Judge(ctx, id, v)
		}),
		as(motionwire.BodyMethod): kitmqtt.Handler(func(b []byte) ([]byte, error) { return bytes.Clone(b), nil }, func(ctx context.Context, id thing.ID, b []byte) (struct{}, error) {
			return struct{}{}, svc.Describe(ctx, id, b)
		}),
	}
}

// Config holds what the operations need besides the rules.
type Config struct {
	Known func(ctx context.Context, id thing.ID) error // NotFound for an unregistered thing
	// Audit writes one line about what the caller in ctx does; what cannot be written down is not done.
	Audit func(ctx context.Context, action, object, detail string) error
}

type (
	robot struct {
		Thing thing.ID `path:"thing"`
		Full  bool     `query:"full" about:"With how the body is made, and the keyframes of each motion." enum:"true,false"`
	}
	one struct {
		Thing thing.ID `path:"thing"`
		Name  string   `path:"name"`
	}
	upload struct {
		one
		Body op.Raw `body:""`
	}
	playing struct {
		Thing thing.ID `path:"thing"`
		Body  PlayWish `body:""`
	}
)

// PlayWish names what a robot is to play.
type PlayWish struct {
	Name string `json:"name"` // of a motion, such as sit, or of any other animation that the robot lists
}

// Operations returns the operations.
func Operations(svc *motion.Service, cfg Config) op.List {
	spec := func(route, summary string, roles []auth.Role) op.Spec {
		return op.Spec{Route: route, Tag: "Motions", Summary: summary, Roles: roles, Own: true}
	}
	do := func(ctx context.Context, action string, id thing.ID, name string) error {
		if err := cfg.Known(ctx, id); err != nil {
			return err
		}
		return cfg.Audit(ctx, action, string(id), name)
	}
	put := spec("PUT /v1/things/{thing}/motions/{name}", "Upload a motion for a robot. It answers what is known of it; the robot checks it when it is online, and state and findings then say the result.", auth.Changers)
	put.BodyMedia, put.MaxBody = "application/octet-stream", motionwire.MaxFile
	file := spec("GET /v1/things/{thing}/motions/{name}/file", "Download an uploaded motion, in the format of the body's motion files.", auth.Staff)
	file.AnswerMedia = "application/octet-stream"
	var list op.List
	for _, method := range []string{motionwire.SyncMethod, motionwire.FileMethod, motionwire.VerdictMethod, motionwire.BodyMethod} {
		list = append(list, op.Rule(op.Spec{Route: motionwire.Service + "/" + method, Roles: []auth.Role{auth.Thing}}))
	}
	list = append(list, op.Rule(op.Spec{Route: "GET " + tab, Roles: auth.Staff, Page: true}))
	return append(list,
		op.New(spec("GET /v1/things/{thing}/motions", "List the motions of a robot: its library's, and those that were uploaded, with what the robot found in them.", auth.Staff).With(
			op.Command{Use: "motions list THING", Short: "List the motions that a robot can do", Example: "motions list aibo:00e20100",
				Table: "model=or .model `not known yet`\nmotions: MOTION=.name; FROM={{if .own}}upload{{else}}Kennel{{end}}; MS=or .span_ms 0; STATE; WHY?"}),
			func(ctx context.Context, r robot) (motion.Repertoire, error) {
				if err := cfg.Known(ctx, r.Thing); err != nil {
					return motion.Repertoire{}, err
				}
				if r.Full {
					return svc.All(ctx, r.Thing)
				}
				return svc.List(ctx, r.Thing)
			}),
		op.New(spec("GET /v1/things/{thing}/motions/{name}", "Show a motion with its joints and keyframes, and what the robot found in it.", auth.Staff).With(
			op.Command{Use: "motions show THING NAME", Short: "Show what a robot found in a motion", Example: "motions show aibo:00e20100 nod_twice",
				Table: "motion=.name; state=.state; why=or .why `nothing`\nfindings: SEVERITY; CODE; WHAT; EXPECTED?; FOUND?"}),
			func(ctx context.Context, r one) (motion.Entry, error) {
				if err := cfg.Known(ctx, r.Thing); err != nil {
					return motion.Entry{}, err
				}
				return svc.Get(ctx, r.Thing, r.Name)
			}),
		op.New(file, func(ctx context.Context, r one) (http.Handler, error) {
			if err := cfg.Known(ctx, r.Thing); err != nil {
				return nil, err
			}
			b, ending, err := svc.File(ctx, r.Thing, r.Name)
			if err != nil {
				return nil, err
			}
			return download{r.Name + "." + ending, b}, nil
		}),
		op.New(put, func(ctx context.Context, r upload) (motion.Entry, error) {
			b, err := io.ReadAll(io.LimitReader(r.Body, motionwire.MaxFile+1))
			if err != nil {
				return motion.Entry{}, errs.New(errs.Invalid, "upload: %w", err)
			}
			if err := do(ctx, "motion.upload", r.Thing, fmt.Sprintf("%.60q, %d bytes", r.Name, len(b))); err != nil {
				return motion.Entry{}, err
			}
			return svc.Put(ctx, r.Thing, r.Name, b)
		}),
		op.New(spec("DELETE /v1/things/{thing}/motions/{name}", "Delete an uploaded motion.", auth.Changers).With(
			op.Command{Use: "motions delete THING NAME", Short: "Delete an uploaded motion", Example: "motions delete aibo:00e20100 nod_twice", Says: "motion {{.NAME}} deleted"}),
			func(ctx context.Context, r one) (op.None, error) {
				if err := do(ctx, "motion.delete", r.Thing, fmt.Sprintf("%.60q", r.Name)); err != nil {
					return op.None{}, err
				}
				return op.None{}, svc.Delete(ctx, r.Thing, r.Name)
			}),
		op.New(spec("POST /v1/things/{thing}/play", "Make a robot play a motion, or another animation that it lists. The returned command gets one result when it has ended.", auth.Changers),
			func(ctx context.Context, r playing) (command.Command, error) {
				by := auth.CallerFrom(ctx).Subject()
				if _, mine := auth.OwnedSince(ctx); mine {
					by = command.ByOwner
				}
				if err := do(ctx, "motion.play", r.Thing, fmt.Sprintf("%.60q", r.Body.Name)); err != nil {
					return command.Command{}, err
				}
				return svc.Play(ctx, r.Thing, by, r.Body.Name)
			}),
	)
}

// download is a file to be saved. Its name is a word.
type download struct {
	name string
	body []byte
}

// ServeHTTP writes the file.
func (d download) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(d.body)))
	_, _ = w.Write(d.body) // a caller that is gone
}
