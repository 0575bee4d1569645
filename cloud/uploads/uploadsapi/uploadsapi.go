// Package uploadsapi is the logs that robots uploaded over HTTP, for operators, and for owners those that the robot uploaded for them (VEC-LOG-10):
//
//	GET /v1/logs                                                                                  likewise, of all robots
//	GET /v1/things/{thing}/logs?name=&day=&version=&kind=&reason=&limit=&after=                   the newest first; Link rel="next" if there may be more
//	GET /v1/things/{thing}/logs/search?text=&level=&from=&to=&name=...&limit=&after=            lines in several logs
//	GET /v1/things/{thing}/logs/{log}?text=&level=&from=&to=&file=&limit=&skip=                 what one log holds, unpacked
//	GET /v1/things/{thing}/logs/{log}/content                                                   one log as it was uploaded
//
// name is a part of the log's name and text a part of the line, both in any case; day is a date (UTC), from and to are times such as
// 2026-05-06T12:00:00Z; version is the release that the robot ran, or the beginning of one; level is the least grave of the lines.
package uploadsapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/uploads"
	"kennel/cloud/uploads/logfile"
	"kennel/infra/api/events"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

const (
	timeout     = 10 * time.Second
	readTimeout = 30 * time.Second // a log may unpack to 128 MiB
	sendTimeout = 10 * time.Minute // of a whole log
)

// Config holds what the endpoints need besides the rules.
type Config struct {
	Known func(ctx context.Context, id thing.ID) error // refuses things that are not registered
	Owns  auth.Owns                                    // lets owners through to their own robots
	Log   *slog.Logger
}

// Request holds the parameters of a request.
type Request struct {
	Logs uploads.Query
	Log  string // id; "": none
	Find uploads.Search
}

// Account returns whose logs the caller in ctx may read: "" for all, which is for operators alone.
func Account(ctx context.Context) string {
	if c := auth.CallerFrom(ctx); !c.Role.Staff() {
		return c.Account
	}
	return ""
}

// Mount adds the endpoints to mux. The caller's role comes from the context (infra/kit).
func Mount(mux *http.ServeMux, svc *uploads.Service, cfg Config) {
	admit := endpoint.Chain(kit.Recover(cfg.Log), auth.RequireOwn(cfg.Owns, func(r Request) thing.ID { return r.Logs.Thing }, auth.Staff...),
		func(next endpoint.Endpoint) endpoint.Endpoint {
			return kit.Typed(func(ctx context.Context, r Request) (any, error) {
				if r.Logs.Thing != "" { // else of all robots, which is for operators
					if err := cfg.Known(ctx, r.Logs.Thing); err != nil {
						return nil, err
					}
				}
				r.Logs.Account = Account(ctx)
				return next(ctx, r)
			})
		})
	short, long := endpoint.Chain(kit.Timeout(timeout), admit), endpoint.Chain(kit.Timeout(readTimeout), admit)
	of := func(ctx context.Context, r Request) (uploads.Log, error) {
		return svc.Get(ctx, r.Logs.Thing, r.Logs.Account, r.Log)
	}
	list := short(kit.Typed(func(ctx context.Context, r Request) ([]uploads.Log, error) { return svc.List(ctx, r.Logs) }))
	mux.HandleFunc("GET /v1/logs", func(w http.ResponseWriter, r *http.Request) { serveList(w, r, list) })
	mux.HandleFunc("GET /v1/things/{thing}/logs", func(w http.ResponseWriter, r *http.Request) { serveList(w, r, list) })
	mux.Handle("GET /v1/things/{thing}/logs/search", kithttp.Handler(long(kit.Typed(func(ctx context.Context, r Request) (uploads.Found, error) {
		return svc.Search(ctx, r.Logs, r.Find)
	})), decode(slices.Concat(choices, []string{"text", "level", "from", "to", "limit", "after"})...)))
	mux.Handle("GET /v1/things/{thing}/logs/{log}", kithttp.Handler(long(kit.Typed(func(ctx context.Context, r Request) (uploads.Contents, error) {
		l, err := of(ctx, r)
		if err != nil {
			return uploads.Contents{}, err
		}
		return svc.Read(ctx, l, r.Find)
	})), decode("text", "level", "from", "to", "file", "limit", "skip")))
	mux.Handle("GET /v1/things/{thing}/logs/{log}/content", content{svc, short(kit.Typed(of)), cfg.Log})
}

// choices are the parameters that choose logs.
var choices = []string{"name", "day", "version", "kind", "reason"}

