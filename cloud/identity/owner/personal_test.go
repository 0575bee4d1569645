package owner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/identity/owner"
	"kennel/infra/errs"
)

// mentions returns the tables with a row that has one of the words in any column.
func (p process) mentions(t *testing.T, words ...string) (out []string) {
	t.Helper()
	rows, err := p.pool.Query(t.Context(), `SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace ORDER BY 1`)
	must(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	if !slices.Contains(tables, "owner_tenure") {
		t.Fatalf("tables %q: owner_tenure is not among them", tables)
	}
	for _, name := range tables {
		rows, err := p.pool.Query(t.Context(), `SELECT t::text FROM `+pgx.Identifier{name}.Sanitize()+` t`)
		must(t, err)
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		for _, w := range words {
			if slices.ContainsFunc(all, func(row string) bool { return strings.Contains(row, w) }) {
				out = append(out, name+" "+w)
			}
		}
	}
	return out
}

// TestPersonal is issue 4, "what must hold" 6: after the erasure no row names the person.
func TestPersonal(t *testing.T) {
	h := newHouse(t)
	a, b := h.process(), h.process()
	ctx := t.Context()
	const ann, bob = "5f0c6a52-6ad0-4f0c-9a55-000000000001", "5f0c6a52-6ad0-4f0c-9a55-000000000002"
	h.emails[ann], h.emails[bob] = "ann@example.org", "bob@example.org"

	must(t, a.Associate(ctx, rex, ann, owner.HowAssociate))
	must(t, a.Release(ctx, ann, rex))
	must(t, a.claim(t, ann, rex, a.show(t, rex, "k1")))
	_, err := a.Rename(ctx, ann, rex, "Schnuffi")
	must(t, err)
	must(t, a.Associate(ctx, ada, bob, owner.HowAssociate))
	toAnn, err := a.Offer(ctx, bob, "bob@example.org", ada, "ann@example.org", owner.Proof{Password: "right"})
	must(t, err)
	toBob, err := a.Offer(ctx, ann, "ann@example.org", rex, bob, owner.Proof{Password: "right"})
	must(t, err)

	v, err := a.Export(ctx, ann)
	must(t, err)
	text, err := json.Marshal(v)
	must(t, err)
	for _, want := range []string{`"name":"Schnuffi"`, `"how":"code"`, `"ended":"released"`, toAnn.ID, toBob.ID} {
		if !strings.Contains(string(text), want) {
			t.Errorf("export %s lacks %s", text, want)
		}
	}
	if strings.Contains(string(text), bob) {
		t.Errorf("export %s names somebody else", text)
	}
	if v, err := a.Export(ctx, "nobody"); err != nil {
		t.Error(err)
	} else if text, err := json.Marshal(v); err != nil || string(text) != `{"robots":[],"transfers":[]}` {
		t.Errorf("export of nobody: %s, %v", text, err)
	}
	if got := a.mentions(t, ann, "Schnuffi"); !slices.Equal(got, []string{"owner_attempt " + ann, "owner_news " + ann, "owner_tenure " + ann, "owner_tenure Schnuffi"}) {
		t.Fatalf("before: %q", got)
	}

	// It fails half-way and is done again elsewhere.
	h.setDeaf(errors.New("the token service is away"))
	if err := a.Erase(ctx, ann); err == nil {
		t.Error("erased although the token service does not know")
	}
	a.has(t, "", rex)
	h.setDeaf(nil)
	h.told = nil
	must(t, b.Erase(ctx, ann))
	must(t, b.Erase(ctx, ann))
	if len(h.told) != 1 || h.told[0].Account != ann || h.told[0].Ended != owner.EndErased {
		t.Errorf("told %+v, want the end of ann's once", h.told)
	}
	if got := a.mentions(t, ann, "Schnuffi", "ann@"); len(got) != 0 {
		t.Errorf("after: %q", got)
	}
	if all, err := a.Offers(ctx, ann, "ann@example.org"); err != nil || len(all) != 0 {
		t.Errorf("offers to ann: %+v, %v", all, err)
	}
	a.has(t, bob, ada)
	past, err := a.History(ctx, rex, 10)
	must(t, err)
	if len(past) != 2 || past[0].Account+past[1].Account != "" || past[0].Ended != owner.EndErased {
		t.Errorf("history %+v, want two of nobody's", past)
	}
	if err := a.Erase(ctx, ""); err == nil {
		t.Error("no account was erased")
	}

	// Many robots at once.
	for i := range 120 {
		if _, err := a.pool.Exec(ctx, `INSERT INTO owner_tenure (thing, account, how, since, until, ended, settled) VALUES ($1, $2, 'code', now(), now(), 'released', false)`,
			fmt.Sprint("vic:", i), bob); err != nil {
			t.Fatal(err)
		}
	}
	h.told = nil
	must(t, b.Erase(ctx, bob))
	if len(h.told) != 121 || len(a.mentions(t, bob)) != 0 {
		t.Errorf("%d ends told, want 121; left %q", len(h.told), a.mentions(t, bob))
	}
}

// Expired rows are removed; the others stay.
func TestPrune(t *testing.T) {
	h := newHouse(t)
	p := h.process()
	ctx := t.Context()
	must(t, p.Associate(ctx, rex, "ann", owner.HowAssociate))
	_, err := p.Offer(ctx, "ann", "", rex, "bob@example.org", owner.Proof{Password: "right"})
	must(t, err)
	p.show(t, ada, "k")
	is(t, "wrong", p.claim(t, "ann", ada, "0000-0000"), errs.NotFound, "code_refused")
	count := func() (n int) {
		t.Helper()
		must(t, p.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM owner_code) + (SELECT count(*) FROM owner_transfer) + (SELECT count(*) FROM owner_attempt)`).Scan(&n))
		return n
	}
	must(t, p.store.Prune(ctx, owner.CodeLife))
	if n := count(); n != 3 {
		t.Errorf("%d rows left of what is not over, want 3", n)
	}
	for _, sql := range []string{`UPDATE owner_code SET expires_at = now() - interval '1 hour'`, `UPDATE owner_transfer SET expires_at = now() - interval '1 hour'`,
		`UPDATE owner_attempt SET since = now() - interval '1 hour'`} {
		_, err := p.pool.Exec(ctx, sql)
		must(t, err)
	}
	must(t, p.store.Prune(ctx, owner.CodeLife))
	if n := count(); n != 0 {
		t.Errorf("%d rows left of what is over", n)
	}
	p.has(t, "ann", rex)
}
