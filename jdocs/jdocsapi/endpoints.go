// Package jdocsapi offers documents to the outside: to operators and owners over HTTP (http.go,
// owners.go), to robots over MQTT requests (mqtt.go). The robot's end is jdocs/jdocswire.
package jdocsapi

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"kennel/infra/auth"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Option changes how documents are offered.
type Option func(*options)

type options struct {
	exists func(context.Context, thing.ID) error

	owns           auth.Owns
	ownerOf        func(context.Context, thing.ID) (string, error) // nil: robots reach no document of an account
	accountChanged func(context.Context, string, jdocs.Name)
}

// WithThings asks check before a person's request touches the documents of a thing: its error (NotFound for an unknown thing) is the
// answer. Without it any well-formed thing id is taken.
func WithThings(check func(ctx context.Context, id thing.ID) error) Option {
	return func(o *options) { o.exists = check }
}

func build(opts []Option) options {
	o := options{
		exists:         func(context.Context, thing.ID) error { return nil },
		accountChanged: func(context.Context, string, jdocs.Name) {},
	}
	for _, f := range opts {
		f(&o)
	}
	return o
}

// docReq is a request about the documents of a thing, or about one of them.
type docReq struct {
	id     thing.ID
	name   jdocs.Name                 // "": all
	limit  int                        // of a history
	fields map[string]json.RawMessage // to set
	force  bool                       // also set fields that no robot is known to read
}

// docJSON is one revision as people read it.
type docJSON struct {
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

// Doc is the answer of the endpoints, for the description of the API.
type Doc = docJSON

func docOf(r docReq, v jdocs.Revision) docJSON {
	return docJSON{r.id, r.name, v.Version, v.FmtVersion, v.ClientMeta, v.By, v.At.UTC(), v.Deleted, json.RawMessage(v.JSON)}
}

// Pages is the rules of people's requests, for the endpoints of Mount and, without a transport, for web pages. All operators may read;
// changing needs a role that may change a robot's documents; its owner may do as WithOwns says. The caller comes from the context
// (auth.CallerFrom). Safe for concurrent use.
type Pages struct {
	svc jdocs.Service
	options
}

// NewPages returns the documents for people.
func NewPages(svc jdocs.Service, opts ...Option) *Pages { return &Pages{svc, build(opts)} }

func (p *Pages) list(ctx context.Context, r docReq) ([]docJSON, error) {
	ctx, err := auth.Own(ctx, p.owns, r.id, auth.Staff...)
	if err == nil {
		err = p.exists(ctx, r.id)
	}
	if err != nil {
		return nil, err
	}
	ls, err := p.svc.List(ctx, r.id)
	if err != nil {
		return nil, err
	}
	if _, own := auth.OwnedSince(ctx); own {
		ls = slices.DeleteFunc(ls, func(l jdocs.Listing) bool { return !slices.Contains(ownersRead, l.Name) })
		more, err := accountDocs(ctx, p.svc)
		if err != nil {
			return nil, err
		}
		ls = append(ls, more...)
	}
	docs := make([]docJSON, len(ls))
	for i, l := range ls {
		docs[i] = docJSON{Thing: r.id, Doc: l.Name, Version: l.Version, FmtVersion: l.FmtVersion, By: seen(ctx, l.By), At: l.At.UTC()}
	}
	return docs, nil
}

// Get returns a document as the caller may see it.
func (p *Pages) Get(ctx context.Context, id thing.ID, name jdocs.Name) (jdocs.Revision, error) {
	ctx, key, err := p.reach(ctx, id, name, false)
	if err != nil {
		return jdocs.Revision{}, err
	}
	rev, err := p.svc.Get(ctx, key)
	rev.By = seen(ctx, rev.By)
	return rev, err
}

// Set changes named fields.
func (p *Pages) Set(ctx context.Context, id thing.ID, name jdocs.Name, fields map[string]json.RawMessage) (jdocs.Revision, error) {
	return p.set(ctx, docReq{id: id, name: name, fields: fields})
}

func (p *Pages) set(ctx context.Context, r docReq) (jdocs.Revision, error) {
	ctx, key, err := p.reach(ctx, r.id, r.name, true)
	if err == nil && key.Name == jdocs.AccountSettings {
		r.fields, err = accountFields(ctx, p.svc, key, r.fields)
	}
	if err == nil {
		err = checkNames(ctx, p.svc, key, r)
	}
	if err != nil {
		return jdocs.Revision{}, err
	}
	rev, err := p.svc.Set(ctx, key, r.fields, author(ctx))
	if err == nil && key.Account != "" {
		p.accountChanged(ctx, key.Account, key.Name)
	}
	return rev, err
}

func (p *Pages) history(ctx context.Context, r docReq) ([]docJSON, error) {
	ctx, key, err := p.reach(ctx, r.id, r.name, false)
	if err != nil {
		return nil, err
	}
	revs, err := p.svc.History(ctx, key, r.limit)
	docs := []docJSON{}
	for _, rev := range revs {
		if !rev.At.Before(begin(ctx, key)) {
			rev.By = seen(ctx, rev.By)
			docs = append(docs, docOf(r, rev))
		}
	}
	return docs, err
}

// Differing returns, in order, the names of the fields that changed since a version: the changes that a robot with that version still
// lacks. If the version is no longer stored it returns all fields. It does not return the former values: they may be another owner's.
func (p *Pages) Differing(ctx context.Context, id thing.ID, name jdocs.Name, version uint64) ([]string, error) {
	ctx, key, err := p.reach(ctx, id, name, false)
	if err != nil {
		return nil, err
	}
	cur, err := p.svc.Get(ctx, key)
	if err != nil || cur.Version == version {
		return nil, err
	}
	old, err := p.svc.Revision(ctx, key, version)
	if err != nil && !errors.Is(err, jdocs.ErrNotFound) {
		return nil, err
	}
	return differing(old.JSON, cur.JSON), nil
}

// checkNames refuses names that a person has probably mistyped, unless they insist.
func checkNames(ctx context.Context, svc jdocs.Service, key jdocs.Key, r docReq) error {
	if r.force || key.Account != "" { // accountFields has checked an account's documents
		return nil
	}
	cur, err := svc.Get(ctx, key)
	written := err == nil
	if errors.Is(err, jdocs.ErrNotFound) {
		cur.Doc, err = jdocs.Default(key.Name), nil
	}
	if err != nil {
		return err
	}
	return jdocs.CheckNames(key.Name, cur.JSON, written, r.fields)
}

// reach returns the key of a document that the caller may reach, and the context that says whether as its owner.
func (p *Pages) reach(ctx context.Context, id thing.ID, name jdocs.Name, change bool) (context.Context, jdocs.Key, error) {
	roles := auth.Staff
	if change {
		roles = auth.Changers
	}
	ctx, err := auth.Own(ctx, p.owns, id, roles...)
	if err != nil {
		return ctx, jdocs.Key{}, err
	}
	key, err := p.key(ctx, id, name, change)
	if err == nil {
		err = p.exists(ctx, id)
	}
	return ctx, key, err
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
