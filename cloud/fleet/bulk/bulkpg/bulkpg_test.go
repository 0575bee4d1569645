package bulkpg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/bulk"
	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// fleet is robots that remember what was done to them.
type fleet struct {
	mu   sync.Mutex
	ids  []thing.ID
	done map[thing.ID]int
	tags map[thing.ID][]string
	hold chan struct{} // nil, or what an action waits for; its context ends the wait
	at   chan thing.ID // nil, or told of each action that begins
	away bool          // the database of tags
}

func (f *fleet) tag(ctx context.Context, id thing.ID, add, remove []string) ([]string, error) {
	if f.at != nil {
		select {
		case f.at <- id:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if f.hold != nil {
		select {
		case <-f.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away {
		return nil, errs.New(errs.Unavailable, "away")
	}
	f.done[id]++
	f.tags[id] = slices.DeleteFunc(append(f.tags[id], add...), func(t string) bool { return slices.Contains(remove, t) })
	return f.tags[id], nil
}

func (f *fleet) robots() bulk.Robots {
	return bulk.Robots{
		Select: func(_ context.Context, q filter.Filter, limit int) (out []thing.ID, err error) {
			for _, id := range f.ids {
				if r := (filter.Row{Thing: id}); q.Match(&r, time.Now()) {
					out = append(out, id)
				}
			}
			if len(out) > limit {
				return nil, errs.New(errs.Exhausted, "too many")
			}
			return out, nil
		},
		Known: func(_ context.Context, id thing.ID) error {
			if !slices.Contains(f.ids, id) {
				return errs.Coded(errs.NotFound, "no_thing", "thing %s is not known to this fleet", id)
			}
			return nil
		},
		Tag: f.tag,
		Send: func(_ context.Context, d command.Draft) (command.Command, error) {
			return command.Command{ID: d.Key}, nil
		},
		Set: func(context.Context, jdocs.Key, map[string]json.RawMessage, string) (uint64, error) {
			return 0, errors.New("the password of the database is wrong")
		},
		Owned: func(_ context.Context, ids []thing.ID) (n int, _ error) {
			if slices.Contains(ids, "vic:0000") {
				n = 1
			}
			return n, nil
		},
		Cohort: func(_ context.Context, name string) (cohort.Cohort, error) {
			return cohort.Cohort{Name: name, Filter: filter.MustParse(map[string]string{"byhand": "tag:picked", "byrule": "species:vic"}[name])}, nil
		},
	}
}

func open(t *testing.T, n int) (*bulk.Service, *Store, *fleet, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.New(t)
	if _, err := jobs.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	orders, err := jobs.NewOrders(pool)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{done: map[thing.ID]int{}, tags: map[thing.ID][]string{}}
	for i := range n {
		f.ids = append(f.ids, thing.ID(fmt.Sprintf("vic:%04d", i)))
	}
	store := New(pool, orders)
	return bulk.New(store, f.robots()), store, f, pool
}

// TestSettingsOfSpecies: each robot's settings are in the document of its species; a robot that lacks a field says so.
func TestSettingsOfSpecies(t *testing.T) {
	_, store, f, _ := open(t, 0)
	f.ids = []thing.ID{"amigo:1", "pleo:1", "vic:0000"}
	var set []string
	robots := f.robots()
	robots.Set = func(_ context.Context, key jdocs.Key, fields map[string]json.RawMessage, _ string) (uint64, error) {
		set = append(set, fmt.Sprintf("%s %d", key, len(fields)))
		return 1, nil
	}
	svc := bulk.New(store, robots)
	for _, tt := range []struct {
		fields string
		set    []string
		says   map[thing.ID]string // of those that failed
	}{
		{`{"master_volume":"LOW"}`, []string{"amigo:1/amigo.RobotSettings 1", "vic:0000/vic.RobotSettings 1"}, map[thing.ID]string{"pleo:1": "pleo.RobotSettings has no field"}},
		{`{"eye_color":1,"locale":"fr-FR"}`, []string{"vic:0000/vic.RobotSettings 2"}, map[thing.ID]string{"pleo:1": "pleo.RobotSettings has no field", "amigo:1": "amigo.RobotSettings has no field"}},
	} {
		set = nil
		d := bulk.Draft{Things: f.ids, Action: bulk.Action{Kind: bulk.Set}, By: "op"}
		if err := json.Unmarshal([]byte(tt.fields), &d.Action.Fields); err != nil {
			t.Fatal(err)
		}
		j, err := svc.Start(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if err := svc.Run(t.Context(), bulk.PartID(j.ID, 0)); err != nil {
			t.Fatal(err)
		}
		bad, err := svc.Results(t.Context(), j.ID, bulk.ItemFailed, "", 10)
		if err != nil || len(bad) != len(tt.says) || !slices.Equal(slices.Sorted(slices.Values(set)), tt.set) {
			t.Errorf("%s: set %q, failed %+v, %v; want %q", tt.fields, set, bad, err, tt.set)
		}
		for _, b := range bad {
			if !strings.Contains(b.Detail, tt.says[b.Thing]) {
				t.Errorf("%s: %+v, want %q", tt.fields, b, tt.says[b.Thing])
			}
		}
	}
}

func run(t *testing.T, pool *pgxpool.Pool, svc *bulk.Service) (kill func()) {
	t.Helper()
	r, err := jobs.New(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Handle(jobs.Task{Name: bulk.TaskRun, Run: svc.Run}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	kill = sync.OnceFunc(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(kill)
	return kill
}

func whole() *filter.Filter { return new(filter.Filter) }

var addX = bulk.Action{Kind: bulk.Tag, Add: []string{"x"}}

// await asks until the job has ended.
func await(t *testing.T, svc *bulk.Service, id string) bulk.Job {
	t.Helper()
	for {
		j, err := svc.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if j.State != bulk.Running {
			return j
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the job does not end")
		case <-time.After(20 * time.Millisecond): // nothing tells of a job's end
		}
	}
}

// TestSurvivesAProcess: a job whose process ends in the middle continues in another one, and ends with one result for each robot.
func TestSurvivesAProcess(t *testing.T) {
	const n = bulk.PartSize + 30
	svc, _, f, pool := open(t, n)
	f.at, f.hold = make(chan thing.ID), make(chan struct{})
	kill := run(t, pool, svc)
	j, err := svc.Start(t.Context(), bulk.Draft{Filter: whole(), Action: addX, By: "op"})
	if err != nil || j.Total != n || j.Open != n || j.State != bulk.Running || j.Text != "add tag x" {
		t.Fatalf("%+v, %v", j, err)
	}
	for range 30 { // into the second batch
		<-f.at
		select {
		case f.hold <- struct{}{}:
		case id := <-f.at: // the other part began
			_ = id
			f.hold <- struct{}{}
		}
	}
	kill()
	mid, err := svc.Job(t.Context(), j.ID)
	if err != nil || mid.State != bulk.Running || mid.Open == 0 || mid.Done == 0 || mid.Done+mid.Open != n {
		t.Fatalf("after the end of its process: %+v, %v", mid, err)
	}
	f.at, f.hold = nil, nil
	run(t, pool, svc)
	end := await(t, svc, j.ID)
	if end.State != bulk.Done || end.Done != n || end.Closed == nil {
		t.Errorf("%+v", end)
	}
	for _, id := range f.ids {
		if f.done[id] < 1 || f.done[id] > 2 {
			t.Errorf("%s: done %d times", id, f.done[id])
		}
	}
	all, err := svc.Results(t.Context(), j.ID, "", "", 1000)
	if err != nil || len(all) != n || all[0].State != bulk.ItemDone || !strings.HasPrefix(all[0].Detail, "x") || all[0].At == nil {
		t.Errorf("%d results, %v; the first %+v", len(all), err, all[0])
	}
	page, err := svc.Results(t.Context(), j.ID, bulk.ItemDone, all[4].Thing, 3)
	if err != nil || len(page) != 3 || page[0].Thing != all[5].Thing {
		t.Errorf("a page: %+v, %v", page, err)
	}
}

// TestLaterIsTriedAgain: a temporary failure keeps a robot open, a permanent one is its result; internal errors are not shown.
func TestLaterIsTriedAgain(t *testing.T) {
	svc, store, f, pool := open(t, 3)
	f.away = true
	j, err := svc.Start(t.Context(), bulk.Draft{Things: []thing.ID{"vic:0002", "vic:0000", "vic:0000", "vic:gone"}, Action: addX, By: "op"})
	if err != nil || j.Total != 3 {
		t.Fatal(j, err)
	}
	part := bulk.PartID(j.ID, 0)
	if err := svc.Run(t.Context(), part); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("while it is away: %v", err)
	}
	if j, err = svc.Job(t.Context(), j.ID); err != nil || j.Open != 3 {
		t.Errorf("while it is away: %+v, %v", j, err)
	}
	f.away = false
	if err := svc.Run(t.Context(), part); err != nil {
		t.Fatal(err)
	}
	if err := svc.Run(t.Context(), part); err != nil { // once more is as once
		t.Fatal(err)
	}
	j, err = svc.Job(t.Context(), j.ID)
	if err != nil || j.State != bulk.Done || j.Done != 2 || j.Failed != 1 || f.done["vic:0000"] != 1 {
		t.Errorf("%+v, %v; %v", j, err, f.done)
	}
	bad, err := svc.Results(t.Context(), j.ID, bulk.ItemFailed, "", 10)
	if err != nil || len(bad) != 1 || bad[0].Thing != "vic:gone" || !strings.Contains(bad[0].Detail, "not known") {
		t.Errorf("%+v, %v", bad, err)
	}
	// A setting shows its value, but not a place, and how many owners' choices it replaces.
	set := bulk.Draft{Things: f.ids, Action: bulk.Action{Kind: bulk.Set, Fields: map[string]json.RawMessage{"eye_color": json.RawMessage(`"TIP_OVER_TEAL"`), "default_location": json.RawMessage(`"Main St 1"`)}}}
	if p, err := svc.Preview(t.Context(), set); err != nil || p.Owned != 1 ||
		p.Entry(set) != "set default_location=(a place), eye_color=TIP_OVER_TEAL of vic.RobotSettings; named robots; replaces the choice of the owners of 1" {
		t.Errorf("%+v, %v: %s", p, err, p.Entry(set))
	}
	// An error of ours.
	k, err := svc.Start(t.Context(), bulk.Draft{Things: f.ids[:1], Action: bulk.Action{Kind: bulk.Set, Fields: map[string]json.RawMessage{"master_volume": json.RawMessage("2")}}, By: "op"})
	if err != nil || k.Text != "set master_volume=2 of vic.RobotSettings" {
		t.Fatal(k, err)
	}
	if err := svc.Run(t.Context(), bulk.PartID(k.ID, 0)); err != nil {
		t.Fatal(err)
	}
	if bad, err = svc.Results(t.Context(), k.ID, "", "", 10); err != nil || bad[0].State != bulk.ItemFailed || bad[0].Detail != "internal error" {
		t.Errorf("%+v, %v", bad, err)
	}
	// A task that River gave up is ordered again; a job that lost its last task is ended.
	l, err := svc.Start(t.Context(), bulk.Draft{Things: f.ids, Action: bulk.Action{Kind: bulk.Cohort, Cohort: "byhand"}, By: "op"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `DELETE FROM river_job`); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE bulk_job SET created = created - interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	if err := svc.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, pool, svc)
	if l = await(t, svc, l.ID); l.Done != 3 || !slices.Contains(f.tags["vic:0001"], "picked") {
		t.Errorf("%+v, %v", l, f.tags)
	}
	if err := store.Forget(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Job(t.Context(), l.ID); errs.KindOf(err) != errs.NotFound {
		t.Errorf("forgotten: %v", err)
	}
	if err := svc.Run(t.Context(), bulk.PartID(l.ID, 0)); err != nil {
		t.Errorf("a part of a job that is gone: %v", err)
	}
}

// TestOnceForAKey: a request made twice, also at the same time, is one job; a key does not stand for two things.
func TestOnceForAKey(t *testing.T) {
	svc, _, _, _ := open(t, 3)
	d := bulk.Draft{Filter: whole(), Action: bulk.Action{Kind: bulk.Command, Command: "ping"}, Key: "k1", By: "op"}
	ids := make([]string, 4)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			j, err := svc.Start(t.Context(), d)
			if err != nil {
				t.Error(err)
			}
			ids[i] = j.ID
		})
	}
	wg.Wait()
	if slices.Sort(ids); ids[0] != ids[3] {
		t.Errorf("jobs %v, want one", ids)
	}
	other := d
	other.Action = bulk.Action{Kind: bulk.Command, Command: "sync"}
	if _, err := svc.Start(t.Context(), other); errs.CodeOf(err) != "key_used" {
		t.Errorf("the key for something else: %v", err)
	}
	other = d
	other.By = "another"
	if j, err := svc.Start(t.Context(), other); err != nil || j.ID == ids[0] {
		t.Errorf("somebody else's key: %v, %v", j.ID, err)
	}
	if list, err := svc.Jobs(t.Context(), 10); err != nil || len(list) != 2 || list[0].By != "another" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestCancel(t *testing.T) {
	svc, _, f, _ := open(t, 3)
	j, err := svc.Start(t.Context(), bulk.Draft{Filter: whole(), Action: addX, By: "op"})
	if err != nil {
		t.Fatal(err)
	}
	if j, err = svc.Cancel(t.Context(), j.ID); err != nil || j.State != bulk.Cancelled || j.Dropped != 3 || j.Open != 0 {
		t.Errorf("%+v, %v", j, err)
	}
	if err := svc.Run(t.Context(), bulk.PartID(j.ID, 0)); err != nil || len(f.done) != 0 {
		t.Errorf("after that: %v, %v", err, f.done)
	}
	if j, err = svc.Cancel(t.Context(), j.ID); err != nil || j.State != bulk.Cancelled {
		t.Errorf("again: %+v, %v", j, err)
	}
}

func TestStartRefuses(t *testing.T) {
	svc, _, f, _ := open(t, 3)
	two := 2
	some := f.ids[:1]
	for name, c := range map[string]struct {
		d    bulk.Draft
		kind errs.Kind
		want string
	}{
		"nobody":                  {bulk.Draft{Action: addX}, errs.Invalid, "either a filter or "},
		"both":                    {bulk.Draft{Filter: whole(), Things: some, Action: addX}, errs.Invalid, "either a filter or "},
		"more than shown":         {bulk.Draft{Filter: whole(), Action: addX, Expect: &two}, errs.Conflict, "3 robots now, 2 were expected"},
		"none selected":           {bulk.Draft{Filter: ptr(filter.MustParse("species:pleo")), Action: addX}, errs.Invalid, "no robot"},
		"no thing":                {bulk.Draft{Things: []thing.ID{"cat:1"}, Action: addX}, errs.Invalid, "want species:serial"},
		"unknown to this release": {bulk.Draft{Things: some}, errs.Invalid, "want one of tag, command, set, cohort"},
		"no tag":                  {bulk.Draft{Things: some, Action: bulk.Action{Kind: bulk.Tag}}, errs.Invalid, "want 1 to 32 tags"},
		"bad tag":                 {bulk.Draft{Things: some, Action: bulk.Action{Kind: bulk.Tag, Add: []string{"A"}}}, errs.Invalid, "lower-case"},
		"bad command":             {bulk.Draft{Things: some, Action: bulk.Action{Kind: bulk.Command, Command: "dance"}}, errs.Invalid, "dance"},
		"releases of many":        {bulk.Draft{Things: some, Action: bulk.Action{Kind: bulk.Command, Command: "robot_release"}}, errs.Invalid, "one at a time"},
		"lines for many":          {bulk.Draft{Things: some, Action: bulk.Action{Kind: bulk.Command, Command: "robot_do", Args: json.RawMessage(`{"line":"robot.go(1)"}`)}}, errs.Invalid, "one at a time"},
		"for ever":                {bulk.Draft{Things: some, Action: bulk.Action{Kind: bulk.Command, Command: "ping", ExpiresInMS: 1 << 62}}, errs.Invalid, "expires_in_ms"},
		"bad value":               {bulk.Draft{Things: some, Action: bulk.Action{Kind: bulk.Set, Fields: map[string]json.RawMessage{"master_volume": json.RawMessage("9")}}}, errs.Invalid, "0 MUTE"},
		"another document":        {bulk.Draft{Things: some, Action: bulk.Action{Kind: bulk.Set, Doc: "vic.AppTokens", Fields: map[string]json.RawMessage{"a": json.RawMessage("9")}}}, errs.Invalid, "want vic.RobotSettings"},
		"a cohort of a rule":      {bulk.Draft{Things: some, Action: bulk.Action{Kind: bulk.Cohort, Cohort: "byrule"}}, errs.Invalid, "species:vic"},
		"another's fields":        {bulk.Draft{Things: some, Action: bulk.Action{Kind: bulk.Tag, Add: []string{"a"}, Command: "ping"}}, errs.Invalid, "action tag"},
		"long key":                {bulk.Draft{Things: some, Action: addX, Key: strings.Repeat("k", 65)}, errs.Invalid, "at most 64"},
	} {
		_, err := svc.Start(t.Context(), c.d)
		if err == nil || errs.KindOf(err) != c.kind || !strings.Contains(errs.Public(err), c.want) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.kind, c.want)
		}
	}
	p, err := svc.Preview(t.Context(), bulk.Draft{Filter: whole(), Action: bulk.Action{Kind: bulk.Tag, Add: []string{"a"}, Remove: []string{"b"}}})
	if err != nil || p.Count != 3 || len(p.Sample) != 3 || p.Text != "add tag a, remove tag b" {
		t.Errorf("preview %+v, %v", p, err)
	}
	for _, id := range []string{"x", "00000000-0000-4000-8000-000000000000"} {
		if _, err := svc.Job(t.Context(), id); errs.KindOf(err) != errs.NotFound {
			t.Errorf("job %s: %v", id, err)
		}
		if _, err := svc.Cancel(t.Context(), id); errs.KindOf(err) != errs.NotFound {
			t.Errorf("cancel %s: %v", id, err)
		}
	}
}

func ptr[T any](v T) *T { return &v }
