// Package storage measures how much the cloud keeps in its bucket, by what kind of objects, and how fast that grows: table storage_usage (migration
// 0116). S3 has no number for it, so a job counts, a class at a time, the one first that was counted longest ago.
package storage

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/blob"
	"kennel/infra/pg"
)

// Classes are kinds of objects by the first folder of their keys, each with a life of its own: crashes and symbols, raw batches of events, uploaded logs,
// events as Parquet, what robots heard, and archives of releases, which stay.
var Classes = []string{"crash", "das", "logs", "ota", "parquet", "speech"}

// names are those of the classes for people.
var names = map[string]string{"crash": "Crashes and symbols", "das": "Events as received", "logs": "Uploaded logs", "ota": "Release archives", "parquet": "Events as Parquet",
	"speech": "Recordings of speech"}

const (
	keep    = 35 * 24 * time.Hour
	endTime = 5 * time.Second // before its end a run begins no further count
)

// Usage is the count of one class.
type Usage struct {
	Class   string    `json:"class"`
	At      time.Time `json:"at"` // when it was counted
	Objects int64     `json:"objects"`
	Bytes   int64     `json:"bytes"`
	// More is how much that is beyond the count of a day before, or beyond the first one, since MoreSince.
	MoreObjects int64     `json:"more_objects"`
	MoreBytes   int64     `json:"more_bytes"`
	MoreSince   time.Time `json:"more_since"`
	Name        string    `json:"name" db:"-"` // of the class, for people
}

// Objects is the part of a blob.Store that is needed.
type Objects interface {
	List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error]
}

// Book keeps the counts. Safe for concurrent use.
type Book struct {
	pool    *pgxpool.Pool
	objects Objects
}

// New returns the book of a bucket.
func New(pool *pgxpool.Pool, objects Objects) *Book { return &Book{pool, objects} }

// Measure counts, and forgets counts that are old. It is a periodic job; a run whose time is over leaves classes to the next one.
func (b *Book) Measure(ctx context.Context) error {
	rows, err := b.pool.Query(ctx, `SELECT c FROM unnest($1::text[]) c ORDER BY (SELECT max(at) FROM storage_usage WHERE class = c) NULLS FIRST, c`, Classes)
	if err != nil {
		return pg.Err(err)
	}
	classes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return pg.Err(err)
	}
	for _, class := range classes {
		if at, ok := ctx.Deadline(); ok && time.Until(at) < endTime {
			return nil
		}
		var n, size int64
		for o, err := range b.objects.List(ctx, class+"/") {
			if err != nil {
				return fmt.Errorf("count the objects of %s: %w", class, err)
			}
			n, size = n+1, size+o.Size
		}
		if _, err := b.pool.Exec(ctx, `INSERT INTO storage_usage (class, at, objects, bytes) VALUES ($1, clock_timestamp(), $2, $3)`, class, n, size); err != nil {
			return fmt.Errorf("record the objects of %s: %w", class, pg.Err(err))
		}
	}
	_, err = b.pool.Exec(ctx, `DELETE FROM storage_usage WHERE at < clock_timestamp() - $1::interval`, keep)
	return pg.Err(err)
}

// Usage returns the newest counts, by class.
func (b *Book) Usage(ctx context.Context) ([]Usage, error) {
	rows, err := b.pool.Query(ctx, `SELECT n.class, n.at, n.objects, n.bytes, n.objects - o.objects, n.bytes - o.bytes, o.at
		FROM (SELECT DISTINCT ON (class) * FROM storage_usage ORDER BY class, at DESC) n
		CROSS JOIN LATERAL (SELECT * FROM storage_usage WHERE class = n.class
			ORDER BY at > n.at - interval '1 day', CASE WHEN at <= n.at - interval '1 day' THEN n.at - at ELSE at - n.at END LIMIT 1) o
		ORDER BY n.class`)
	if err != nil {
		return nil, fmt.Errorf("size of the bucket: %w", pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Usage])
	if err != nil {
		return nil, fmt.Errorf("size of the bucket: %w", pg.Err(err))
	}
	for i := range out {
		out[i].Name = cmp.Or(names[out[i].Class], out[i].Class)
	}
	return out, nil
}
