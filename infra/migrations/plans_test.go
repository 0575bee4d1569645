package migrations_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/pg/pgtest"
)

// fill makes the rows of n robots after a day: each robot with its facets, steps, two boots, documents, status of updates, owner and certificate, and for
// each robot $2 events of the last day (a lively robot makes thousands, in the same partitions), in transactions of 250.
const fill = `
SET session_replication_role = replica; -- no triggers: their tables are filled here
CREATE TEMP TABLE robot AS SELECT i, 'vic:' || lpad(to_hex(i), 8, '0') AS thing, 'acc-' || i % ($1 / 2 + 1) AS account, clock_timestamp() - i % 86400 * interval '1 s' AS at FROM generate_series(1, $1::int) AS i;
INSERT INTO registry_thing (thing, present, since, last_seen, lease_until, boot_id, connect_seq, seq, status)
  SELECT thing, i % 10 > 0, at, at, clock_timestamp() + interval '1 h', 'b', 1, 1, '{"v":1,"state":"online","agent":"1.2.3","os":"2.0.1.6076"}' FROM robot;
INSERT INTO registry_facet (thing, created, present, since, seen, fit, os, agent) SELECT thing, at, i % 10 > 0, at, at, 1, '2.0.1.6076', '1.2.3' FROM robot;
INSERT INTO registry_step (thing, name, ok, code, first, last, times, peer, version, detail) SELECT thing, s, true, '', at, at, 5, '192.0.2.1:1', '1.2.3', '' FROM robot, unnest('{enroll,connect,status}'::text[]) AS s;
INSERT INTO registry_presence (thing, at, present) SELECT thing, at - k * interval '1 h', k % 2 = 0 FROM robot, generate_series(1, $2) AS k;
INSERT INTO jdocs_doc (thing, name, doc_version, fmt_version, json_doc, changed_by) SELECT thing, d, 3, 1, '{"a":1}', 'x' FROM robot, unnest('{vic.RobotSettings,vic.RobotLifetimeStats,vic.AppTokens}'::text[]) AS d;
INSERT INTO das_range (thing, boot_id, seqs, updated) SELECT thing, b, '{[1,500)}', at FROM robot, unnest('{b,c}'::text[]) AS b;
INSERT INTO intake_usage (thing, day, bytes) SELECT thing, current_date, 1000 FROM robot;
INSERT INTO ota_status (thing, id, release, running, phase, code, reason, ts) SELECT thing, k::text, '2', '2', 'idle', 0, '', 1 FROM robot, generate_series(1, 2) AS k;
INSERT INTO owner_thing (thing) SELECT thing FROM robot;
INSERT INTO owner_tenure (thing, account, how, since) SELECT thing, account, 'claim', at - interval '30 d' FROM robot;
INSERT INTO certs_claim (thing, secret_hash, key, registered_at, bound_at) SELECT thing, sha256(thing::bytea), sha256(('k' || thing)::bytea), at, at FROM robot;
INSERT INTO certs_certificate (serial, thing, key, method, not_before, not_after) SELECT to_hex(i), thing, sha256(('k' || thing)::bytea), 'enroll', at, at + interval '90 d' FROM robot;
INSERT INTO das_group (received, events, raw_key, rolled) SELECT clock_timestamp() - k * interval '1 ms', 250, '', true FROM generate_series(1, $1) AS k;
INSERT INTO das_event (received, grp, thing, boot_id, seq, ts, uptime_ms, unsynced, level, source, robot_version, profile_id, feature_type, feature_run_id, event)
  SELECT clock_timestamp(), i / 50 + 1, thing, 'b', k, 1, 1, false, 'info', 'agentd', '2.0.1.6076', '', '', '', 'battery.periodic_log' FROM robot, generate_series(1, $2) AS k;
SET session_replication_role = DEFAULT;`

// statement is one of the most frequent, with the text by which the source knows it.
type statement struct{ sql, source string }

func statements(t *testing.T) (out []statement) {
	t.Helper()
	b, err := os.ReadFile("testdata/frequent.sql")
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(string(b), ";\n") {
		var s statement
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if known, ok := strings.CutPrefix(line, "-- source: "); ok {
				s.source = known
			} else if line != "" && !strings.HasPrefix(line, "--") {
				s.sql = line
			}
		}
		if s.source == "" {
			s.source = s.sql[:min(len(s.sql), 60)]
		}
		if s.sql != "" {
			out = append(out, s)
		}
	}
	return out
}

var (
	parameter = regexp.MustCompile(`\$\d+`)
	limit     = regexp.MustCompile(`LIMIT \$\d+`)
	partition = regexp.MustCompile(`_(?:p|y)?\d{6,}\w*`)
)

