package registrypg

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
)

// usual are the questions that people ask of a fleet all day.
var usual = []struct {
	filter string
	sort   string
}{
	{"", ""}, {"", "-seen"}, {"", "seen"}, {"", "since"}, {"", "-version"}, {"", "agent"}, {"", "battery"}, {"", "-loop"}, {"", "-problems"}, {"", "cert"}, {"", "presence"}, {"", "-created"}, {"", "body"},
	{"presence:absent", "seen"}, {"presence:present", "-since"}, {"species:pleo", ""}, {"0000a1", ""}, {"rare", ""}, {"vic:", "seen"}, {"id:vic:00000004", ""},
	{"tag:rare", "-seen"}, {"-tag:lab presence:absent", "version"}, {"problem:robotd", "since"}, {"version:2.9", "seen"}, {"version:<2.9", ""}, {"battery:<3.1", "battery"}, {"cert:<7d", "cert"},
	{"seen:>30d", "seen"}, {"presence:absent version:<2.1 tag:rare battery:<4 seen:>3d", "-seen"},
}

type plan struct {
	Node  string `json:"Node Type"`
	Table string `json:"Relation Name"`
	Index string `json:"Index Name"`
	Plans []plan
}

// scans returns the tables that are read from end to end.
func (p plan) scans() (out []string) {
	if p.Node == "Seq Scan" {
		out = append(out, p.Table)
	}
	for _, sub := range p.Plans {
		out = append(out, sub.scans()...)
	}
	return out
}

// TestUsualQuestionsUseIndexes: no page of a usual question, first or later, reads the fleet from end to end.
func TestUsualQuestionsUseIndexes(t *testing.T) {
	_, store := open(t)
	n := 5000
	if os.Getenv("KENNEL_SOAK") != "" {
		n = 100_000
	}
	seed(t, store, n)
	explain := func(what string, question func() (string, []any, error)) {
		t.Helper()
		sql, args, err := question()
		if err != nil {
			t.Fatal(err)
		}
		var b []byte
		if err := store.pool.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) "+sql, args...).Scan(&b); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var out []struct{ Plan plan }
		if err := json.Unmarshal(b, &out); err != nil {
			t.Fatal(err)
		}
		if s := out[0].Plan.scans(); len(s) > 0 {
			t.Errorf("%s reads all of %v:\n%s", what, s, b)
		}
	}
	for _, u := range usual {
		by, desc, err := registry.ParseSort(u.sort)
		if err != nil {
			t.Fatal(err)
		}
		if u.filter == "rare" && n < 20_000 {
			continue // a word of a small fleet is found sooner by reading all of it
		}
		q := registry.Selection{Filter: filter.MustParse(u.filter), Sort: by, Desc: desc, Limit: 50}
		what := fmt.Sprintf("%q by %q", u.filter, u.sort)
		explain(what, func() (string, []any, error) { return tableSQL(q, nil, time.Now()) })
		if _, next, err := store.Table(t.Context(), q, nil); err != nil {
			t.Errorf("%s: %v", what, err)
		} else if next != nil {
			explain(what+", later", func() (string, []any, error) { return tableSQL(q, next, time.Now()) })
		}
	}
	// Nor does a rollout's question about one robot, whatever the cohort.
	for _, text := range []string{"", "rare", "-rare -other", "tag:rare -tag:lab", "version:<2.9 battery:<4", "problem:robotd", "presence:present", "seen:>30d"} {
		f := filter.MustParse(text + " id:vic:00000004")
		explain(fmt.Sprintf("brief of one robot in %q", text), func() (string, []any, error) { sql, args := briefsSQL(f, nil, time.Now()); return sql, args, nil })
	}
	// A counter-check: without its index a sort reads everything.
	if _, err := store.pool.Exec(t.Context(), `DROP INDEX registry_facet_volts`); err != nil {
		t.Fatal(err)
	}
	sql, args, _ := tableSQL(registry.Selection{Sort: registry.ByBattery, Limit: 50}, nil, time.Now())
	var lines []string
	rows, err := store.pool.Query(t.Context(), "EXPLAIN "+sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var l string
		if err := rows.Scan(&l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "Seq Scan on registry_facet") }) {
		t.Errorf("without its index:\n%s", strings.Join(lines, "\n"))
	}
}

// BenchmarkTable is one page of 100 of a fleet of 100,000, for each usual question; the worst time is reported beside the mean.
func BenchmarkTable(b *testing.B) {
	svc, store := open(b)
	seed(b, store, 100_000)
	for _, u := range usual {
		by, desc, err := registry.ParseSort(u.sort)
		if err != nil {
			b.Fatal(err)
		}
		q := registry.Selection{Filter: filter.MustParse(u.filter), Sort: by, Desc: desc}
		b.Run(strings.ReplaceAll(fmt.Sprintf("%s_by_%s", u.filter, u.sort), " ", "+"), func(b *testing.B) {
			var worst time.Duration
			for b.Loop() {
				began := time.Now()
				p, err := svc.Table(b.Context(), q)
				worst = max(worst, time.Since(began))
				if err != nil {
					b.Fatal(err)
				}
				if p.Next != "" { // and the page after it
					q.After = p.Next
				} else {
					q.After = ""
				}
			}
			b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
		})
	}
	b.Run("counts", func(b *testing.B) {
		for b.Loop() {
			if _, err := store.Counts(b.Context(), filter.Filter{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
