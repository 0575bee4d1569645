package accountpg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accountpg"
	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/identity/account/audit"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/migrations"
	"kennel/infra/pg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"
)

// write puts n lines into the audit log, from as many callers at once.
func (w world) write(t testing.TB, svc accounttest.Accounts, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			e := audit.Entry{Actor: fmt.Sprint("vic:", i), Role: "thing", Addr: here, Action: "test", Object: "ö", Detail: strings.Repeat("x", i)}
			if err := svc.Audit.Append(t.Context(), e); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func (w world) verify(t testing.TB, from audit.Anchor) audit.Report {
	t.Helper()
	r, err := w.Audit.Verify(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tamper changes the database with triggers switched off.
func (w world) tamper(t testing.TB, sql string, args ...any) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		tag, err := tx.Exec(t.Context(), sql, args...)
		if err == nil && tag.RowsAffected() == 0 {
			return errors.New("nothing was changed")
		}
		return err
	})
	if err != nil {
		t.Fatal(sql, err)
	}
}

// other is a second process on the same database.
func (w world) other(t testing.TB) accounttest.Accounts {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), w.pool.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	svc := accounttest.New(t, pool, func(c *account.SignInConfig) { c.Now = func() time.Time { return *w.now.Load() } })
	return svc
}

// Two processes write at once, and the chain has every line and no gap; requests that end leave none either.
func TestAuditChainOfTwoProcesses(t *testing.T) {
	w := newWorld(t, 1000)
	b := w.other(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var wg sync.WaitGroup
	for _, svc := range []accounttest.Accounts{w.Accounts, b} {
		wg.Go(func() { w.write(t, svc, 300) })
		wg.Go(func() {
			for range 20 {
				_ = svc.Audit.Append(gone, audit.Entry{Action: "gone"}) // written or not, both are right
			}
		})
	}
	wg.Wait()
	head, err := b.Audit.Head(t.Context())
	r := w.verify(t, audit.Anchor{})
	if err != nil || !r.Done || r.Broken != nil || r.To != head || r.Checked < 600 || int64(r.Checked) != head.Seq || r.Forgotten != 0 {
		t.Errorf("%+v, head %v, %v", r, head, err)
	}
	lines, err := w.Audit.Lines(t.Context(), head.Seq, 2)
	if err != nil || len(lines) != 2 || lines[0].ID != head.Seq-1 || lines[1].ID != head.Seq-2 {
		t.Errorf("%+v %v", lines, err)
	}
}

func TestAuditTampering(t *testing.T) {
	const copyRow = `INSERT INTO account_audit (id, at, actor, role, addr, action, object, detail, seq, addr_digest, hash) OVERRIDING SYSTEM VALUE
		SELECT id + 1000, at, actor, role, addr, action, object, detail, %s, addr_digest, %s FROM account_audit WHERE seq = 10`
	for _, c := range []struct {
		name string
		sql  []string
		seq  int64
		why  string
	}{
		{"nothing", nil, 0, ""},
		{"detail", []string{`UPDATE account_audit SET detail = 'y' WHERE seq = 4`}, 4, "hash does not match"},
		{"actor", []string{`UPDATE account_audit SET actor = 'vic:9x' WHERE seq = 1`}, 1, "hash does not match"},
		{"a letter moves to the next field", []string{`UPDATE account_audit SET actor = actor || 't', role = substr(role, 2) WHERE seq = 5`}, 5, "hash does not match"},
		{"time by a microsecond", []string{`UPDATE account_audit SET at = at + interval '1 microsecond' WHERE seq = 10`}, 10, "hash does not match"},
		{"hash", []string{`UPDATE account_audit SET hash = sha256('x') WHERE seq = 6`}, 6, "hash does not match"},
		{"hash of another length", []string{`UPDATE account_audit SET hash = 'x' WHERE seq = 6`}, 6, "hash does not match"},
		{"line with a hash that fits, later lines as they were", []string{`UPDATE account_audit l SET detail = 'y', hash = account_audit_link(
			(SELECT hash FROM account_audit WHERE seq = 3), seq, at, actor, role, action, object, 'y', addr_digest) WHERE seq = 4`}, 5, "hash does not match"},
		{"removed", []string{`DELETE FROM account_audit WHERE seq = 7`}, 7, "missing"},
		{"first one removed", []string{`DELETE FROM account_audit WHERE seq = 1`}, 1, "missing"},
		{"last one removed", []string{`DELETE FROM account_audit WHERE seq = 10`}, 10, "missing; 10 lines were written"},
		{"all removed", []string{`DELETE FROM account_audit`}, 1, "missing; 10 lines were written"},
		{"removed and the rest moved up", []string{`DELETE FROM account_audit WHERE seq = 7`, `UPDATE account_audit SET seq = seq - 1 WHERE seq > 7`}, 7, "hash does not match"},
		{"two swapped", []string{`UPDATE account_audit SET seq = 11 - seq + 1000 WHERE seq IN (5, 6)`, `UPDATE account_audit SET seq = seq - 1000 WHERE seq > 1000`}, 5, "hash does not match"},
		{"inserted", []string{`UPDATE account_audit SET seq = seq + 1000 WHERE seq > 4`, `UPDATE account_audit SET seq = seq - 999 WHERE seq > 1000`,
			strings.Replace(fmt.Sprintf(copyRow, "5", "hash"), "seq = 10", "seq = 11", 1)}, 5, "hash does not match"},
		{"added behind the end with a hash that fits", []string{fmt.Sprintf(copyRow, "11",
			"account_audit_link(hash, 11, at, actor, role, action, object, detail, addr_digest)"),
			`INSERT INTO account_audit_addr (seq, at, salt, addr) SELECT 11, at, salt, addr FROM account_audit_addr WHERE seq = 10`}, 11, "not written by the cloud"},
		{"another address", []string{`UPDATE account_audit_addr SET addr = '192.0.2.66' WHERE seq = 8`}, 8, "address"},
		{"address in the line's own column", []string{`UPDATE account_audit SET addr = '192.0.2.66' WHERE seq = 8`}, 8, "address"},
		{"address deleted", []string{`DELETE FROM account_audit_addr WHERE seq = 8`}, 8, "address"},
		{"head", []string{`UPDATE account_audit_head SET hash = sha256('x')`}, 10, "not the last one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1000)
			w.write(t, w.Accounts, 10)
			before := w.verify(t, audit.Anchor{}).To
			for _, sql := range c.sql {
				w.tamper(t, sql)
			}
			r := w.verify(t, audit.Anchor{})
			if c.seq == 0 {
				if !r.Done || r.Broken != nil || r.Checked != 10 || r.To != before {
					t.Errorf("%+v", r)
				}
				return
			}
			if r.Done || r.Broken == nil || r.Broken.Seq != c.seq || !strings.Contains(r.Broken.Why, c.why) {
				t.Errorf("%+v, want line %d: %s", r.Broken, c.seq, c.why)
			}
		})
	}
}

