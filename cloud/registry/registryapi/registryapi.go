// Package registryapi is the fleet over HTTP, for operators; what is marked *, for the owner of the thing too (WithOwns):
//
//	GET /v1/things?presence=&q=&limit=&after=   a page of things in the order of their ids; Link rel="next" if there may be more
//	GET /v1/things/{thing}                      one thing with its last status *
//	GET /v1/things/{thing}/doctor               what is wrong with it, and what to do
//	GET /v1/things/{thing}/history?limit=       when it came and went; for the owner, since it is theirs *
//	GET /v1/fleet                               how many are present and absent
//	GET /v1/watch                               server-sent events: each thing as it changes
package registryapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"kennel/certs/thing"
	"kennel/cloud/registry"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
)

type thingRequest struct {
	id    thing.ID
	limit int
}

// Option changes who may see what.
type Option func(*options)

type options struct{ owns kit.Owns }

// WithOwns lets the owner of a thing see its status, and when it came and went. Without it owners are refused.
func WithOwns(owns kit.Owns) Option { return func(o *options) { o.owns = owns } }

// Mount adds the endpoints to mux. The caller's role comes from the context (infra/kit).
func Mount(mux *http.ServeMux, svc *registry.Service, opts ...Option) {
	var o options
	for _, f := range opts {
		f(&o)
	}
	staff := kit.Require(kit.Staff...)
	own := kit.RequireOwn(o.owns, func(q thingRequest) thing.ID { return q.id }, kit.Staff...)

	list := staff(kit.Typed(func(ctx context.Context, q registry.Query) ([]registry.Thing, error) {
		things, err := svc.Things(ctx, q)
		if things == nil {
			things = []registry.Thing{}
		}
		return things, err
	}))
	mux.HandleFunc("GET /v1/things", func(w http.ResponseWriter, r *http.Request) {
		q, err := queryOf(r)
		if err != nil {
			kithttp.WriteError(w, err)
			return
		}
		resp, err := list(r.Context(), q)
		if err != nil {
			kithttp.WriteError(w, err)
			return
		}
		things := resp.([]registry.Thing) // what list is made of
		if len(things) == q.Limit {
			next := r.URL.Query()
			next.Set("after", string(things[len(things)-1].ID))
			w.Header().Set("Link", fmt.Sprintf("<%s?%s>; rel=\"next\"", r.URL.Path, next.Encode()))
		}
		kithttp.WriteJSON(w, http.StatusOK, things)
	})
	mux.Handle("GET /v1/things/{thing}", kithttp.Handler(own(kit.Typed(func(ctx context.Context, q thingRequest) (registry.Thing, error) {
		return svc.Thing(ctx, q.id)
	})), decodeThing))
	mux.Handle("GET /v1/things/{thing}/doctor", kithttp.Handler(staff(kit.Typed(func(ctx context.Context, q thingRequest) (registry.Report, error) {
		return svc.Doctor(ctx, q.id)
	})), decodeThing))
	mux.Handle("GET /v1/things/{thing}/history", kithttp.Handler(own(kit.Typed(func(ctx context.Context, q thingRequest) ([]registry.Change, error) {
		out, err := svc.History(ctx, q.id, q.limit)
		if out == nil {
			out = []registry.Change{}
		}
		if since, mine := kit.OwnedSince(ctx); mine {
			out = slices.DeleteFunc(out, func(c registry.Change) bool { return c.At.Before(since) })
		}
		return out, err
	})), decodeThing))
	mux.Handle("GET /v1/fleet", kithttp.Handler(staff(kit.Typed(func(ctx context.Context, _ struct{}) (registry.Count, error) {
		return svc.Count(ctx)
	})), func(*http.Request) (any, error) { return struct{}{}, nil }))
	mux.Handle("GET /v1/watch", watch{svc, staff(func(context.Context, any) (any, error) { return nil, nil })})
}

func decodeThing(r *http.Request) (any, error) {
	id, err := thing.Parse(r.PathValue("thing"))
	if err != nil {
		return nil, errs.New(errs.Invalid, "%w", err)
	}
	limit, err := limitOf(r.URL.Query())
	return thingRequest{id, limit}, err
}

func queryOf(r *http.Request) (registry.Query, error) {
	v := r.URL.Query()
	q := registry.Query{Presence: registry.Presence(v.Get("presence")), Search: v.Get("q")}
	if after := v.Get("after"); after != "" {
		var err error
		if q.After, err = thing.Parse(after); err != nil {
			return q, errs.New(errs.Invalid, "after: %w", err)
		}
	}
	var err error
	q.Limit, err = limitOf(v)
	return q, err
}

func limitOf(v url.Values) (int, error) {
	s := v.Get("limit")
	if s == "" {
		return registry.DefaultLimit, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > registry.MaxLimit {
		return 0, errs.New(errs.Invalid, "limit %.20q: want 1 to %d", s, registry.MaxLimit)
	}
	return n, nil
}

const (
	heartbeat = 15 * time.Second // keeps proxies from closing a quiet stream
	// streamLife is when a stream ends and the browser connects anew: a session that ended does not watch for ever.
	streamLife   = 10 * time.Minute
	writeTimeout = 10 * time.Second
)

// watch streams changes as server-sent events named "thing". A client that comes back has missed some: it lists again.
type watch struct {
	svc   *registry.Service
	allow func(context.Context, any) (any, error)
}

func (h watch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := h.allow(r.Context(), nil); err != nil {
		kithttp.WriteError(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), streamLife)
	defer cancel()
	changes := h.svc.Watch(ctx)
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-store")
	head.Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	send := func(text string) bool {
		// A server without deadlines (a test's recorder) writes without.
		if err := out.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return false
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return false
		}
		return len(changes) > 0 || out.Flush() == nil // one flush for a burst
	}
	if !send("retry: 1000\n: watching\n\n") {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case t, ok := <-changes:
			if !ok {
				return
			}
			b, err := json.Marshal(t)
			if err != nil {
				return
			}
			if !send("event: thing\ndata: " + string(b) + "\n\n") {
				return
			}
		case <-beat.C:
			if !send(": beat\n\n") {
				return
			}
		}
	}
}
