package accountpg_test

import (
	"maps"
	"slices"
	"testing"

	"kennel/cloud/identity/account/accountpg"
	"kennel/infra/auth"
)

// TestOwnersLike: a text is a text, whatever LIKE thinks of its letters, and at most as many come as were asked for.
func TestOwnersLike(t *testing.T) {
	w := newWorld(t, 100)
	s := accountpg.New(w.pool)
	ids := map[string]string{}
	for _, email := range []string{"ann_lee@example.com", "annxlee@example.com", "50%off@example.com", "zoe@example.org"} {
		ids[email] = string(w.create(t, email, auth.Viewer).ID)
	}
	for text, want := range map[string][]string{
		"ann":         {"ann_lee@example.com", "annxlee@example.com"},
		"n_l":         {"ann_lee@example.com"},
		"%":           {"50%off@example.com"},
		`\`:           nil,
		"example.org": {"zoe@example.org"},
		"' OR 1=1 --": nil,
	} {
		got, err := s.OwnersLike(t.Context(), text, 10)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		var mine []string // accounts that the tests' world begins with are not asked about
		for _, email := range want {
			mine = append(mine, ids[email])
		}
		slices.Sort(mine)
		slices.Sort(got)
		if !slices.Equal(got, mine) {
			t.Errorf("%q: %v, want %v of %v", text, got, want, ids)
		}
	}
	zoe := ids["zoe@example.org"]
	if got, err := s.Emails(t.Context(), []string{zoe, "no-account", "00000000-0000-4000-8000-000000000000"}); err != nil || !maps.Equal(got, map[string]string{zoe: "zoe@example.org"}) {
		t.Errorf("e-mails: %v, %v", got, err)
	}
	if got, err := s.OwnersLike(t.Context(), "example", 3); err != nil || len(got) != 3 || got[0] != ids["50%off@example.com"] {
		t.Errorf("the first three by e-mail: %v, %v", got, err)
	}
}
