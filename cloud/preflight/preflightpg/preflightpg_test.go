package preflightpg

import (
	"testing"
	"time"

	"kennel/cloud/preflight"
	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestLast: the latest of each outcome is kept, whatever order they arrive in.
func TestLast(t *testing.T) {
	ctx, s := t.Context(), New(pgtest.New(t))
	if last, err := s.Last(ctx, preflight.Drill); err != nil || last.Good.OK || !last.Bad.At.IsZero() {
		t.Errorf("nothing recorded: %+v, %v", last, err)
	}
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, r := range []preflight.Record{
		{Kind: preflight.Drill, OK: true, At: at, Says: "first", Report: []byte(`{"rows": 7}`)},
		{Kind: preflight.Drill, OK: true, At: at.Add(time.Hour), Says: "second"},
		{Kind: preflight.Drill, OK: true, At: at.Add(time.Minute), Says: "late"},
		{Kind: preflight.Drill, OK: false, At: at, Says: "bad"},
		{Kind: preflight.Backup, OK: true, At: at.Add(2 * time.Hour), Says: "another"},
	} {
		if err := s.Record(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	last, err := s.Last(ctx, preflight.Drill)
	if err != nil || last.Good.Says != "second" || !last.Good.At.Equal(at.Add(time.Hour)) || last.Bad.Says != "bad" {
		t.Errorf("%+v, %v", last, err)
	}
}
