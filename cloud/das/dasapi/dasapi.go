// Package dasapi is robots' events over HTTP, for operators, and for owners about one robot of theirs since it is theirs (WithOwns):
//
//	GET /v1/events?FILTER&limit=&before=   newest first; Link rel="next" if there may be more
//	GET /v1/events/boots?thing=&limit=     the latest boots of one robot, and how many of their events were lost
//	GET /v1/events/tail?FILTER             server-sent events: each event as it is stored
//	GET /v1/events/counts?FILTER&by=&of=   how many there were, for operators
//	GET /v1/experiments?since=             experiments that robots told of, for operators
//	GET /v1/experiments/{key}?name=&of=    how robots of their variations differ by an event, since= until=
//	GET /v1/events/export?FILTER&format=   all of them as one file, for operators; the trailer Kennel-Cut says that there are more than fit
//
// FILTER is das.Filter in an address. A tail begins now, or at since; a client that reconnects with
// Last-Event-ID continues after the event it saw last. Silence is broken by a comment every 15 seconds.
package dasapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
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

type options struct {
	owns  auth.Owns
	audit func(ctx context.Context, action, object, detail string) error
}

// WithAudit writes a line for each export. Without it there are none.
func WithAudit(audit func(ctx context.Context, action, object, detail string) error) Option {
	return func(o *options) { o.audit = audit }
}

// WithOwns lets the owner of a robot see its events. Without it owners are refused.
func WithOwns(owns auth.Owns) Option { return func(o *options) { o.owns = owns } }

// since makes the filter begin where the robot became the caller's.
func (q query) since(ctx context.Context) (query, error) {
	since, mine := auth.OwnedSince(ctx)
	if mine && q.filter.Robots != "" {
		return q, errs.New(errs.Denied, "robots %.60q: filters of the fleet are for operators", q.filter.Robots)
	}
	if mine {
		q.filter.Owned = since
	}
	return q, nil
}

// Mount adds the endpoints to mux. The caller's role comes from the context (infra/kit).
func Mount(mux *http.ServeMux, svc *das.Service, opts ...Option) {
	var o options
	for _, f := range opts {
		f(&o)
	}
	admit := auth.RequireOwn(o.owns, func(q query) thing.ID { return q.filter.Thing }, auth.Staff...)
	list := admit(kit.Typed(func(ctx context.Context, q query) ([]das.Record, error) {
		q, err := q.since(ctx)
		if err != nil {
			return nil, err
		}
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
	counts := auth.Require(auth.Staff...)(kit.Typed(svc.Counts))
	mux.HandleFunc("GET /v1/events/counts", func(w http.ResponseWriter, r *http.Request) {
		q, err := das.ReadCounts(r.URL.Query(), time.Now(), nil)
		answer(w, err, func() (any, error) { return counts(r.Context(), q) })
	})
	experiments := auth.Require(auth.Staff...)(kit.Typed(func(ctx context.Context, since time.Time) ([]das.Experiment, error) {
		list, err := svc.Experiments(ctx, since)
		if list == nil {
			list = []das.Experiment{}
		}
		return list, err
	}))
	mux.HandleFunc("GET /v1/experiments", func(w http.ResponseWriter, r *http.Request) {
		f, err := das.ReadFilter(url.Values{"since": {cmp.Or(r.URL.Query().Get("since"), "30d")}}, time.Now(), nil)
		answer(w, err, func() (any, error) { return experiments(r.Context(), f.Since) })
	})
	compare := auth.Require(auth.Staff...)(kit.Typed(svc.Compare))
	mux.HandleFunc("GET /v1/experiments/{key}", func(w http.ResponseWriter, r *http.Request) {
		q, err := das.ReadCompare(r.PathValue("key"), r.URL.Query(), time.Now())
		answer(w, err, func() (any, error) { return compare(r.Context(), q) })
	})
	if o.audit != nil {
		mux.HandleFunc("GET /v1/events/export", func(w http.ResponseWriter, r *http.Request) { export(w, r, svc, o) })
	}
	boots := admit(kit.Typed(func(ctx context.Context, q query) ([]das.Boot, error) {
		since, _ := auth.OwnedSince(ctx)
		return svc.Boots(ctx, q.filter.Thing, since, q.limit)
	}))
	mux.Handle("GET /v1/events/boots", kithttp.Handler(boots, func(r *http.Request) (any, error) {
		q, err := queryOf(r.URL.Query())
		if only := (das.Filter{Thing: q.filter.Thing}); err == nil && (q.filter.Thing == "" || !reflect.DeepEqual(q.filter, only) || !q.before.Received.IsZero()) {
			err = errs.New(errs.Invalid, "want thing, the robot whose boots to list, and limit")
		}
		return q, err
	}))
	mux.Handle("GET /v1/events/tail", tail{svc, admit(func(ctx context.Context, _ any) (any, error) {
		since, _ := auth.OwnedSince(ctx)
		return since, nil
	})})
}

// answer writes what ask answers, unless the question could not be read.
func answer(w http.ResponseWriter, err error, ask func() (any, error)) {
	var resp any
	if err == nil {
		resp, err = ask()
	}
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	kithttp.WriteJSON(w, http.StatusOK, resp)
}

// queryOf reads the parameters.
func queryOf(v url.Values) (query, error) {
	q := query{limit: das.DefaultLimit}
	var err error
	q.filter, err = das.ReadFilter(v, time.Now(), func(key, s string) (known bool, err error) {
		switch key {
		case "limit":
			if q.limit, err = strconv.Atoi(s); err != nil || q.limit < 1 || q.limit > das.MaxLimit {
				err = fmt.Errorf("want 1 to %d", das.MaxLimit)
			}
		case "before":
			q.before, err = das.ParseCursor(s)
		default:
			return false, nil
		}
		return true, err
	})
	return q, err
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
		f.Owned = since
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
