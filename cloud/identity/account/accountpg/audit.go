package accountpg

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/audit"
	"kennel/infra/pg"
)

const (
	maxAuditBatch = 200
	auditTime     = 5 * time.Second // for one batch, for all callers that wait
)

// auditQueue gathers the lines that wait while others are written. The chain lets one transaction at a time through, in all processes together;
// the caller whose turn it is writes every line that waits in its process, so that one disk write takes more than one line.
type auditQueue struct {
	turn    chan struct{} // size 1: full while a batch is written
	mu      *sync.Mutex
	waiting *[]*auditLine
}

type auditLine struct {
	e    audit.Entry
	done chan struct{}
	err  error // once done is closed
}

func newAuditQueue() auditQueue {
	return auditQueue{turn: make(chan struct{}, 1), mu: new(sync.Mutex), waiting: new([]*auditLine)}
}

// AppendAudit implements audit.Store.
func (s *Store) AppendAudit(ctx context.Context, e audit.Entry) error {
	q, l := s.audit, &auditLine{e: e, done: make(chan struct{})}
	q.mu.Lock()
	*q.waiting = append(*q.waiting, l)
	q.mu.Unlock()
	for {
		select {
		case <-l.done:
			return l.err
		case q.turn <- struct{}{}:
			s.writeAudit(context.WithoutCancel(ctx)) // the others' lines do not end with this request
			<-q.turn
		case <-ctx.Done():
			if q.leave(l) {
				return fmt.Errorf("audit: %w", ctx.Err())
			}
			<-l.done // being written: it is in the log or not, and that is known soon
			return l.err
		}
	}
}

// leave takes a line out of the queue unless it is being written.
func (q auditQueue) leave(l *auditLine) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(*q.waiting, l)
	if i < 0 {
		return false
	}
	*q.waiting = slices.Delete(*q.waiting, i, i+1)
	return true
}

// writeAudit writes what waits in one statement; its caller has the turn.
func (s *Store) writeAudit(ctx context.Context) {
	q := s.audit
	q.mu.Lock()
	n := min(len(*q.waiting), maxAuditBatch)
	batch := slices.Clone((*q.waiting)[:n])
	*q.waiting = slices.Delete(*q.waiting, 0, n)
	q.mu.Unlock()
	if n == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, auditTime)
	defer cancel()
	at := make([]time.Time, n)
	var cols [6][]string
	for i, l := range batch {
		at[i] = l.e.At
		for c, v := range []string{l.e.Actor, string(l.e.Role), l.e.Addr, l.e.Action, l.e.Object, l.e.Detail} {
			cols[c] = append(cols[c], v)
		}
	}
	_, err := s.pool.Exec(ctx, `
		INSERT INTO account_audit (at, actor, role, addr, action, object, detail)
		SELECT * FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])`,
		at, cols[0], cols[1], cols[2], cols[3], cols[4], cols[5])
	for _, l := range batch {
		l.err = pg.Err(err)
		close(l.done)
	}
}

const auditColumns = `l.seq, l.at, l.actor, l.role, COALESCE(d.addr, ''), l.action, l.object, l.detail`

func auditFields(e *audit.Entry) []any {
	return []any{&e.ID, &e.At, &e.Actor, &e.Role, &e.Addr, &e.Action, &e.Object, &e.Detail}
}

// AuditLog implements audit.Store.
func (s *Store) AuditLog(ctx context.Context, before int64, limit int) ([]audit.Entry, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT `+auditColumns+`, COALESCE(a.email, fa.email, ''), COALESCE(o.email, fo.email, '')
		FROM account_audit l LEFT JOIN account_audit_addr d ON d.seq = l.seq
			LEFT JOIN account_account a ON a.id::text = l.actor LEFT JOIN account_account o ON o.id::text = l.object
			LEFT JOIN account_former fa ON fa.id::text = l.actor LEFT JOIN account_former fo ON fo.id::text = l.object
		WHERE $1 = 0 OR l.seq < $1 ORDER BY l.seq DESC LIMIT $2`, before, limit)
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e audit.Entry, err error) {
		err = row.Scan(append(auditFields(&e), &e.Name, &e.On)...)
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", pg.Err(err))
	}
	return out, nil
}

// WalkAudit implements audit.Store.
func (s *Store) WalkAudit(ctx context.Context, from int64, limit int, f func(audit.Link) error) (audit.Anchor, error) {
	var head audit.Anchor
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var sum []byte
		if err := tx.QueryRow(ctx, `SELECT seq, hash FROM account_audit_head`).Scan(&head.Seq, &sum); err != nil {
			return fmt.Errorf("read the head of the chain: %w", pg.Err(err))
		}
		copy(head.Hash[:], sum)
		if limit == 0 {
			return nil
		}
		rows, err := tx.Query(ctx, `
			SELECT `+auditColumns+`, l.addr, l.addr_digest, COALESCE(d.salt, ''), l.hash, l.erased,
				CASE WHEN l.erased THEN (SELECT e.digest FROM account_audit_erased e JOIN account_audit a ON a.seq = e.by_seq AND a.action = $3
					WHERE e.seq = l.seq ORDER BY e.by_seq DESC LIMIT 1) END,
				CASE WHEN l.action = $3 THEN (SELECT sha256(string_agg(e.digest, '' ORDER BY e.seq)) FROM account_audit_erased e WHERE e.by_seq = l.seq) END
			FROM account_audit l LEFT JOIN account_audit_addr d ON d.seq = l.seq WHERE l.seq >= $1 ORDER BY l.seq LIMIT $2`, from, limit, audit.Erased)
		if err != nil {
			return pg.Err(err)
		}
		defer rows.Close()
		for rows.Next() {
			var l audit.Link
			var sum []byte
			if err := rows.Scan(append(auditFields(&l.Entry), &l.Column, &l.AddrDigest, &l.Salt, &sum, &l.Words, &l.Attested, &l.Attests)...); err != nil {
				return pg.Err(err)
			}
			if len(sum) == len(l.Hash) { // else it is broken, which zeros show
				copy(l.Hash[:], sum)
			}
			if err := f(l); err != nil {
				return err
			}
		}
		return pg.Err(rows.Err())
	})
	return head, err
}

// PruneAudit implements audit.Store.
func (s *Store) PruneAudit(ctx context.Context, old time.Time) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM account_audit_addr WHERE at < $1`, old)
	return pg.Err(err)
}

