package daspg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// batch makes the events first to last of one boot.
func batch(id thing.ID, boot string, first, last uint64) das.Item {
	it := das.Item{Thing: id}
	for seq := first; seq <= last; seq++ {
		it.Events = append(it.Events, events.Event{
			Source: "test", TS: noon.UnixMilli(), Seq: seq, Level: events.Info, RobotID: id.Serial(), RobotVersion: "2.0.1.6091", BootID: boot,
			Name: "robot.power_on", S1: fmt.Sprint("event ", seq), I1: events.Num(int64(seq)), UptimeMS: int64(seq),
		})
	}
	return it
}

func count(t testing.TB, pool *pgxpool.Pool) (rows, distinct int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT count(*), count(DISTINCT (thing, boot_id, seq)) FROM das_event`).Scan(&rows, &distinct); err != nil {
		t.Fatal(err)
	}
	return rows, distinct
}

func TestCommitOnce(t *testing.T) {
	pool := pgtest.New(t)
	s := Open(pool)
	a, b := thing.MustParse("vic:00e20100"), thing.MustParse("vic:00e20101")
	for _, tc := range []struct {
		name          string
		items         []das.Item
		stored, known int
	}{
		{"first", []das.Item{batch(a, "b1", 1, 10), batch(b, "b1", 1, 5)}, 15, 0},
		{"again", []das.Item{batch(a, "b1", 1, 10)}, 0, 10},
		{"overlapping", []das.Item{batch(a, "b1", 6, 15), batch(b, "b1", 9, 9)}, 6, 5},
		{"filling a gap", []das.Item{batch(b, "b1", 1, 12)}, 6, 6},
		{"twice in one group", []das.Item{batch(a, "b1", 16, 20), batch(a, "b1", 18, 22)}, 7, 3},
		{"another boot", []das.Item{batch(a, "b2", 1, 3)}, 3, 0},
	} {
		out, err := s.Commit(t.Context(), das.Group{Received: noon, Items: tc.items}, das.Raw{Key: "k"})
		if err != nil || out.Stored != tc.stored || out.Known != tc.known {
			t.Errorf("%s: %+v, %v; want %d stored, %d known", tc.name, out, err, tc.stored, tc.known)
		}
	}
	if rows, distinct := count(t, pool); rows != 37 || distinct != 37 {
		t.Errorf("%d rows, %d distinct; want 37", rows, distinct)
	}
	var seqs string
	if err := pool.QueryRow(t.Context(), `SELECT seqs::text FROM das_range WHERE thing = $1 AND boot_id = 'b1'`, string(a)).Scan(&seqs); err != nil || seqs != "{[1,23)}" {
		t.Errorf("ranges %s, %v", seqs, err)
	}
}

func TestCommitGaps(t *testing.T) {
	s := Open(pgtest.New(t))
	a, b := thing.MustParse("vic:00e20100"), thing.MustParse("vic:00e20101")
	holes := das.Item{Thing: a}
	for seq := uint64(0); len(holes.Events) <= das.MaxSpans; seq += 2 {
		holes.Events = append(holes.Events, batch(a, "b1", seq, seq).Events...)
	}
	out, err := s.Commit(t.Context(), das.Group{Received: noon, Items: []das.Item{holes, batch(b, "b1", 1, 3)}}, das.Raw{Key: "k"})
	if err != nil || out.Stored != 3 || out.Refused[1] != nil || errs.CodeOf(out.Refused[0]) != "gaps" {
		t.Errorf("%+v, %v; want the robot with holes refused alone", out, err)
	}
}

// Several processes are given overlapping batches of the same boots at the same time, some of which are cancelled in the middle: no event
// twice, none lost (issue 2, "what must hold" 4).
func TestCommitConcurrently(t *testing.T) {
	pool := pgtest.New(t)
	const robots, perRobot, workers = 4, 400, 8
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var want atomic.Int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	told := map[string]bool{} // acknowledged as stored
	for w := range workers {
		wg.Go(func() {
			s := Open(pool) // a process of its own
			rnd := rand.New(rand.NewPCG(seed, uint64(w)))
			for range 30 {
				var g das.Group
				g.Received = noon
				for _, r := range rnd.Perm(robots)[:1+rnd.IntN(robots)] {
					first := uint64(rnd.IntN(perRobot))
					g.Items = append(g.Items, batch(thing.MustParse(fmt.Sprint("vic:", r)), "b", first, min(first+uint64(rnd.IntN(60)), perRobot)))
				}
				ctx, cancel := context.WithCancel(t.Context())
				if rnd.IntN(4) == 0 {
					time.AfterFunc(time.Duration(rnd.IntN(3000))*time.Microsecond, cancel)
				}
				out, err := s.Commit(ctx, g, das.Raw{Key: fmt.Sprint(w)})
				cancelled := ctx.Err() != nil
				cancel()
				if err != nil {
					if !cancelled {
						t.Errorf("commit: %v", err)
					}
					continue
				}
				want.Add(int64(out.Stored))
				mu.Lock()
				for _, it := range g.Items {
					for _, e := range it.Events {
						told[fmt.Sprint(it.Thing, e.Seq)] = true
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	rows, distinct := count(t, pool)
	if rows != distinct || rows < len(told) {
		t.Errorf("%d rows, %d distinct, %d told as stored", rows, distinct, len(told))
	}
	recs, err := pool.Query(t.Context(), `SELECT thing || seq FROM das_event`)
	if err != nil {
		t.Fatal(err)
	}
	have, err := pgx.CollectRows(recs, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range have {
		delete(told, k)
	}
	if len(told) != 0 {
		t.Errorf("told as stored, but not there: %v", told)
	}
}

func TestUnstorableIsInvalid(t *testing.T) {
	s := Open(pgtest.New(t))
	it := batch("vic:1", "b1", 1, 2)
	it.Events[1].S1 = "NUL \x00" // the codec refuses it; the store must not call it an outage
	_, err := s.Commit(t.Context(), das.Group{Received: noon, Items: []das.Item{it}}, das.Raw{Key: "k"})
	if errs.KindOf(err) != errs.Invalid {
		t.Errorf("err = %v (%v); want Invalid", err, errs.KindOf(err))
	}
}

func TestPartitions(t *testing.T) {
	pool := pgtest.New(t)
	s := Open(pool)
	if err := s.EnsurePartitions(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	if err := Open(pool).EnsurePartitions(t.Context(), noon); err != nil {
		t.Fatalf("again: %v", err)
	}
	for d, boot := range []string{"b0", "b1", "b2"} {
		if _, err := s.Commit(t.Context(), das.Group{Received: noon.AddDate(0, 0, d), Items: []das.Item{batch("vic:1", boot, 1, 5)}}, das.Raw{Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	dropped, err := s.DropOlder(t.Context(), noon.AddDate(0, 0, 1))
	if err != nil || !slices.Equal(dropped, []string{"das_event_20261120", "das_event_20261121"}) {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	var rows, ranges, groups int
	if err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM das_event), (SELECT count(*) FROM das_range), (SELECT count(*) FROM das_group)`).Scan(&rows, &ranges, &groups); err != nil {
		t.Fatal(err)
	}
	if rows != 10 || ranges != 3 || groups != 2 { // a range outlives its events
		t.Errorf("left %d events, %d ranges, %d groups; want 10, 3, 2", rows, ranges, groups)
	}
	// Another process dropped a day that this one knows: the robots wait once, then it is made again.
	if _, err := pool.Exec(t.Context(), `DROP TABLE das_event_20261122`); err != nil {
		t.Fatal(err)
	}
	s.days["20261122"] = true
	g := das.Group{Received: noon.AddDate(0, 0, 1), Items: []das.Item{batch("vic:2", "b", 1, 1)}}
	if _, err := s.Commit(t.Context(), g, das.Raw{Key: "k"}); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("commit without a partition: %v; want Unavailable", err)
	}
	if _, err := s.Commit(t.Context(), g, das.Raw{Key: "k"}); err != nil {
		t.Error(err)
	}
	// Months later the robot sends the same again: what was dropped with its day stays known (VEC-DAS-09), until the range ends too.
	later := das.Group{Received: noon.AddDate(0, 6, 0), Items: []das.Item{batch("vic:1", "b0", 1, 6)}}
	if out, err := s.Commit(t.Context(), later, das.Raw{Key: "k"}); err != nil || out.Stored != 1 || out.Known != 5 {
		t.Errorf("months later: %+v, %v; want 1 stored, 5 known", out, err)
	}
	if _, err := s.DropOlder(t.Context(), noon.AddDate(0, 6, 1).Add(rangeLife)); err != nil { // each day goes, and each range
		t.Fatal(err)
	}
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM das_range`).Scan(&ranges); err != nil || ranges != 0 {
		t.Errorf("%d ranges left, %v; want 0", ranges, err)
	}
}

func TestMoveRaw(t *testing.T) {
	s := Open(pgtest.New(t))
	for _, key := range []string{"k1", "k2"} {
		if _, err := s.Commit(t.Context(), das.Group{Received: noon, Items: []das.Item{batch("vic:1", key, 1, 1)}}, das.Raw{Key: key, Body: []byte(key)}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	put := func(_ context.Context, key string, body []byte) error {
		got = append(got, key+"="+string(body))
		return nil
	}
	if moved, err := s.MoveRaw(t.Context(), func(context.Context, string, []byte) error { return errors.New("down") }); err == nil || moved {
		t.Errorf("put failed, but MoveRaw = %v, %v", moved, err)
	}
	for _, want := range []bool{true, true, false} {
		if moved, err := s.MoveRaw(t.Context(), put); err != nil || moved != want {
			t.Errorf("MoveRaw = %v, %v; want %v", moved, err, want)
		}
	}
	if !slices.Equal(got, []string{"k1=k1", "k2=k2"}) {
		t.Errorf("moved %v", got)
	}
}

func TestList(t *testing.T) {
	s := Open(pgtest.New(t))
	a, b := thing.MustParse("vic:00e20100"), thing.MustParse("amigo:7")
	full := batch(a, "b1", 1, 1)
	full.Events[0] = events.Event{Source: "s", TS: 5, Seq: 1, Level: events.Error, RobotID: a.Serial(), RobotVersion: "v", BootID: "b1", ProfileID: "p", FeatureType: "f",
		FeatureRunID: "r", BLEConnID: "ble", WifiConnID: "wifi", Name: "robot.crash", S1: "1", S2: "2", S3: "3", S4: "4", I1: events.Num(0), I4: events.Num(-4), UptimeMS: 9, Unsynced: true}
	for i, it := range []das.Item{full, batch(a, "b1", 2, 5), batch(b, "b1", 1, 3)} {
		if _, err := s.Commit(t.Context(), das.Group{Received: noon.Add(time.Duration(i) * time.Second), Items: []das.Item{it}}, das.Raw{Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	seqs := func(recs []das.Record) string {
		var out []string
		for _, r := range recs {
			out = append(out, fmt.Sprint(r.Thing.Species(), r.Seq))
		}
		return strings.Join(out, " ")
	}
	all, err := s.List(t.Context(), das.Filter{}, 100, das.Cursor{})
	if err != nil || seqs(all) != "amigo3 amigo2 amigo1 vic5 vic4 vic3 vic2 vic1" {
		t.Fatalf("all: %s, %v", seqs(all), err)
	}
	if got := all[7]; got.Event != full.Events[0] || got.Thing != a || !got.Received.Equal(noon) {
		t.Errorf("got  %+v\nwant %+v", got.Event, full.Events[0])
	}
	for _, tc := range []struct {
		name   string
		f      das.Filter
		before das.Cursor
		want   string
	}{
		{"thing", das.Filter{Thing: a}, das.Cursor{}, "vic5 vic4 vic3"},
		{"event", das.Filter{Event: "robot.cr"}, das.Cursor{}, "vic1"},
		{"event is no pattern", das.Filter{Event: "robot%"}, das.Cursor{}, ""},
		{"since", das.Filter{Since: noon.Add(2 * time.Second)}, das.Cursor{}, "amigo3 amigo2 amigo1"},
		{"next page", das.Filter{}, all[1].Cursor(), "amigo1 vic5 vic4"},
	} {
		got, err := s.List(t.Context(), tc.f, 3, tc.before)
		if err != nil || seqs(got) != tc.want {
			t.Errorf("%s: %s, %v; want %s", tc.name, seqs(got), err, tc.want)
		}
	}
}

// A commit that began earlier and ends later than another must not be passed over by a tail.
func TestChangesWaitsForSlowCommits(t *testing.T) {
	pool := pgtest.New(t)
	s := Open(pool)
	if err := s.EnsurePartitions(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	pos, err := s.Position(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	slow, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Rollback(context.WithoutCancel(t.Context())) }() // committed below
	if _, err := commit(t.Context(), slow, das.Group{Received: noon, Items: []das.Item{batch("vic:1", "b", 1, 1)}}, das.Raw{Key: "slow"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), das.Group{Received: noon, Items: []das.Item{batch("vic:2", "b", 1, 1)}}, das.Raw{Key: "fast"}); err != nil {
		t.Fatal(err)
	}
	recs, pos, more, err := s.Changes(t.Context(), das.Filter{}, pos)
	if err != nil || more || len(recs) != 0 {
		t.Errorf("before the slow commit: %v, more %v, %v; want nothing yet", recs, more, err)
	}
	if err := slow.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	recs, pos, _, err = s.Changes(t.Context(), das.Filter{}, pos)
	if err != nil || len(recs) != 2 || recs[0].Thing != "vic:1" {
		t.Errorf("after it: %v, %v; want both", recs, err)
	}
	if recs, _, _, err = s.Changes(t.Context(), das.Filter{}, pos); err != nil || len(recs) != 0 {
		t.Errorf("once more: %v, %v; want nothing", recs, err)
	}
}

func TestTail(t *testing.T) {
	s := Open(pgtest.New(t))
	put := func(id thing.ID, first, last uint64) {
		t.Helper()
		if _, err := s.Commit(t.Context(), das.Group{Received: time.Now(), Items: []das.Item{batch(id, "b", first, last)}}, das.Raw{Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	put("vic:1", 1, 3)
	svc := das.NewService(s)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = s.Listen(ctx, quietLog, svc.Wake) }) // nil when ctx ends
	got := make(chan das.Record)
	wg.Go(func() {
		err := svc.Tail(ctx, das.Filter{Thing: "vic:1", Since: time.Now().Add(-time.Hour)}, func(r das.Record) error {
			select {
			case got <- r:
			case <-ctx.Done():
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Tail = %v", err)
		}
	})
	next := func(want uint64) {
		t.Helper()
		select {
		case r := <-got:
			if r.Thing != "vic:1" || r.Seq != want {
				t.Fatalf("got %s %d; want vic:1 %d", r.Thing, r.Seq, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("no event %d", want)
		}
	}
	next(1)
	next(2)
	next(3)
	put("vic:2", 1, 1)
	put("vic:1", 3, 5) // 3 is known
	next(4)
	next(5)
}