// A chain that was rewritten as a whole is right in itself; an anchor that was kept elsewhere shows the change.
func TestAuditAnchor(t *testing.T) {
	w := newWorld(t, 1000)
	w.write(t, w.Accounts, 6)
	kept, err := w.Audit.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, w.Accounts, 4)
	if r := w.verify(t, kept); !r.Done || r.Checked != 4 || r.To.Seq != 10 {
		t.Errorf("from an anchor: %+v", r)
	}
	if r := w.verify(t, audit.Anchor{Seq: 8}); !r.Done || r.Checked != 2 {
		t.Errorf("from a place: %+v", r)
	}
	w.tamper(t, `UPDATE account_audit SET detail = 'never happened' WHERE seq = 2`)
	for seq := 2; seq <= 10; seq++ {
		w.tamper(t, `UPDATE account_audit l SET hash = account_audit_link(p.hash, l.seq, l.at, l.actor, l.role, l.action, l.object, l.detail, l.addr_digest)
			FROM account_audit p WHERE p.seq = l.seq - 1 AND l.seq = $1`, seq)
	}
	w.tamper(t, `UPDATE account_audit_head SET hash = (SELECT hash FROM account_audit WHERE seq = 10)`)
	if r := w.verify(t, audit.Anchor{}); !r.Done {
		t.Errorf("the test did not write the chain anew: %+v", r)
	}
	if r := w.verify(t, kept); r.Broken == nil || r.Broken.Seq != 6 {
		t.Errorf("an anchor does not tell: %+v", r)
	}
	// The end cut off, with the head.
	w.tamper(t, `DELETE FROM account_audit WHERE seq > 3`)
	w.tamper(t, `UPDATE account_audit_head SET seq = 3, hash = (SELECT hash FROM account_audit WHERE seq = 3)`)
	if r := w.verify(t, kept); r.Done || r.Broken == nil || r.Broken.Seq != 6 || !strings.Contains(r.Broken.Why, "ends at 3") {
		t.Errorf("cut off: %+v", r)
	}
	for _, bad := range []audit.Anchor{{Seq: -1}, {Hash: audit.Hash{1}}} {
		if _, err := w.Audit.Verify(t.Context(), bad); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// Without switching triggers off, the log and its head cannot be changed.
func TestAuditHeadMovesWithLinesOnly(t *testing.T) {
	w := newWorld(t, 1000)
	w.write(t, w.Accounts, 2)
	for _, sql := range []string{`UPDATE account_audit SET detail = ''`, `DELETE FROM account_audit`, `TRUNCATE account_audit`,
		`UPDATE account_audit_head SET seq = 0`, `DELETE FROM account_audit_head`, `TRUNCATE account_audit_head`, `INSERT INTO account_audit_head VALUES (false, 0, '')`} {
		if _, err := w.pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	// Chain fields that a writer sets are ignored.
	if _, err := w.pool.Exec(t.Context(), `INSERT INTO account_audit (at, actor, role, addr, action, object, detail, seq, hash, addr_digest) VALUES (now(), '', '', '', 'x', '', '', 77, 'x', 'x')`); err != nil {
		t.Error(err)
	}
	if r := w.verify(t, audit.Anchor{}); !r.Done || r.Checked != 3 {
		t.Errorf("%+v", r)
	}
}

// Addresses are forgotten after a while and with the person; the chain stays whole.
func TestAuditForgetsAddresses(t *testing.T) {
	h := newHome(t)
	a := h.create(t, ada, auth.Owner)
	if _, err := h.Login(t.Context(), ada, password, "192.0.2.77"); err != nil {
		t.Fatal(err)
	}
	if err := h.Audit.Append(t.Context(), audit.Entry{Actor: "staff", Addr: "192.0.2.88", Action: "test", Object: string(a.ID)}); err != nil {
		t.Fatal(err)
	}
	if got := h.everywhere(t, "192.0.2.77"); len(got) != 2 { // the session and beside the log
		t.Errorf("before: %v", got)
	}
	if err := h.o.Privacy.Delete(t.Context(), a.ID, password, "192.0.2.77"); err != nil {
		t.Fatal(err)
	}
	if err := h.o.Privacy.Erase(t.Context(), string(a.ID)); err != nil {
		t.Fatal(err)
	}
	if got := h.everywhere(t, "192.0.2.77"); len(got) != 0 {
		t.Errorf("after she left: %v", got)
	}
	if got := h.everywhere(t, "192.0.2.88"); len(got) != 1 {
		t.Errorf("the operator's address: %v", got)
	}
	if r := h.verify(t, audit.Anchor{}); !r.Done || r.Forgotten != 2 {
		t.Errorf("%+v", r)
	}
	h.sleep(91 * 24 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	log := &waitFor{text: "audit log anchored", then: cancel}
	svc := accounttest.New(t, h.pool, func(c *account.SignInConfig) {
		c.ByAddr, c.Now, c.Log = ratelimit.NewByAddr(time.Hour, 1), func() time.Time { return *h.now.Load() }, slog.New(slog.NewTextHandler(log, nil))
	})
	if err := svc.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if got := h.everywhere(t, "192.0.2.88"); len(got) != 0 {
		t.Errorf("after 91 days: %v", got)
	}
	r := h.verify(t, audit.Anchor{})
	if !r.Done || r.Forgotten != 3 || !strings.Contains(log.String(), r.To.String()) {
		t.Errorf("%+v, logged %s", r, log.String())
	}
}

type waitFor struct {
	mu   sync.Mutex
	b    bytes.Buffer
	text string
	then func()
}

func (w *waitFor) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.b.Write(p)
	if strings.Contains(w.b.String(), w.text) {
		w.then()
	}
	return n, err
}

func (w *waitFor) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// before is the migrations below a number.
type before struct {
	fs.FS
	number string
}

func (f before) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(f.FS, name)
	var out []fs.DirEntry
	for _, e := range all {
		if e.Name() < f.number {
			out = append(out, e)
		}
	}
	return out, err
}

func (f before) Glob(pattern string) ([]string, error) {
	all, err := fs.Glob(f.FS, pattern)
	var out []string
	for _, name := range all {
		if name < f.number {
			out = append(out, name)
		}
	}
	return out, err
}

// A log from before there was a chain becomes one, its addresses go beside it.
func TestAuditChainOfOldLines(t *testing.T) {
	pool := pgtest.NewEmpty(t)
	if _, err := pg.Migrate(t.Context(), pool, before{migrations.FS, "0025"}); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO account_audit (at, actor, role, addr, action, object, detail)
		SELECT now(), 'vic:' || n, 'thing', CASE WHEN n % 2 = 0 THEN '192.0.2.1' ELSE '' END, 'old', 'ö', '' FROM generate_series(1, 50) n`); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Migrate(t.Context(), pool, migrations.FS); err != nil {
		t.Fatal(err)
	}
	svc := accounttest.New(t, pool, func(c *account.SignInConfig) { c.ByAddr = ratelimit.NewByAddr(time.Hour, 1) })
	if err := svc.Audit.Append(t.Context(), audit.Entry{Action: "new"}); err != nil {
		t.Fatal(err)
	}
	r, err := svc.Audit.Verify(t.Context(), audit.Anchor{})
	if err != nil || !r.Done || r.Checked != 51 || r.Forgotten != 0 {
		t.Errorf("%+v %v", r, err)
	}
	lines, err := svc.Audit.Lines(t.Context(), 0, 3)
	if err != nil || len(lines) != 3 || lines[0].Action != "new" || lines[1].Actor != "vic:50" || lines[1].Addr != "192.0.2.1" || lines[2].Addr != "" {
		t.Errorf("%+v %v", lines, err)
	}
	if _, err := pool.Exec(t.Context(), `DELETE FROM account_audit`); err == nil {
		t.Error("no longer append-only")
	}
}

// BenchmarkAudit is lines per second with as many callers at once; "bare" is the same insert without chain and queue.
func BenchmarkAudit(b *testing.B) {
	pool := pgtest.New(b)
	if _, err := pool.Exec(b.Context(), `CREATE TABLE bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz, actor text, role text, addr text, action text, object text, detail text)`); err != nil {
		b.Fatal(err)
	}
	store := accountpg.New(pool)
	e := audit.Entry{At: time.Now(), Actor: "0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11", Role: auth.Admin, Addr: here, Action: "thing.register", Object: "vic:00e20100"}
	for _, callers := range []int{1, 16, 64} {
		for name, f := range map[string]func(context.Context) error{
			"chained": func(ctx context.Context) error { return store.AppendAudit(ctx, e) },
			"bare": func(ctx context.Context) error {
				_, err := pool.Exec(ctx, `INSERT INTO bare (at, actor, role, addr, action, object, detail) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
					e.At, e.Actor, string(e.Role), e.Addr, e.Action, e.Object, e.Detail)
				return err
			},
		} {
			b.Run(fmt.Sprintf("%s/callers=%d", name, callers), func(b *testing.B) {
				b.SetParallelism(callers)
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						if err := f(b.Context()); err != nil {
							b.Error(err)
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
			})
		}
	}
}

