package app

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/app/demo"
	"kennel/cloud/identity/account/audit"
	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/daspg"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/testwait"
)

// TestDemo (issue 30.7): the seeding of a demo leaves no trace but its data, is done once, keeps to what owners allow, and refuses a cloud that has robots of its own.
func TestDemo(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	cfg := settings(t, mqtttest.Start(t))
	c, err := Build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.base.Blobs.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.releases.Archives.Keys = append(c.releases.Archives.Keys, &key.PublicKey)
	const email = "mia@example.org"
	if _, _, err := c.Accounts.People.CreateAccount(t.Context(), email, auth.Owner, ""); err != nil {
		t.Fatal(err)
	}
	shape := func() string { // of the schema, with the defaults of columns
		return strings.Join(ask[string](t, c, `SELECT c.oid::regclass || '.' || a.attname || ' ' || pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d
			JOIN pg_attribute a ON (a.attrelid, a.attnum) = (d.adrelid, d.adnum) JOIN pg_class c ON c.oid = d.adrelid WHERE c.relname NOT LIKE 'das_event_%' ORDER BY 1`), "\n") +
			strings.Join(ask[string](t, c, `SELECT nspname::text FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' ORDER BY 1`), " ")
	}
	counts := func() map[string]int64 {
		out := map[string]int64{}
		for _, table := range ask[string](t, c, `SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace`) {
			out[table] = ask[int64](t, c, `SELECT count(*) FROM `+table)[0]
		}
		return out
	}
	before := shape()
	conf := demo.Config{Dir: t.TempDir(), Owner: email, Operator: "operator@example.org", Sign: key, Now: time.Now()}
	if _, err := demo.Open(t.Context(), c.Demo(), conf); err != nil {
		t.Fatal(err)
	}
	if after := shape(); after != before {
		t.Errorf("the schema was\n%s\nand is\n%s", before, after)
	}
	first := counts()
	for _, table := range []string{"registry_thing", "registry_presence", "owner_tenure", "das_robot", "crash_crash", "rollout_member", "alert_found", "alert_crossed", "alert_silence", "command_outbox", "bulk_item", "cohort_saved", "artifact_archive", "certs_certificate", "vitals_sample", "account_audit"} {
		if n, ok := first[table]; !ok || n == 0 {
			t.Errorf("nothing in %s", table)
		}
	}
	for id := range demo.Private { // their owner shares nothing
		recs, err := daspg.Open(c.base.Pool).List(t.Context(), das.Filter{Thing: id}, 1, das.Cursor{})
		if err != nil || len(recs) > 0 {
			t.Errorf("%s: %v, %v; want no events", id, recs, err)
		}
		if n := ask[int64](t, c, `SELECT count(*) FROM crash_crash WHERE thing = '`+string(id)+`'`)[0]; n > 0 {
			t.Errorf("%s: %d crashes", id, n)
		}
	}
	for id := range demo.Owned {
		if recs, err := daspg.Open(c.base.Pool).List(t.Context(), das.Filter{Thing: id}, 1, das.Cursor{}); err != nil || len(recs) == 0 {
			t.Errorf("%s, whose owner shares data: %v, %v", id, recs, err)
		}
	}
	report, err := c.Accounts.Audit.Verify(t.Context(), audit.Anchor{})
	if err != nil || report.Broken != nil {
		t.Errorf("audit log: %+v, %v", report, err)
	}

	conf.Now = conf.Now.Add(time.Hour)
	fleet, err := demo.Open(t.Context(), c.Demo(), conf)
	if err != nil {
		t.Fatal(err)
	}
	if again := counts(); !maps.Equal(again, first) {
		t.Errorf("rows %v, after another start %v", first, again)
	}
	const shortest = `SELECT min(lease_until) FROM registry_thing WHERE present`
	ends := ask[time.Time](t, c, shortest)[0]
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- fleet.Run(ctx) }()
	testwait.Until(t, testwait.Long, "renewed leases", testwait.Holds(func() bool { return ask[time.Time](t, c, shortest)[0].After(ends) }))
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := ask[int64](t, c, `SELECT count(*) FROM registry_thing WHERE NOT present`)[0]; n != 13 {
		t.Errorf("%d robots are offline, want the 13 of the story", n)
	}
	conf.Dir = t.TempDir() // as if these robots were not the demo's
	if _, err := demo.Open(t.Context(), c.Demo(), conf); errs.CodeOf(err) != "not_a_demo" {
		t.Errorf("a cloud with robots: %v", err)
	}
}

// TestDemoUnfinished: a seeding that ended in the middle is not taken for a demo.
func TestDemoUnfinished(t *testing.T) {
	c, err := Build(t.Context(), settings(t, mqtttest.Start(t)), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	conf := demo.Config{Dir: t.TempDir(), Owner: "none@example.org", Now: time.Now()}
	if _, err := demo.Open(t.Context(), c.Demo(), conf); errs.KindOf(err) != errs.NotFound {
		t.Fatalf("without its owner's account: %v", err)
	}
	if _, err := demo.Open(t.Context(), c.Demo(), conf); errs.CodeOf(err) != "demo_unfinished" {
		t.Errorf("after a seeding that failed: %v", err)
	}
	if n := ask[int64](t, c, `SELECT count(*) FROM pg_namespace WHERE nspname = 'kennel_demo'`)[0]; n != 0 {
		t.Error("the clock of the seeding is still in the database")
	}
}

// ask returns the one column of a query.
func ask[T any](t *testing.T, c *Cloud, sql string) []T {
	t.Helper()
	rows, err := c.base.Pool.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	return out
}
