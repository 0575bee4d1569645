package daspg

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/telemetry/das"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

var quietLog = slog.New(slog.NewTextHandler(io.Discard, nil))

type nowhere struct{}

func (nowhere) Put(context.Context, string, []byte) error { return nil }

// BenchmarkIngest sends encoded batches of many robots through an Ingester and compares with COPY of equal rows into an equal table
// (same columns and indexes) without anything around it (issue 3 wants at least 0.3 from publish to row).
func BenchmarkIngest(b *testing.B) {
	pool := pgtest.New(b)
	s := Open(pool)
	const robots, perBatch = 100, 200
	in, err := das.NewIngester(das.Config{Writer: s, Blobs: nowhere{}, Log: quietLog})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var run, answers sync.WaitGroup
	defer run.Wait()
	defer cancel()
	run.Go(func() { _ = in.Run(ctx) }) // nil when ctx ends
	if err := s.EnsurePartitions(ctx, time.Now()); err != nil {
		b.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `CREATE TABLE plain (LIKE das_event INCLUDING ALL)`); err != nil {
		b.Fatal(err)
	}
	var ingest, raw time.Duration
	rows, round := 0, uint64(0)
	for b.Loop() {
		b.StopTimer()
		msgs := make([][]byte, robots)
		var fresh []das.Fresh
		for r := range msgs {
			it := batch(thing.MustParse(fmt.Sprint("vic:", r)), "b", 1+round*perBatch, (round+1)*perBatch)
			if msgs[r], err = events.EncodeBatch(fmt.Sprint("batch", round), it.Events); err != nil {
				b.Fatal(err)
			}
			for i := range it.Events {
				fresh = append(fresh, das.Fresh{Thing: it.Thing, Event: &it.Events[i]})
			}
		}
		round++
		b.StartTimer()
		start := time.Now()
		for r, msg := range msgs {
			answers.Add(1)
			in.Handle(ctx, thing.MustParse(fmt.Sprint("vic:", r)), msg, func(a ack.Ack) {
				if a.Status != ack.Stored {
					b.Errorf("answer %+v", a)
				}
				answers.Done()
			})
		}
		answers.Wait()
		ingest += time.Since(start)
		start = time.Now()
		if err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			return copyInto(ctx, tx, "plain", start, 1, fresh)
		}); err != nil {
			b.Fatal(err)
		}
		raw += time.Since(start)
		rows += robots * perBatch
	}
	b.ReportMetric(float64(rows)/ingest.Seconds(), "rows/s")
	b.ReportMetric(float64(rows)/raw.Seconds(), "COPYrows/s")
	b.ReportMetric(raw.Seconds()/ingest.Seconds(), "ratio")
}