// An erasure leaves a random id in place of the person in every line by or about them, also in what others wrote of them, and a chain that is whole, from its first line and from anchors of before. Whatever else is done to such a line, or to what attests it, is found.
func TestAuditForgetsPeople(t *testing.T) {
	h := newHome(t)
	a, b := h.create(t, ada, auth.Owner), h.create(t, "bob@example.com", auth.Owner)
	note := func(e audit.Entry) {
		if err := h.Audit.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for range 250 { // more than one transaction takes
		note(audit.Entry{Actor: string(a.ID), Role: auth.Owner, Action: "test", Object: string(a.ID)})
	}
	note(audit.Entry{Actor: string(b.ID), Action: "test", Object: string(a.ID), Detail: "both of them"})
	note(audit.Entry{Actor: "staff", Action: "test", Object: "vic:1", Detail: "ADA@example.com asked, account " + strings.ToUpper(string(a.ID))})
	note(audit.Entry{Actor: "staff", Action: "test", Object: "vic:1", Detail: "nobody asked"})
	before := h.verify(t, audit.Anchor{})
	for _, who := range []account.Account{a, b} {
		if err := h.o.Privacy.Delete(t.Context(), who.ID, password, here); err != nil {
			t.Fatal(err)
		}
		if err := h.o.Privacy.Erase(t.Context(), string(who.ID)); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{string(who.ID), who.Email} {
			if found := h.everywhere(t, text); len(found) > 0 {
				t.Errorf("%q is still in %v", text, found)
			}
		}
	}
	var both string
	if err := h.pool.QueryRow(t.Context(), `SELECT actor || ' ' || object FROM account_audit WHERE detail = 'both of them'`).Scan(&both); err != nil {
		t.Fatal(err)
	}
	if one, other, _ := strings.Cut(both, " "); len(one) != 36 || len(other) != 36 || one == other {
		t.Errorf("the line of both says %q, want two random ids", both)
	}
	for _, from := range []audit.Anchor{{}, before.To} {
		if r := h.verify(t, from); !r.Done || from.Seq == 0 && r.Erased < 252 {
			t.Fatalf("from %v: %+v %+v", from, r, r.Broken)
		}
	}
	for _, table := range []string{"account_audit", "account_audit_erased"} {
		if _, err := h.pool.Exec(t.Context(), `CREATE TABLE kept_`+table+` AS SELECT * FROM `+table); err != nil {
			t.Fatal(err)
		}
	}
	for name, sql := range map[string]string{
		"a word of a line without an erasure": `UPDATE account_audit SET detail = 'somebody asked' WHERE detail = 'nobody asked'`,
		"a line that claims an erasure":       `UPDATE account_audit SET detail = 'somebody asked', erased = true WHERE detail = 'nobody asked'`,
		"a word of an erased line":            `UPDATE account_audit SET actor = 'staff' WHERE seq = (SELECT min(seq) FROM account_audit WHERE erased)`,
		"an erased line no longer one":        `UPDATE account_audit SET erased = false WHERE seq = (SELECT min(seq) FROM account_audit WHERE erased)`,
		"a digest":                            `UPDATE account_audit_erased SET digest = sha256('x') WHERE seq = (SELECT min(seq) FROM account_audit_erased)`,
		"a digest less":                       `DELETE FROM account_audit_erased WHERE seq = (SELECT min(seq) FROM account_audit_erased)`,
		"a digest more": `INSERT INTO account_audit_erased SELECT max(e.by_seq), l.seq, sha256('x') FROM account_audit_erased e, account_audit l
			WHERE l.detail = 'nobody asked' GROUP BY l.seq`,
		"the attestation": `UPDATE account_audit SET detail = '1 lines 00' WHERE action = 'audit.erased'`,
	} {
		t.Run(name, func(t *testing.T) {
			h.tamper(t, sql)
			if r := h.verify(t, audit.Anchor{}); r.Done || r.Broken == nil {
				t.Errorf("not found: %+v", r)
			}
			for _, table := range []string{"account_audit", "account_audit_erased"} {
				h.tamper(t, `DELETE FROM `+table)
				h.tamper(t, `INSERT INTO `+table+` OVERRIDING SYSTEM VALUE SELECT * FROM kept_`+table)
			}
		})
	}
	// An erasure cannot be had by switching its setting on.
	for _, sql := range []string{`UPDATE account_audit SET hash = sha256('x'), erased = true`, `UPDATE account_audit SET detail = ''`, `DELETE FROM account_audit`} {
		err := pgx.BeginFunc(t.Context(), h.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SELECT set_config('kennel.audit_erases', 'on', true)`); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), sql)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
