// Package jdocsapi offers documents to the outside: to operators and owners over HTTP (http.go,
// owners.go), to robots over MQTT requests (mqtt.go). The robot's end is jdocs/jdocswire.
package jdocsapi

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/infra/auth"
	"kennel/infra/kit"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Notifier is told of changes that the robot did not make itself.
type Notifier interface {
	DocChanged(ctx context.Context, key jdocs.Key, version uint64)
}

// Option changes how documents are offered.
type Option func(*options)

type options struct {
	notify Notifier
	exists func(context.Context, thing.ID) error

	owns           auth.Owns
	ownerOf        func(context.Context, thing.ID) (string, error) // nil: robots reach no document of an account
	accountChanged func(context.Context, string, jdocs.Name)
}

// WithNotifier has n told of every accepted change of a robot's document from the people's side.
func WithNotifier(n Notifier) Option { return func(o *options) { o.notify = n } }

// WithThings asks check before a person's request touches the documents of a thing: its error (NotFound for an unknown thing) is the
// answer. Without it any well-formed thing id is taken.
func WithThings(check func(ctx context.Context, id thing.ID) error) Option {
	return func(o *options) { o.exists = check }
}

type silent struct{}

func (silent) DocChanged(context.Context, jdocs.Key, uint64) {}

func build(opts []Option) options {
	o := options{
		notify: silent{}, exists: func(context.Context, thing.ID) error { return nil },
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

func docOf(ctx context.Context, r docReq, v jdocs.Revision) docJSON {
	return docJSON{r.id, r.name, v.Version, v.FmtVersion, v.ClientMeta, seen(ctx, v.By), v.At.UTC(), v.Deleted, json.RawMessage(v.JSON)}
}

// endpoints are the endpoints for people. All operators may read; changing needs a role that may change a robot's documents; its owner may
// do as WithOwns says.
type endpoints struct{ list, get, set, history endpoint.Endpoint }

func makeEndpoints(svc jdocs.Service, o options) endpoints {
	of := func(r docReq) thing.ID { return r.id }
	read, write := auth.RequireOwn(o.owns, of, auth.Staff...), auth.RequireOwn(o.owns, of, auth.Changers...)
	return endpoints{
		list: read(kit.Typed(func(ctx context.Context, r docReq) ([]docJSON, error) {
			if err := o.exists(ctx, r.id); err != nil {
				return nil, err
			}
			ls, err := svc.List(ctx, r.id)
			if err != nil {
				return nil, err
			}
			if _, own := auth.OwnedSince(ctx); own {
				ls = slices.DeleteFunc(ls, func(l jdocs.Listing) bool { return !slices.Contains(ownersRead, l.Name) })
				more, err := accountDocs(ctx, svc)
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
		})),
		get: read(kit.Typed(func(ctx context.Context, r docReq) (docJSON, error) {
			key, err := o.reach(ctx, r, false)
			if err != nil {
				return docJSON{}, err
			}
			rev, err := svc.Get(ctx, key)
			return docOf(ctx, r, rev), err
		})),
		set: write(kit.Typed(func(ctx context.Context, r docReq) (docJSON, error) {
			key, err := o.reach(ctx, r, true)
			if err != nil {
				return docJSON{}, err
			}
			if key.Name == jdocs.AccountSettings {
				if r.fields, err = accountFields(ctx, svc, key, r.fields); err != nil {
					return docJSON{}, err
				}
			}
			if err := checkNames(ctx, svc, key, r); err != nil {
				return docJSON{}, err
			}
			rev, err := svc.Set(ctx, key, r.fields, author(ctx))
			if err != nil {
				return docJSON{}, err
			}
			if key.Account != "" {
				o.accountChanged(ctx, key.Account, key.Name)
			} else {
				o.notify.DocChanged(ctx, key, rev.Version)
			}
			return docOf(ctx, r, rev), nil
		})),
		history: read(kit.Typed(func(ctx context.Context, r docReq) ([]docJSON, error) {
			key, err := o.reach(ctx, r, false)
			if err != nil {
				return nil, err
			}
			revs, err := svc.History(ctx, key, r.limit)
			docs := []docJSON{}
			for _, rev := range revs {
				if !rev.At.Before(begin(ctx, key)) {
					docs = append(docs, docOf(ctx, r, rev))
				}
			}
			return docs, err
		})),
	}
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

// reach returns the key of a document that the caller may reach.
func (o options) reach(ctx context.Context, r docReq, change bool) (jdocs.Key, error) {
	key, err := o.key(ctx, r.id, r.name, change)
	if err != nil {
		return jdocs.Key{}, err
	}
	return key, o.exists(ctx, r.id)
}