// erasedLines is how many lines one transaction of EraseAudit changes; it holds up the writers of others for that long.
const erasedLines = 200

// EraseAudit implements account.PrivacyStore. One transaction holds the head of the chain, changes the lines and appends the one that attests them.
func (s *Store) EraseAudit(ctx context.Context, d account.Deletion, email string) (n int, err error) {
	var words []string // as patterns
	for _, w := range []string{string(d.Account), email} {
		if w != "" {
			words = append(words, "%"+strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(w)+"%")
		}
	}
	// Found before the chain is held up: the words may be anywhere.
	rows, err := s.pool.Query(ctx, `SELECT seq FROM account_audit WHERE actor = $1 UNION SELECT seq FROM account_audit WHERE object = $1
		UNION SELECT seq FROM account_audit WHERE detail ILIKE ANY ($2) ORDER BY seq LIMIT $3`, string(d.Account), words, erasedLines)
	if err != nil {
		return 0, fmt.Errorf("find an account in the audit log: %w", pg.Err(err))
	}
	seqs, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(seqs) == 0 {
		return 0, pg.Err(err)
	}
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		var head int64
		if err := tx.QueryRow(ctx, `SELECT seq FROM account_audit_head FOR UPDATE`).Scan(&head); err != nil {
			return err
		}
		// Another process may have changed them meanwhile.
		rows, err := tx.Query(ctx, `SELECT seq, actor, object, detail FROM account_audit WHERE seq = ANY ($1) AND (actor = $2 OR object = $2 OR detail ILIKE ANY ($3)) ORDER BY seq`,
			seqs, string(d.Account), words)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowToStructByPos[erasable])
		if n = len(lines); err != nil || n == 0 {
			return err
		}
		seqs = seqs[:0]
		var cols [3][]string
		for _, l := range lines {
			seqs = append(seqs, l.Seq)
			for c, v := range []string{l.Actor, l.Object, l.Detail} {
				v = replaceFold(v, string(d.Account), d.Ref)
				cols[c] = append(cols[c], replaceFold(v, email, "[erased]"))
			}
		}
		if _, err := tx.Exec(ctx, `SELECT set_config('kennel.audit_erases', 'on', true)`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE account_audit l SET actor = n.actor, object = n.object, detail = n.detail, erased = true
			FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) AS n (seq, actor, object, detail) WHERE l.seq = n.seq`,
			seqs, cols[0], cols[1], cols[2]); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM account_audit_addr d USING account_audit l WHERE l.seq = d.seq AND l.seq = ANY ($1) AND l.actor = $2`, seqs, d.Ref); err != nil {
			return err
		}
		var sum []byte
		if err := tx.QueryRow(ctx, `WITH e AS (INSERT INTO account_audit_erased (by_seq, seq, digest)
				SELECT $1, seq, account_audit_link(decode(repeat('00', 32), 'hex'), seq, at, actor, role, action, object, detail, addr_digest)
				FROM account_audit WHERE seq = ANY ($2) RETURNING seq, digest)
			SELECT sha256(string_agg(digest, '' ORDER BY seq)) FROM e`, head+1, seqs).Scan(&sum); err != nil {
			return err
		}
		var by int64
		err = tx.QueryRow(ctx, `INSERT INTO account_audit (at, actor, role, addr, action, object, detail)
			VALUES (clock_timestamp(), 'kenneld', '', '', $1, $2, $3) RETURNING seq`, audit.Erased, d.Ref, audit.Attestation(n, sum)).Scan(&by)
		if err == nil && by != head+1 {
			err = fmt.Errorf("the attesting line has number %d, want %d", by, head+1)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("erase an account in the audit log: %w", err)
	}
	return n, nil
}

type erasable struct {
	Seq                   int64
	Actor, Object, Detail string
}

// replaceFold replaces a word in any case.
func replaceFold(s, word, by string) string {
	if word == "" || len(s) < len(word) {
		return s
	}
	return regexp.MustCompile("(?i)"+regexp.QuoteMeta(word)).ReplaceAllLiteralString(s, by)
}
