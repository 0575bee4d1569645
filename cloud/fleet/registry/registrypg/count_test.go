package registrypg

import (
	"log/slog"
	"slices"
	"testing"

	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestCountBySpecies(t *testing.T) {
	pool := pgtest.New(t)
	s := New(pool, slog.New(slog.DiscardHandler))
	for _, id := range []thing.ID{"vic:1", "vic:2", "vic:3", "pleo:1"} {
		if err := s.Register(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(t.Context(), `UPDATE registry_thing SET present = true WHERE thing = 'vic:2'`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Seen(t.Context(), "vic:3", "", 0); err != nil {
		t.Fatal(err)
	}
	got, err := s.CountBySpecies(t.Context())
	want := []SpeciesCount{{thing.Pleo, 0, 1, 0}, {thing.Vector, 1, 1, 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
}
