package jdocsapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/jdocs"
)

// defaultHistory is how many revisions are returned when the request does not say.
const defaultHistory = 50

// Mount adds the endpoints of people:
//
//	GET   /v1/things/{thing}/jdocs                       [{doc, version, fmt_version, by, at}, ...]
//	GET   /v1/things/{thing}/jdocs/{doc}                 {doc, version, fmt_version, by, at, json}
//	PATCH /v1/things/{thing}/jdocs/{doc}                 {"set": {"master_volume": 3, "custom_eye_color.hue": 0.4}} -> the new version;
//	                                                     with "force": true also fields and documents that no robot is known to read
//	GET   /v1/things/{thing}/jdocs/{doc}/history?limit=  [...], newest first
//
// The caller comes from the context (auth.CallerFrom).
func Mount(mux *http.ServeMux, svc jdocs.Service, opts ...Option) {
	p := NewPages(svc, opts...)
	mux.Handle("GET /v1/things/{thing}/jdocs", kithttp.Handler(kit.Typed(p.list), decodeList))
	mux.Handle("GET /v1/things/{thing}/jdocs/{doc}", kithttp.Handler(kit.Typed(func(ctx context.Context, r docReq) (docJSON, error) {
		rev, err := p.Get(ctx, r.id, r.name)
		return docOf(r, rev), err
	}), decodeGet))
	mux.Handle("PATCH /v1/things/{thing}/jdocs/{doc}", kithttp.Handler(kit.Typed(func(ctx context.Context, r docReq) (docJSON, error) {
		rev, err := p.set(ctx, r)
		return docOf(r, rev), err
	}), decodeSet))
	mux.Handle("GET /v1/things/{thing}/jdocs/{doc}/history", kithttp.Handler(kit.Typed(p.history), decodeHistory))
}

func pathDoc(r *http.Request) (docReq, error) {
	id, err := kithttp.Thing(r)
	if err != nil {
		return docReq{}, err
	}
	name, err := jdocs.ParseName(r.PathValue("doc"))
	return docReq{id: id, name: name}, err
}

func decodeList(r *http.Request) (any, error) {
	id, err := kithttp.Thing(r)
	return docReq{id: id}, err
}

func decodeGet(r *http.Request) (any, error) { return pathDoc(r) }

func decodeHistory(r *http.Request) (any, error) {
	req, err := pathDoc(r)
	req.limit = defaultHistory
	if s := r.URL.Query().Get("limit"); err == nil && s != "" {
		if req.limit, err = strconv.Atoi(s); err != nil {
			err = errs.New(errs.Invalid, "limit %.40q: want a number from 1 to %d", s, jdocs.MaxHistory)
		}
	}
	return req, err
}

func decodeSet(r *http.Request) (any, error) {
	req, err := pathDoc(r)
	if err != nil {
		return nil, err
	}
	var body struct {
		Set   map[string]json.RawMessage `json:"set"`
		Force bool                       `json:"force"`
	}
	if err := kithttp.ReadJSON(r, &body, kithttp.MaxBody); err != nil {
		return nil, err
	}
	if len(body.Set) == 0 {
		return nil, errs.New(errs.Invalid, `body: want {"set": {"field": value, ...}} with at least one field`)
	}
	req.fields, req.force = body.Set, body.Force
	return req, nil
}
