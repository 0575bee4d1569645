package tokenpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kennel/cloud/identity/token"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const rex, bo = thing.ID("vic:00e20100"), thing.ID("vic:00e20101")

var start = time.Now().UTC().Truncate(time.Second)

func row(at time.Time) token.Token {
	return token.Token{ID: uuid.NewString(), Issued: at, Expires: at.Add(24 * time.Hour), How: "test"}
}

func associate(t testing.TB, s *Store, id thing.ID, user string, keep bool) token.Access {
	t.Helper()
	first := row(start)
	if err := s.Associate(t.Context(), token.Association{Thing: id, User: user, First: first, Keep: keep}); err != nil {
		t.Fatal(err)
	}
	return token.Access{ID: first.ID, Thing: id, User: user, Issued: first.Issued, Expires: first.Expires}
}

func standing(t *testing.T, s *Store, what string, a token.Access, want token.Standing) {
	t.Helper()
	if got, err := s.Standing(t.Context(), a); err != nil || got != want {
		t.Errorf("%s: standing %v, %v; want %v", what, got, err, want)
	}
	next := row(start)
	got, err := s.Refresh(t.Context(), a, next)
	if err != nil || got != want {
		t.Errorf("%s: refresh %v, %v; want %v", what, got, err, want)
	}
	infos, err := s.Tokens(t.Context(), a.Thing, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if stored := slices.ContainsFunc(infos, func(i token.TokenInfo) bool { return i.ID == next.ID && i.Parent == a.ID }); stored != (want == token.Good) {
		t.Errorf("%s: new token stored %v", what, stored)
	}
}

func TestStandings(t *testing.T) {
	s := New(pgtest.New(t))
	ctx := t.Context()
	nobody := token.Access{ID: uuid.NewString(), Thing: rex, User: "anna", Issued: start}
	standing(t, s, "no association", nobody, token.Ended)
	a := associate(t, s, rex, "anna", false)
	standing(t, s, "the first token", a, token.Good)
	standing(t, s, "a token whose row is forgotten", nobody, token.Good)
	old := nobody
	old.Issued = start.Add(-time.Second)
	standing(t, s, "from before", old, token.Ended)
	b := associate(t, s, rex, "anna", true)
	standing(t, s, "kept", a, token.Good)
	standing(t, s, "another of the same", b, token.Good)
	c := associate(t, s, rex, "anna", false)
	standing(t, s, "after another of the same second", a, token.IsRevoked)
	standing(t, s, "the new one", c, token.Good)
	d := associate(t, s, rex, "bert", true) // another user is never kept
	standing(t, s, "another user's", c, token.OtherUsers)
	if user, err := s.LastUser(ctx, rex); err != nil || user != "bert" {
		t.Errorf("last user %q, %v", user, err)
	}
	if user, err := s.LastUser(ctx, bo); err != nil || user != "" {
		t.Errorf("last user of nobody's %q, %v", user, err)
	}
	end, err := s.End(ctx, rex, "why")
	if err != nil || end.Tokens != 1 || !slices.Equal(end.Things, []thing.ID{rex}) {
		t.Errorf("end %+v, %v", end, err)
	}
	standing(t, s, "ended", d, token.IsRevoked)
	if end, err := s.End(ctx, rex, "again"); err != nil || end.Tokens != 0 || len(end.Things) != 0 {
		t.Errorf("ended twice: %+v, %v", end, err)
	}
	if user, err := s.LastUser(ctx, rex); err != nil || user != "bert" {
		t.Errorf("last user after the end %q, %v", user, err)
	}
}

// TestRevokeOne: with it goes what was refreshed from it, not what was before or beside it.
func TestRevokeOne(t *testing.T) {
	s := New(pgtest.New(t))
	ctx := t.Context()
	a := associate(t, s, rex, "anna", false)
	refresh := func(from token.Access) token.Access {
		next := row(start)
		if st, err := s.Refresh(ctx, from, next); err != nil || st != token.Good {
			t.Fatal(st, err)
		}
		from.ID = next.ID
		return from
	}
	b := refresh(a)
	c, beside := refresh(b), refresh(a)
	if _, err := s.RevokeToken(ctx, bo, b.ID, "x"); !errors.Is(err, token.ErrUnknown) {
		t.Errorf("another thing's: %v", err)
	}
	if n, err := s.RevokeToken(ctx, rex, b.ID, "stolen"); err != nil || n != 2 {
		t.Errorf("%d, %v; want 2", n, err)
	}
	for name, tc := range map[string]struct {
		a    token.Access
		want token.Standing
	}{"before": {a, token.Good}, "itself": {b, token.IsRevoked}, "after": {c, token.IsRevoked}, "beside": {beside, token.Good}} {
		standing(t, s, name, tc.a, tc.want)
	}
	if n, err := s.RevokeToken(ctx, "", b.ID, "again"); err != nil || n != 0 {
		t.Errorf("twice: %d, %v", n, err)
	}
	if _, err := s.RevokeToken(ctx, "", uuid.NewString(), "x"); !errors.Is(err, token.ErrUnknown) {
		t.Errorf("unknown: %v", err)
	}
	infos, err := s.Tokens(ctx, rex, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		if revoked := i.ID == b.ID || i.ID == c.ID; revoked != !i.Revoked.IsZero() || revoked != (i.Reason == "stolen") {
			t.Errorf("%+v", i)
		}
	}
}

// TestRefreshRacesWithTheEnd: whatever is refreshed while an association ends is either refused or revoked with it.
func TestRefreshRacesWithTheEnd(t *testing.T) {
	s := New(pgtest.New(t))
	ctx := t.Context()
	for name, stop := range map[string]func(token.Access) error{
		"end":     func(token.Access) error { _, err := s.End(ctx, rex, "race"); return err },
		"user":    func(token.Access) error { _, err := s.EndUser(ctx, "anna", "race"); return err },
		"token":   func(a token.Access) error { _, err := s.RevokeToken(ctx, rex, a.ID, "race"); return err },
		"another": func(token.Access) error { associate(t, s, rex, "bert", false); return nil },
	} {
		for round := range 15 {
			a := associate(t, s, rex, "anna", false)
			var wg sync.WaitGroup
			begin := make(chan struct{})
			for range 6 {
				wg.Go(func() {
					<-begin
					for {
						st, err := s.Refresh(ctx, a, row(start))
						if err != nil {
							t.Error(err)
						}
						if err != nil || st != token.Good {
							return
						}
					}
				})
			}
			wg.Go(func() {
				<-begin
				if err := stop(a); err != nil {
					t.Error(err)
				}
			})
			close(begin)
			wg.Wait()
			var left int
			if err := s.pool.QueryRow(ctx, `SELECT count(*) FROM token_token t JOIN token_association a ON a.id = t.association
				WHERE t.revoked_at IS NULL AND a.user_id = 'anna'`).Scan(&left); err != nil || left != 0 {
				t.Fatalf("%s, round %d: %d tokens outlived the end, %v", name, round, left, err)
			}
		}
	}
}

// TestAssociateRaces: of many at once each is whole, and one lasts.
func TestAssociateRaces(t *testing.T) {
	s := New(pgtest.New(t))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				associate(t, s, rex, fmt.Sprint("user", i%3), i%2 == 0)
			}
		})
	}
	wg.Wait()
	var lasting, tokens, stray int
	if err := s.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM token_association WHERE ended_at IS NULL), (SELECT count(*) FROM token_token),
		(SELECT count(*) FROM token_token t JOIN token_association a ON a.id = t.association WHERE a.ended_at IS NOT NULL AND t.revoked_at IS NULL)`).Scan(&lasting, &tokens, &stray); err != nil {
		t.Fatal(err)
	}
	if lasting != 1 || tokens != 40 || stray != 0 {
		t.Errorf("%d last, %d tokens, %d outlived their association", lasting, tokens, stray)
	}
}

func TestUsersAndPrune(t *testing.T) {
	s := New(pgtest.New(t))
	ctx := t.Context()
	a := associate(t, s, rex, "anna", false)
	associate(t, s, bo, "anna", false)
	associate(t, s, bo, "bert", false)
	if things, err := s.UserThings(ctx, "anna"); err != nil || !slices.Equal(things, []thing.ID{rex, bo}) {
		t.Errorf("%v, %v", things, err)
	}
	if tokens, err := s.UserTokens(ctx, "anna"); err != nil || len(tokens) != 2 {
		t.Errorf("%d tokens, %v", len(tokens), err)
	}
	if err := s.Forget(ctx, "anna"); err != nil {
		t.Fatal(err)
	}
	if things, _ := s.UserThings(ctx, "anna"); !slices.Equal(things, []thing.ID{rex}) {
		t.Errorf("what lasts was forgotten, or what ended was not: %v", things)
	}
	if end, err := s.EndUser(ctx, "anna", "deleted"); err != nil || end.Tokens != 1 || !slices.Equal(end.Things, []thing.ID{rex}) {
		t.Errorf("%+v, %v", end, err)
	}
	if err := s.Forget(ctx, "anna"); err != nil {
		t.Fatal(err)
	}
	if things, _ := s.UserThings(ctx, "anna"); len(things) != 0 {
		t.Errorf("%v", things)
	}

	page, err := s.RevokedPage(ctx, "", 10)
	if err != nil || len(page) != 2 || !slices.Contains(page, a.ID) || !slices.IsSorted(page) {
		t.Errorf("%v, %v", page, err)
	}
	rest, err := s.RevokedPage(ctx, page[0], 10)
	if err != nil || !slices.Equal(rest, page[1:]) {
		t.Errorf("%v, %v", rest, err)
	}
	if since, err := s.RevokedSince(ctx, time.Time{}); err != nil || len(since) != 2 {
		t.Errorf("%v, %v", since, err)
	} else if later, err := s.RevokedSince(ctx, time.Now().Add(time.Hour)); err != nil || len(later) != 0 {
		t.Errorf("%v, %v", later, err)
	}

	count := func() (tokens, associations int) {
		if err := s.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM token_token), (SELECT count(*) FROM token_association)`).Scan(&tokens, &associations); err != nil {
			t.Fatal(err)
		}
		return tokens, associations
	}
	far := start.Add(48 * time.Hour)
	for _, step := range []struct {
		expired, revoked     time.Time
		tokens, associations int
	}{{start, far, 3, 3}, {far, start, 2, 3}, {far, far, 0, 2}} {
		if err := s.Prune(ctx, step.expired, step.revoked); err != nil {
			t.Fatal(err)
		}
		if tokens, associations := count(); tokens != step.tokens || associations != step.associations {
			t.Errorf("%d tokens, %d associations left; want %d, %d", tokens, associations, step.tokens, step.associations)
		}
	}
	if user, _ := s.LastUser(ctx, bo); user != "bert" {
		t.Errorf("the last user was forgotten: %q", user)
	}
}

