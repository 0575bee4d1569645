package certspg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"kennel/certs"
	"kennel/certs/certspg"
	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestDatabaseAwayIsUnavailable(t *testing.T) {
	pool := pgtest.New(t)
	s := certspg.New(pool)
	pool.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := s.Standing(ctx, "vic:1", certs.Key{}); err == nil || errors.Is(err, certs.ErrUnknown) {
		t.Errorf("a database that is away looks like an unknown thing: %v", err)
	}
}
