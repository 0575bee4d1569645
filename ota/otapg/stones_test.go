package otapg

import (
	"slices"
	"testing"

	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/ota"
)

// TestSteppingStones (issue 17.5): a robot below the lowest version that a release can be installed on gets that version first, and so on in order. What would
// lead in a circle, or to a release that is not there, is refused.
func TestSteppingStones(t *testing.T) {
	svc, ctx := ota.New(New(pgtest.New(t)), nil), t.Context()
	add := func(v, lowest ota.Version, url string) error {
		return svc.AddRelease(ctx, ota.Release{Species: thing.Vector, Version: v, Lowest: lowest, Artifact: ota.Artifact{URL: url}})
	}
	for _, x := range []struct{ v, lowest ota.Version }{{"1.0.0.0", ""}, {"1.5.0.0", "1.0.0.0"}, {"2.0.0.0", ""}, {"2.0.0.1d", ""}} {
		if err := add(x.v, x.lowest, "https://s3.example/"+string(x.v)); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("1.6.0.0", "", ""); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		v, lowest ota.Version
		want      errs.Kind
	}{
		{"2.0.0.0", "1.2.3.4", errs.NotFound},  // a missing stone
		{"2.0.0.0", "1.6.0.0", errs.Conflict},  // one without an archive
		{"1.0.0.0", "1.5.0.0", errs.Conflict},  // a circle
		{"2.0.0.0", "2.0.0.0", errs.Conflict},  // the smallest circle
		{"2.0.0.1d", "2.0.0.0", errs.Conflict}, // another kind, which development robots refuse
		{"2.0.0.0", "2.0", errs.Invalid},
		{"3.0.0.0", "2.0.0.0", errs.NotFound},
	} {
		if err := svc.SetLowest(ctx, thing.Vector, x.v, x.lowest); errs.KindOf(err) != x.want || err == nil {
			t.Errorf("%s on %s: %v, want %v", x.v, x.lowest, err, x.want)
		}
	}
	if err := add("1.0.0.1", "1.4.0.0", ""); errs.KindOf(err) != errs.NotFound {
		t.Errorf("a new release with a missing stone: %v", err)
	}
	asks := func(running string, want ota.Version) {
		t.Helper()
		if d, err := svc.Ask(ctx, vic, running); err != nil || d.Release != want || d.URL != "https://s3.example/"+string(want) {
			t.Errorf("on %q: %+v, %v; want %s", running, d, err, want)
		}
	}
	if _, err := svc.SetDesired(ctx, vic, "2.0.0.0", "op"); err != nil {
		t.Fatal(err)
	}
	asks("0.9.0.0", "2.0.0.0")
	if err := svc.SetLowest(ctx, thing.Vector, "2.0.0.0", "1.5.0.0"); err != nil {
		t.Fatal(err)
	}
	if path, err := svc.Path(ctx, thing.Vector, "2.0.0.0"); err != nil || !slices.Equal(path, []ota.Version{"1.5.0.0", "1.0.0.0"}) {
		t.Errorf("path %q, %v", path, err)
	}
	asks("0.9.0.0", "1.0.0.0")
	asks("1.0.0.0", "1.5.0.0")
	asks("1.4.9.9", "1.5.0.0")
	asks("1.5.0.0", "2.0.0.0")
	asks("1.7.0.0", "2.0.0.0")
	asks("", "2.0.0.0") // it does not say
	if err := svc.Report(ctx, vic, ota.Status{ID: "1", Release: "1.0.0.0", Running: "0.9.0.0", Phase: ota.Downloading}); err != nil {
		t.Fatal(err)
	}
	if st, err := svc.State(ctx, vic, 1); err != nil || st.First != "1.0.0.0" || st.Desired.Release != "2.0.0.0" {
		t.Errorf("%+v, %v", st, err)
	}
	if err := svc.SetLowest(ctx, thing.Vector, "2.0.0.0", ""); err != nil {
		t.Fatal(err)
	}
	asks("0.9.0.0", "2.0.0.0")
	if rs, err := svc.Releases(ctx, ""); err != nil || rs[len(rs)-2].Version != "1.5.0.0" || rs[len(rs)-2].Lowest != "1.0.0.0" {
		t.Errorf("releases %+v, %v", rs, err)
	}
}
