// Package jdocsapi offers documents to the outside: to operators over HTTP (http.go), to robots over MQTT requests (mqtt.go). The
// robot's end is jdocs/jdocswire.
package jdocsapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/certs/thing"
	"kennel/infra/kit"
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
}

// WithNotifier has n told of every accepted change from the operators' side.
func WithNotifier(n Notifier) Option { return func(o *options) { o.notify = n } }

// WithThings asks check before an operator's request touches the documents of a thing: its error (NotFound for an unknown thing) is the
// answer. Without it any well-formed thing id is taken.
func WithThings(check func(ctx context.Context, id thing.ID) error) Option {
	return func(o *options) { o.exists = check }
}

type silent struct{}

func (silent) DocChanged(context.Context, jdocs.Key, uint64) {}

func build(opts []Option) options {
	o := options{notify: silent{}, exists: func(context.Context, thing.ID) error { return nil }}
	for _, f := range opts {
		f(&o)
	}
	return o
}

type (
	listReq    struct{ id thing.ID }
	getReq     struct{ key jdocs.Key }
	historyReq struct {
		key   jdocs.Key
		limit int
	}
	setReq struct {
		key    jdocs.Key
		fields map[string]json.RawMessage
	}
)

// docJSON is one revision as operators read it.
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

func docOf(key jdocs.Key, r jdocs.Revision) docJSON {
	return docJSON{key.Thing, key.Name, r.Version, r.FmtVersion, r.ClientMeta, r.By, r.At.UTC(), r.Deleted, json.RawMessage(r.JSON)}
}

// endpoints of the operators. Reading is for all staff, changing for those who may change a robot's documents.
type endpoints struct{ list, get, set, history endpoint.Endpoint }

func makeEndpoints(svc jdocs.Service, o options) endpoints {
	read, write := kit.Require(kit.Staff...), kit.Require(kit.Changers...)
	return endpoints{
		list: read(kit.Typed(func(ctx context.Context, r listReq) ([]docJSON, error) {
			if err := o.exists(ctx, r.id); err != nil {
				return nil, err
			}
			ls, err := svc.List(ctx, r.id)
			docs := make([]docJSON, len(ls))
			for i, l := range ls {
				docs[i] = docJSON{Thing: r.id, Doc: l.Name, Version: l.Version, FmtVersion: l.FmtVersion, By: l.By, At: l.At.UTC()}
			}
			return docs, err
		})),
		get: read(kit.Typed(func(ctx context.Context, r getReq) (docJSON, error) {
			if err := o.exists(ctx, r.key.Thing); err != nil {
				return docJSON{}, err
			}
			rev, err := svc.Get(ctx, r.key)
			return docOf(r.key, rev), err
		})),
		set: write(kit.Typed(func(ctx context.Context, r setReq) (docJSON, error) {
			if err := o.exists(ctx, r.key.Thing); err != nil {
				return docJSON{}, err
			}
			rev, err := svc.Set(ctx, r.key, r.fields, kit.CallerFrom(ctx).Subject())
			if err != nil {
				return docJSON{}, err
			}
			o.notify.DocChanged(ctx, r.key, rev.Version)
			return docOf(r.key, rev), nil
		})),
		history: read(kit.Typed(func(ctx context.Context, r historyReq) ([]docJSON, error) {
			if err := o.exists(ctx, r.key.Thing); err != nil {
				return nil, err
			}
			revs, err := svc.History(ctx, r.key, r.limit)
			docs := make([]docJSON, len(revs))
			for i, rev := range revs {
				docs[i] = docOf(r.key, rev)
			}
			return docs, err
		})),
	}
}
