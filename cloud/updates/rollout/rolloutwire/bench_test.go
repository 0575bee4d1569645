package rolloutwire_test

import (
	"fmt"
	"testing"

	"kennel/cloud/updates/rollout"
	"kennel/infra/pg/pgtest"
	"kennel/ota"
)

// BenchmarkHundredThousand (issue 27, must hold 5) measures a step over 100,000 robots that are watched, and reports and questions of single robots beside 100,000 open grants.
func BenchmarkHundredThousand(b *testing.B) {
	const n = 100_000
	pool := pgtest.New(b)
	c := open(pool)
	fill(b, pool, c, n)
	exec(b, pool, `ANALYZE`)
	r := create(b, c, rollout.Spec{Phases: []rollout.Phase{{Percent: 100, BakeS: 60}}, Cap: n, Guards: []rollout.Guard{}})
	if err := c.StepOne(b.Context(), r.ID); err != nil {
		b.Fatal(err)
	}
	exec(b, pool, `ANALYZE rollout_member`)
	clear(c.hints.told)
	i := 0
	b.Run("report", func(b *testing.B) {
		for b.Loop() {
			i++
			if err := c.Reported(b.Context(), robot(i%n+1), ota.Status{ID: fmt.Sprint(i), Release: newer, Running: older, Phase: ota.Downloading, Reason: fmt.Sprint(i)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("question", func(b *testing.B) {
		for b.Loop() {
			i++
			if d, ok, err := c.Ask(b.Context(), robot(i%n+1), older); err != nil || !ok || d.Release != newer {
				b.Fatal(d, ok, err)
			}
		}
	})
	b.Run("step", func(b *testing.B) {
		for b.Loop() {
			if err := c.StepOne(b.Context(), r.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
	exec(b, pool, `UPDATE rollout_rollout SET doc = doc || '{"guards": [{"metric": "failures", "share": 0.05, "sample": 20}, {"metric": "silent", "share": 0.03, "sample": 30}, {"metric": "problems", "share": 0.05, "sample": 30}]}'`)
	exec(b, pool, `UPDATE registry_facet SET os = $1`, newer)
	if err := c.StepOne(b.Context(), r.ID); err != nil {
		b.Fatal(err)
	}
	b.Run("step with guards", func(b *testing.B) {
		for b.Loop() {
			if err := c.StepOne(b.Context(), r.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
}
