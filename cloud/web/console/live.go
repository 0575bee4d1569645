package console

import (
	"context"
	"net/http"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/page"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

const (
	liveSettle   = 2500 * time.Millisecond // counts are shared for a second, so what the last word had a page fetch may hold old ones
	writeTimeout = 10 * time.Second
)

// live says that something changed, of the whole fleet or of one thing (page.Live). A page may ask for fewer words than one each page.LiveEvery.
func (c *console) live(w http.ResponseWriter, r *http.Request) {
	caller := auth.CallerFrom(r.Context())
	if !caller.Role.Staff() {
		kithttp.WriteError(w, errs.New(errs.Unauthenticated, "sign in first"))
		return
	}
	var only thing.ID
	if s := r.URL.Query().Get("thing"); s != "" {
		var err error
		if only, err = thing.Parse(s); err != nil {
			kithttp.WriteError(w, errs.New(errs.Invalid, "%w", err))
			return
		}
	}
	every := page.LiveEvery
	if s := r.URL.Query().Get("every"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil || d < page.LiveEvery || d > time.Minute {
			kithttp.WriteError(w, errs.New(errs.Invalid, "every=%.20q: want %v to 1m", s, page.LiveEvery))
			return
		}
		every = d
	}
	ctx, cancel := context.WithTimeout(r.Context(), page.LiveLife)
	defer cancel()
	changed := func(t registry.Thing) bool { return only == "" || t.ID == only }
	page.Live(kithttp.Stream(w, writeTimeout), c.Fleet.Watch(ctx), changed, every, liveSettle)
}
