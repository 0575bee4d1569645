package docs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kennel/edge/env/robotfs"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"

	"github.com/jackc/pgx/v5/pgxpool"
)

var rex = thing.MustParse("vic:00e20100")

const (
	settingsFile = robotfs.Persistent + "/jdocs/vic.RobotSettings.json"
	statsFile    = robotfs.Persistent + "/jdocs/vic.RobotLifetimeStats.json"
)

var errLink = errs.New(errs.Unavailable, "no answer")

// cloud is the cloud's rules, reached over a link that a test may break.
type cloud struct {
	*jdocs.Rules
	t *testing.T
	// fault is asked before and after each call, if set; an error loses the request, or its answer.
	fault func(call string) error
	calls []string
}

func newCloud(t *testing.T) *cloud { return cloudOn(t, pgtest.New(t)) }

func cloudOn(t *testing.T, pool *pgxpool.Pool) *cloud {
	return &cloud{Rules: jdocs.New(jdocspg.New(pool)), t: t}
}

func (c *cloud) pass(call string) error {
	c.calls = append(c.calls, call)
	if c.fault == nil {
		return nil
	}
	return c.fault(call)
}

// remote is the cloud as the robot sees it.
type remote struct{ *cloud }

func (r remote) Read(ctx context.Context, items []jdocs.Item) ([]jdocs.ReadResult, error) {
	if err := r.pass("read request"); err != nil {
		return nil, err
	}
	res, err := r.Rules.Read(ctx, "", rex, items)
	return res, errors.Join(err, r.pass("read answer"))
}

func (r remote) Write(ctx context.Context, name jdocs.Name, d jdocs.Doc) (jdocs.WriteResult, error) {
	if err := r.pass("write request"); err != nil {
		return jdocs.WriteResult{}, err
	}
	res, err := r.Rules.Write(ctx, jdocs.Key{Thing: rex, Name: name}, d, string(rex))
	if err := errors.Join(err, r.pass("write answer")); err != nil {
		return jdocs.WriteResult{}, errs.New(errs.KindOf(err), "%w", err)
	}
	return res, nil
}

func (r remote) Revision(ctx context.Context, name jdocs.Name, version uint64) (jdocs.Doc, bool, bool, error) {
	if err := r.pass("revision request"); err != nil {
		return jdocs.Doc{}, false, false, err
	}
	rev, err := r.Rules.Revision(ctx, jdocs.Key{Thing: rex, Name: name}, version)
	if errors.Is(err, jdocs.ErrNotFound) {
		return jdocs.Doc{}, false, false, nil
	}
	return rev.Doc, rev.By == string(rex), err == nil, errors.Join(err, r.pass("revision answer"))
}

// set changes fields as an operator would.
func (c *cloud) set(name jdocs.Name, fields string) {
	c.t.Helper()
	if _, err := c.Set(c.t.Context(), jdocs.Key{Thing: rex, Name: name}, parse(c.t, fields), "ann"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cloud) doc(name jdocs.Name) jdocs.Revision {
	c.t.Helper()
	rev, err := c.Get(c.t.Context(), jdocs.Key{Thing: rex, Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	return rev
}

func parse(t *testing.T, s string) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return m
}

// robot is one robot's folder and the agent that runs on it now.
type robot struct {
	*Agent
	t     *testing.T
	dir   string
	cfg   Config
	cloud *cloud
	told  []string
}

func newRobot(t *testing.T, c *cloud) *robot {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	r := &robot{t: t, dir: dir, cloud: c}
	r.cfg = Config{Settings: jdocs.RobotSettings, Root: root, Remote: remote{c}, Log: slog.New(slog.DiscardHandler), OnChanged: func(ch Change) {
		names := make([]string, 0, len(ch.Fields))
		for k := range ch.Fields {
			names = append(names, k)
		}
		slices.Sort(names)
		r.told = append(r.told, fmt.Sprintf("%s %s %s", ch.Source, ch.Doc, strings.Join(names, ",")))
	}}
	return r
}

// boot starts or restarts the agent from the files on disk.
func (r *robot) boot() *robot {
	r.t.Helper()
	a, err := New(r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Agent = a
	return r
}

func (r *robot) sync() {
	r.t.Helper()
	if err := r.Sync(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *robot) set(fields string) {
	r.t.Helper()
	if err := r.Set(r.t.Context(), jdocs.RobotSettings, parse(r.t, fields)); err != nil {
		r.t.Fatal(err)
	}
}

// count adds to the counters and puts them on disk.
func (r *robot) count(key string, n float64) {
	r.t.Helper()
	r.AddStats(map[string]float64{key: n})
	if err := r.FlushStats(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *robot) file(name string) map[string]any {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		r.t.Fatalf("%s: %v\n%s", name, err, b)
	}
	return m
}

// field returns one field of a document in the robot's file.
func (r *robot) field(name, field string) any {
	r.t.Helper()
	jdoc, _ := r.file(name)["jdoc"].(map[string]any)
	return jdoc[field]
}

func (r *robot) write(name, content string) {
	r.t.Helper()
	p := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// inStep demands that file and cloud hold the same document at the same version, and nothing waits.
func (r *robot) inStep(names ...string) {
	r.t.Helper()
	for _, name := range names {
		rev := r.cloud.doc(jdocs.Name(strings.TrimSuffix(filepath.Base(name), ".json")))
		f := r.file(name)
		jdoc, err := json.Marshal(f["jdoc"])
		if err != nil {
			r.t.Fatal(err)
		}
		if !jdocs.Equal(jdoc, []byte(rev.JSON)) || f["doc_version"] != float64(rev.Version) {
			r.t.Errorf("%s\nfile  %v %s\ncloud %d %s", name, f["doc_version"], jdoc, rev.Version, rev.JSON)
		}
	}
	if d := r.Dirty(); len(d) > 0 {
		r.t.Errorf("dirty: %v", d)
	}
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
