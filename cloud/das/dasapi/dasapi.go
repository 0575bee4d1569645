// Package dasapi is robots' events over HTTP, for operators, and for owners about one robot of theirs since it is theirs (WithOwns):
//
//	GET /v1/events?thing=&event=&since=&limit=&before=   newest first; Link rel="next" if there may be more
//	GET /v1/events/tail?thing=&event=&since=             server-sent events: each event as it is stored
//
// event is a prefix of the name, since a time such as 2026-05-06T12:00:00Z. A tail begins now, or at since; a client that reconnects with
// Last-Event-ID continues after the event it saw last. Silence is broken by a comment every 15 seconds.
package dasapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/das"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

type query struct {
	filter das.Filter
	limit  int
	before das.Cursor
}

// Option changes who may see what.
type Option func(*options)

type options struct{ owns auth.Owns }

// WithOwns lets the owner of a robot see its events. Without it owners are refused.
func WithOwns(owns auth.Owns) Option { return func(o *options) { o.owns = owns } }

// since makes the filter begin where the robot became the caller's.
func (q query) since(ctx context.Context) query {
	if since, mine := auth.OwnedSince(ctx); mine && q.filter.Since.Before(since) {
		q.filter.Since = since
	}
	return q
}

// Mount adds the endpoints to mux. The caller's role comes from the context (infra/kit).
func Mount(mux *http.ServeMux, svc *das.Service, opts ...Option) {
	var o options
	for _, f := range opts {
		f(&o)
	}
	admit := auth.RequireOwn(o.owns, func(q query) thing.ID { return q.filter.Thing }, auth.Staff...)
	list := admit(kit.Typed(func(ctx context.Context, q query) ([]das.Record, error) {
		q = q.since(ctx)
		recs, err := svc.List(ctx, q.filter, q.limit, q.before)
		if recs == nil {
			recs = []das.Record{}
		}
		return recs, err
	}))
	mux.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) {
		q, err := queryOf(r.URL.Query())
		if err != nil {
			kithttp.WriteError(w, err)
			return
		}
		resp, err := list(r.Context(), q)
		if err != nil {
			kithttp.WriteError(w, err)
			return
		}
		recs := resp.([]das.Record) // what list is made of
		if len(recs) == q.limit {
			next := r.URL.Query()
			next.Set("before", recs[len(recs)-1].Cursor().String())
			w.Header().Set("Link", fmt.Sprintf("<%s?%s>; rel=\"next\"", r.URL.Path, next.Encode()))
		}
		kithttp.WriteJSON(w, http.StatusOK, recs)
	})
	mux.Handle("GET /v1/events/tail", tail{svc, admit(func(ctx context.Context, _ any) (any, error) {
		since, _ := auth.OwnedSince(ctx)
		return since, nil
	})})
}

// queryOf reads the parameters; unknown ones are errors, so that a misspelled filter does not silently choose everything.
func queryOf(v url.Values) (query, error) {
	q := query{limit: das.DefaultLimit}
	for key := range v {
		s, err := v.Get(key), error(nil)
		if len(v[key]) != 1 {
			return query{}, errs.New(errs.Invalid, "%.40s: given %d times, want it once", key, len(v[key]))
		}
		if s == "" {
			continue
		}
		switch key {
		case "thing":
			q.filter.Thing, err = thing.Parse(s)
		case "event":
			if q.filter.Event = s; len(s) > 128 {
				err = errors.New("want at most 128 bytes")
			}
		case "since":
			if q.filter.Since, err = time.Parse(time.RFC3339, s); err != nil {
				err = errors.New("want a time such as 2026-05-06T12:00:00Z")
			} else if y := q.filter.Since.Year(); y < 1970 || y > 9999 {
				err = errors.New("want a year from 1970 to 9999")
			}
		case "limit":
			if q.limit, err = strconv.Atoi(s); err != nil || q.limit < 1 || q.limit > das.MaxLimit {
				err = fmt.Errorf("want 1 to %d", das.MaxLimit)
			}
		case "before":
			q.before, err = das.ParseCursor(s)
		default:
			return query{}, errs.New(errs.Invalid, "%.40q: want thing, event, since, limit or before", key)
		}
		if err != nil {
			return query{}, errs.New(errs.Invalid, "%s %.60q: %w", key, s, err)
		}
	}
	return q, nil
}

