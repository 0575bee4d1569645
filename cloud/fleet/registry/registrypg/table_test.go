package registrypg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/api/status"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

// A filter that cannot be asked, as a cohort that it names is gone, selects nothing, negated or not, and says why; robots that are asked for by name come nevertheless.
func TestBriefsOfFilterThatFails(t *testing.T) {
	store := New(pgtest.New(t), quiet)
	away := errs.RetryLater(time.Second, "the database is away", nil)
	svc := registry.New(store, store, registry.Sources{Filter: filter.Sources{Cohort: func(_ context.Context, name string) (filter.Filter, error) {
		switch name {
		case "fine":
			return filter.MustParse("species:vic"), nil
		case "away":
			return filter.Filter{}, away
		}
		return filter.Filter{}, errs.Coded(errs.NotFound, "no_cohort", "there is no cohort %s", name)
	}}}, quiet)
	seed(t, store, 40)
	also := []thing.ID{"vic:00000004"}
	for text, want := range map[string]int{"cohort:fine": 10, "cohort:gone": 0, "-cohort:gone": 0, "cohort:fine,gone": 0, "species:vic -cohort:gone": 0} {
		f := filter.MustParse(text)
		list, err := svc.Briefs(t.Context(), f, also)
		in := 0
		for _, b := range list {
			if b.In {
				in++
			}
		}
		if err != nil || in != want || len(list) != max(want, 1) {
			t.Errorf("%s: %d of %d selected, %v; want %d", text, in, len(list), err, want)
		}
		why, err := svc.Refused(t.Context(), f)
		if err != nil || (why != "") != (want == 0) || want == 0 && !strings.Contains(why, "gone") {
			t.Errorf("%s: refused for %q, %v", text, why, err)
		}
	}
	if _, err := svc.Briefs(t.Context(), filter.MustParse("cohort:away"), also); !errors.Is(err, away) {
		t.Errorf("%v, want the error of the database", err)
	}
	if _, err := svc.Refused(t.Context(), filter.MustParse("cohort:away")); !errors.Is(err, away) {
		t.Errorf("%v, want the error of the database", err)
	}
}

// seed fills the fleet by SQL with n things of mixed kinds, in one go.
func seed(t testing.TB, s *Store, n int) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		// All at once instead of by triggers, row by row.
		if _, err := tx.Exec(t.Context(), `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), `INSERT INTO registry_thing (thing, created, present, since, last_seen, lease_until, status)
			SELECT (ARRAY['vic', 'amigo', 'pleo', 'aibo'])[1 + i % 4] || ':' || lpad(to_hex(i), 8, '0'), now() - i * interval '1 minute', i % 3 = 0,
				CASE WHEN i % 7 > 0 THEN now() - (i % 1000) * interval '1 hour' END, CASE WHEN i % 7 > 0 OR i % 3 = 0 OR i % 2 = 0 THEN now() - (i % 1000) * interval '1 hour' END,
				CASE WHEN i % 3 = 0 THEN now() + interval '1 hour' END,
				CASE WHEN i % 7 > 0 THEN '{"v":1,"state":"online","boot_id":"b","connect_seq":1,"seq":1,"lease_ms":60000,"ts":0,"uptime_ms":1}'::json END
			FROM generate_series(1, $1::int) AS i`, n); err != nil {
			return err
		}
		// The keys of these versions are what filter.VersionKey makes; the tests compare.
		if _, err := tx.Exec(t.Context(), `INSERT INTO registry_facet (thing, created, present, since, seen, fit, os, os_key, agent, agent_key, volts, level, late, loop, model, problems, tags, cert)
			SELECT thing, created, present, coalesce(since, '-infinity'), CASE WHEN present THEN 'infinity' ELSE coalesce(last_seen, '-infinity') END, $1::int, v.os, v.k,
				'1.' || i % 3, CASE i % 3 WHEN 0 THEN 'B1#' ELSE 'B1.B' || i % 3 || '#' END,
				3 + (i % 30) * 0.05, (ARRAY['low', 'nominal', 'full', '', 'unknown'])[1 + i % 5], CASE WHEN i % 4 = 0 THEN -1 ELSE (i % 100) * 10 END,
				CASE WHEN i % 4 = 0 THEN 'none' WHEN (i % 100) * 10 > 500 THEN 'late' ELSE 'ok' END, CASE i % 2 WHEN 0 THEN 'Vector 2.0' ELSE '' END,
				CASE WHEN i % 50 = 0 THEN '{battery,robotd}' WHEN i % 20 = 0 THEN '{loop}' ELSE '{}' END::text[],
				CASE WHEN i % 997 = 0 THEN '{rare}' WHEN i % 10 = 0 THEN '{demo,lab}' ELSE '{}' END::text[],
				CASE WHEN i % 5 = 0 THEN '-infinity' ELSE now() + (i % 400 - 20) * interval '1 day' END
			FROM (SELECT *, ('x' || split_part(thing, ':', 2))::bit(32)::int AS i FROM registry_thing) AS t
				JOIN (VALUES (0, '', ''), (1, '2.0.1.6076', 'B2.A.B1.D6076#'), (2, '2.10.0', 'B2.C10#'), (3, '2.9', 'B2.B9#')) AS v (n, os, k) ON v.n = i % 4`, registry.Fit); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO registry_words (thing, words)
			SELECT thing, lower(concat_ws(E'\n', thing, os, agent, body, model, array_to_string(tags, E'\n'))) FROM registry_facet`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"registry_thing", "registry_facet", "registry_words"} {
		if _, err := s.pool.Exec(t.Context(), "VACUUM ANALYZE "+table); err != nil {
			t.Fatal(err)
		}
	}
}

