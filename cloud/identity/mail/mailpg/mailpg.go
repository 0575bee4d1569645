// Package mailpg keeps letters that wait in Postgres (table mail_outbox), and orders the task that sends each in the same transaction.
package mailpg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/mail"
	"kennel/infra/jobs"
	"kennel/infra/pg"
)

// Outbox is a mail.Outbox. Safe for concurrent use.
type Outbox struct {
	pool   *pgxpool.Pool
	orders *jobs.Orders
}

// New returns the outbox on a migrated database.
func New(pool *pgxpool.Pool, orders *jobs.Orders) *Outbox { return &Outbox{pool, orders} }

func (o *Outbox) Add(ctx context.Context, m mail.Mail) error {
	data := m.Data
	if data == nil {
		data = map[string]string{}
	}
	return pg.Tx(ctx, o.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			INSERT INTO mail_outbox (kind, recipient, account, lang, data, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
			RETURNING id::text`, m.Kind, m.To, m.Account, m.Lang, data, m.Created, m.Expires).Scan(&m.ID)
		if err != nil {
			return err
		}
		return o.orders.AddTx(ctx, tx, mail.TaskSend, m.ID)
	})
}

const columns = `id::text, kind, recipient, account, lang, data, created_at, expires_at`

func scan(row pgx.CollectableRow) (m mail.Mail, err error) {
	err = row.Scan(&m.ID, &m.Kind, &m.To, &m.Account, &m.Lang, &m.Data, &m.Created, &m.Expires)
	return m, err
}

func (o *Outbox) Get(ctx context.Context, id string) (mail.Mail, error) {
	rows, err := o.pool.Query(ctx, `SELECT `+columns+` FROM mail_outbox WHERE id = $1`, pg.UUID(id))
	if err != nil {
		return mail.Mail{}, pg.Err(err)
	}
	m, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return mail.Mail{}, mail.ErrUnknown
	}
	return m, pg.Err(err)
}

func (o *Outbox) Remove(ctx context.Context, id string) error {
	_, err := o.pool.Exec(ctx, `DELETE FROM mail_outbox WHERE id = $1`, pg.UUID(id))
	return pg.Err(err)
}

func (o *Outbox) Expire(ctx context.Context, now time.Time) (int, error) {
	tag, err := o.pool.Exec(ctx, `DELETE FROM mail_outbox WHERE expires_at < $1`, now)
	return int(tag.RowsAffected()), pg.Err(err)
}

func (o *Outbox) About(ctx context.Context, account string, addresses []string) ([]mail.Mail, error) {
	rows, err := o.pool.Query(ctx, `SELECT `+columns+` FROM mail_outbox WHERE account = $1 AND $1 <> '' OR recipient = ANY($2) ORDER BY created_at`, account, addresses)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, scan)
	return out, pg.Err(err)
}

func (o *Outbox) Erase(ctx context.Context, account string, addresses []string) error {
	_, err := o.pool.Exec(ctx, `DELETE FROM mail_outbox WHERE account = $1 AND $1 <> '' OR recipient = ANY($2)`, account, addresses)
	return pg.Err(err)
}
