package jdocsapi

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/op"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/people"
)

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

// Settings are fields of a document and what they become; a dot leads into a field.
type Settings struct {
	Set   map[string]json.RawMessage `json:"set"`
	Force bool                       `json:"force,omitempty"` // take fields and documents too that no robot is known to read
}

// Restore is the body of a request to restore a version.
type Restore struct {
	Version uint64 `json:"version"`
}

type (
	ofThing struct {
		Thing thing.ID `path:"thing"`
	}
	document struct {
		ofThing
		Doc string `path:"doc"`
	}
	history struct {
		document
		Limit int `query:"limit" about:"Maximum number of results." min:"1" max:"1000" default:"50"`
	}
	comparison struct {
		document
		From string `query:"from" about:"Earlier version."`
		To   string `query:"to" about:"Later version."`
	}
	setting struct {
		document
		Settings Settings `body:""`
	}
	restoring struct {
		document
		Restore Restore `body:""`
	}
)

func docOf(id thing.ID, name jdocs.Name, v jdocs.Revision) Doc {
	return Doc{id, name, v.Version, v.FmtVersion, v.ClientMeta, v.By, v.At.UTC(), v.Deleted, json.RawMessage(v.JSON)}
}

// Operations returns the operations of people on documents. p says what a caller may do.
func Operations(p *people.Documents) op.List {
	spec := func(route, summary string, roles []auth.Role) op.Spec {
		return op.Spec{Route: route, Tag: "Documents", Summary: summary, Roles: roles, Own: true, Refuses: true, MaxBody: kithttp.MaxBody}
	}
	changes := func(route, summary string) op.Spec {
		s := spec(route, summary, auth.Changers)
		s.Plain = true
		return s
	}
	return op.List{
		op.New(op.Spec{Route: "GET /v1/jdocs/schemas", Tag: "Documents", Summary: "List the documents that robots know, with their fields.", Roles: auth.People},
			func(context.Context, op.None) ([]Schema, error) { return jdocs.Schemas, nil }),
		op.New(spec("GET /v1/things/{thing}/jdocs", "List a robot's documents, without their content.", auth.Staff).With(
			op.Command{Use: "jdocs list THING", Short: "List a robot's documents", Table: "DOCUMENT=.doc_name; VERSION=.doc_version; FORMAT=.fmt_version; CHANGED=.at; BY"}), func(ctx context.Context, r ofThing) ([]Doc, error) {
			ls, err := p.List(ctx, r.Thing)
			docs := make([]Doc, len(ls))
			for i, l := range ls {
				docs[i] = Doc{Thing: r.Thing, Doc: l.Name, Version: l.Version, FmtVersion: l.FmtVersion, By: l.By, At: l.At.UTC()}
			}
			return docs, err
		}),
		op.New(spec("GET /v1/things/{thing}/jdocs/{doc}", "Show a document.", auth.Staff), func(ctx context.Context, r document) (Doc, error) {
			return r.one(func(name jdocs.Name) (jdocs.Revision, error) { return p.Get(ctx, r.Thing, name) })
		}),
		op.New(changes("PATCH /v1/things/{thing}/jdocs/{doc}", "Change fields of a document."), func(ctx context.Context, r setting) (Doc, error) {
			if len(r.Settings.Set) == 0 {
				return Doc{}, errs.New(errs.Invalid, `body: want {"set": {"field": value, ...}} with at least one field`)
			}
			return r.one(func(name jdocs.Name) (jdocs.Revision, error) {
				if r.Settings.Force {
					return p.Force(ctx, r.Thing, name, r.Settings.Set)
				}
				return p.Set(ctx, r.Thing, name, r.Settings.Set)
			})
		}),
		op.New(spec("GET /v1/things/{thing}/jdocs/{doc}/history", "List a document's versions, the newest first.", auth.Staff).With(
			op.Command{Use: "jdocs history THING DOC -limit=20", Short: "List a document's versions: who changed it, and when", Example: "jdocs history vic:00e20100 vic.RobotSettings -limit 5", Table: "VERSION=.doc_version; CHANGED=.at; BY; DOCUMENT={{if .deleted}}(deleted){{else}}{{.jdoc}}{{end}}"}), func(ctx context.Context, r history) ([]Doc, error) {
			name, err := jdocs.ParseName(r.Doc)
			if err != nil {
				return nil, err
			}
			revs, err := p.History(ctx, r.Thing, name, r.Limit)
			docs := make([]Doc, len(revs))
			for i, rev := range revs {
				docs[i] = docOf(r.Thing, name, rev)
			}
			return docs, err
		}),
		op.New(spec("GET /v1/things/{thing}/jdocs/{doc}/diff", "Compare two versions of a document.", auth.Staff).With(
			op.Command{Use: "jdocs diff THING DOC FROM TO", Short: "Compare two versions of a document", Example: "jdocs diff vic:00e20100 vic.RobotSettings 3 7", Table: "FIELD; BEFORE; AFTER"}), func(ctx context.Context, r comparison) ([]Difference, error) {
			name, err := jdocs.ParseName(r.Doc)
			if err != nil {
				return nil, err
			}
			from, err := version("from", r.From)
			if err != nil {
				return nil, err
			}
			to, err := version("to", r.To)
			if err != nil {
				return nil, err
			}
			return p.Diff(ctx, r.Thing, name, from, to)
		}),
		op.New(changes("POST /v1/things/{thing}/jdocs/{doc}/restore", "Restore an earlier version of a document, as a new version."), func(ctx context.Context, r restoring) (Doc, error) {
			if r.Restore.Version == 0 {
				return Doc{}, errs.New(errs.Invalid, `body: want {"version": number of an earlier version}`)
			}
			return r.one(func(name jdocs.Name) (jdocs.Revision, error) { return p.Restore(ctx, r.Thing, name, r.Restore.Version) })
		}),
	}
}

// one returns the revision that do answers for the document.
func (r document) one(do func(name jdocs.Name) (jdocs.Revision, error)) (Doc, error) {
	name, err := jdocs.ParseName(r.Doc)
	if err != nil {
		return Doc{}, err
	}
	rev, err := do(name)
	return docOf(r.Thing, name, rev), err
}

func version(name, s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n == 0 {
		return 0, errs.New(errs.Invalid, "%s %.40q: want a version, a whole number from 1", name, s)
	}
	return n, nil
}
