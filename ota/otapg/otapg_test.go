package otapg

import (
	"fmt"
	"testing"
	"time"

	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/ota"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const vic = thing.ID("vic:00e20100")

func TestDesiredOfThingGoesBeforeSpecies(t *testing.T) {
	svc, ctx := ota.New(New(pgtest.New(t)), nil), t.Context()
	want := func(v ota.Version) {
		t.Helper()
		if d, err := svc.Desired(ctx, vic); err != nil || d.Release != v || d.Since.IsZero() != (v == "") {
			t.Errorf("desired %+v, %v; want %q", d, err, v)
		}
	}
	want("")
	if _, err := svc.SetDesired(ctx, vic, "2.0.1.6076", "op"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("unknown release: %v, want not found", err)
	}
	for _, v := range []ota.Version{"2.0.1.6076", "2.0.1.6079"} {
		if err := svc.AddRelease(ctx, ota.Release{Species: thing.Vector, Version: v}); err != nil {
			t.Fatal(err)
		}
	}
	if err := svc.AddRelease(ctx, ota.Release{Species: thing.Vector, Version: "2.0.1.6079"}); errs.KindOf(err) != errs.Conflict {
		t.Errorf("the same release again: %v, want conflict", err)
	}
	if _, err := svc.SetSpeciesDesired(ctx, thing.Vector, "2.0.1.6076", "op"); err != nil {
		t.Fatal(err)
	}
	want("2.0.1.6076")
	first, err := svc.SetDesired(ctx, vic, "2.0.1.6079", "op")
	if err != nil {
		t.Fatal(err)
	}
	want("2.0.1.6079")
	if again, err := svc.SetDesired(ctx, vic, "2.0.1.6079", "other"); err != nil || !again.Since.Equal(first.Since) {
		t.Errorf("repeating a wish: since %v, %v; want %v as before", again.Since, err, first.Since)
	}
	if _, err := svc.SetDesired(ctx, vic, "", "op"); err != nil {
		t.Fatal(err)
	}
	want("2.0.1.6076")
	if other, err := svc.Desired(ctx, "pleo:1"); err != nil || other.Release != "" {
		t.Errorf("another species: %+v, %v", other, err)
	}
	if rs, err := svc.Releases(ctx, ""); err != nil || len(rs) != 2 || rs[0].Version != "2.0.1.6079" {
		t.Errorf("releases %+v, %v; want the newest first", rs, err)
	}
}

// TestWishes: those of species come first, and a wish that is taken back is gone.
func TestWishes(t *testing.T) {
	svc, ctx := ota.New(New(pgtest.New(t)), nil), t.Context()
	if err := svc.AddRelease(ctx, ota.Release{Species: thing.Vector, Version: "2.0.1.6076"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []thing.ID{"vic:2", "vic:1"} {
		if _, err := svc.SetDesired(ctx, id, "2.0.1.6076", "op@example.org"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := svc.SetSpeciesDesired(ctx, thing.Vector, "2.0.1.6076", "rel@example.org"); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.SetDesired(ctx, "vic:2", "", "op@example.org"); err != nil {
		t.Fatal(err)
	}
	got, err := svc.Wishes(ctx)
	if err != nil || len(got) != 2 || got[0].Scope != "vic" || got[0].By != "rel@example.org" || got[1].Scope != "vic:1" || got[1].Release != "2.0.1.6076" || got[1].Since.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReportsCountOnceAndAreBounded(t *testing.T) {
	svc, ctx := ota.New(New(pgtest.New(t)), nil), t.Context()
	for i := range MaxReports + 10 {
		st := ota.Status{V: 1, ID: fmt.Sprint("r", i), Phase: ota.Pending, Release: "2.0.1.6079", Running: "2.0.1.6076", TS: time.Now().UnixMilli()}
		for range 2 {
			if err := svc.Report(ctx, vic, st); err != nil {
				t.Fatal(err)
			}
		}
	}
	st, err := svc.State(ctx, vic, 1000)
	if err != nil || len(st.History) != MaxReports {
		t.Fatalf("%d reports, %v; want %d", len(st.History), err, MaxReports)
	}
	if st.Last == nil || st.Last.ID != fmt.Sprint("r", MaxReports+9) || st.Last.Running != "2.0.1.6076" {
		t.Errorf("last %+v", st.Last)
	}
	if other, err := svc.State(ctx, "vic:1", 10); err != nil || other.Last != nil {
		t.Errorf("another thing: %+v, %v", other, err)
	}
}

// A wish for a species begins a round of hints in its own transaction, and a later one replaces it; a wish for one thing begins none.
func TestRounds(t *testing.T) {
	s, ctx := New(pgtest.New(t)), t.Context()
	round := func() ota.Round {
		t.Helper()
		r, err := s.Round(ctx, thing.Vector)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	set := func(scope string, v ota.Version) {
		t.Helper()
		if _, err := s.SetDesired(ctx, scope, v, "op"); err != nil {
			t.Fatal(err)
		}
	}
	set(string(vic), "2.0.1.6076")
	if r := round(); r.Num != 0 {
		t.Errorf("a wish for one thing began %+v", r)
	}
	set("vic", "2.0.1.6076")
	first := round()
	first.After = vic
	if err := s.Hinted(ctx, thing.Vector, first, false); err != nil || first.Num == 0 || round() != first {
		t.Errorf("%+v, %v; want %+v", round(), err, first)
	}
	set("vic", "")
	second := round()
	for _, over := range []bool{false, true} { // the run of the first round changes nothing
		if err := s.Hinted(ctx, thing.Vector, first, over); err != nil || round() != second || second.Num == first.Num || second.After != "" {
			t.Errorf("%+v, %v; want %+v", round(), err, second)
		}
	}
	if list, err := s.Unhinted(ctx); err != nil || len(list) != 1 || list[0] != thing.Vector {
		t.Errorf("%v, %v", list, err)
	}
	if err := s.Hinted(ctx, thing.Vector, second, true); err != nil || round().Num != 0 {
		t.Errorf("%+v, %v; want none", round(), err)
	}
	if list, err := s.Unhinted(ctx); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// A wish that a restored backup brought back is none until a person makes it again.
func TestHeldWish(t *testing.T) {
	s, ctx := New(pgtest.New(t)), t.Context()
	since, err := s.SetDesired(ctx, "vic", "2.0.1.6076", "op")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(ctx, `UPDATE ota_desired SET held = true`); err != nil {
		t.Fatal(err)
	}
	if d, _, err := s.Desired(ctx, vic); err != nil || d.Release != "" {
		t.Errorf("%+v, %v; want nothing", d, err)
	}
	if again, err := s.SetDesired(ctx, "vic", "2.0.1.6076", "op"); err != nil || !again.After(since) {
		t.Errorf("since %v, %v; want later than %v", again, err, since)
	}
	if d, _, err := s.Desired(ctx, vic); err != nil || d.Release != "2.0.1.6076" {
		t.Errorf("%+v, %v", d, err)
	}
}
