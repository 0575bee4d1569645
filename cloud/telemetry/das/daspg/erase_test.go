package daspg

import (
	"context"
	"strings"
	"testing"
	"time"

	"kennel/cloud/telemetry/das"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

const rex, ada = thing.ID("vic:00e20100"), thing.ID("vic:00e20101")

// Events of one robot of a time go, in steps, over days, while others are written; what was received before and after stays.
func TestEraseEvents(t *testing.T) {
	pool := pgtest.New(t)
	s := Open(pool)
	commit := func(at time.Time, boot string) {
		t.Helper()
		g := das.Group{Received: at, Items: []das.Item{batch(rex, boot, 1, 10), batch(ada, boot, 1, 10)}}
		if _, err := s.Commit(t.Context(), g, das.Raw{Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	for i, at := range []time.Time{noon.Add(-time.Second), noon, noon.AddDate(0, 0, 1), noon.AddDate(0, 0, 2)} {
		commit(at, string(rune('a'+i)))
	}
	own := thing.Stretch{Thing: rex, Since: noon, Until: noon.AddDate(0, 0, 2)}
	n := 0
	note := func(_ context.Context, events int) error {
		n += events
		commit(noon.Add(time.Hour), "while") // the intake continues; the same events come once
		return nil
	}
	if err := s.EraseEvents(t.Context(), own, note); err != nil {
		t.Fatal(err)
	}
	var rexs, adas int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE thing = $1), count(*) FILTER (WHERE thing = $2) FROM das_event`, rex, ada).Scan(&rexs, &adas); err != nil || rexs != 20 || adas != 50 || n != 30 {
		t.Errorf("%d erased, %d and %d are left; want 30, 20, 50; %v", n, rexs, adas, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // less than the end of a run takes
	defer cancel()
	if err := s.EraseEvents(ctx, own, note); errs.CodeOf(err) != errs.CodeAgain {
		t.Errorf("without time: %v", err)
	}
	// The boots stay known: what is sent again is not stored again.
	commit(noon.Add(time.Hour), "b")
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM das_event WHERE thing = $1`, rex).Scan(&rexs); err != nil || rexs != 20 {
		t.Errorf("%d events, %v: erased ones came again", rexs, err)
	}
}

// Raw bodies that wait for S3 lose the batches of one robot; one that is empty then goes.
func TestEraseWaiting(t *testing.T) {
	s := Open(pgtest.New(t))
	of := func(id thing.ID) []byte {
		return das.AppendRaw(nil, das.RawBatch{Thing: id, Received: noon, Payload: []byte("of " + id)})
	}
	for key, body := range map[string][]byte{"both": append(of(rex), of(ada)...), "rex": of(rex), "ada": of(ada)} {
		if _, err := s.Commit(t.Context(), das.Group{Received: noon, Items: []das.Item{batch(rex, key, 1, 1)}}, das.Raw{Key: key, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	own := thing.Stretch{Thing: rex, Since: noon, Until: noon.Add(time.Minute)}
	held := 0
	if err := s.EachWaiting(t.Context(), own, func(das.RawBatch) error { held++; return nil }); err != nil || held != 2 {
		t.Errorf("%d, %v", held, err)
	}
	for _, want := range []int{2, 0} {
		if n, err := s.EraseWaiting(t.Context(), own); err != nil || n != want {
			t.Errorf("erased %d, %v; want %d", n, err, want)
		}
	}
	moved := map[string]string{}
	for {
		ok, err := s.MoveRaw(t.Context(), func(_ context.Context, key string, body []byte) error { moved[key] = string(body); return nil })
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
	}
	if len(moved) != 2 || moved["both"] != string(of(ada)) || moved["ada"] != string(of(ada)) {
		t.Errorf("%q", moved)
	}
}

// Profile ids of a former release get their keyed hash, also in the events of their sessions, and nothing else changes; a day that is over is done once.
func TestKeyProfiles(t *testing.T) {
	pool := pgtest.New(t)
	s := Open(pool)
	const id = "MTIzNDU2Nzg5MDEyMzQ1Ng=="
	it := batch(rex, "b", 1, 3)
	it.Events[0].ProfileID, it.Events[1].ProfileID = id, "p.aaaaaaaaaaaaaaaaaaaaaaaa"
	it.Events[2].Name, it.Events[2].S1 = "profile_id.start", id
	if _, err := s.Commit(t.Context(), das.Group{Received: noon, Items: []das.Item{it}}, das.Raw{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO das_unkeyed VALUES ('das_event_20261121'), ('das_event_20200101')`); err != nil {
		t.Fatal(err)
	}
	p := das.NewProfiles([]byte(strings.Repeat("k", 32)))
	for i, now := range []time.Time{noon, noon.AddDate(0, 0, 1), noon.AddDate(0, 0, 2)} {
		if n, err := s.KeyProfiles(t.Context(), now, p.Key, p.Keyed); err != nil || n != []int{2, 0, 0}[i] {
			t.Errorf("at %v: %d, %v", now, n, err)
		}
	}
	var got string
	if err := pool.QueryRow(t.Context(), `SELECT string_agg(profile_id || ',' || s1, ' ' ORDER BY seq) FROM das_event`).Scan(&got); err != nil {
		t.Fatal(err)
	}
	want := p.Key(id) + ",event 1 p.aaaaaaaaaaaaaaaaaaaaaaaa,event 2 ," + p.Key(id)
	if got != want || strings.Contains(got, id) || p.Key(p.Key(id)) != p.Key(id) || p.Keyed(id) || das.NewProfiles([]byte(strings.Repeat("x", 32))).Key(id) == p.Key(id) {
		t.Errorf("%q, want %q", got, want)
	}
	var left int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM das_unkeyed`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d days are left, %v", left, err)
	}
}

// The lock of the archive is one for all processes, is known to be lost with its connection, and goes with it.
func TestArchiveLock(t *testing.T) {
	pool := pgtest.New(t)
	s := Open(pool)
	inside, next := make(chan struct{}), make(chan error, 1)
	err := s.Locked(t.Context(), func(held func(context.Context) error) error {
		go func() {
			close(inside)
			next <- s.Locked(t.Context(), func(func(context.Context) error) error { return nil })
		}()
		<-inside
		if err := held(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case err := <-next:
			t.Errorf("two hold the lock, %v", err)
		default:
		}
		if _, err := pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = $1
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, archiveLock); err != nil {
			t.Error(err)
		}
		if err := testwait.For(t, next, "the next holder"); err != nil {
			t.Error(err)
		}
		if err := held(t.Context()); err == nil {
			t.Error("the lock counts as held without its connection")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