func serveList(w http.ResponseWriter, r *http.Request, list endpoint.Endpoint) {
	req, err := decode(slices.Concat(choices, []string{"limit", "after"})...)(r)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	resp, err := list(r.Context(), req)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	logs := resp.([]uploads.Log) // what list is made of
	if len(logs) > 0 && len(logs) == req.(Request).Logs.Limit {
		next := r.URL.Query()
		next.Set("after", logs[len(logs)-1].ID)
		w.Header().Set("Link", fmt.Sprintf("<%s?%s>; rel=\"next\"", r.URL.Path, next.Encode()))
	}
	kithttp.WriteJSON(w, http.StatusOK, logs)
}

func decode(allowed ...string) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		req, err := Parse(r.URL.Query(), allowed...)
		if err == nil && r.PathValue("thing") != "" {
			req.Logs.Thing, err = kithttp.Thing(r)
		}
		req.Log = r.PathValue("log")
		return req, err
	}
}

// Parse reads parameters; those that are not allowed are errors, so that a misspelled filter does not silently choose everything.
func Parse(v url.Values, allowed ...string) (Request, error) {
	r := Request{}
	r.Logs.Limit = uploads.DefaultLimit
	for key := range v {
		if !slices.Contains(allowed, key) {
			return r, errs.New(errs.Invalid, "%.40q: want %s", key, strings.Join(allowed, ", "))
		}
		if len(v[key]) != 1 {
			return r, errs.New(errs.Invalid, "%s: given %d times, want it once", key, len(v[key]))
		}
		if s := strings.TrimSpace(v.Get(key)); s != "" {
			if err := r.set(key, s); err != nil {
				return r, errs.New(errs.Invalid, "%s %.60q: %w", key, s, err)
			}
		}
	}
	return r, nil
}

func (r *Request) set(key, s string) (err error) {
	switch f := &r.Find; key {
	case "name":
		r.Logs.Name = s
	case "version":
		r.Logs.Version = s
	case "kind":
		r.Logs.Kind = s
	case "reason":
		r.Logs.Reason = s
	case "after":
		r.Logs.After = s
	case "day":
		if r.Logs.Day, err = time.Parse(time.DateOnly, s); err != nil {
			return errors.New("want a date such as 2026-05-06")
		}
	case "text":
		f.Text = s
	case "file":
		f.File = s
	case "level":
		if f.Level = events.Level(s); !slices.Contains(logfile.Levels, f.Level) {
			return fmt.Errorf("want one of %s", errs.List(logfile.Levels))
		}
	case "from":
		f.From, err = moment(s)
	case "to":
		f.To, err = moment(s)
	case "limit":
		if r.Logs.Limit, err = strconv.Atoi(s); err != nil || r.Logs.Limit < 1 || r.Logs.Limit > uploads.MaxLimit {
			return fmt.Errorf("want 1 to %d", uploads.MaxLimit)
		}
		f.Limit = r.Logs.Limit
	case "skip":
		if f.Skip, err = strconv.Atoi(s); err != nil || f.Skip < 0 {
			return errors.New("want a number of lines")
		}
	}
	return err
}

// moment reads a time; what a person types on a page needs neither seconds nor a zone, which is then UTC.
func moment(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, errors.New("want a time such as 2026-05-06T12:00:00Z")
}

// content sends a log as it was uploaded. It is a stream and therefore no endpoint; it asks the endpoint for the log alone.
type content struct {
	svc *uploads.Service
	of  endpoint.Endpoint
	log *slog.Logger
}

func (c content) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, err := decode()(r)
	var resp any
	if err == nil {
		resp, err = c.of(r.Context(), req)
	}
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	l := resp.(uploads.Log) // what of is made of
	ctx, cancel := context.WithTimeout(r.Context(), sendTimeout)
	defer cancel()
	body, err := c.svc.Open(ctx, l)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	defer body.Close() // only read
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream") // whatever the robot says: a browser must not run it
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.FormatInt(l.Size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": FileName(l)}))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTimeout)) // a server without deadlines needs none
	if _, err := io.CopyN(w, body, l.Size); err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "log not sent whole", logging.Thing, l.Thing, logging.Err, err)
	}
}

// FileName returns what a downloaded log is called on a computer.
func FileName(l uploads.Log) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) {
			return '-'
		}
		return r
	}, l.Name)
	return l.Thing.Slug() + "-" + strings.TrimLeft(name, ".-")
}
