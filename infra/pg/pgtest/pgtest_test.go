package pgtest_test

import (
	"testing"

	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	a, b := pgtest.New(t), pgtest.New(t)
	if _, err := a.Exec(t.Context(), "CREATE TABLE only_in_a ()"); err != nil {
		t.Fatal(err)
	}
	var inA, inB bool
	const q = "SELECT to_regclass('only_in_a') IS NOT NULL"
	if err := a.QueryRow(t.Context(), q).Scan(&inA); err != nil {
		t.Fatal(err)
	}
	if err := b.QueryRow(t.Context(), q).Scan(&inB); err != nil {
		t.Fatal(err)
	}
	if !inA || inB {
		t.Errorf("table in a %v, in b %v; want only in a", inA, inB)
	}
}

func BenchmarkNew(b *testing.B) {
	pgtest.New(b)
	for b.Loop() {
		pgtest.New(b)
	}
}
