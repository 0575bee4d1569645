// Package registryapi is the fleet over HTTP, for operators, and in part for the owner of a thing.
package registryapi

import (
	"context"
	"net/http"
	"slices"

	"kennel/cloud/fleet/registry"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/thing"
)

type (
	one struct {
		Thing thing.ID `path:"thing"`
	}
	history struct {
		one
		Limit int `query:"limit" about:"Maximum number of results." min:"1" max:"1000" default:"100"`
	}
	tagging struct {
		one
		Tags registry.TagsRequest `body:""`
	}
)

// Operations returns the operations on the fleet. audit writes one line about what the caller in ctx does: tags, and exports of the fleet. What cannot
// be written down is not done.
func Operations(svc *registry.Service, audit func(ctx context.Context, action, object, detail string) error) op.List {
	a := &api{svc, audit}
	spec := func(route, summary string, roles []auth.Role) op.Spec {
		return op.Spec{Route: route, Tag: "Fleet", Summary: summary, Roles: roles}
	}
	own := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Fleet", Summary: summary, Roles: auth.Staff, Own: true}
	}
	list := spec("GET /v1/things", "List robots. Link rel=\"next\" leads to the next page.", auth.Staff)
	list.Described = []registry.Thing{}
	watch := spec("GET /v1/watch", "Stream changes of robots, as server-sent events.", auth.Staff)
	watch.AnswerMedia = "text/event-stream"
	return op.List{
		op.New(spec("GET /v1/fleet", "Count robots that are online and offline.", auth.Staff), func(ctx context.Context, _ op.None) (registry.Count, error) { return svc.Count(ctx) }),
		op.New(spec("GET /v1/fleet/counts", "Count robots by presence, version, species, problem, tag and so on.", auth.Staff), func(ctx context.Context, r selection) (registry.Counts, error) {
			f, err := r.filter()
			if err != nil {
				return registry.Counts{}, err
			}
			return svc.Counts(ctx, f)
		}),
		op.New(watch, func(ctx context.Context, r watching) (http.Handler, error) { return a.watch(ctx, r) }),
		op.New(list, func(ctx context.Context, r listing) (any, error) { return a.list(ctx, r) }),
		op.New(own("GET /v1/things/{thing}", "Show a robot and its last status."), func(ctx context.Context, r one) (registry.Thing, error) {
			t, err := svc.Thing(ctx, r.Thing)
			if _, mine := auth.OwnedSince(ctx); mine {
				t.Tags = nil // words of the staff among themselves
			}
			return t, err
		}),
		op.New(spec("GET /v1/things/{thing}/doctor", "Show what is wrong with a robot, and what to do.", auth.Staff),
			func(ctx context.Context, r one) (registry.Report, error) { return svc.Doctor(ctx, r.Thing) }),
		op.New(own("GET /v1/things/{thing}/history", "List when a robot went online and offline.").With(
			op.Command{Use: "robots history THING -limit=50", Short: "List when a robot went online and offline, the newest first", Example: "robots history vic:00e20100 -limit 10", Table: "TIME=.at; PRESENCE={{if .present}}online{{else}}offline{{end}}"}), func(ctx context.Context, r history) ([]registry.Change, error) {
			out, err := svc.History(ctx, r.Thing, r.Limit)
			if since, mine := auth.OwnedSince(ctx); mine {
				out = slices.DeleteFunc(out, func(c registry.Change) bool { return c.At.Before(since) })
			}
			return out, err
		}),
		op.New(spec("PATCH /v1/things/{thing}/tags", "Add and remove tags of a robot.", auth.Changers).With(
			op.Command{Use: "robots tag add THING TAG...=add", Short: "Add tags to a robot", Long: "A tag has 1 to 32 lower-case letters and digits, and . _ - inside. A robot can have 32 tags.", Example: "robots tag add vic:00e20100 lab demo", Table: "={{.thing}}  {{join .tags ` `}}"},
			op.Command{Use: "robots tag remove THING TAG...=remove", Short: "Remove tags from a robot", Long: "A tag has 1 to 32 lower-case letters and digits, and . _ - inside. A robot can have 32 tags.", Example: "robots tag remove vic:00e20100 demo", Table: "={{.thing}}  {{join .tags ` `}}"}),
			func(ctx context.Context, r tagging) (registry.Tags, error) { return a.tag(ctx, r.Thing, r.Tags) }),
	}
}

// api holds what several operations share.
type api struct {
	svc   *registry.Service
	audit func(ctx context.Context, action, object, detail string) error
}
