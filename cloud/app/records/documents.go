// Package records wires the slices that keep what robots say and are to take over: documents, events, vitals and live looks.
package records

import (
	"context"

	"kennel/cloud/app/link"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/cloud/wire"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocsapi"
	"kennel/jdocs/jdocspg"
	"kennel/jdocs/people"
)

// Documents are the documents, and who may do what with them.
type Documents struct {
	jdocs.Service
	People   *people.Documents
	Robots   jdocs.Robots
	Personal jdocs.Personal
}

// WireDocuments wires the documents of robots and of their owners.
func WireDocuments(b wire.Base, l *link.Link) (Documents, wire.Slice) {
	store, owners := jdocspg.New(b.Pool), ownerpg.New(b.Pool)
	whose := owner.NewWhose(owners)
	docs := b.Meters.Documents(jdocs.Logged(jdocs.New(store), b.Log))
	hinter := jdocsapi.NewHinter(docs, l.Hint, b.Log)
	listener := &jdocspg.Listener{Pool: b.Pool, Log: b.Log, Changed: hinter.DocChanged}
	// A robot that hears of its owner's settings asks who its owner is, and what they allow; the version of the settings is no business of its own.
	owned := func(ctx context.Context) error {
		return owners.Watch(ctx, b.Log, func(ctx context.Context, id thing.ID) {
			hinter.DocChanged(ctx, jdocs.Key{Thing: id, Name: jdocs.AccountSettings}, 1)
		})
	}
	changed := func(ctx context.Context, account string, name jdocs.Name) {
		if name != jdocs.AccountSettings {
			return // only the settings say what an owner allows
		}
		if err := owners.Touch(ctx, account); err != nil {
			b.Log.WarnContext(ctx, "consent change not announced; robots learn of it at their next request", "account", account, logging.Err, err)
		}
	}
	robots := func(list func(context.Context, string) ([]owner.Tenure, error)) func(context.Context, string) ([]thing.ID, error) {
		return func(ctx context.Context, account string) (out []thing.ID, err error) {
			tenures, err := list(ctx, account)
			for _, t := range tenures {
				out = append(out, t.Thing)
			}
			return out, err
		}
	}
	d := Documents{
		Service: docs, People: &people.Documents{Docs: docs, Owns: whose.Owns, Changed: changed},
		Robots:   jdocs.Robots{Docs: docs, OwnerOf: whose.Owner, Changed: changed},
		Personal: jdocs.Personal{Docs: docs, Store: store, Robots: robots(owners.Robots), Ever: robots(owners.Tenures)},
	}
	return d, wire.Slice{
		Requests: jdocsapi.Handlers(d.Robots, b.Log),
		Operations: func(d wire.Doors) wire.Operations {
			return jdocsapi.Operations(&people.Documents{Docs: docs, Owns: d.Owns, Exists: d.Known, Changed: changed})
		},
		Runs: []wire.Run{{Name: "documents", Run: listener.Run, Role: wire.Jobs}, {Name: "owners told", Run: owned, Role: wire.Jobs}},
		Personal: []wire.Holding{{Name: "documents", Keeps: []string{"jdocs_doc", "jdocs_history"}, Data: d.Personal,
			Ended: func(ctx context.Context, t owner.Tenure) error { return d.Personal.TenureEnded(ctx, t.Thing, *t.Until) }}},
	}
}