// planOf is the shape of the plan that Postgres makes for any values: its nodes with tables and indexes. A LIMIT is taken as 100, because Postgres
// leaves that plan when one for the value is cheaper.
func planOf(t *testing.T, db *pgxpool.Conn, sql string) string {
	t.Helper()
	sql = limit.ReplaceAllString(sql, "LIMIT 100")
	numbers := map[string]int{} // without the gaps that this leaves
	sql = parameter.ReplaceAllStringFunc(sql, func(p string) string {
		if numbers[p] == 0 {
			numbers[p] = len(numbers) + 1
		}
		return "$" + strconv.Itoa(numbers[p])
	})
	args := ""
	if n := len(numbers); n > 0 {
		args = "(" + strings.TrimSuffix(strings.Repeat("NULL,", n), ",") + ")"
	}
	var b []byte
	for _, step := range []string{"SET plan_cache_mode = force_generic_plan", "PREPARE asked AS " + sql} {
		if _, err := db.Exec(t.Context(), step); err != nil {
			t.Fatalf("%v\n%s", err, step)
		}
	}
	if err := db.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON, COSTS OFF) EXECUTE asked"+args).Scan(&b); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	if _, err := db.Exec(t.Context(), "DEALLOCATE asked"); err != nil {
		t.Fatal(err)
	}
	type node struct {
		Type  string `json:"Node Type"`
		Table string `json:"Relation Name"`
		Index string `json:"Index Name"`
		Plans []node
	}
	var all []struct{ Plan node }
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var write func(node, int)
	write = func(n node, depth int) {
		fmt.Fprintf(&out, "%s%s %s %s\n", strings.Repeat("  ", depth), n.Type, partition.ReplaceAllString(n.Table, "_DAY"), partition.ReplaceAllString(n.Index, "_DAY"))
		for _, p := range n.Plans {
			write(p, depth+1)
		}
	}
	write(all[0].Plan, 0)
	return out.String()
}

// TestPlans: none of the twenty most frequent statements reads a table of robots from one end to the other. In soak, with the rows of a million robots,
// their plans are those with the rows of 20,000, too (issue 34, tables at a million). With a thousand robots a table is so small that Postgres reads it
// whole, rightly.
func TestPlans(t *testing.T) {
	sizes, each := []int{20_000}, "1"
	if os.Getenv("KENNEL_SOAK") == "1" {
		sizes, each = []int{20_000, 1_000_000}, "5"
	}
	all := statements(t)
	if len(all) != 20 {
		t.Fatalf("%d statements", len(all))
	}
	shapes := make([][]string, len(all))
	for _, n := range sizes {
		pool := pgtest.New(t)
		db, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// A job makes the partitions of each day.
		for _, step := range []string{`CREATE TABLE das_event_today PARTITION OF das_event DEFAULT`, strings.NewReplacer("$1", strconv.Itoa(n), "$2", each).Replace(fill), `ANALYZE`} {
			if _, err := db.Exec(t.Context(), step); err != nil {
				t.Fatal(err)
			}
		}
		for i, s := range all {
			shapes[i] = append(shapes[i], planOf(t, db, s.sql))
		}
		db.Release()
	}
	sources := source(t)
	whole := regexp.MustCompile(`Seq Scan (registry_thing|registry_facet|registry_step|registry_presence|jdocs_doc|das_range|das_event\w*|das_group|owner_tenure|owner_thing|certs_\w+|ota_status|intake_usage) `)
	for i, s := range all {
		if !slices.ContainsFunc(sources, func(text string) bool { return strings.Contains(text, s.source) }) {
			t.Errorf("no longer in the source; measure the frequent statements again: %s", s.source)
		}
		last := shapes[i][len(shapes[i])-1]
		if first := shapes[i][0]; first != last {
			t.Errorf("another plan with %v robots:\n%.300s\n%s\ninstead of\n%s", sizes, s.sql, last, first)
		}
		if m := whole.FindString(last); m != "" {
			t.Errorf("%s with %v robots:\n%.300s\n%s", m, sizes, s.sql, last)
		}
	}
}

// source returns the files that hold statements, with white space as one space.
func source(t *testing.T) (out []string) {
	t.Helper()
	spaces := regexp.MustCompile(`\s+`)
	for _, dir := range []string{"../../cloud", "../../jdocs", "../../certs", "../../ota", "../../speech"} {
		err := walk(dir, func(b []byte) { out = append(out, spaces.ReplaceAllString(string(b), " ")) })
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func walk(dir string, f func([]byte)) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := dir + "/" + e.Name()
		switch {
		case e.IsDir():
			if err := walk(name, f); err != nil {
				return err
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			f(b)
		}
	}
	return nil
}
