package originalspg

import (
	"testing"
	"time"

	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestTurns: one self-test runs at a time; one that never ended holds up the next no longer than its turn.
func TestTurns(t *testing.T) {
	s := New(pgtest.New(t))
	begin := func(length time.Duration, free bool) {
		t.Helper()
		wait, err := s.Begin(t.Context(), length)
		if err != nil || (wait == 0) != free || wait > time.Minute {
			t.Errorf("begin: wait %v, %v; free: want %v", wait, err, free)
		}
	}
	begin(time.Minute, true)
	begin(time.Minute, false)
	if err := s.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	begin(0, true) // is over at once
	begin(time.Minute, true)
}