func TestCertificate(t *testing.T) {
	s := New(pgtest.New(t))
	ctx := t.Context()
	if c, err := s.Certificate(ctx, rex); c != nil || err != nil {
		t.Errorf("%q, %v", c, err)
	}
	for _, text := range []string{"one", "two"} {
		if err := s.SetCertificate(ctx, rex, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if c, err := s.Certificate(ctx, rex); string(c) != text || err != nil {
			t.Errorf("%q, %v", c, err)
		}
	}
	if err := s.Associate(ctx, token.Association{Thing: rex, User: "anna", First: row(start)}); err != nil {
		t.Fatal(err)
	}
	if c, _ := s.Certificate(ctx, rex); string(c) != "two" {
		t.Errorf("an association without a certificate left %q", c)
	}
}

// TestKeysChangeOneAfterTheOther: who decides sees what the one before stored, and others are told.
func TestKeysChangeOneAfterTheOther(t *testing.T) {
	s := New(pgtest.New(t))
	ctx, stop := context.WithCancel(t.Context())
	told := make(chan struct{}, 100)
	var listener sync.WaitGroup
	listener.Go(func() {
		_ = s.FollowKeys(ctx, slog.New(slog.DiscardHandler), time.Hour, func(context.Context) error { told <- struct{}{}; return nil }) // nil by contract
	})
	<-told // at once
	<-told // connected
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := s.Change(ctx, func(keys []token.Key) (token.KeyChange, error) {
				return token.KeyChange{Add: &token.Key{ID: fmt.Sprint("key", len(keys)), Alg: token.ES256, Public: []byte{1}, Private: []byte{2}, SignFrom: start}}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	<-told
	if err := s.Change(ctx, func([]token.Key) (token.KeyChange, error) {
		return token.KeyChange{Retire: []string{"key1"}, Drop: []string{"key0", "key7"}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	keys, err := s.Keys(ctx)
	if err != nil || len(keys) != 6 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	for _, k := range keys {
		if (k.ID == "key1") != (k.Private == nil) || !k.SignFrom.Equal(start) {
			t.Errorf("%+v", k)
		}
	}
	wantErr := errors.New("no")
	if err := s.Change(ctx, func([]token.Key) (token.KeyChange, error) { return token.KeyChange{}, wantErr }); !errors.Is(err, wantErr) {
		t.Error(err)
	}
	stop()
	listener.Wait()
}

// TestActs (issue 16, finding 8): what a robot got acts no longer once its tokens are revoked, its association has ended, or another one began.
func TestActs(t *testing.T) {
	s := New(pgtest.New(t))
	acts := func(what string, user string, at time.Time, want bool) {
		t.Helper()
		if got, err := s.Acts(t.Context(), rex, user, at); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
	acts("no association", "ada", start, false)
	a := associate(t, s, rex, "ada", false)
	acts("made just before", "ada", start.Add(-time.Second), true)
	acts("made later", "ada", start.Add(time.Hour), true)
	acts("of an earlier association", "ada", start.Add(-time.Hour), false)
	acts("another user", "bob", start, false)
	if _, err := s.RevokeToken(t.Context(), rex, a.ID, "lost"); err != nil {
		t.Fatal(err)
	}
	acts("its one token was revoked", "ada", start, false)
	associate(t, s, rex, "ada", false)
	acts("signed in again", "ada", start, true)
	if _, err := s.End(t.Context(), rex, "sold"); err != nil {
		t.Fatal(err)
	}
	acts("the association has ended", "ada", start.Add(time.Hour), false)
}

// TestRevokedWhenTheClockGoesBack (issue 28.9): what is revoked after the database's clock was put back is as late as what was revoked before, so that a reading of what is new has it.
func TestRevokedWhenTheClockGoesBack(t *testing.T) {
	s := New(pgtest.New(t))
	ctx := t.Context()
	first, second := associate(t, s, rex, "anna", false), associate(t, s, bo, "bert", false)
	if _, err := s.End(ctx, rex, "test"); err != nil {
		t.Fatal(err)
	}
	latest := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond) // by the clock of then
	if _, err := s.pool.Exec(ctx, `UPDATE token_token SET revoked_at = $1 WHERE id = $2`, latest, first.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.End(ctx, bo, "test"); err != nil {
		t.Fatal(err)
	}
	list, err := s.RevokedSince(ctx, latest)
	if err != nil || !slices.ContainsFunc(list, func(r token.Revoked) bool { return r.ID == second.ID }) {
		t.Errorf("%+v, %v; want %s", list, err, second.ID)
	}
}
