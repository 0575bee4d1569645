// Package op declares the operations of the HTTP API. One value says all of an operation: its route, who may do it, whose robot it touches, its
// request and its answer, and the function. From it come the route with its decoding and its errors, the rule in the access table, the description of the
// API, and the client that is made of that (infra/adr/0037).
//
//	op.New(op.Spec{Route: "PUT /v1/alerts/acks/{id}", Tag: "Alerts", Summary: "Acknowledge an alert.", Roles: auth.Changers},
//		func(ctx context.Context, r acknowledge) (op.None, error) { … })
//
//	type acknowledge struct {
//		ID   int64      `path:"id" of:"alert"`
//		Note alert.Note `body:""`
//	}
package op

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Defaults of a Spec.
const (
	Timeout = 10 * time.Second
	MaxBody = 64 << 10 // bytes
)

// Spec describes an operation.
type Spec struct {
	Route   string // method and pattern, as net/http has them: "GET /v1/things/{thing}"
	Tag     string // the group in the description
	Summary string // one line, for people
	// Commands of kennelctl that do just this; none: package ctl has one of its own.
	Commands []Command
	Roles    []auth.Role
	// Own: a person with the role owner, too, for robots that are theirs; others' answer as unknown ones. The request has a field path:"thing", or query:"thing",
	// which operators may leave out.
	Own bool
	// Refuses: the function itself refuses robots of others.
	Refuses bool
	By      string // what decides where no role does; see access.Rule
	Page    bool   // a web page, or a form of one
	// Quiet: it changes nothing, though its method may. Plain: it writes no line of its own into the audit log; one about the request is written before it begins.
	Quiet, Plain bool
	// SameSite refuses what a page of another site makes a browser send. Programs do not say where they come from, and pass.
	SameSite bool
	// Strict refuses parameters that the request does not have, so that a misspelled filter does not choose everything.
	Strict  bool
	Status  int           // of a good answer; 0: 200, or 204 without one
	Also    map[int]any   // further good answers: status and what it holds
	Timeout time.Duration // 0: Timeout; less: none
	MaxBody int64         // bytes; 0: MaxBody
	// BodyMedia and AnswerMedia are the media types of a body or an answer that is no JSON.
	BodyMedia, AnswerMedia string
	Described              any // the answer as it is described, of a function that answers several
}

// None is the request of an operation that takes nothing, and the answer of one that answers 204.
type None struct{}

// Page is the answer of an operation that gives a list in pages. More is the parameter By of the next page, which a Link header leads to; "": there is none.
type Page[T any] struct {
	Items []T
	More  string
	By    string // "": after
}

func (p Page[T]) page() (items any, by, more string) {
	return filled(p.Items), or(p.By, "after"), p.More
}

// Of returns a page of what was asked for with a limit: if as much came, there may be more.
func Of[T any](items []T, limit int, id func(T) string) Page[T] {
	p := Page[T]{Items: items}
	if n := len(items); n > 0 && n == limit {
		p.More = id(items[n-1])
	}
	return p
}

// Before is Of for a list whose pages are led to by the parameter "before".
func Before[T any](items []T, limit int, id func(T) string) Page[T] {
	p := Of(items, limit, id)
	p.By = "before"
	return p
}

// Op is an operation.
type Op struct {
	Spec
	Query  []Parameter
	Body   reflect.Type // of the JSON that is sent; nil: none
	Answer reflect.Type // of the JSON that is answered; nil: none

	handler func(d Doors) http.Handler
}

// Doors are what operations need of the process.
type Doors struct {
	Log  *slog.Logger
	Owns auth.Owns
}

// List holds the operations of a slice.
type List []Op

// Served reports whether the operation is served here: one of the API, with a function.
func (o Op) Served() bool { return o.handler != nil }

// Mount adds the routes to mux.
func (l List) Mount(mux *http.ServeMux, d Doors) {
	for _, o := range l {
		if !o.Served() {
			continue
		}
		mux.Handle(o.Route, o.handler(d))
	}
}

// Rule returns an operation that something else serves: a page or its form, a request of a robot over MQTT (its Route is "echo/say") or a gRPC call
// ("/echopb.Echo/Say"). Of the Spec it has what says who may do it.
func Rule(s Spec) Op { return Op{Spec: s} }

