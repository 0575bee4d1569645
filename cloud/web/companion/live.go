package companion

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/page"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

// writeTimeout is how long one write may take. A variable so that a test need not wait for it.
var writeTimeout = 10 * time.Second

// liveOf is the address that tells of changes of a robot; "": of all that are the owner's.
func liveOf(id thing.ID) string {
	if id == "" {
		return "/my/live"
	}
	return "/my/live?robot=" + url.QueryEscape(string(id))
}

// live says that something of the owner's robots changed (page.Live).
func (c *companion) live(w http.ResponseWriter, r *http.Request) {
	me := auth.CallerFrom(r.Context())
	if me.Role != auth.Owner {
		kithttp.WriteError(w, errs.New(errs.Unauthenticated, "sign in first"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), page.LiveLife)
	defer cancel()
	changes := c.Fleet.Watch(ctx) // before the robots are read, so that nothing falls between
	robots, err := c.Robots.Robots(ctx, me.Account)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	only := r.URL.Query().Get("robot")
	mine := map[thing.ID]bool{}
	for _, t := range robots {
		if only == "" || string(t.Thing) == only {
			mine[t.Thing] = true
		}
	}
	if len(mine) == 0 {
		kithttp.WriteError(w, notYours())
		return
	}
	page.Live(kithttp.Stream(w, writeTimeout), changes, func(t registry.Thing) bool { return mine[t.ID] }, page.LiveEvery, 0)
}