var sorts = map[registry.Column]func(a, b *filter.Row) int{
	registry.ByID:       func(a, b *filter.Row) int { return 0 },
	registry.ByPresence: func(a, b *filter.Row) int { return cmp.Compare(boolean(a.Present), boolean(b.Present)) },
	registry.BySince:    func(a, b *filter.Row) int { return a.Since.Compare(b.Since) },
	registry.BySeen: func(a, b *filter.Row) int {
		return cmp.Or(cmp.Compare(boolean(a.Present), boolean(b.Present)), cmp.Compare(1-boolean(a.Present), 0)*a.Seen.Compare(b.Seen))
	},
	registry.ByCreated: func(a, b *filter.Row) int { return a.Created.Compare(b.Created) },
	registry.ByVersion: func(a, b *filter.Row) int {
		return cmp.Compare(filter.VersionKey(a.Version), filter.VersionKey(b.Version))
	},
	registry.ByAgent:    func(a, b *filter.Row) int { return cmp.Compare(filter.VersionKey(a.Agent), filter.VersionKey(b.Agent)) },
	registry.ByBody:     func(a, b *filter.Row) int { return cmp.Compare(filter.VersionKey(a.Body), filter.VersionKey(b.Body)) },
	registry.ByBattery:  func(a, b *filter.Row) int { return cmp.Compare(a.Volts, b.Volts) },
	registry.ByLoop:     func(a, b *filter.Row) int { return cmp.Compare(a.Late, b.Late) },
	registry.ByProblems: func(a, b *filter.Row) int { return cmp.Compare(len(a.Problems), len(b.Problems)) },
	registry.ByCert:     func(a, b *filter.Row) int { return a.Cert.Compare(b.Cert) },
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// all reads a selection page by page.
func all(t testing.TB, svc *registry.Service, q registry.Selection) (out []registry.Thing) {
	t.Helper()
	for {
		p, err := svc.Table(t.Context(), q)
		if err != nil {
			t.Fatalf("%s by %s: %v", q.Filter, q.Sort, err)
		}
		out = append(out, p.Things...)
		if p.Next == "" {
			return out
		}
		q.After = p.Next
	}
}

// TestTableAgreesWithMatch: Postgres selects and orders as the rule in memory does, for every key of the language and every
// column, page by page; and the counts count it.
func TestTableAgreesWithMatch(t *testing.T) {
	svc, store := open(t)
	seed(t, store, 300)
	fleet := all(t, svc, registry.Selection{Limit: 250})
	if len(fleet) != 300 {
		t.Fatalf("%d things, want 300", len(fleet))
	}
	terms := []string{"presence:absent", "presence:calls", "-presence:absent,calls", "presence:never,present", "species:vic,pleo", "id:vic:0000*", "id:aibo:00000003", "version:2.9", "version:2.10.0,none", "version:<2.10", "version:>=2.9",
		"version:2.*", "agent:>1.0", "body:none", `model:"Vector 2.0"`, "tag:lab", "tag:none,rare", "tag:any", "battery:<3.5", "battery:low,unknown", "battery:>=4.2,low", "problem:battery,loop",
		"problem:none", "problem:any", "cert:<30d", "cert:expired", "cert:none", "cert:>2027-01-01", "seen:>20d", "seen:<3d", "seen:never", "seen:<2026-01-01", "since:<5d", "created:>2h",
		"created:<1h", "loop:late", "loop:none,>900us", "loop:<200us", "00e", "lab", "2.10", "VECTOR", "%", "_0", `"\\"`, `-lab -"2.1" -rare`, `-"(" -"lab|" -"[a" -zz$ -"a b" -^v -vector.2`}
	rng := rand.New(rand.NewPCG(1, 2))
	columns := slices.Clone(registry.Columns)
	rounds := 2
	if os.Getenv("KENNEL_SOAK") != "" {
		rounds = 40
	}
	for i := range rounds * len(terms) {
		text := terms[i%len(terms)]
		for range min(i/len(terms), 3) {
			more := terms[rng.IntN(len(terms))]
			if rng.IntN(2) == 0 && more[0] != '-' {
				more = "-" + more
			}
			text += " " + more
		}
		f := filter.MustParse(text)
		by := columns[i%len(columns)]
		desc := i/len(columns)%2 == 1
		want := map[thing.ID]bool{}
		now := time.Now()
		for j := range fleet {
			row := fleet[j].Row()
			if f.Match(&row, now) {
				want[row.Thing] = true
			}
		}
		got := all(t, svc, registry.Selection{Filter: f, Sort: by, Desc: desc, Limit: 70})
		for j := range got {
			if !want[got[j].ID] {
				t.Fatalf("%s: Postgres selects %+v", text, got[j].Row())
			}
			if j == 0 {
				continue
			}
			a, b := got[j-1].Row(), got[j].Row()
			if desc {
				a, b = b, a
			}
			if cmp.Or(sorts[by](&a, &b), cmp.Compare(a.Thing, b.Thing)) >= 0 {
				t.Fatalf("%s by %s, desc %v: %+v\nbefore %+v", text, by, desc, got[j-1].Row(), got[j].Row())
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d things, want %d", text, len(got), len(want))
		}
		ids, err := svc.Select(t.Context(), f, 1000)
		if err != nil || len(ids) != len(want) || !slices.IsSorted(ids) {
			t.Fatalf("%s: select %d, %v; want %d in order", text, len(ids), err, len(want))
		}
		n, err := svc.Counts(t.Context(), f)
		if err != nil || n.Total != len(want) || n.Present+n.Absent+n.Calls != n.Total || sum(n.Species) != n.Total || sum(n.Version) != n.Total {
			t.Fatalf("%s: counts %+v, %v; want %d", text, n, err, len(want))
		}
	}
	if _, err := svc.Select(t.Context(), filter.Filter{}, 10); errs.KindOf(err) != errs.Exhausted {
		t.Errorf("more than asked for: %v", err)
	}
}

func sum(list []registry.Bucket) (n int) {
	for _, b := range list {
		n += b.Count
	}
	return n
}

// TestPagesUnderChange: robots that stay come once and all of them, while others come, go and move.
func TestPagesUnderChange(t *testing.T) {
	svc, store := open(t)
	seed(t, store, 120)
	stays := all(t, svc, registry.Selection{Filter: filter.MustParse("presence:absent"), Sort: registry.BySeen, Limit: 1000})
	q := registry.Selection{Sort: registry.BySeen, Limit: 20}
	seen := map[thing.ID]int{}
	for i := 0; ; i++ {
		p, err := svc.Table(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, th := range p.Things {
			seen[th.ID]++
		}
		// One that is new, and one that was present says more.
		send(t, svc, thing.ID(fmt.Sprintf("vic:new%d", i)), online("b", 1, 1, time.Minute))
		expire(t, store, thing.ID(fmt.Sprintf("vic:new%d", i)))
		if err := svc.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.Next == "" {
			break
		}
		q.After = p.Next
	}
	for _, th := range stays {
		if seen[th.ID] != 1 {
			t.Errorf("%s came %d times, want once", th.ID, seen[th.ID])
		}
	}
}

// TestTableRefuses: cursors of other orders and made-up ones.
func TestTableRefuses(t *testing.T) {
	svc, store := open(t)
	seed(t, store, 30)
	p, err := svc.Table(t.Context(), registry.Selection{Sort: registry.BySince, Limit: 5})
	if err != nil || p.Next == "" {
		t.Fatal(p, err)
	}
	bad := registry.Place{Sort: registry.BySince, Key: "yesterday'; --", Thing: "vic:1"}.Cursor()
	for name, q := range map[string]registry.Selection{
		"another order":  {Sort: registry.BySeen, After: p.Next},
		"the other way":  {Sort: registry.BySince, Desc: true, After: p.Next},
		"not ours":       {Sort: registry.BySince, After: "!"},
		"its key is bad": {Sort: registry.BySince, After: bad},
		"no id":          {After: "x"},
		"no column":      {Sort: "colour"},
		"limit":          {Limit: registry.MaxLimit + 1},
	} {
		if _, err := svc.Table(t.Context(), q); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
}

// TestFacetsOfStatus: a robot is found by its own status, at once and after a rule changed.
func TestFacetsOfStatus(t *testing.T) {
	svc, store := open(t)
	m := online("b", 1, 1, time.Minute)
	m.OS, m.Agent = "2.0.1.6076", "1.2.3 \x00é"
	m.Body = &status.Body{Firmware: "3.1", Model: "Vector 2.0", BatteryVolts: 3.512, BatteryLevel: "low", Fault: 914}
	m.Loop = &status.Loop{Steps: 100, Missed: 5, LateP99: 123.4}
	m.Problems = []string{"robotd: the real-time core does not answer", "Body : silent", "words without a kind", "none: x"}
	send(t, svc, vic, m)
	found := func(text string, want bool) {
		t.Helper()
		p, err := svc.Table(t.Context(), registry.Selection{Filter: filter.MustParse(text)})
		if err != nil || len(p.Things) == 1 != want {
			t.Errorf("%s: %d things, %v; want it: %v", text, len(p.Things), err, want)
		}
	}
	all := "version:2.0.1.6076 agent:>=1.2.3 body:3.1 battery:<3.51 battery:low problem:robotd problem:body problem:other problem:fault problem:fault/914,clock/9 -problem:fault/915 problem:loop loop:late loop:>100us 6076 vector"
	found(all, true)
	th := get(t, svc, vic)
	if want := []string{"battery", "body", "fault", "loop", "other", "robotd"}; !slices.Equal(th.Kinds, want) || th.LoopHealth != filter.Late || th.Facets.Agent != "1.2.3 ??" {
		t.Errorf("kinds %v, want %v; %+v", th.Kinds, want, th.Facets)
	}
	// A later status that changes none of it leaves the row alone.
	xmin := func() (x string) {
		if err := store.pool.QueryRow(t.Context(), `SELECT xmin::text FROM registry_facet WHERE thing = $1`, vic).Scan(&x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	before := xmin()
	m.Seq, m.Loop.LateP99, m.Body.BatteryVolts = 2, 123.9, 3.508
	send(t, svc, vic, m)
	if xmin() != before {
		t.Error("a number that trembles writes the fleet's indexes")
	}
	m.Seq, m.Body.BatteryLevel = 3, "full"
	send(t, svc, vic, m)
	found("battery:full", true)
	// As after an upgrade: nothing was read yet.
	if _, err := store.pool.Exec(t.Context(), `UPDATE registry_facet SET fit = 0, os = '', os_key = '', problems = '{}'`); err != nil {
		t.Fatal(err)
	}
	found("version:2.0.1.6076", false)
	if err := svc.Refit(t.Context()); err != nil {
		t.Fatal(err)
	}
	found("version:2.0.1.6076 problem:fault 6076", true)
}

// TestPresenceFollows: the table's presence equals registry_thing's, also when a process of the previous release writes it.
func TestPresenceFollows(t *testing.T) {
	svc, store := open(t)
	row := func(want string) {
		t.Helper()
		var got string
		err := store.pool.QueryRow(t.Context(), `SELECT f.present || ' ' || (f.since = coalesce(t.since, '-infinity')) || ' ' ||
			(f.seen = CASE WHEN t.present THEN 'infinity' ELSE coalesce(t.last_seen, '-infinity') END) FROM registry_facet AS f JOIN registry_thing AS t USING (thing)`).Scan(&got)
		if err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	if err := svc.Register(t.Context(), vic); err != nil {
		t.Fatal(err)
	}
	row("false true true")
	send(t, svc, vic, online("b", 1, 1, time.Minute))
	row("true true true")
	expire(t, store, vic)
	if err := svc.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	row("false true true")
	if _, err := store.pool.Exec(t.Context(), `UPDATE registry_thing SET present = true, since = now() WHERE thing = $1`, vic); err != nil {
		t.Fatal(err)
	}
	row("true true true")
}

func TestTags(t *testing.T) {
	svc, _ := open(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := svc.Register(ctx, vic); err != nil {
		t.Fatal(err)
	}
	tags, err := svc.Tag(ctx, vic, []string{"lab", "demo", "lab"}, nil)
	if err != nil || !slices.Equal(tags, []string{"demo", "lab"}) {
		t.Fatal(tags, err)
	}
	rev := get(t, svc, vic).Rev
	if tags, err = svc.Tag(ctx, vic, []string{"lab"}, []string{"none-such"}); err != nil || len(tags) != 2 || get(t, svc, vic).Rev != rev {
		t.Errorf("nothing to change: %v, %v, revision %d, want %d", tags, err, get(t, svc, vic).Rev, rev)
	}
	if tags, err = svc.Tag(ctx, vic, []string{"x"}, []string{"demo", "lab"}); err != nil || !slices.Equal(tags, []string{"x"}) || get(t, svc, vic).Rev <= rev {
		t.Errorf("changed: %v, %v; want a revision more", tags, err)
	}
	if ids, err := svc.Select(ctx, filter.MustParse("tag:x x"), 10); err != nil || len(ids) != 1 {
		t.Errorf("by its tag and by the word: %v, %v", ids, err)
	}
	many := make([]string, registry.MaxTags)
	for i := range many {
		many[i] = fmt.Sprint("t", i)
	}
	for name, c := range map[string]struct {
		id   thing.ID
		add  []string
		kind errs.Kind
	}{
		"unknown": {"vic:zz", []string{"a"}, errs.NotFound}, "too many": {vic, many, errs.Exhausted}, "upper case": {vic, []string{"Lab"}, errs.Invalid},
		"none": {vic, []string{"none"}, errs.Invalid}, "nothing": {vic, nil, errs.Invalid}, "long": {vic, []string{strings.Repeat("a", 33)}, errs.Invalid},
	} {
		if _, err := svc.Tag(ctx, c.id, c.add, nil); errs.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
}

func TestCertificates(t *testing.T) {
	svc, _ := open(t)
	if err := svc.Register(t.Context(), vic); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(72 * time.Hour).Truncate(time.Microsecond)
	if err := svc.SetCertificates(t.Context(), map[thing.ID]time.Time{vic: end, "vic:unknown": end}); err != nil {
		t.Fatal(err)
	}
	th := get(t, svc, vic)
	if !th.Certificate.Equal(end) {
		t.Errorf("until %v, want %v", th.Certificate, end)
	}
	if err := svc.SetCertificates(t.Context(), map[thing.ID]time.Time{vic: end}); err != nil || get(t, svc, vic).Rev != th.Rev {
		t.Errorf("told again: %v, revision %d, want %d", err, get(t, svc, vic).Rev, th.Rev)
	}
	for text, want := range map[string]int{"cert:<7d": 1, "cert:<1d": 0, "cert:none": 0} {
		if ids, err := svc.Select(t.Context(), filter.MustParse(text), 5); err != nil || len(ids) != want {
			t.Errorf("%s: %v, %v; want %d", text, ids, err, want)
		}
	}
	if err := svc.SetCertificates(t.Context(), map[thing.ID]time.Time{vic: {}}); err != nil || !get(t, svc, vic).Certificate.IsZero() {
		t.Errorf("revoked: %v", err)
	}
}
