package jdocsapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/people"
)

// defaultHistory is how many revisions are returned when the request does not say.
const defaultHistory = 50

// docReq is a request about the documents of a thing, or about one of them.
type docReq struct {
	id       thing.ID
	name     jdocs.Name
	limit    int    // of a history
	from, to uint64 // versions to compare; to: also the one to restore
	fields   map[string]json.RawMessage
	force    bool // also set fields that no robot is known to read
}

// Doc is one revision as people read it.
type Doc struct {
	Thing      thing.ID        `json:"thing"`
	Doc        jdocs.Name      `json:"doc_name"`
	Version    uint64          `json:"doc_version"`
	FmtVersion uint64          `json:"fmt_version"`
	ClientMeta string          `json:"client_metadata,omitempty"`
	By         string          `json:"by"`
	At         time.Time       `json:"at"`
	Deleted    bool            `json:"deleted,omitempty"`
	JSON       json.RawMessage `json:"jdoc,omitempty"` // the document; absent in lists and deletions
}

// Answers, for the description of the API.
type (
	Difference = people.Difference
	Schema     = jdocs.Schema
)

func docOf(r docReq, v jdocs.Revision) Doc {
	return Doc{r.id, r.name, v.Version, v.FmtVersion, v.ClientMeta, v.By, v.At.UTC(), v.Deleted, json.RawMessage(v.JSON)}
}

// Mount adds the endpoints of people:
//
//	GET   /v1/jdocs/schemas                              the documents that robots know, and their fields
//	GET   /v1/things/{thing}/jdocs                       [{doc, version, fmt_version, by, at}, ...]
//	GET   /v1/things/{thing}/jdocs/{doc}                 {doc, version, fmt_version, by, at, json}
//	PATCH /v1/things/{thing}/jdocs/{doc}                 {"set": {"master_volume": 3, "custom_eye_color.hue": 0.4}} -> the new version;
//	                                                     with "force": true also fields and documents that no robot is known to read
//	GET   /v1/things/{thing}/jdocs/{doc}/history?limit=  [...], newest first
//	GET   /v1/things/{thing}/jdocs/{doc}/diff?from=&to=  [{field, before, after}, ...] between two versions
//	POST  /v1/things/{thing}/jdocs/{doc}/restore         {"version": 7} -> the new version, with the text of that one
//
// The caller comes from the context (auth.CallerFrom).
func Mount(mux *http.ServeMux, p *people.Documents) {
	one := func(do func(context.Context, docReq) (jdocs.Revision, error)) endpoint.Endpoint {
		return kit.Typed(func(ctx context.Context, r docReq) (Doc, error) {
			rev, err := do(ctx, r)
			return docOf(r, rev), err
		})
	}
	mux.Handle("GET /v1/jdocs/schemas", kithttp.Handler(auth.Require(auth.People...)(kit.Typed(func(context.Context, docReq) ([]jdocs.Schema, error) {
		return jdocs.Schemas, nil
	})), func(*http.Request) (any, error) { return docReq{}, nil }))
	mux.Handle("GET /v1/things/{thing}/jdocs", kithttp.Handler(kit.Typed(func(ctx context.Context, r docReq) ([]Doc, error) {
		ls, err := p.List(ctx, r.id)
		docs := make([]Doc, len(ls))
		for i, l := range ls {
			docs[i] = Doc{Thing: r.id, Doc: l.Name, Version: l.Version, FmtVersion: l.FmtVersion, By: l.By, At: l.At.UTC()}
		}
		return docs, err
	}), decodeList))
	mux.Handle("GET /v1/things/{thing}/jdocs/{doc}", kithttp.Handler(one(func(ctx context.Context, r docReq) (jdocs.Revision, error) {
		return p.Get(ctx, r.id, r.name)
	}), decodeGet))
	mux.Handle("PATCH /v1/things/{thing}/jdocs/{doc}", kithttp.Handler(one(func(ctx context.Context, r docReq) (jdocs.Revision, error) {
		if r.force {
			return p.Force(ctx, r.id, r.name, r.fields)
		}
		return p.Set(ctx, r.id, r.name, r.fields)
	}), decodeSet))
	mux.Handle("POST /v1/things/{thing}/jdocs/{doc}/restore", kithttp.Handler(one(func(ctx context.Context, r docReq) (jdocs.Revision, error) {
		return p.Restore(ctx, r.id, r.name, r.to)
	}), decodeRestore))
	mux.Handle("GET /v1/things/{thing}/jdocs/{doc}/diff", kithttp.Handler(kit.Typed(func(ctx context.Context, r docReq) ([]people.Difference, error) {
		return p.Diff(ctx, r.id, r.name, r.from, r.to)
	}), decodeDiff))
	mux.Handle("GET /v1/things/{thing}/jdocs/{doc}/history", kithttp.Handler(kit.Typed(func(ctx context.Context, r docReq) ([]Doc, error) {
		revs, err := p.History(ctx, r.id, r.name, r.limit)
		docs := make([]Doc, len(revs))
		for i, rev := range revs {
			docs[i] = docOf(r, rev)
		}
		return docs, err
	}), decodeHistory))
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

func decodeDiff(r *http.Request) (any, error) {
	req, err := pathDoc(r)
	if err == nil {
		req.from, err = version(r, "from")
	}
	if err == nil {
		req.to, err = version(r, "to")
	}
	return req, err
}

func version(r *http.Request, name string) (uint64, error) {
	s := r.URL.Query().Get(name)
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n == 0 {
		return 0, errs.New(errs.Invalid, "%s %.40q: want a version, a whole number from 1", name, s)
	}
	return n, nil
}

func decodeRestore(r *http.Request) (any, error) {
	req, err := pathDoc(r)
	var body Restore
	if err == nil {
		err = kithttp.ReadJSON(r, &body, kithttp.MaxBody)
	}
	if err == nil && body.Version == 0 {
		err = errs.New(errs.Invalid, `body: want {"version": number of an earlier version}`)
	}
	req.to = body.Version
	return req, err
}

// Restore is the body of a request to restore a version.
type Restore struct {
	Version uint64 `json:"version"`
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
