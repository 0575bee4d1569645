package pg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// diskFull is the SQLSTATE of a statement that found no space to write.
const diskFull = "53100"

// fullTracer hears of statements that found no space.
type fullTracer func(why string)

func (f fullTracer) end(err error) {
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok && pe.Code == diskFull {
		f(pe.Message)
	}
}

func (f fullTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (f fullTracer) TraceQueryEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	f.end(d.Err)
}
func (f fullTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (f fullTracer) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	f.end(d.Err)
}
func (f fullTracer) TraceBatchEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchEndData) {
	f.end(d.Err)
}
func (f fullTracer) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return ctx
}
func (f fullTracer) TraceCopyFromEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceCopyFromEndData) {
	f.end(d.Err)
}
