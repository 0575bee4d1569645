package certspg_test

import (
	"maps"
	"testing"
	"time"

	"kennel/certs/certspg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

// TestNewest: of each thing the last certificate that was issued counts, and a revoked one is good until never.
func TestNewest(t *testing.T) {
	pool := pgtest.New(t)
	s := certspg.New(pool)
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		serial, thing string
		issued, days  int
		revoked       bool
	}{
		{"01", "vic:1", 0, 90, false}, {"02", "vic:1", 1, 30, false}, // the later one ends sooner
		{"03", "vic:2", 0, 90, false}, {"04", "vic:2", 1, 90, true},
		{"05", "vic:3", 0, 90, true}, {"06", "vic:3", 1, 60, false},
	} {
		var revoked *time.Time
		if c.revoked {
			revoked = &day
		}
		if _, err := pool.Exec(t.Context(), `INSERT INTO certs_certificate (serial, thing, key, method, not_before, not_after, issued_at, revoked_at)
			VALUES ($1, $2, decode(repeat('00', 32), 'hex'), 'enroll', $3, $4, $5, $6)`,
			c.serial, c.thing, day, day.AddDate(0, 0, c.days), day.AddDate(0, 0, c.issued), revoked); err != nil {
			t.Fatal(err)
		}
	}
	got := map[thing.ID]time.Time{}
	var last thing.ID
	for {
		until, end, err := s.Newest(t.Context(), last, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(until) == 0 {
			break
		}
		for id, at := range until {
			if _, twice := got[id]; twice || id > end {
				t.Errorf("%s comes twice, or after the last of its page, %s", id, end)
			}
			got[id] = at.UTC()
		}
		last = end
	}
	want := map[thing.ID]time.Time{"vic:1": day.AddDate(0, 0, 30), "vic:2": {}, "vic:3": day.AddDate(0, 0, 60)}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
