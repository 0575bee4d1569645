package daspg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

// rollAll adds everything to the sums.
func rollAll(t testing.TB, s *Store) {
	t.Helper()
	for {
		r, err := s.Roll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Groups == 0 {
			return
		}
	}
}

// unequal counts rows in which the sums differ from a plain aggregation of the events.
func unequal(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	const class = `CASE WHEN event = 'robot.crash' THEN 'crash' WHEN event = 'robot.fault_code' THEN 'fault/' || i1 WHEN event = 'battery.low' OR event = 'battery.periodic_log' AND s1 = 'low' THEN 'battery.low'
		WHEN event = 'wakeword.triggered' THEN 'voice.heard' WHEN event = 'robot.intent' AND s3 = 'voice' OR event = 'behavior.voice_command.dropped' AND s1 = 'reserved' THEN 'voice.done'
		WHEN event = 'behavior.voice_command.dropped' AND s2 IS NULL THEN 'voice.lost' WHEN level = 'error' THEN 'level.failure' END`
	const version = `CASE WHEN event = 'robot.crash' AND s3 IS NOT NULL THEN s3 ELSE robot_version END`
	var plain []string
	for every, slot := range map[string]string{"3600": "hour", "86400": "day"} {
		for _, c := range []string{`''`, class} {
			plain = append(plain, `SELECT `+every+`, date_trunc('`+slot+`', received, 'UTC'), thing, `+version+`, `+c+`, count(*) FROM das_event WHERE `+c+` IS NOT NULL GROUP BY 1, 2, 3, 4, 5`)
		}
	}
	robots := plain[0] + ` UNION ALL ` + plain[1] + ` UNION ALL ` + plain[2] + ` UNION ALL ` + plain[3]
	const names = `SELECT date_trunc('minute', received, 'UTC'), robot_version, event, count(*) FROM das_event GROUP BY 1, 2, 3`
	for _, two := range [][2]string{{`SELECT every, at, thing, version, class, n FROM das_robot`, robots}, {`SELECT at, version, event, n FROM das_name`, names},
		{`SELECT at, version, robots FROM das_heard WHERE robots <> 0`, `SELECT at, version, count(*) FROM das_robot WHERE every = 3600 AND class = '' GROUP BY 1, 2`}} {
		var d int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM ((`+two[0]+` EXCEPT ALL (`+two[1]+`)) UNION ALL ((`+two[1]+`) EXCEPT ALL `+two[0]+`)) AS d`).Scan(&d); err != nil {
			t.Fatal(err)
		}
		n += d
	}
	return n
}

// somethingHappens makes an event of a robot at random.
func somethingHappens(rnd *rand.Rand, e *events.Event) {
	e.RobotVersion = []string{"2.0.0", "2.0.1"}[rnd.IntN(2)]
	e.Name = []string{"robot.power_on", "robot.crash", "robot.fault_code", "battery.periodic_log", "battery.low", "wakeword.triggered", "robot.intent", "behavior.voice_command.dropped", "log.error"}[rnd.IntN(9)]
	e.S1, e.I1 = []string{"low", "nominal", "agentd"}[rnd.IntN(3)], events.Num(int64(800+rnd.IntN(3)))
	switch e.Name {
	case "robot.crash":
		e.S3 = []string{"", "1.9.9", "2.0.0"}[rnd.IntN(3)]
	case "robot.intent":
		e.S3 = []string{"voice", "cloud"}[rnd.IntN(2)]
	case "behavior.voice_command.dropped":
		e.S1, e.S2 = []string{"reserved", "unmatched"}[rnd.IntN(2)], []string{"", "imperative_dance"}[rnd.IntN(2)]
	case "log.error":
		e.Level = events.Error
	}
}

// The sums equal a plain aggregation of the events, whatever came: batches again and overlapping, with gaps and clocks that lie, late, by several processes while others sum up, erasures of a
// robot's stretch of time in between, and commits of a release that knows no sums (issue 18, "what must hold" 3).
func TestSumsEqualEvents(t *testing.T) {
	pool := pgtest.New(t)
	seed, rounds := uint64(18), 3
	if os.Getenv("KENNEL_SOAK") != "" {
		seed, rounds = rand.Uint64(), 60
	}
	t.Logf("seed %d", seed)
	robots := []thing.ID{"vic:0", "vic:1", "vic:2", "vic:3"}
	for round := range rounds {
		done := make(chan struct{})
		var writers, others sync.WaitGroup
		for w := range 3 {
			writers.Go(func() {
				s, rnd := Open(pool), rand.New(rand.NewPCG(seed, uint64(10*round+w)))
				for range 12 {
					g := das.Group{Received: noon.Add(time.Duration(rnd.IntN(60)) * time.Hour)}
					for _, r := range rnd.Perm(len(robots))[:1+rnd.IntN(3)] {
						first := uint64(rnd.IntN(200))
						it := batch(robots[r], fmt.Sprint("boot", round), first, first+uint64(rnd.IntN(40)))
						for i := range it.Events { // what an event says depends on its number, so that it says the same when it comes again
							e := &it.Events[i]
							somethingHappens(rand.New(rand.NewPCG(e.Seq, uint64(100*round+r))), e)
							e.TS = int64(rnd.IntN(2)) * noon.UnixMilli()
						}
						g.Items = append(g.Items, it)
					}
					if _, err := s.Commit(t.Context(), g, das.Raw{Key: "k"}); err != nil && errs.KindOf(err) != errs.Unavailable {
						t.Errorf("commit: %v", err)
					}
				}
			})
		}
		others.Go(func() {
			s := Open(pool)
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := s.Roll(t.Context()); err != nil {
					t.Errorf("roll: %v", err)
				}
			}
		})
		others.Go(func() {
			s, rnd := Open(pool), rand.New(rand.NewPCG(seed, uint64(10*round+9)))
			for {
				select {
				case <-done:
					return
				default:
				}
				since := noon.Add(time.Duration(rnd.IntN(60)) * time.Hour)
				of := thing.Stretch{Thing: robots[rnd.IntN(len(robots))], Since: since, Until: since.Add(6 * time.Hour)}
				if err := s.EraseEvents(t.Context(), of, func(context.Context, int) error { return nil }); err != nil && errs.KindOf(err) != errs.Unavailable {
					t.Errorf("erase: %v", err)
				}
			}
		})
		writers.Wait()
		close(done)
		others.Wait()
		s := Open(pool)
		rollAll(t, s)
		if n := unequal(t, pool); n != 0 {
			t.Fatalf("round %d: %d rows differ", round, n)
		}
		// An erasure may forget what a robot had, and nothing may be there that no event says.
		var wrong int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM das_last AS l WHERE NOT EXISTS (SELECT FROM das_robot AS r WHERE every = 3600 AND (r.thing, r.version, r.class) = (l.thing, l.version, l.class) AND l.last >= r.at AND l.last < r.at + interval '1 hour')`).Scan(&wrong); err != nil || wrong != 0 {
			t.Errorf("%d latest events that are in no sum, %v", wrong, err)
		}
		if rows, distinct := count(t, pool); rows == 0 || rows != distinct {
			t.Fatalf("%d events, %d distinct", rows, distinct)
		}
	}
	// A person who had every robot all the time leaves nothing.
	s := Open(pool)
	for _, id := range robots {
		if err := s.EraseEvents(t.Context(), thing.Stretch{Thing: id, Since: noon, Until: noon.AddDate(0, 1, 0)}, func(context.Context, int) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	var left int
	if err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM das_robot) + (SELECT count(*) FROM das_name) + (SELECT count(*) FROM das_last)`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows are left, %v", left, err)
	}
}

// A robot that sends the same on two days counts once over both; a cohort has its own robots alone; a crash counts for the version that crashed.
func TestTallies(t *testing.T) {
	pool := pgtest.New(t)
	s := Open(pool)
	commit := func(at time.Time, id thing.ID, boot, name, s3 string) {
		t.Helper()
		it := batch(id, boot, 1, 2)
		it.Events[1].Name, it.Events[1].S3 = name, s3
		if _, err := s.Commit(t.Context(), das.Group{Received: at, Items: []das.Item{it}}, das.Raw{Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	const version, before = "2.0.1.6091", "2.0.0"
	next := noon.AddDate(0, 0, 1)
	commit(noon, rex, "a", "robot.crash", "")
	commit(next, rex, "b", "robot.crash", before)
	commit(next, ada, "a", "robot.power_on", "")
	rollAll(t, s)
	tally := func(at time.Time, version string, class das.Class, robots, slots int, n int64) das.Tally {
		return das.Tally{At: at, Version: version, Class: class, Robots: robots, Slots: slots, Events: n}
	}
	day := noon.Truncate(das.Day)
	zero := time.Unix(0, 0).UTC()
	of := das.Slots{Every: das.Day, Since: day, Until: day.Add(2 * das.Day)}
	check := func(what string, got []das.Tally, err error, want ...das.Tally) {
		t.Helper()
		for i := range got {
			got[i].At = got[i].At.UTC()
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", what, got, err, want)
		}
	}
	got, err := s.Tallies(t.Context(), of)
	check("all", got, err, tally(zero, before, das.All, 1, 1, 1), tally(zero, before, das.Crash, 1, 1, 1), tally(zero, version, das.All, 2, 3, 5), tally(zero, version, das.Crash, 1, 1, 1))
	hours, err := s.HourSums(t.Context(), next.Add(-das.Hour).Truncate(das.Hour))
	if err != nil || len(hours) != 1 || !hours[0].At.Equal(next.Truncate(das.Hour)) || hours[0].Robots != 3 || hours[0].Crashes != 1 { // rex ran two versions
		t.Errorf("hours %+v, %v", hours, err)
	}
	mid, two := day.Add(das.Day), of
	two.Since = mid
	now, was, whole, err := s.Compare(t.Context(), of, mid)
	for _, part := range []struct {
		name string
		got  []das.Tally
		of   das.Slots
	}{{"now", now, two}, {"was", was, das.Slots{Every: das.Day, Since: day, Until: mid}}, {"whole", whole, das.Slots{Every: das.Day, Since: mid, Until: of.Until, Whole: true}}} {
		want, werr := s.Tallies(t.Context(), part.of)
		for i := range want {
			want[i].At = want[i].At.UTC()
		}
		check(part.name, part.got, errors.Join(err, werr), want...)
		if len(want) == 0 {
			t.Errorf("%s: nothing to compare", part.name)
		}
	}
	of.Things = []thing.ID{ada}
	got, err = s.Tallies(t.Context(), of)
	check("one", got, err, tally(zero, version, das.All, 1, 1, 2))
	// The first day expires. Its robots go, its sums stay, for the cohort too.
	cohorts := func(context.Context) (map[string][]thing.ID, error) {
		return map[string][]thing.ID{"adas": {ada}, "rexes": {rex}, "none": {}}, nil
	}
	for range 2 { // again: nothing changes
		if err := s.ForgetRobots(t.Context(), next.Add(das.Day), day.Add(das.Day), cohorts); err != nil {
			t.Fatal(err)
		}
	}
	of.Things = nil
	got, err = s.Course(t.Context(), of, "")
	check("course", got, err, tally(day, version, das.All, 1, 1, 2), tally(day, version, das.Crash, 1, 1, 1),
		tally(day.Add(das.Day), before, das.All, 1, 1, 1), tally(day.Add(das.Day), before, das.Crash, 1, 1, 1), tally(day.Add(das.Day), version, das.All, 2, 2, 3))
	of.Things = []thing.ID{rex}
	got, err = s.Course(t.Context(), of, "rexes")
	check("course of a cohort", got, err, tally(day, version, das.All, 1, 1, 2), tally(day, version, das.Crash, 1, 1, 1),
		tally(day.Add(das.Day), before, das.All, 1, 1, 1), tally(day.Add(das.Day), before, das.Crash, 1, 1, 1), tally(day.Add(das.Day), version, das.All, 1, 1, 1))
	var left int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM das_robot WHERE every = 3600`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d hours are left, %v", left, err)
	}
}