// New returns an operation. fn may answer an http.Handler, which then writes by itself (see AnswerMedia). It panics if the request type cannot be one.
func New[Req, Resp any](s Spec, fn func(context.Context, Req) (Resp, error)) Op {
	in := formOf(s, reflect.TypeFor[Req]())
	o := Op{Spec: s, Query: in.query, Body: in.bodyType()}
	switch t := reflect.TypeFor[Resp](); {
	case s.Described != nil:
		o.Answer = reflect.TypeOf(s.Described)
	case t == reflect.TypeFor[None](), t == reflect.TypeFor[http.Handler](), s.AnswerMedia != "":
	case t.Implements(reflect.TypeFor[pager]()):
		items, _ := t.FieldByName("Items")
		o.Answer = items.Type
	default:
		o.Answer = t
	}
	o.handler = func(d Doors) http.Handler {
		may := func(next endpoint.Endpoint) endpoint.Endpoint { return next }
		if s.Own && !s.Refuses {
			may = auth.RequireOwn(d.Owns, func(r Req) thing.ID { return in.thingOf(reflect.ValueOf(r)) }, s.Roles...)
		} else if s.Own {
			may = auth.Require(append([]auth.Role{auth.Owner}, s.Roles...)...)
		} else if len(s.Roles) > 0 {
			may = auth.Require(s.Roles...)
		}
		around := endpoint.Chain(kit.Recover(d.Log), may)
		if s.Timeout >= 0 {
			around = endpoint.Chain(kit.Recover(d.Log), kit.Timeout(or(s.Timeout, Timeout)), may)
		}
		ask := around(kit.Typed(fn))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var req Req
			err := s.from(r)
			if err == nil {
				err = in.read(w, r, reflect.ValueOf(&req).Elem())
			}
			var resp any
			if err == nil {
				resp, err = ask(r.Context(), req)
			}
			if err != nil {
				s.note(r, err, d.Log)
				kithttp.WriteError(w, err)
				return
			}
			s.write(w, r, resp)
		})
	}
	return o
}

// from refuses a request that a page of another site made.
func (s Spec) from(r *http.Request) error {
	if s.SameSite && kithttp.SameOrigin(r) != nil {
		return CrossSite()
	}
	return nil
}

// CrossSite is the refusal of a request that a page of another site made.
func CrossSite() error {
	return errs.Coded(errs.Denied, "cross_site", "this request was not made by a page of this site")
}

// note logs what is ours to mend, and what strangers tried with a browser's pages, without the words of the answer, which may repeat theirs.
func (s Spec) note(r *http.Request, err error, log *slog.Logger) {
	ctx, kind := r.Context(), errs.KindOf(err)
	switch {
	case ctx.Err() != nil, errs.CodeOf(err) == errs.CodeOffline: // the peer is gone, or a robot
	case kind == errs.Internal, kind == errs.Corrupt, kind == errs.Unavailable && (errs.RetryOf(err) == 0 || errors.Unwrap(err) != nil): // else it was asked to come later
		log.ErrorContext(ctx, "request failed", "route", s.Route, logging.Addr, auth.CallerFrom(ctx).Addr, "code", errs.CodeOf(err), logging.Err, err)
	case s.SameSite:
		log.InfoContext(ctx, "request refused", "route", s.Route, logging.Addr, auth.CallerFrom(ctx).Addr, "kind", kind, "code", errs.CodeOf(err))
	}
}

type pager interface {
	page() (items any, by, more string)
}

// write answers with resp.
func (s Spec) write(w http.ResponseWriter, r *http.Request, resp any) {
	switch a := resp.(type) {
	case None:
		w.WriteHeader(or(s.Status, http.StatusNoContent))
		return
	case http.Handler:
		a.ServeHTTP(w, r)
		return
	case pager:
		items, by, more := a.page()
		if more != "" {
			next := r.URL.Query()
			next.Set(by, more)
			w.Header().Set("Link", "<"+r.URL.Path+"?"+next.Encode()+`>; rel="next"`)
		}
		resp = items
	}
	kithttp.WriteJSON(w, or(s.Status, http.StatusOK), filled(resp))
}

// filled returns an empty list for none, so that it is one in JSON.
func filled(v any) any {
	if r := reflect.ValueOf(v); r.Kind() == reflect.Slice && r.IsNil() {
		return reflect.MakeSlice(r.Type(), 0, 0).Interface()
	}
	return v
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
