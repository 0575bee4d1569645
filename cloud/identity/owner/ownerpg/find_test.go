package ownerpg_test

import (
	"maps"
	"slices"
	"testing"

	"kennel/cloud/identity/owner/ownerpg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestFind: names and owners of the moment alone are found, and a text is a text, whatever LIKE thinks of its letters.
func TestFind(t *testing.T) {
	pool := pgtest.New(t)
	s := ownerpg.New(pool)
	for _, sql := range []string{
		`INSERT INTO owner_tenure (thing, account, how, since, name) VALUES
			('vic:1', 'ann', 'code', now(), 'Rex'), ('vic:2', 'ann', 'code', now(), 'T_Rex 100%'), ('vic:3', 'bob', 'code', now(), '')`,
		`INSERT INTO owner_tenure (thing, account, how, since, until, ended) VALUES ('vic:4', 'ann', 'code', now() - interval '2 days', now(), 'released')`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string][]thing.ID{
		"rex": {"vic:1", "vic:2"}, "t_r": {"vic:2"}, "_": {"vic:2"}, "0%": {"vic:2"}, "": {"vic:1", "vic:2"}, "Rex": nil, `\`: nil, "'": nil,
	} {
		found, err := s.Named(t.Context(), []string{text}, 10)
		got := found[text]
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("called %q: %v, %v; want %v", text, got, err, want)
		}
	}
	if got, err := s.Named(t.Context(), []string{"rex"}, 1); err != nil || len(got["rex"]) != 1 {
		t.Errorf("at most one: %v, %v", got, err)
	}
	if got, err := s.Named(t.Context(), []string{"rex", "t_r", "nobody"}, 10); err != nil || len(got) != 2 || len(got["rex"]) != 2 || len(got["t_r"]) != 1 {
		t.Errorf("several texts at once: %v, %v", got, err)
	}
	names, err := s.Names(t.Context(), []thing.ID{"vic:2", "vic:3", "vic:4", "vic:5"})
	if err != nil || !maps.Equal(names, map[thing.ID]string{"vic:2": "T_Rex 100%"}) {
		t.Errorf("names: %v, %v", names, err)
	}
	accounts, err := s.Accounts(t.Context(), []thing.ID{"vic:2", "vic:3", "vic:4", "vic:5"})
	if err != nil || !maps.Equal(accounts, map[thing.ID]string{"vic:2": "ann", "vic:3": "bob"}) {
		t.Errorf("accounts: %v, %v", accounts, err)
	}
	for who, want := range map[string][]thing.ID{"ann": {"vic:1", "vic:2"}, "bob": {"vic:3"}, "eve": nil} {
		got, err := s.OwnedBy(t.Context(), []string{who})
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("robots of %s: %v, %v; want %v", who, got, err, want)
		}
	}
	if got, err := s.OwnedBy(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("robots of nobody: %v, %v", got, err)
	}
}
