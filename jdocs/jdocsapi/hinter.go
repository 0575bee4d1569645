package jdocsapi

import (
	"context"
	"log/slog"

	"kennel/infra/api/hints"
	"kennel/infra/api/topics"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Lister is the part of the documents that Hinter needs.
type Lister interface {
	List(ctx context.Context, id thing.ID) ([]jdocs.Listing, error)
}

// Hinter tells robots of changes that they did not make: it publishes the versions of all documents of a thing on its down/jdocs. It sends
// all of them, because the message is retained and the next one replaces it. Safe for concurrent use.
type Hinter struct {
	docs    Lister
	publish func(ctx context.Context, id thing.ID, name string, payload []byte)
	log     *slog.Logger
}

// NewHinter returns a Hinter that publishes through publish (the bridge, which limits how often).
func NewHinter(docs Lister, publish func(ctx context.Context, id thing.ID, name string, payload []byte), log *slog.Logger) *Hinter {
	return &Hinter{docs: docs, publish: publish, log: log}
}

// DocChanged is jdocspg.Listener's Changed, which hears of every change of any process. Failures are only logged: hints are optional,
// because the robot also asks at its next connect and periodically.
func (h *Hinter) DocChanged(ctx context.Context, key jdocs.Key, version uint64) {
	if key.Thing == "" {
		return
	}
	ls, err := h.docs.List(ctx, key.Thing)
	if err != nil {
		h.log.WarnContext(ctx, "hint of a changed document not sent", "thing", key.Thing, "doc", key.Name, "err", err)
		return
	}
	hint := hints.Jdocs{Docs: map[string]uint64{string(key.Name.Of(key.Thing)): version}}
	for _, l := range ls {
		hint.Docs[string(l.Name)] = l.Version
	}
	if own := jdocs.RobotSettings.Of(key.Thing); hint.Docs[string(own)] > 0 {
		hint.Docs[string(jdocs.RobotSettings)] = hint.Docs[string(own)] // for its earlier software
	}
	payload, err := hint.Encode()
	if err != nil {
		h.log.WarnContext(ctx, "hint of a changed document not sent", "thing", key.Thing, "doc", key.Name, "err", err)
		return
	}
	h.publish(ctx, key.Thing, topics.Jdocs, payload)
}
