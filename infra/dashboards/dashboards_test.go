package dashboards

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// dashboard is the part of Grafana's model that the test checks.
type dashboard struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name string `json:"name"`
		} `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID      int    `json:"id"`
	Title   string `json:"title"`
	Type    string `json:"type"`
	GridPos struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Datasource  struct{ Type, UID string } `json:"datasource"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		RefID        string `json:"refId"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

func load(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := fs.Glob(FS, "*.json")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]dashboard{}
	for _, f := range files {
		b, err := FS.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out[f] = d
	}
	return out
}

func TestDashboards(t *testing.T) {
	all := load(t)
	for _, want := range []string{"fleet.json", "ingest.json", "broker.json", "postgres.json", "api.json", "health.json"} {
		if _, there := all[want]; !there {
			t.Errorf("no %s", want)
		}
	}
	variable := regexp.MustCompile(`\$\{?(\w+)`)
	for file, d := range all {
		if d.UID != "kennel-"+strings.TrimSuffix(file, ".json") || d.Title == "" {
			t.Errorf("%s: uid %q, title %q: want kennel-<file> and a title", file, d.UID, d.Title)
		}
		known := map[string]bool{"__rate_interval": true}
		for _, v := range d.Templating.List {
			known[v.Name] = true
		}
		taken := map[[2]int]string{}
		ids := map[int]bool{}
		for _, p := range d.Panels {
			if p.Title == "" || p.Type == "" || ids[p.ID] || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
				t.Errorf("%s: panel %d %q: want a title, a type, an id of its own, a unit, the chosen data source and a query", file, p.ID, p.Title)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s: panel %q lies on %q at %d, %d", file, p.Title, other, x, y)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			for _, q := range p.Targets {
				for _, v := range variable.FindAllStringSubmatch(q.Expr, -1) {
					if !known[v[1]] {
						t.Errorf("%s: panel %q: unknown variable %s in %s", file, p.Title, v[0], q.Expr)
					}
				}
			}
		}
	}
}

// TestQueriesAndRules: every query parses as PromQL, the rules load, and the alerts fire when they should, by Prometheus's own tool.
func TestQueriesAndRules(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: queries\n    rules:\n")
	n := 0
	for _, d := range load(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				expr, err := json.Marshal(strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(q.Expr)) // JSON is YAML
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&rules, "      - {record: query_%d, expr: %s} # %s: %s\n", n, expr, d.Title, p.Title)
				n++
			}
		}
	}
	file := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", file}, {"check", "rules", "alerts.yml"}, {"test", "rules", "testdata/alerts_test.yml"}} {
		if out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	if n < 50 {
		t.Errorf("only %d queries", n)
	}
}
