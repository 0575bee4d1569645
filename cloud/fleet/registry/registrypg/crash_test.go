package registrypg

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/telemetry/crash"
	"kennel/cloud/telemetry/crash/crashpg"
)

// TestCrashesAreProblems (issue 27, item 17): the crashes of a robot's programs are a problem of it as soon as the cloud has them, in the table, in filters, in the doctor and
// in what rollouts read; a status does not end it, time does.
func TestCrashesAreProblems(t *testing.T) {
	svc, store := open(t)
	crashes := crashpg.New(store.pool)
	m := online("b", 1, 1, time.Minute)
	m.OS, m.Problems = "2.0.1.6076EP", nil
	send(t, svc, vic, m)
	put := func(id int, program string, ago time.Duration) (group string) {
		t.Helper()
		at := time.Now().Add(-ago)
		group, err := crashes.Put(t.Context(), crash.Crash{ID: fmt.Sprintf("00000000-0000-0000-0000-%012d", id), Thing: vic, Program: program, OS: "2.0.1.6076EP", Version: "v1.2.0", At: at, Received: at,
			Reason: "panic", Analysis: &crash.Analysis{}, Modules: []string{}, Looked: at}, "main.main")
		if err != nil {
			t.Fatal(err)
		}
		return group
	}
	selected := func(text string) bool {
		t.Helper()
		ids, err := svc.Select(t.Context(), filter.MustParse(text), 10)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(ids, vic)
	}
	crashed := func(want string, robotd int) {
		t.Helper()
		th := get(t, svc, vic)
		var got []string
		for _, p := range th.Problems {
			got = append(got, p.Token())
		}
		if fmt.Sprint(got) != want || slices.Contains(th.Kinds, "crash") != (want != "[]") {
			t.Errorf("problems %v, kinds %v; want %s", got, th.Kinds, want)
		}
		if f := selected("problem:crash"); f != (want != "[]") || f != selected("problem:crash/2.0.1.6076EP") || f == selected("problem:none") {
			t.Errorf("found by its problem: %v", f)
		}
		briefs, err := svc.Briefs(t.Context(), filter.Filter{}, nil)
		if err != nil || len(briefs) != 1 || slices.Contains(briefs[0].Codes, "crash/2.0.1.6076ep") != (want != "[]") {
			t.Errorf("briefs %+v, %v", briefs, err)
		}
		r, err := svc.Doctor(t.Context(), vic)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Checks, func(c registry.Check) bool { return c.Name == "crashes" })
		if i < 0 || (r.Checks[i].Level == registry.Warn) != (want != "[]") || robotd > 0 && !strings.Contains(r.Checks[i].Text, fmt.Sprintf("robotd crashed %d times", robotd)) {
			t.Errorf("doctor %+v", r.Checks)
		}
	}
	crashed("[]", 0)
	put(1, "robotd", 7*time.Hour) // long ago
	crashed("[]", 0)
	was := get(t, svc, vic).Rev
	group := put(2, "robotd", 12*time.Second)
	put(3, "robotd", 8*time.Second)
	put(4, "robotd", 2*time.Second)
	crashed("[crash/2.0.1.6076ep]", 3)
	th := get(t, svc, vic)
	if th.Rev == was {
		t.Error("watchers are not told")
	}
	if len(th.Crashes) != 1 || th.Crashes[0].Release != "2.0.1.6076EP" || th.Crashes[0].Program != "robotd" || th.Crashes[0].Count != 3 || time.Since(th.Crashes[0].Newest) > time.Minute || th.Crashes[0].Group != group {
		t.Errorf("crashes %+v", th.Crashes)
	}
	put(5, "agentd", time.Second)
	crashed("[crash/2.0.1.6076ep crash/2.0.1.6076ep]", 3) // one for each program
	m.Seq = 2
	send(t, svc, vic, m)
	crashed("[crash/2.0.1.6076ep crash/2.0.1.6076ep]", 3)
	if _, err := store.pool.Exec(t.Context(), `UPDATE registry_facet SET os = 'x' WHERE thing = $1`, vic); err != nil {
		t.Fatal(err)
	}
	if briefs, err := svc.Briefs(t.Context(), filter.Filter{}, nil); err != nil || len(briefs) != 1 || len(briefs[0].Codes) > 0 {
		t.Errorf("briefs of another release %+v, %v", briefs, err)
	}
	m.Seq = 3 // a status that says what the last one said writes nothing
	send(t, svc, vic, m)
	xmin := func() (x string) {
		if err := store.pool.QueryRow(t.Context(), `SELECT xmin::text FROM registry_facet WHERE thing = $1`, vic).Scan(&x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	before := xmin()
	m.Seq = 4
	send(t, svc, vic, m)
	if xmin() != before {
		t.Error("a status of a robot that crashed writes the fleet's indexes")
	}

	// The time ends it, and so does an erasure.
	if err := crashes.Delete(t.Context(), []string{"00000000-0000-0000-0000-000000000005"}, false); err != nil {
		t.Fatal(err)
	}
	crashed("[crash/2.0.1.6076ep]", 3)
	if err := store.RecountCrashes(t.Context()); err != nil {
		t.Fatal(err)
	}
	crashed("[crash/2.0.1.6076ep]", 3)
	if _, err := store.pool.Exec(t.Context(), `ALTER TABLE crash_crash DISABLE TRIGGER USER; UPDATE crash_crash SET received = received - interval '6 hours'; ALTER TABLE crash_crash ENABLE TRIGGER USER`); err != nil {
		t.Fatal(err)
	}
	if err := store.RecountCrashes(t.Context()); err != nil {
		t.Fatal(err)
	}
	crashed("[]", 0)
}

// TestCrashBeforeItsRobot: a crash of a robot that the fleet did not know yet counts once it does. An original robot, which sends no status, has the problem too.
func TestCrashBeforeItsRobot(t *testing.T) {
	svc, store := open(t)
	now := time.Now()
	if _, err := crashpg.New(store.pool).Put(t.Context(), crash.Crash{ID: "00000000-0000-0000-0000-000000000001", Thing: vic, Program: "vic-engine", At: now, Received: now, Analysis: &crash.Analysis{}, Modules: []string{}, Looked: now}, "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Seen(t.Context(), vic, "1.8.1", 0); err != nil {
		t.Fatal(err)
	}
	if err := store.RecountCrashes(t.Context()); err != nil {
		t.Fatal(err)
	}
	if th := get(t, svc, vic); len(th.Problems) != 1 || th.Problems[0].Token() != "crash" || !slices.Equal(th.Facets.Codes, []string{"crash"}) {
		t.Errorf("%+v, codes %q", th.Problems, th.Facets.Codes)
	}
}

// TestCrashToken: the database and the service make the same code of a release.
func TestCrashToken(t *testing.T) {
	_, store := open(t)
	for _, release := range []string{"", "2.0.1.6076EP", "a b/ü\x7f", strings.Repeat("é1", 50), "-", "/"} {
		var sql string
		if err := store.pool.QueryRow(t.Context(), `SELECT registry_crash_code($1)`, release).Scan(&sql); err != nil || sql != registry.CrashToken(release) {
			t.Errorf("%q: %q, the database says %q, %v", release, registry.CrashToken(release), sql, err)
		}
	}
}
