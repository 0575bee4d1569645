package stspg_test

import (
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	"kennel/cloud/identity/sts/stspg"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestOneLimitForAll: processes that count at once never exceed the limit together; what is released may be used; a new day is a new limit.
func TestOneLimitForAll(t *testing.T) {
	pool := pgtest.New(t)
	u := stspg.New(pool)
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := u.Reserve(t.Context(), "vic:00e20100", 100, 1000); err == nil {
				taken.Add(100)
			} else if errs.KindOf(err) != errs.Exhausted {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if taken.Load() != 1000 {
		t.Errorf("%d bytes taken, want 1000", taken.Load())
	}
	if _, err := u.Reserve(t.Context(), "vic:00e20101", 1001, 1000); errs.CodeOf(err) != "upload_quota" {
		t.Errorf("more than a day at once: %v", err)
	}
	day, err := u.Reserve(t.Context(), "vic:00e20101", 1000, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Release(t.Context(), "vic:00e20101", day, 400); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Reserve(t.Context(), "vic:00e20101", 401, 1000); err == nil {
		t.Error("more than was released")
	}
	if _, err := u.Reserve(t.Context(), "vic:00e20101", 400, 1000); err != nil {
		t.Errorf("what was released: %v", err)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE sts_usage SET day = day - 1 WHERE thing = 'vic:00e20100'`); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Reserve(t.Context(), "vic:00e20100", 1000, 1000); err != nil {
		t.Errorf("the next day: %v", err)
	}
}

// TestAdd: bytes of several robots are counted at once, by any number of processes, in whatever order each names them; a new day begins at 0.
func TestAdd(t *testing.T) {
	pool := pgtest.New(t)
	u := stspg.NewOf(pool, "intake_usage")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 10 {
				if _, err := u.Add(t.Context(), map[thing.ID]int64{"vic:1": 1, "vic:2": 20, "vic:3": 300}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := pool.Exec(t.Context(), `UPDATE intake_usage SET day = day - 1 WHERE thing = 'vic:2'`); err != nil {
		t.Fatal(err)
	}
	got, err := u.Add(t.Context(), map[thing.ID]int64{"vic:1": 1, "vic:2": 20, "vic:4": 4})
	if want := map[thing.ID]int64{"vic:1": 161, "vic:2": 20, "vic:4": 4}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
