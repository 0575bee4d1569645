// Package crashapi is crashes over HTTP and as pages of the console, for operators:
//
//	GET   /v1/crash-groups?state=&program=&version=&limit=&after=          the latest seen first; Link rel="next" if there may be more
//	GET   /v1/crash-groups/{group}                                         one
//	PATCH /v1/crash-groups/{group} {state, fixed_in, note}                 resolves or reopens one
//	GET   /v1/crashes?thing=&group=&version=&limit=&after=                 the newest first; Link as above
//	GET   /v1/crashes/{crash}                                              one with its stacks
//	GET   /v1/crashes/{crash}/dump, /v1/crashes/{crash}/log                as they came
//	GET   /v1/crash-symbols                                                symbol files
//	POST  /v1/crash-symbols                                                the file as it is; Symbols
//	DELETE /v1/crash-symbols/{debug}
package crashapi

import (
	"context"
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

	"kennel/cloud/crash"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

const (
	timeout   = 10 * time.Second
	sendTime  = 10 * time.Minute // of a dump
	stallTime = 30 * time.Second // of one read of an upload
	maxBody   = 16 << 10
)

// Actions of the audit log.
const (
	AuditGroup   = "crash.group"
	AuditSymbols = "crash.symbols"
	AuditRemove  = "crash.symbols.remove"
	AuditDump    = "crash.download"
)

// Audit writes one line about what the caller in ctx does; what cannot be written down is not done.
type Audit func(ctx context.Context, action, object, detail string) error

// request holds the parameters of a request.
type request struct {
	id      string // of the path
	groups  crash.GroupQuery
	crashes crash.Query
	change  crash.Change
	body    io.Reader
	size    int64
}

// Mount adds the endpoints to mux.
func Mount(mux *http.ServeMux, svc *crash.Service, audit Audit, log *slog.Logger) {
	wrap := endpoint.Chain(kit.Recover(log), kit.Timeout(timeout))
	reads, writes := endpoint.Chain(wrap, auth.Require(auth.Staff...)), endpoint.Chain(wrap, auth.Require(auth.Changers...))
	list(mux, "GET /v1/crash-groups", reads(kit.Typed(func(ctx context.Context, r request) ([]crash.Group, error) { return svc.Groups(ctx, r.groups) })),
		func(g crash.Group) string { return g.ID }, "state", "program", "version", "limit", "after")
	list(mux, "GET /v1/crashes", reads(kit.Typed(func(ctx context.Context, r request) ([]crash.Crash, error) { return svc.Crashes(ctx, r.crashes) })),
		func(c crash.Crash) string { return c.ID }, "thing", "group", "version", "limit", "after")
	mux.Handle("GET /v1/crash-groups/{group}", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, r request) (crash.Group, error) { return svc.Group(ctx, r.id) })), decode("group")))
	mux.Handle("PATCH /v1/crash-groups/{group}", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, r request) (crash.Group, error) {
		return change(ctx, svc, audit, r.id, r.change)
	})), func(r *http.Request) (any, error) {
		req := request{id: r.PathValue("group")}
		err := kithttp.ReadJSON(r, &req.change, maxBody)
		return req, err
	}))
	one := reads(kit.Typed(func(ctx context.Context, r request) (crash.Crash, error) { return svc.Crash(ctx, r.id) }))
	mux.Handle("GET /v1/crashes/{crash}", kithttp.Handler(one, decode("crash")))
	mux.Handle("GET /v1/crashes/{crash}/dump", content{svc, one, audit, log, false})
	mux.Handle("GET /v1/crashes/{crash}/log", content{svc, one, audit, log, true})
	mux.Handle("GET /v1/crash-symbols", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, _ request) ([]crash.Symbols, error) {
		out, err := svc.Symbols(ctx)
		return some(out), err
	})), decode("")))
	upload := kithttp.Handler(endpoint.Chain(kit.Recover(log), auth.Require(auth.Changers...))(kit.Typed(func(ctx context.Context, r request) (crash.Symbols, error) {
		if err := audit(ctx, AuditSymbols, "", strconv.FormatInt(r.size, 10)+" bytes"); err != nil {
			return crash.Symbols{}, err
		}
		return svc.Upload(ctx, r.body, r.size, auth.CallerFrom(ctx).Subject())
	})), func(r *http.Request) (any, error) { return request{body: r.Body, size: r.ContentLength}, nil })
	mux.HandleFunc("POST /v1/crash-symbols", func(w http.ResponseWriter, r *http.Request) {
		r.Body = patient{r.Body, http.NewResponseController(w)}
		upload.ServeHTTP(w, r)
	})
	mux.Handle("DELETE /v1/crash-symbols/{debug}", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, r request) (any, error) {
		if err := audit(ctx, AuditRemove, r.id, ""); err != nil {
			return nil, err
		}
		return nil, svc.Remove(ctx, r.id)
	})), decode("debug")))
}

