package certspg

import (
	"context"

	"kennel/certs"
	"kennel/infra/pg"
)

// AddCertificate writes a certificate's row without looking at the claim, for tests that need only the row.
func (s *Store) AddCertificate(ctx context.Context, r certs.Record) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO certs_certificate (serial, thing, key, method, not_before, not_after) VALUES ($1, $2, $3, $4, $5, $6)`,
		r.Serial, string(r.Thing), r.Key[:], r.Method, r.NotBefore, r.NotAfter)
	return pg.Err(err)
}
