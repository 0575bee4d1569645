package jdocsapi

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"kennel/infra/auth"
	"kennel/infra/kit"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Pages offers the endpoints of Mount to web pages: the same rules, without a transport. The caller
// comes from the context (auth.CallerFrom). Safe for concurrent use.
type Pages struct {
	e      endpoints
	differ func(ctx context.Context, request any) (any, error)
}

// NewPages returns the documents for pages; opts are those of Mount.
func NewPages(svc jdocs.Service, opts ...Option) *Pages {
	o := build(opts)
	p := &Pages{e: makeEndpoints(svc, o)}
	p.differ = auth.RequireOwn(o.owns, func(r sinceReq) thing.ID { return r.id },
		auth.Staff...)(kit.Typed(func(ctx context.Context, r sinceReq) ([]string, error) {
		key, err := o.reach(ctx, r.docReq, false)
		if err != nil {
			return nil, err
		}
		cur, err := svc.Get(ctx, key)
		if err != nil || cur.Version == r.version {
			return nil, err
		}
		old, err := svc.Revision(ctx, key, r.version)
		if err != nil && !errors.Is(err, jdocs.ErrNotFound) {
			return nil, err
		}
		return differing(old.JSON, cur.JSON), nil
	}))
	return p
}

type sinceReq struct {
	docReq
	version uint64
}

// Get returns a document as the caller may see it.
func (p *Pages) Get(ctx context.Context, id thing.ID, name jdocs.Name) (jdocs.Revision, error) {
	return asRevision(p.e.get(ctx, docReq{id: id, name: name}))
}

// Set changes named fields.
func (p *Pages) Set(ctx context.Context, id thing.ID, name jdocs.Name, fields map[string]json.RawMessage) (jdocs.Revision, error) {
	return asRevision(p.e.set(ctx, docReq{id: id, name: name, fields: fields}))
}

// Differing returns, in order, the names of the fields that changed since a version: the changes that a robot with that version still
// lacks. If the version is no longer stored it returns all fields. It does not return the former values: they may be another owner's.
func (p *Pages) Differing(ctx context.Context, id thing.ID, name jdocs.Name, version uint64) ([]string, error) {
	out, err := p.differ(ctx, sinceReq{docReq{id: id, name: name}, version})
	if err != nil {
		return nil, err
	}
	return out.([]string), nil
}

func asRevision(out any, err error) (jdocs.Revision, error) {
	if err != nil {
		return jdocs.Revision{}, err
	}
	d := out.(docJSON)
	return jdocs.Revision{
		Doc: jdocs.Doc{Version: d.Version, FmtVersion: d.FmtVersion, ClientMeta: d.ClientMeta, JSON: string(d.JSON)}, By: d.By,
		At: d.At, Deleted: d.Deleted,
	}, nil
}

// differing compares two objects field by field. A value that is not an object has no fields, so all fields of the other differ.
func differing(a, b string) []string {
	var was, is map[string]json.RawMessage
	_ = json.Unmarshal([]byte(a), &was) // see above
	_ = json.Unmarshal([]byte(b), &is)
	out := []string{}
	for name, v := range is {
		if old, ok := was[name]; !ok || !jdocs.Equal(old, v) {
			out = append(out, name)
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