// change changes a group, and writes that down first.
func change(ctx context.Context, svc *crash.Service, audit Audit, id string, c crash.Change) (crash.Group, error) {
	if err := c.Check(); err != nil {
		return crash.Group{}, err
	}
	var words []string
	if c.State != "" {
		words = append(words, string(c.State))
	}
	if c.FixedIn != "" {
		words = append(words, "fixed in "+c.FixedIn)
	}
	if c.Note != nil {
		words = append(words, "note")
	}
	if err := audit(ctx, AuditGroup, id, strings.Join(words, ", ")); err != nil {
		return crash.Group{}, err
	}
	return svc.Change(ctx, id, c, auth.CallerFrom(ctx).Subject())
}

func decode(name string) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		req, err := parse(r.URL.Query())
		if name != "" {
			req.id = r.PathValue(name)
		}
		return req, err
	}
}

// some is a list that is one in JSON even if it is empty.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// list mounts a list with pages.
func list[T any](mux *http.ServeMux, route string, ask endpoint.Endpoint, id func(T) string, allowed ...string) {
	mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
		req, err := parse(r.URL.Query(), allowed...)
		var resp any
		if err == nil {
			resp, err = ask(r.Context(), req)
		}
		if err != nil {
			kithttp.WriteError(w, err)
			return
		}
		out := some(resp.([]T)) // what ask is made of
		if len(out) > 0 && len(out) == req.groups.Limit {
			next := r.URL.Query()
			next.Set("after", id(out[len(out)-1]))
			w.Header().Set("Link", "<"+r.URL.Path+"?"+next.Encode()+">; rel=\"next\"")
		}
		kithttp.WriteJSON(w, http.StatusOK, out)
	})
}

// parse reads parameters; those that are not allowed are errors, so that a misspelled filter does not silently choose everything.
func parse(v url.Values, allowed ...string) (request, error) {
	r := request{groups: crash.GroupQuery{Limit: crash.DefaultLimit}, crashes: crash.Query{Limit: crash.DefaultLimit}}
	for key := range v {
		s := strings.TrimSpace(v.Get(key))
		switch {
		case !slices.Contains(allowed, key):
			return r, errs.New(errs.Invalid, "%.40q: want %s", key, strings.Join(allowed, ", "))
		case len(v[key]) != 1:
			return r, errs.New(errs.Invalid, "%s: given %d times, want it once", key, len(v[key]))
		case s == "":
			continue
		}
		switch key {
		case "state":
			r.groups.State = crash.State(s)
		case "program":
			r.groups.Program = s
		case "version":
			r.groups.Version, r.crashes.Version = s, s
		case "after":
			r.groups.After, r.crashes.After = s, s
		case "group":
			r.crashes.Group = s
		case "thing":
			id, err := thing.Parse(s)
			if err != nil {
				return r, errs.New(errs.Invalid, "%w", err)
			}
			r.crashes.Thing = id
		case "limit":
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 || n > crash.MaxLimit {
				return r, errs.New(errs.Invalid, "limit %.20q: want 1 to %d", s, crash.MaxLimit)
			}
			r.groups.Limit, r.crashes.Limit = n, n
		}
	}
	return r, nil
}

// patient gives each read of a body its own time, in place of one for the whole.
type patient struct {
	io.ReadCloser
	rc *http.ResponseController
}

// Read implements io.Reader.
func (p patient) Read(b []byte) (int, error) {
	_ = p.rc.SetReadDeadline(time.Now().Add(stallTime)) // a writer that cannot is none of a network
	return p.ReadCloser.Read(b)
}

// content sends a dump or a log as it came. It is a stream and therefore no endpoint; it asks the endpoint for the crash alone.
type content struct {
	svc   *crash.Service
	one   endpoint.Endpoint
	audit Audit
	log   *slog.Logger
	tail  bool // the log
}

func (c content) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resp, err := c.one(r.Context(), request{id: r.PathValue("crash")})
	if err == nil { // a dump is the robot's memory, and may hold what a person said or saw
		err = c.audit(r.Context(), AuditDump, r.PathValue("crash"), "")
	}
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	found := resp.(crash.Crash) // what one is made of
	ctx, cancel := context.WithTimeout(r.Context(), sendTime)
	defer cancel()
	body, err := c.svc.Open(ctx, found, c.tail)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	defer body.Close() // only read
	size, name := found.Size, found.Program+"-"+found.ID+".dmp"
	if c.tail {
		size, name = found.LogSize, found.Program+"-"+found.ID+".log"
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream") // whatever the robot says: a browser must not run it
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": strings.Map(func(c rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, c) {
			return '-'
		}
		return c
	}, name)}))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTime)) // a server without deadlines needs none
	if _, err := io.CopyN(w, body, size); err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "crash not sent whole", "crash", found.ID, logging.Err, err)
	}
}
