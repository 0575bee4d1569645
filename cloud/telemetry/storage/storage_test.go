package storage

import (
	"bytes"
	"context"
	"testing"
	"time"

	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The counts are those of the bucket; growth is since a day before, or since the first count; old counts go.
func TestUsage(t *testing.T) {
	pool, objects := pgtest.New(t), blobtest.New(t)
	b := New(pool, objects)
	put := func(key string, size int64) {
		t.Helper()
		if err := objects.Put(t.Context(), key, bytes.NewReader(make([]byte, size)), size, blob.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	measured := func() map[string]Usage {
		t.Helper()
		if err := b.Measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := b.Usage(t.Context())
		if err != nil || len(list) != len(Classes) {
			t.Fatalf("%+v %v", list, err)
		}
		out := map[string]Usage{}
		for _, u := range list {
			out[u.Class] = u
		}
		return out
	}
	later := func(d time.Duration) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), `UPDATE storage_usage SET at = at - $1::interval`, d); err != nil {
			t.Fatal(err)
		}
	}
	put("das/2026-11-21/12/a", 100)
	put("ota/x", 7)
	put("elsewhere", 9)
	if u := measured()["das"]; u.Objects != 1 || u.Bytes != 100 || u.MoreObjects != 0 || u.MoreBytes != 0 || time.Since(u.At) > time.Minute {
		t.Errorf("first: %+v", u)
	}
	later(2 * time.Hour)
	put("das/2026-11-21/12/b", 50)
	if u := measured()["das"]; u.Objects != 2 || u.Bytes != 150 || u.MoreObjects != 1 || u.MoreBytes != 50 || !u.MoreSince.Before(u.At.Add(-time.Hour)) {
		t.Errorf("two hours later, since the first: %+v", u)
	}
	later(25 * time.Hour)
	if err := objects.Delete(t.Context(), "das/2026-11-21/12/a"); err != nil {
		t.Fatal(err)
	}
	all := measured()
	if u := all["das"]; u.Objects != 1 || u.Bytes != 50 || u.MoreObjects != -1 || u.MoreBytes != -100 { // since 25 hours ago, not 27
		t.Errorf("a day later: %+v", u)
	}
	if u := all["ota"]; u.Objects != 1 || u.Bytes != 7 || all["logs"].Objects != 0 {
		t.Errorf("%+v", all)
	}
	later(36 * 24 * time.Hour)
	measured()
	var n int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM storage_usage`).Scan(&n); err != nil || n != len(Classes) {
		t.Errorf("%d counts are left, %v", n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // less than the end of a run takes
	defer cancel()
	if err := b.Measure(ctx); err != nil {
		t.Error(err)
	}
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM storage_usage`).Scan(&n); err != nil || n != len(Classes) {
		t.Errorf("counted without time: %d, %v", n, err)
	}
}
