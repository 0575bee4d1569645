package registrypg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/api/envelope"
	"kennel/infra/api/status"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const vic = thing.ID("vic:00e20100")

var quiet = slog.New(slog.DiscardHandler)

func open(t testing.TB) (*registry.Service, *Store) {
	s := New(pgtest.New(t), quiet)
	return registry.New(s, s, registry.Sources{}, quiet), s
}

func online(boot string, connect, seq uint64, lease time.Duration) status.Message {
	return status.Message{V: 1, State: status.Online, BootID: boot, ConnectSeq: connect, Seq: seq, Lease: envelope.Millis(lease), TS: time.Now().UnixMilli(),
		Agent: "1.2.3", Problems: []string{"a zero \x00 and a quote '"}}
}

func send(t testing.TB, svc *registry.Service, id thing.ID, m status.Message) {
	t.Helper()
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	svc.HandleStatus(t.Context(), id, b, nil)
}

func get(t testing.TB, svc *registry.Service, id thing.ID) registry.Thing {
	t.Helper()
	th, err := svc.Thing(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

func TestRegisteredThingIsAbsent(t *testing.T) {
	svc, _ := open(t)
	if _, err := svc.Thing(t.Context(), vic); errs.KindOf(err) != errs.NotFound {
		t.Fatalf("before: %v, want not found", err)
	}
	for range 2 { // known is known
		if err := svc.Record(t.Context(), registry.Step{Thing: vic, Name: registry.StepRegister, OK: true}); err != nil {
			t.Fatal(err)
		}
	}
	th := get(t, svc, vic)
	if th.Presence != registry.Absent || !th.Since.IsZero() || th.Status != nil || th.Species != thing.Vector || th.Serial != "00e20100" {
		t.Errorf("got %+v", th)
	}
	b, err := json.Marshal(th)
	if err != nil || !strings.HasPrefix(string(b), `{"thing":"vic:00e20100",`) || !strings.Contains(string(b), `"presence":"absent"`) {
		t.Errorf("JSON %s, %v", b, err)
	}
}

// TestForget (30.5): a thing that is forgotten is in no list and in no count, and may come back.
func TestForget(t *testing.T) {
	svc, store := open(t)
	send(t, svc, vic, online("b1", 1, 1, time.Minute))
	if _, err := svc.Tag(t.Context(), vic, []string{"self-test"}, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := svc.Forget(t.Context(), vic); err != nil {
			t.Fatal(err)
		}
	}
	all, err := svc.Things(t.Context(), registry.Query{})
	n, err2 := svc.Counts(t.Context(), filter.Filter{})
	words := 0
	err3 := store.pool.QueryRow(t.Context(), `SELECT count(*) FROM registry_words`).Scan(&words)
	if len(all)+n.Total+words > 0 || errors.Join(err, err2, err3) != nil {
		t.Errorf("left: %v, %+v, %d words, %v", all, n, words, errors.Join(err, err2, err3))
	}
	send(t, svc, vic, online("b2", 1, 1, time.Minute))
	if th := get(t, svc, vic); th.Presence != registry.Present || len(th.Tags) > 0 {
		t.Errorf("back as %+v", th)
	}
}

// TestOnline (30.5): a robot that is not connected is reported with since when, and whether it was revoked.
func TestOnline(t *testing.T) {
	store := New(pgtest.New(t), quiet)
	var revoked time.Time
	svc := registry.New(store, store, registry.Sources{Certificate: func(context.Context, thing.ID) (registry.Certificate, bool, error) {
		return registry.Certificate{Serial: "1", Revoked: revoked}, true, nil
	}}, quiet)
	if err := svc.Online(t.Context(), vic); errs.KindOf(err) != errs.NotFound {
		t.Errorf("unregistered: %v", err)
	}
	if err := svc.Register(t.Context(), vic); err != nil {
		t.Fatal(err)
	}
	if err := svc.Online(t.Context(), vic); errs.CodeOf(err) != errs.CodeOffline || errs.KindOf(err) != errs.Unavailable {
		t.Errorf("never connected: %v", err)
	}
	send(t, svc, vic, online("b1", 1, 1, time.Minute))
	if err := svc.Online(t.Context(), vic); err != nil {
		t.Errorf("online: %v", err)
	}
	if _, err := store.pool.Exec(t.Context(), `UPDATE registry_thing SET lease_until = now() - interval '1 s'`); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Expire(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	since := get(t, svc, vic).Since
	if err := svc.Online(t.Context(), vic); errs.CodeOf(err) != errs.CodeOffline || !strings.Contains(errs.Public(err), since.UTC().Format("2006-01-02 15:04")) || strings.Contains(errs.Public(err), "revoked") {
		t.Errorf("offline since %v: %v", since, err)
	}
	if !get(t, svc, vic).Revoked { // 30.5: the fleet's table says so
		t.Error("without a certificate it is not shown as revoked")
	}
	if err := svc.SetCertificates(t.Context(), map[thing.ID]time.Time{vic: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if get(t, svc, vic).Revoked {
		t.Error("it is shown as revoked, and has a certificate")
	}
	revoked = time.Now()
	if err := svc.Online(t.Context(), vic); errs.CodeOf(err) != errs.CodeOffline || !strings.Contains(errs.Public(err), "revoked") {
		t.Errorf("revoked: %v", err)
	}
}

func TestStatusMakesPresentAndWillShortens(t *testing.T) {
	svc, store := open(t)
	send(t, svc, vic, online("b1", 7, 1, time.Minute))
	th := get(t, svc, vic)
	if th.Presence != registry.Present || th.Status == nil || th.Status.Agent != "1.2.3" || th.ClockMS < -1000 || th.ClockMS > 1000 {
		t.Fatalf("got %+v", th)
	}
	will := status.Message{V: 1, State: status.Gone, BootID: "b1", ConnectSeq: 6}
	send(t, svc, vic, will) // of an earlier connection
	if l, _, now, err := store.Lease(t.Context(), vic); err != nil || l.Gone || l.Until.Sub(now) < 50*time.Second {
		t.Fatalf("after an old will: %+v, %v", l, err)
	}
	will.ConnectSeq = 7
	send(t, svc, vic, will)
	l, _, now, err := store.Lease(t.Context(), vic)
	if left := l.Until.Sub(now); err != nil || !l.Gone || !l.Present || left > registry.WillGrace || left < 0 {
		t.Fatalf("after the will: %+v, %v", l, err)
	}
	if th := get(t, svc, vic); th.Status == nil || th.Status.State != status.Online {
		t.Errorf("the will replaced the last status: %+v", th.Status)
	}
}

// expire ends a thing's lease now.
func expire(t testing.TB, s *Store, id thing.ID) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), `UPDATE registry_thing SET lease_until = clock_timestamp(), rev = rev + 1 WHERE thing = $1`, id); err != nil {
		t.Fatal(err)
	}
}

// TestFormerNameOfSettings: an AmigoBot with earlier software says vic.RobotSettings and means its own settings; a Vector means what it says.
func TestFormerNameOfSettings(t *testing.T) {
	svc, _ := open(t)
	for id, want := range map[thing.ID]string{vic: "vic.RobotSettings", "amigo:1": "amigo.RobotSettings"} {
		m := online("b1", 1, 1, time.Minute)
		m.Docs, m.Dirty = map[string]uint64{"vic.RobotSettings": 7, "vic.RobotLifetimeStats": 2}, []string{"vic.RobotSettings"}
		send(t, svc, id, m)
		got := get(t, svc, id).Status
		if len(got.Docs) != 2 || got.Docs[want] != 7 || got.Docs["vic.RobotLifetimeStats"] != 2 || !slices.Equal(got.Dirty, []string{want}) {
			t.Errorf("%s: documents %v, dirty %q; want %s", id, got.Docs, got.Dirty, want)
		}
	}
}

func TestSweepByManyCountsOnce(t *testing.T) {
	svc, store := open(t)
	for i := range 40 {
		id := thing.ID(fmt.Sprintf("vic:%04d", i))
		send(t, svc, id, online("b", 1, 1, time.Minute))
		if i%2 == 0 {
			expire(t, store, id)
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	total := 0
	for range 4 {
		wg.Go(func() {
			for range 5 {
				n, err := store.Expire(t.Context(), 7)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				total += n
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	c, err := svc.Count(t.Context())
	if err != nil || total != 20 || c != (registry.Count{Present: 20, Absent: 20}) {
		t.Errorf("%d expired, %+v, %v; want 20 of 40", total, c, err)
	}
	h, err := svc.History(t.Context(), "vic:0000", 10)
	if err != nil || len(h) != 2 || h[0].Present || !h[1].Present {
		t.Errorf("history %+v, %v; want one coming and one going", h, err)
	}
}

func TestRacingStatusesKeepTheNewest(t *testing.T) {
	svc, store := open(t)
	var wg sync.WaitGroup
	for seq := range uint64(20) {
		wg.Go(func() {
			for range 20 { // a lost race is repeated, as a robot's next status would be
				if err := svc.Apply(t.Context(), vic, online("b", 1, seq+1, time.Minute)); err == nil {
					return
				}
			}
			t.Error("never applied")
		})
	}
	wg.Wait()
	l, rev, _, err := store.Lease(t.Context(), vic)
	if err != nil || l.Seq != 20 {
		t.Errorf("%+v, revision %d, %v; want the status with the highest seq", l, rev, err)
	}
	h, err := svc.History(t.Context(), vic, 10)
	if err != nil || len(h) != 1 {
		t.Errorf("history %+v, %v; want one coming", h, err)
	}
}

func TestListPagesAndSearches(t *testing.T) {
	svc, _ := open(t)
	for i := range 5 {
		if err := svc.Register(t.Context(), thing.ID(fmt.Sprintf("vic:a%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	send(t, svc, "pleo:b1", online("b", 1, 1, time.Minute))
	for _, tt := range []struct {
		name string
		q    registry.Query
		want []thing.ID
	}{
		{"all", registry.Query{}, []thing.ID{"pleo:b1", "vic:a0", "vic:a1", "vic:a2", "vic:a3", "vic:a4"}},
		{"page", registry.Query{After: "vic:a0", Limit: 2}, []thing.ID{"vic:a1", "vic:a2"}},
		{"search", registry.Query{Search: "A3"}, []thing.ID{"vic:a3"}},
		{"a wildcard is a letter", registry.Query{Search: "a%"}, nil},
		{"present", registry.Query{Presence: registry.Present}, []thing.ID{"pleo:b1"}},
		{"absent", registry.Query{Presence: registry.Absent, Search: "pleo"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			things, err := svc.Things(t.Context(), tt.q)
			if err != nil {
				t.Fatal(err)
			}
			var got []thing.ID
			for _, th := range things {
				got = append(got, th.ID)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestWatchTellsComingAndGoing(t *testing.T) {
	svc, store := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- svc.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	changes := svc.Watch(ctx)
	next := func(want registry.Presence) time.Duration {
		t.Helper()
		start := time.Now()
		for {
			select {
			case th, ok := <-changes:
				if !ok {
					t.Fatal("cut off")
				}
				if th.ID == vic && th.Presence == want {
					return time.Since(start)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("not told that it is %s", want)
			}
		}
	}
	send(t, svc, vic, online("b", 1, 1, time.Minute))
	t.Logf("present told after %v", next(registry.Present))
	expire(t, store, vic)
	if d := next(registry.Absent); d > 5*2*time.Second {
		t.Errorf("absent told %v after the lease ended; want within a second or so", d)
	} else {
		t.Logf("absent told after %v", d)
	}
}

func TestStepsAreOutcomes(t *testing.T) {
	svc, _ := open(t)
	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond).UTC()
	step := func(minute int, ok bool, code string) {
		t.Helper()
		err := svc.Record(t.Context(), registry.Step{Thing: vic, At: at.Add(time.Duration(minute) * time.Minute), Name: registry.StepEnroll, OK: ok, Code: code,
			Peer: "192.0.2.7:1234", Detail: "bad\x00 words\xff"})
		if err != nil {
			t.Fatal(err)
		}
	}
	step(0, false, "secret_mismatch")
	step(1, false, "secret_mismatch")
	step(2, false, "key_mismatch")
	step(3, false, "secret_mismatch")
	step(4, false, "secret_mismatch")
	got, err := svc.Steps(t.Context(), vic)
	if err != nil || len(got) != 2 {
		t.Fatalf("got %+v, %v; want two outcomes", got, err)
	}
	want := registry.Outcome{Name: "enroll", Code: "secret_mismatch", First: at.Add(3 * time.Minute), Last: at.Add(4 * time.Minute), Times: 2,
		Peer: "192.0.2.7:1234", Detail: "bad words\ufffd"}
	got[0].First, got[0].Last = got[0].First.UTC(), got[0].Last.UTC()
	if got[0] != want {
		t.Errorf("got %+v, want %+v", got[0], want)
	}
	if _, err := svc.Thing(t.Context(), vic); errs.KindOf(err) != errs.NotFound {
		t.Errorf("a refused enrolment made the thing known: %v", err)
	}
	r, err := svc.Doctor(t.Context(), vic)
	if err != nil || r.Level != registry.Fail || r.Checks[0].Name != "registered" || r.Checks[0].Level != registry.Fail {
		t.Errorf("doctor %+v, %v", r, err)
	}
}

// TestStepsOfADelivery: many steps at once are all kept or none, their things known; the certificate that was shown is kept with the outcome.
func TestStepsOfADelivery(t *testing.T) {
	svc, store := open(t)
	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond).UTC()
	const n = 2500
	var all []registry.Step
	for i := range n {
		all = append(all, registry.Step{Thing: thing.ID(fmt.Sprintf("vic:%08x", n-i)), At: at, Name: registry.StepRegister, OK: true, Detail: "with a delivery"})
	}
	again := all[0]
	again.Detail = "twice in one delivery"
	all = append(all, again)
	for range 2 { // a file that is sent again
		if err := svc.RecordAll(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	var things, steps, twice int
	err := store.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM registry_thing), count(*), count(*) FILTER (WHERE times = 2 AND ok AND shown IS NULL AND first = $1) FROM registry_step`, at).
		Scan(&things, &steps, &twice)
	if err != nil || things != n || steps != n || twice != n {
		t.Errorf("%d things and %d steps, %d of them twice, %v; want %d of each", things, steps, twice, err, n)
	}
	if got, err := svc.Steps(t.Context(), again.Thing); err != nil || len(got) != 1 || got[0].Detail != again.Detail {
		t.Errorf("got %+v, %v; want the last one of the delivery", got, err)
	}

	// All or none.
	bad := []registry.Step{{Thing: "vic:new", Name: registry.StepRegister, OK: true}, {Thing: "vic:new", Name: registry.StepRevoke, OK: true}}
	if err := svc.RecordAll(t.Context(), bad); errs.KindOf(err) != errs.Invalid {
		t.Errorf("steps of two kinds: %v", err)
	}
	bad[1] = registry.Step{Thing: "vic:\x00", Name: registry.StepRegister, OK: true} // Postgres keeps no zero byte
	if err := svc.RecordAll(t.Context(), bad); err == nil {
		t.Error("a thing that cannot be kept was kept")
	}
	if _, err := svc.Thing(t.Context(), "vic:new"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("half of a delivery was kept: %v", err)
	}
	if err := svc.RecordAll(t.Context(), nil); err != nil {
		t.Errorf("nothing: %v", err)
	}

	// The refused certificate's data, even if they are nonsense.
	refused := registry.Step{Thing: vic, At: at, Name: registry.StepBroker, Code: "foreign",
		Shown: &registry.ShownCertificate{CN: "vic:\x00" + strings.Repeat("x", 500), Issuer: "Foreign \xff", Serial: "ab12", NotAfter: at}}
	if err := svc.Record(t.Context(), refused); err != nil {
		t.Fatal(err)
	}
	report, err := svc.Doctor(t.Context(), vic)
	if err != nil || report.Refusal == nil || report.Refusal.Shown == nil {
		t.Fatalf("the doctor says %+v, %v; want a refusal with a certificate", report, err)
	}
	if c := *report.Refusal.Shown; len(c.CN) > 80 || !strings.HasPrefix(c.CN, "vic:xxx") || c.Issuer != "Foreign \ufffd" || c.Serial != "ab12" || !c.NotAfter.Equal(at) {
		t.Errorf("shown %+v", c)
	}
	refused.Shown = nil
	if err := svc.Record(t.Context(), refused); err != nil {
		t.Fatal(err)
	}
	if got, err := svc.Steps(t.Context(), vic); err != nil || len(got) != 1 || got[0].Times != 2 || got[0].Shown != nil {
		t.Errorf("after an attempt without a certificate: %+v, %v", got, err)
	}
}

func TestTrimKeepsTheBounds(t *testing.T) {
	svc, store := open(t)
	for i := range registry.MaxSteps + 5 {
		err := svc.Record(t.Context(), registry.Step{Thing: vic, Name: registry.StepBroker, Code: fmt.Sprint("c", i)})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := store.pool.Exec(t.Context(), `INSERT INTO registry_presence (thing, at, present)
		SELECT $1, clock_timestamp() - interval '80 days' + n * interval '1 min', n % 2 = 0 FROM generate_series(1, $2) AS n`, vic, registry.MaxHistory+50)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.pool.Exec(t.Context(), `INSERT INTO registry_presence VALUES ('vic:old', clock_timestamp() - interval '91 days', true)`); err != nil {
		t.Fatal(err)
	}
	if err := store.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	var steps, rows int
	if err := store.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM registry_step), (SELECT count(*) FROM registry_presence)`).Scan(&steps, &rows); err != nil {
		t.Fatal(err)
	}
	if steps != registry.MaxSteps || rows != registry.MaxHistory {
		t.Errorf("%d steps and %d rows of history left, want %d and %d", steps, rows, registry.MaxSteps, registry.MaxHistory)
	}
}

func BenchmarkStatus(b *testing.B) {
	svc, _ := open(b)
	seq := uint64(0)
	for b.Loop() {
		seq++
		if err := svc.Apply(b.Context(), vic, online("b", 1, seq, time.Minute)); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRobotThatCalls (infra/adr/0019): its last call is written at a pace, whatever process asks; a lease ends its calling, and a robot with a
// lease is none that calls.
func TestRobotThatCalls(t *testing.T) {
	svc, store := open(t)
	const id, agent = thing.ID("vic:00e20100"), thing.ID("vic:00e20101")
	seen := func(id thing.ID, version string, pace time.Duration) bool {
		t.Helper()
		made, err := store.Seen(t.Context(), id, version, pace)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	if !seen(id, "1.8.1.6051", time.Minute) || seen(id, "2.0.1.6076", time.Minute) {
		t.Error("want it made by the first call alone")
	}
	first := get(t, svc, id)
	if first.Presence != registry.Calls || first.Facets.Version != "1.8.1.6051" || first.Rev != 1 {
		t.Errorf("%+v: the second call came too soon to count", first)
	}
	seen(id, "2.0.1.6076", 0)
	if th := get(t, svc, id); !th.LastSeen.After(first.LastSeen) || th.Facets.Version != "2.0.1.6076" || th.Rev != 2 {
		t.Errorf("%+v, want it seen again with its new version", th)
	}
	if h, err := svc.History(t.Context(), id, 0); err != nil || len(h) != 0 {
		t.Errorf("history %+v, %v: it neither came nor went", h, err)
	}
	if n, err := store.Expire(t.Context(), 100); err != nil || n != 0 {
		t.Errorf("%d leases ended, %v", n, err)
	}
	send(t, svc, agent, online("b", 1, 1, time.Minute))
	before := get(t, svc, agent)
	seen(agent, "9.9.9", 0)
	if th := get(t, svc, agent); th.Presence != registry.Present || th.Rev != before.Rev || !th.LastSeen.Equal(before.LastSeen) || th.Facets.Version != before.Facets.Version {
		t.Errorf("%+v, want it as it was: %+v", th, before)
	}
	send(t, svc, id, online("b", 1, 1, time.Minute))
	if th := get(t, svc, id); th.Presence != registry.Present {
		t.Errorf("%s with a lease", th.Presence)
	}
}
