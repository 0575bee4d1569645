package telemetry

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// PGTracer returns a tracer for infra/pg: it times each statement by its kind and shows those of a traced request as spans, with their
// text. Arguments are never recorded.
func (t *Telemetry) PGTracer() pgx.QueryTracer { return pgTracer{t} }

type pgTracer struct{ t *Telemetry }

var (
	_ pgx.QueryTracer    = pgTracer{}
	_ pgx.BatchTracer    = pgTracer{}
	_ pgx.CopyFromTracer = pgTracer{}
)

type statementKey struct{}

type statement struct {
	operation string
	start     time.Time
	span      trace.Span // nil: not of a traced request
}

// operations are the values of the label: the first word of a statement, in lower case.
var operations = []string{"select", "insert", "update", "delete", "with", "begin", "commit", "rollback", "savepoint", "listen", "create",
	"drop", "set"}

func operation(sql string) string {
	word := strings.TrimLeft(sql, " \t\r\n(;")
	if i := strings.IndexFunc(word, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }); i >= 0 {
		word = word[:i]
	}
	for _, op := range operations {
		if strings.EqualFold(word, op) {
			return op
		}
	}
	return "other"
}

// maxText bounds the text of a statement in a span, in bytes.
const maxText = 2 << 10

func (p pgTracer) start(ctx context.Context, operation, text string) context.Context {
	s := &statement{operation: operation, start: time.Now()}
	// Only below a kept span: background work would make traces of one statement each.
	if p.t.tracer != nil && trace.SpanFromContext(ctx).IsRecording() {
		_, s.span = p.t.tracer.Start(ctx, "postgres "+operation, trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(attribute.String("db.system.name", "postgresql"), attribute.String("db.operation.name", operation),
				attribute.String("db.query.text", strings.ToValidUTF8(text[:min(len(text), maxText)], ""))))
	}
	return context.WithValue(ctx, statementKey{}, s)
}

func (p pgTracer) end(ctx context.Context, err error) {
	s, begun := ctx.Value(statementKey{}).(*statement)
	if !begun {
		return
	}
	result := ok
	if err != nil {
		result = "error"
	}
	observe(p.t.statements.WithLabelValues(s.operation, result), time.Since(s.start).Seconds(), s.span)
	if s.span != nil {
		if err != nil {
			s.span.SetStatus(codes.Error, err.Error())
		}
		s.span.End()
	}
}

func (p pgTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	return p.start(ctx, operation(d.SQL), d.SQL)
}

func (p pgTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	p.end(ctx, d.Err)
}

func (p pgTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	text := ""
	if d.Batch != nil && len(d.Batch.QueuedQueries) > 0 {
		text = d.Batch.QueuedQueries[0].SQL
	}
	return p.start(ctx, "batch", text)
}

// TraceBatchQuery is part of the interface; the batch is timed as one.
func (pgTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (p pgTracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchEndData) {
	p.end(ctx, d.Err)
}

func (p pgTracer) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceCopyFromStartData) context.Context {
	return p.start(ctx, "copy", d.TableName.Sanitize())
}

func (p pgTracer) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, d pgx.TraceCopyFromEndData) {
	p.end(ctx, d.Err)
}

// Pool shows how busy a connection pool is.
func (t *Telemetry) Pool(pool *pgxpool.Pool) error { return t.registry.Register(poolCollector{pool}) }

type poolCollector struct{ pool *pgxpool.Pool }

var (
	poolConns = prometheus.NewDesc("kennel_postgres_pool_connections", "Connections of the pool now, by what they do.", []string{"state"}, nil)
	poolMax   = prometheus.NewDesc("kennel_postgres_pool_max_connections", "Most connections the pool may have (postgres.max_conns).", nil, nil)
	poolTaken = prometheus.NewDesc("kennel_postgres_pool_acquired_connections_total", "Connections lent out.", nil, nil)
	poolWaits = prometheus.NewDesc("kennel_postgres_pool_waits_total", "Waits for a connection because all connections were lent.", nil, nil)
	poolGone  = prometheus.NewDesc("kennel_postgres_pool_canceled_total", "Waits for a connection that were given up.", nil, nil)
	poolTime  = prometheus.NewDesc("kennel_postgres_pool_wait_seconds_total", "Time spent waiting for a connection, all together.", nil, nil)
)

func (c poolCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolConns, poolMax, poolTaken, poolWaits, poolGone, poolTime} {
		ch <- d
	}
}

func (c poolCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.pool.Stat()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	gauge(poolConns, float64(s.IdleConns()), "idle")
	gauge(poolConns, float64(s.AcquiredConns()), "used")
	gauge(poolConns, float64(s.ConstructingConns()), "opening")
	gauge(poolMax, float64(s.MaxConns()))
	counter(poolTaken, float64(s.AcquireCount()))
	counter(poolWaits, float64(s.EmptyAcquireCount()))
	counter(poolGone, float64(s.CanceledAcquireCount()))
	counter(poolTime, s.EmptyAcquireWaitTime().Seconds())
}
