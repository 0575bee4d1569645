package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"kennel/infra/errs"
)

// retryPause is the pause sent to peers while the database is away.
const retryPause = 2 * time.Second

// Err gives an error of Postgres the kind Unavailable if the same work may succeed later (see Retriable); every other error, one that
// has a kind already, and nil pass unchanged.
func Err(err error) error {
	if err == nil || errs.KindOf(err) != errs.Internal || !Retriable(err) {
		return err
	}
	return errs.RetryLater(retryPause, "the database is not available", err)
}

// Wrap is Err with what was being done; nil stays nil.
func Wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, Err(err))...)
}

// UUID returns an id as the database has it; a malformed one is NULL, which no row has.
func UUID[S ~string](id S) (u pgtype.UUID) {
	if u.Scan(string(id)) != nil {
		return pgtype.UUID{}
	}
	return u
}

// Retriable reports whether the same work, done again later, may succeed: the server is away, starting, stopping or full, its disk does not answer, or
// another transaction was in the way. After a cancelled context it is not: the caller no longer waits.
func Retriable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case strings.HasPrefix(pe.Code, "08"), // connection exceptions
			strings.HasPrefix(pe.Code, "53"),                               // too many connections, disk or memory full
			pe.Code == "58000" || pe.Code == "58030",                       // the system below Postgres failed, such as a read or write of a file
			pe.Code == "57P01" || pe.Code == "57P02" || pe.Code == "57P03", // admin or crash shutdown, starting up
			pe.Code == "40001" || pe.Code == "40P01",                       // serialization failure, deadlock
			pe.Code == "55P03" || pe.Code == "25006" || pe.Code == "57P05": // lock timeout, read-only after failover, idle timeout
			return true
		}
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if pgconn.SafeToRetry(err) {
		return true
	}
	_, isNet := errors.AsType[net.Error](err)
	return isNet || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed") // pgconn has no sentinel for it
}

// Violates reports whether err is a unique, foreign key, check or exclusion violation, and of which constraint.
func Violates(err error) (constraint string, ok bool) {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || !strings.HasPrefix(pe.Code, "23") {
		return "", false
	}
	return pe.ConstraintName, true
}
