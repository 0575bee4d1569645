package alert_test

import (
	"log/slog"
	"testing"

	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/telemetry/alert"
	"kennel/cloud/telemetry/alert/alertpg"
	"kennel/cloud/telemetry/das/daspg"
	"kennel/infra/pg/pgtest"
)

// BenchmarkLook looks at a fleet of 100,000 robots on two releases, of which some have problems, vanished or crashed, with ten thresholds of all kinds. A look takes less than
// 200 ms (issue 27, item 13).
func BenchmarkLook(b *testing.B) {
	pool := pgtest.New(b)
	store, fleet := alertpg.New(pool), registrypg.New(pool, slog.New(slog.DiscardHandler))
	for _, sql := range []string{
		`INSERT INTO registry_thing (thing, present, since, last_seen) SELECT 'vic:' || lpad(i::text, 8, '0'), i % 20 > 0, clock_timestamp() - make_interval(mins => i % 300), clock_timestamp() FROM generate_series(1, 100000) AS i`,
		`UPDATE registry_facet SET fit = 3, os = CASE WHEN thing < 'vic:00050000' THEN '2.0.0' ELSE '2.0.1' END, codes = CASE right(thing, 2) WHEN '07' THEN '{fault/914,loop}' WHEN '08' THEN '{battery}' ELSE '{}' END::text[]`,
		`INSERT INTO das_last (thing, version, class, last) SELECT thing, os, class, clock_timestamp() - make_interval(secs => (random() * s)::int) FROM registry_facet,
			(VALUES ('', 600, 0), ('crash', 80000, 97), ('fault/914', 80000, 95)) AS c (class, s, least) WHERE class = '' OR right(thing, 2)::int > least`,
		`INSERT INTO das_heard (at, version, robots) SELECT date_bin('1 hour', now(), 'epoch') - make_interval(hours => h), v, 45000 FROM generate_series(0, 72) AS h, unnest('{2.0.0,2.0.1}'::text[]) AS v`,
		`INSERT INTO das_name (at, version, event, n) SELECT date_bin('1 minute', now(), 'epoch') - make_interval(mins => m), v, 'event.' || e, 1000 FROM generate_series(0, 4320) AS m, unnest('{2.0.0,2.0.1}'::text[]) AS v, generate_series(1, 60) AS e`,
		`VACUUM ANALYZE`,
	} {
		if _, err := pool.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	svc := alert.New(store, fleet.ProblemsByRelease)
	svc.Sums, svc.Presence, svc.History = daspg.Open(pool), fleet, store
	for _, l := range []alert.Limit{{Kind: alert.CrashShare, Level: 0.02, Robots: 3, Hours: 1}, {Kind: alert.CrashShare, Level: 0.5, Robots: 3, Hours: 72}, {Kind: alert.CrashExcess, Level: 0.01, Robots: 3, Hours: 24},
		{Kind: alert.FaultShare, Level: 0.1, Robots: 3, Hours: 24}, {Kind: alert.FaultShare, Of: "914", Level: 0.01, Robots: 3, Hours: 6}, {Kind: alert.FaultExcess, Level: 0.01, Robots: 3, Hours: 12},
		{Kind: alert.EventRate, Of: "event.1", Level: 20, Robots: 3, Hours: 1}, {Kind: alert.EventRate, Of: "event.2", Level: 20, Robots: 3, Hours: 24}, {Kind: alert.EventRate, Of: "event.3", Level: 20, Robots: 3, Hours: 72}} {
		if _, err := svc.AddThreshold(b.Context(), l, "op"); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if err := svc.Look(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