// Heartbeat breaks silence, so that neither proxies nor clients take it for a dead connection; writeTimeout ends clients that do not read.
const (
	heartbeat    = 15 * time.Second
	writeTimeout = 30 * time.Second
)

// errNotYours ends a tail.
var errNotYours = errors.New("dasapi: the robot has another owner")

// askAgain is how long the owner of a robot is one without asking, while a tail shows its events.
const askAgain = time.Second

// tail is a stream and therefore no endpoint; it asks the endpoint middleware for admission only: since when the caller owns the robot, the
// zero time for operators.
type tail struct {
	svc   *das.Service
	admit endpoint.Endpoint
}

// admitted asks for a stream about a thing; "": all.
func (t tail) admitted(ctx context.Context, id thing.ID) (since time.Time, err error) {
	resp, err := t.admit(ctx, query{filter: das.Filter{Thing: id}})
	if err == nil {
		since = resp.(time.Time) // what admit is made of
	}
	return since, err
}

func (t tail) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	named, _ := thing.Parse(r.URL.Query().Get("thing")) // of one that is none queryOf complains, to those who may ask at all
	since, err := t.admitted(r.Context(), named)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	q, err := queryOf(r.URL.Query())
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	seen, err := das.ParseCursor(r.Header.Get("Last-Event-ID"))
	if err != nil {
		kithttp.WriteError(w, errs.New(errs.Invalid, "Last-Event-ID: %w", err))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	recs := make(chan das.Record)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		defer close(recs)
		f, asked := after(q.filter, seen), time.Now()
		if !f.Since.IsZero() && f.Since.Before(since) {
			f.Since = since
		}
		// ctx has ended, the caller no longer owns the robot, or the database does not recover: either way the stream
		// ends, and the client comes again.
		_ = t.svc.Tail(ctx, f, skip(seen, func(rec das.Record) error {
			if !since.IsZero() && time.Since(asked) > askAgain {
				if again, err := t.admitted(ctx, named); err != nil || !again.Equal(since) {
					return errNotYours
				}
				asked = time.Now()
			}
			select {
			case recs <- rec:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
	})
	stream(ctx, kithttp.Stream(w, writeTimeout), recs)
}

// after makes the filter of a tail that continues after the event at seen.
func after(f das.Filter, seen das.Cursor) das.Filter {
	if !seen.Received.IsZero() {
		f.Since = seen.Received
	}
	return f
}

// skip passes records on that come behind seen. Records come in the order of commit, so those before it were seen too, although some may
// have been received later. If it does not come, because its day was dropped, a minute's worth is passed over at most.
func skip(seen das.Cursor, fn func(das.Record) error) func(das.Record) error {
	found := seen.Received.IsZero()
	return func(rec das.Record) error {
		if !found {
			found = rec.Cursor().String() == seen.String() // times may differ in location
			if found || rec.Received.Sub(seen.Received) < time.Minute {
				return nil
			}
			found = true
		}
		return fn(rec)
	}
}

// stream writes records until they end, ctx does, or the client is gone.
func stream(ctx context.Context, send func(text string) bool, recs <-chan das.Record) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for text := ": events follow\n\n"; send(text); {
		select {
		case rec, ok := <-recs:
			if !ok {
				return
			}
			b, err := json.Marshal(rec)
			if err != nil {
				return // of plain fields: cannot be
			}
			text = fmt.Sprintf("id: %s\ndata: %s\n\n", rec.Cursor(), b)
		case <-beat.C:
			text = ": still here\n\n"
		case <-ctx.Done():
			return
		}
	}
}
