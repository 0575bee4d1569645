package accountpg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/identity/account"
	"kennel/infra/pg"
)

// AddPasskey implements account.PasskeyStore.
func (s *Store) AddPasskey(ctx context.Context, k account.Passkey) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO account_passkey (id, account, name, credential, created_at) VALUES ($1, $2, $3, $4, $5)`,
		k.ID, pg.UUID(k.Account), k.Name, string(k.Credential), k.Created)
	return taken(err)
}

// Passkeys implements account.PasskeyStore.
func (s *Store) Passkeys(ctx context.Context, id account.ID) ([]account.Passkey, error) {
	rows, err := s.pool.Query(ctx, `SELECT id, name, credential::text, created_at, last_used FROM account_passkey WHERE account = $1 ORDER BY created_at, id`, pg.UUID(id))
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (account.Passkey, error) {
		k := account.Passkey{Account: id}
		var text string
		var used *time.Time
		err := row.Scan(&k.ID, &k.Name, &text, &k.Created, &used)
		k.Credential = []byte(text)
		if used != nil {
			k.LastUsed = *used
		}
		return k, err
	})
	return out, pg.Err(err)
}

// UsePasskey implements account.PasskeyStore.
func (s *Store) UsePasskey(ctx context.Context, key, before, after []byte, at time.Time) error {
	return changed(s.pool.Exec(ctx, `UPDATE account_passkey SET credential = $3, last_used = $4 WHERE id = $1 AND credential = $2::jsonb`, key, string(before), string(after), at))
}

// RemovePasskey implements account.PasskeyStore.
func (s *Store) RemovePasskey(ctx context.Context, id account.ID, key []byte) error {
	return changed(s.pool.Exec(ctx, `DELETE FROM account_passkey WHERE id = $1 AND account = $2`, key, pg.UUID(id)))
}

// PutCeremony implements account.PasskeyStore.
func (s *Store) PutCeremony(ctx context.Context, name account.Hash, data []byte, expires time.Time) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO account_ceremony (hash, data, expires_at) VALUES ($1, $2, $3)`, name[:], string(data), expires)
	return pg.Err(err)
}

// TakeCeremony implements account.PasskeyStore.
func (s *Store) TakeCeremony(ctx context.Context, name account.Hash, now time.Time) ([]byte, error) {
	var text string
	err := s.pool.QueryRow(ctx, `DELETE FROM account_ceremony WHERE hash = $1 AND expires_at > $2 RETURNING data::text`, name[:], now).Scan(&text)
	if err != nil {
		return nil, none(err)
	}
	return []byte(text), nil
}
