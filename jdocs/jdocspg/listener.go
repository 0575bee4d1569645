package jdocspg

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/pg"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Listener calls Changed at least once for every document that any process of the cloud changes, but not for a robot's own writes. After
// the database was away it reads the changes since shortly before the last contact.
type Listener struct {
	Pool *pgxpool.Pool
	Log  *slog.Logger
	// Changed is called from one goroutine and holds up the next.
	Changed func(ctx context.Context, key jdocs.Key, version uint64)
}

// overlap is how far a new connection looks back: longer than a transaction takes, and than clocks of two servers differ after a
// failover. Seen twice costs one hint.
const overlap = time.Minute

// Run listens until ctx ends.
func (l *Listener) Run(ctx context.Context) error {
	since := time.Now().Add(-overlap)
	return pg.Listen(ctx, l.Pool, l.Log, Channel, func(payload string) {
		heard := time.Now()
		if payload == "" {
			if err := l.catchUp(ctx, since); err != nil {
				l.Log.WarnContext(ctx, "missed document changes not read", "err", err)
				return // since stays: the next connect asks again
			}
		} else if key, version, err := parsePayload(payload); err != nil {
			l.Log.WarnContext(ctx, "foreign notification ignored", "channel", Channel, "err", err)
		} else {
			l.Changed(ctx, key, version)
		}
		since = heard.Add(-overlap)
	})
}

func (l *Listener) catchUp(ctx context.Context, since time.Time) error {
	rows, err := l.Pool.Query(ctx, `SELECT thing, name, doc_version FROM jdocs_doc
		WHERE told_at >= $1 AND NOT deleted ORDER BY told_at`, since)
	if err != nil {
		return err
	}
	var id, name string
	var version uint64
	_, err = pgx.ForEachRow(rows, []any{&id, &name, &version}, func() error {
		l.Changed(ctx, jdocs.Key{Thing: thing.ID(id), Name: jdocs.Name(name)}, version)
		return nil
	})
	return err
}

// parsePayload reads "<thing> <name> <version>".
func parsePayload(s string) (jdocs.Key, uint64, error) {
	part := strings.Split(s, " ")
	if len(part) != 3 {
		return jdocs.Key{}, 0, fmt.Errorf("%.120q: want thing, document and version", s)
	}
	id, err := thing.Parse(part[0])
	if err != nil {
		return jdocs.Key{}, 0, err
	}
	name, err := jdocs.ParseName(part[1])
	if err != nil {
		return jdocs.Key{}, 0, err
	}
	version, err := strconv.ParseUint(part[2], 10, 63)
	if err != nil {
		return jdocs.Key{}, 0, fmt.Errorf("%.120q: version: %w", s, err)
	}
	return jdocs.Key{Thing: id, Name: name}, version, nil
}