// Windows end now and begin at any minute: a crash counts for as long as the window is long, whatever the hour of the clock (issue 27, item 13).
func TestRecent(t *testing.T) {
	pool := pgtest.New(t)
	s := Open(pool)
	commit := func(at time.Time, id thing.ID, boot, name string, n uint64) {
		t.Helper()
		it := batch(id, boot, 1, n)
		for i := range it.Events {
			it.Events[i].Name = name
		}
		if _, err := s.Commit(t.Context(), das.Group{Received: at, Items: []das.Item{it}}, das.Raw{Key: "k"}); err != nil {
			t.Fatal(err)
		}
		rollAll(t, s)
	}
	now := noon.Truncate(das.Hour).Add(30 * time.Second) // just after the hour
	crashed := now.Add(-7 * time.Minute)
	commit(now.Add(-50*time.Minute), rex, "a", "log.error", 3)
	commit(crashed, rex, "b", "robot.crash", 1)
	commit(now.Add(-time.Minute), ada, "c", "log.error", 2)
	commit(now.Add(-80*time.Minute), ada, "d", "log.error", 4) // late
	const version = "2.0.1.6091"
	of := []das.EventSince{{Event: "log.error", Since: now.Add(-das.Hour).Truncate(time.Minute)}, {Event: "log.error", Since: now.Add(-2 * das.Hour).Truncate(time.Minute)}}
	got, err := s.Recent(t.Context(), now, 2*das.Hour, of)
	slices.SortFunc(got.Ages, func(a, b das.Age) int { return cmp.Or(cmp.Compare(a.Class, b.Class), a.Minutes-b.Minutes) })
	age := func(class das.Class, minutes int) das.Age {
		return das.Age{Species: "vic", Version: version, Class: class, Minutes: minutes, Robots: 1}
	}
	if want := []das.Age{age(das.All, 1), age(das.All, 7), age(das.Crash, 7)}; err != nil || !slices.Equal(got.Ages, want) {
		t.Errorf("ages %+v, %v; want %+v", got.Ages, err, want)
	}
	var heard []string
	slices.SortFunc(got.Heard, func(a, b das.Heard) int { return a.At.Compare(b.At) })
	for _, h := range got.Heard {
		heard = append(heard, fmt.Sprintf("%s %s %d", h.At.UTC().Format("15:04"), h.Version, h.Robots))
	}
	if want := []string{"10:00 " + version + " 1", "11:00 " + version + " 2"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
	for _, e := range got.Events {
		if want := map[bool]int64{true: 5, false: 9}[e.Since.Equal(of[0].Since)]; e.N != want || e.Event != "log.error" || e.Version != version {
			t.Errorf("%+v, want %d", e, want)
		}
	}
	if len(got.Events) != 2 {
		t.Errorf("%d counts of events", len(got.Events))
	}
	if got, err = s.Recent(t.Context(), crashed.Add(das.Hour+time.Second), das.Hour, nil); err != nil || slices.ContainsFunc(got.Ages, func(a das.Age) bool { return a.Class == das.Crash }) {
		t.Errorf("an hour after the crash: %+v, %v", got.Ages, err)
	}
	if err := s.EraseEvents(t.Context(), thing.Stretch{Thing: rex, Since: crashed.Add(-time.Hour), Until: now}, func(context.Context, int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got, err = s.Recent(t.Context(), now, das.Hour, of); err != nil || len(got.Ages) != 1 || got.Ages[0].Minutes != 1 {
		t.Errorf("after the erasure: %+v, %v", got.Ages, err)
	}
}
