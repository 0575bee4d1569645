package crash_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cloud/telemetry/crash"
	"kennel/cloud/telemetry/crash/crashpg"
	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	rex = thing.ID("vic:00e20100")
	max = thing.ID("vic:00e20101")
)

// rig is a service on real stores with a clock of the test's.
type rig struct {
	*testing.T
	svc   *crash.Service
	told  []string // events
	store *crashpg.Store
	blobs *blob.Store
	mu    sync.Mutex
	now   time.Time
}

func (r *rig) clock() time.Time { r.mu.Lock(); defer r.mu.Unlock(); return r.now }

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, store: crashpg.New(pgtest.New(t)), blobs: blobtest.New(t), now: time.Now().UTC().Truncate(time.Second)}
	var err error
	if r.svc, err = crash.New(crash.Config{Store: r.store, Symbols: r.store, Objects: r.blobs, Now: r.clock, Log: slog.New(slog.DiscardHandler),
		Tell: func(_ context.Context, c crash.Crash, signature string) error {
			r.told = append(r.told, c.Program+" "+signature+" "+c.Version)
			return nil
		}}); err != nil {
		t.Fatal(err)
	}
	return r
}

// record is a crash record of agentd with a function on top of its stack.
func record(version, function, salt string) []byte {
	return []byte("kennel-crash 1\nprogram: agentd\nversion: " + version + "\nboot_id: b-" + salt + "\ntime: 2020-01-01T00:00:00Z\n\n" +
		"panic: boom " + salt + "\n\ngoroutine 7 [running]:\n" + function + "(0xc000012120, 0x5)\n\t/src/x.go:12 +0x1d\nmain.main()\n\t/src/main.go:3 +0x20\n")
}

func (r *rig) take(rep crash.Report) string {
	r.Helper()
	id, err := r.svc.Take(r.Context(), rep)
	if err != nil {
		r.Fatalf("take: %v", err)
	}
	return id
}

func (r *rig) groups(q crash.GroupQuery) []crash.Group {
	r.Helper()
	list, err := r.svc.Groups(r.Context(), q)
	if err != nil {
		r.Fatal(err)
	}
	return list
}

func (r *rig) objects() (keys []string) {
	r.Helper()
	for o, err := range r.blobs.List(r.Context(), crash.Prefix) {
		if err != nil {
			r.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

// A crash is stored once for each (thing, dump), found by robot and group, and downloaded as it came (VEC-CRS-06).
func TestTake(t *testing.T) {
	r := newRig(t)
	rep := crash.Report{Thing: rex, Name: "agentd-20261123T100000Z-7.dmp", OSVersion: "2.0.0.6074", At: r.now.Add(-time.Minute), Dump: record("2.0.0.6074", "main.f", "1"), Log: []byte("last words\n")}
	id := r.take(rep)
	var ids sync.Map
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			again, err := r.svc.Take(context.Background(), rep)
			if err != nil {
				t.Error(err)
			}
			ids.Store(again, true)
		})
	}
	all.Wait()
	ids.Range(func(k, _ any) bool {
		if k != id {
			t.Errorf("the same crash is %v, and was %s", k, id)
		}
		return true
	})
	other := rep
	other.Thing = max
	r.take(other)
	groups := r.groups(crash.GroupQuery{})
	if len(groups) != 1 || groups[0].Crashes != 2 || groups[0].Robots != 2 || groups[0].Signature != "main.f | main.main" || groups[0].Program != "agentd" || groups[0].Days[13] != 2 {
		t.Fatalf("groups %+v", groups)
	}
	list, err := r.svc.Crashes(t.Context(), crash.Query{Thing: rex})
	if err != nil || len(list) != 1 {
		t.Fatalf("crashes of a robot: %v %+v", err, list)
	}
	c, err := r.svc.Crash(t.Context(), id)
	if err != nil || c.Version != "2.0.0.6074" || c.BootID != "b-1" || c.Reason != "panic: boom 1" || !c.At.Equal(rep.At) || c.LogSize != 11 || c.Group != groups[0].ID || len(c.Analysis.Threads) != 1 {
		t.Fatalf("crash %v %+v", err, c)
	}
	for log, want := range map[bool]string{false: string(rep.Dump), true: "last words\n"} {
		body, err := r.svc.Open(t.Context(), c, log)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(body)
		if body.Close(); string(b) != want {
			t.Errorf("log %v: %q", log, b)
		}
	}
	for _, key := range r.objects() {
		if strings.Contains(key, "00e20100") {
			t.Errorf("key %s names the robot", key)
		}
	}
}

// A refusal says what is wrong, and nothing is stored.
func TestTakeRefuses(t *testing.T) {
	r := newRig(t)
	for name, c := range map[string]struct {
		rep  crash.Report
		want string
	}{
		"empty":      {crash.Report{}, "the dump is empty"},
		"large":      {crash.Report{Dump: make([]byte, crash.MaxDump+1)}, "want at most 16777216"},
		"large log":  {crash.Report{Dump: []byte("x"), Log: make([]byte, crash.MaxLog+1)}, "the log has"},
		"other file": {crash.Report{Dump: []byte("\x7fELF\x01\x01")}, "want a minidump (MDMP) or a crash record"},
		"long name":  {crash.Report{Dump: record("1", "f", ""), Name: strings.Repeat("x", 201)}, "name: want at most 200 bytes"},
		"zero byte":  {crash.Report{Dump: record("1", "f", ""), Version: "a\x00"}, "version: want at most"},
	} {
		if _, err := r.svc.Take(t.Context(), c.rep); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if keys := r.objects(); len(keys) != 0 {
		t.Errorf("stored: %v", keys)
	}
}

// A resolved group stays so for crashes of versions that had it, and a later version reopens it.
func TestRegression(t *testing.T) {
	r := newRig(t)
	crashed := func(version, salt string) crash.State {
		t.Helper()
		r.take(crash.Report{Thing: rex, Dump: record(version, "main.f", salt)})
		return r.groups(crash.GroupQuery{})[0].State
	}
	crashed("2.0.0.6074", "1")
	id := r.groups(crash.GroupQuery{})[0].ID
	note := "fixed by hand"
	if g, err := r.svc.Change(t.Context(), id, crash.Change{State: crash.Resolved, Note: &note}, "ann"); err != nil || g.State != crash.Resolved || g.Note != note || g.By != "ann" {
		t.Fatalf("%v %+v", err, g)
	}
	for _, step := range []struct {
		version string
		want    crash.State
	}{{"2.0.0.6074", crash.Resolved}, {"1.9.0.1", crash.Resolved}, {"2.0.1.6075", crash.Regressed}} {
		if got := crashed(step.version, "a"+step.version); got != step.want {
			t.Errorf("after a crash of %s: %s, want %s", step.version, got, step.want)
		}
	}
	if _, err := r.svc.Change(t.Context(), id, crash.Change{State: crash.Resolved, FixedIn: "2.1.0.1"}, "ann"); err != nil {
		t.Fatal(err)
	}
	if got := crashed("2.0.9.1", "b"); got != crash.Resolved {
		t.Errorf("before the version that fixes it: %s", got)
	}
	if got := crashed("2.1.0.1", "c"); got != crash.Regressed {
		t.Errorf("in the version that fixes it: %s", got)
	}
	if g := r.groups(crash.GroupQuery{State: crash.Regressed, Version: "2.1.0.1", Program: "agentd"}); len(g) != 1 || !slices.Contains(g[0].Versions, "1.9.0.1") {
		t.Errorf("%+v", g)
	}
	if g := r.groups(crash.GroupQuery{State: crash.Open}); len(g) != 0 {
		t.Errorf("open: %+v", g)
	}
	for _, c := range []crash.Change{{}, {State: crash.Regressed}, {State: crash.Open, FixedIn: "1"}} {
		if _, err := r.svc.Change(t.Context(), id, c, "ann"); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Crashes end after a while, with their objects; so do objects without a crash. The crashes of a person's time end with the account.
func TestEnds(t *testing.T) {
	r := newRig(t)
	r.take(crash.Report{Thing: rex, Dump: record("1", "main.f", "old"), Log: []byte("x")})
	if err := r.blobs.Put(t.Context(), crash.Prefix+"dumps/lost", strings.NewReader("x"), 1, blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	r.pass(crash.DefaultKeep + time.Minute)
	late := r.take(crash.Report{Thing: rex, Dump: record("1", "main.f", "new"), Log: []byte("x")})
	if n, err := r.svc.Expire(t.Context()); err != nil || n != 2 {
		t.Fatalf("expired %d, %v; want one crash and one object without", n, err)
	}
	if g := r.groups(crash.GroupQuery{}); len(g) != 1 || g[0].Crashes != 2 || g[0].Robots != 1 {
		t.Errorf("%+v", g)
	}
	r.take(crash.Report{Thing: max, Dump: record("1", "main.f", "other")})
	// Words that only the person's robot sent: a program's name, a version, the name of a function.
	noted := r.take(crash.Report{Thing: rex, Version: "planted", Program: "plantedprogram", Dump: record("1", "main.planted", "own")})
	r.take(crash.Report{Thing: rex, Version: "planted", Dump: record("1", "main.f", "same")})
	c, err := r.svc.Crash(t.Context(), noted)
	if err != nil {
		t.Fatal(err)
	}
	note := "looked at"
	if _, err := r.svc.Change(t.Context(), c.Group, crash.Change{Note: &note}, "ann"); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	of := thing.Stretch{Thing: rex, Since: r.now.Add(-time.Hour), Until: r.now.Add(time.Hour)}
	if err := r.svc.Files(t.Context(), of, func(name string, write func(io.Writer) error) error {
		var b strings.Builder
		err := write(&b)
		files[name] = b.String()
		return err
	}); err != nil || len(files) != 4 || files[rex.Slug()+"/"+late+".log"] != "x" || !strings.Contains(files[rex.Slug()+"/"+noted+".dmp"], "main.planted") {
		t.Errorf("files of the export %q, %v; want three dumps and a log", slices.Sorted(maps.Keys(files)), err)
	}
	if n, err := r.svc.Erase(t.Context(), of); err != nil || n != 3 {
		t.Fatalf("erased %d, %v", n, err)
	}
	if g := r.groups(crash.GroupQuery{}); len(g) != 1 || g[0].Crashes != 4 || !slices.Equal(g[0].Versions, []string{"1"}) {
		t.Errorf("groups after the erasure: %+v; want the one of both robots, without words of the person's alone", g)
	}
	if _, err := r.svc.Crash(t.Context(), late); errs.CodeOf(err) != "unknown_crash" {
		t.Errorf("erased crash: %v", err)
	}
	if keys := r.objects(); len(keys) != 1 {
		t.Errorf("left: %v", keys)
	}
	// A group that no person has changed ends with the last crash that is kept of it; another waits for the next.
	noted = r.take(crash.Report{Thing: rex, Dump: record("1", "main.g", "own")})
	if c, err = r.svc.Crash(t.Context(), noted); err != nil {
		t.Fatal(err)
	}
	if _, err := r.svc.Change(t.Context(), c.Group, crash.Change{State: crash.Resolved}, "ann"); err != nil {
		t.Fatal(err)
	}
	r.pass(crash.DefaultKeep + time.Minute)
	if n, err := r.svc.Expire(t.Context()); err != nil || n != 2 {
		t.Fatalf("expired %d, %v", n, err)
	}
	if g := r.groups(crash.GroupQuery{}); len(g) != 1 || g[0].ID != c.Group {
		t.Errorf("groups without crashes: %+v; want the resolved one", g)
	}
}

// A genuine minidump is grouped by module and offset; when symbols come its group has functions, and keeps what people said (VEC-CRS-05, VEC-CRS-06).
func TestSymbolise(t *testing.T) {
	r := newRig(t)
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile("minidump/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	dump, sym := read("breakpad-amd64.dmp"), read("breakpad-amd64.sym")
	id := r.take(crash.Report{Thing: rex, Name: "d365.dmp", Version: "1.8.1.6051", Dump: dump})
	r.take(crash.Report{Thing: max, Name: "d365.dmp", Version: "1.8.1.6051", Dump: dump})
	before := r.groups(crash.GroupQuery{})
	if len(before) != 1 || before[0].Program != "vic-engine" || !strings.HasPrefix(before[0].Signature, "vic-engine+0x24cc") || before[0].Reason != "SIGSEGV (SEGV_MAPERR)" || before[0].Robots != 2 {
		t.Fatalf("%+v", before)
	}
	r.take(crash.Report{Thing: rex, Program: "agentd", Told: true, Dump: record("1", "main.f", "ours")})
	if want := []string{"vic-engine vic-engine+0x24cc 1.8.1.6051", "vic-engine vic-engine+0x24cc 1.8.1.6051"}; !slices.Equal(r.told, want) {
		t.Errorf("events %q, want %q: a program of ours sends its own", r.told, want)
	}
	before = r.groups(crash.GroupQuery{Program: "vic-engine"})
	note := "seen on the bench"
	if _, err := r.svc.Change(t.Context(), before[0].ID, crash.Change{State: crash.Resolved, Note: &note}, "ann"); err != nil {
		t.Fatal(err)
	}
	r.pass(time.Second)
	for bad, want := range map[string]string{"MODULE Linux arm 12 x\n": "want 33 to 40 hex digits", string(sym[:200]) + "\nrubbish\n": "want a record"} {
		if _, err := r.svc.Upload(t.Context(), strings.NewReader(bad), int64(len(bad)), "ann"); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v", bad, err)
		}
	}
	f, err := r.svc.Upload(t.Context(), bytes.NewReader(sym), int64(len(sym)), "ann")
	if err != nil || f.Module != "vic-engine" || f.DebugID != "3983974E3E1BE0D45C55B2B5C59FD7DF0" || f.Functions != 4 {
		t.Fatalf("%v %+v", err, f)
	}
	if n, err := r.svc.Symbolise(t.Context()); err != nil || n != 2 {
		t.Fatalf("%d crashes symbolised, %v", n, err)
	}
	if n, err := r.svc.Symbolise(t.Context()); err != nil || n != 0 {
		t.Fatalf("%d crashes symbolised again, %v", n, err)
	}
	after := r.groups(crash.GroupQuery{Program: "vic-engine"})
	if len(after) != 1 || after[0].Signature != "engine::lift_motor | engine::behaviour | engine::tick" || after[0].Crashes != 2 || after[0].Robots != 2 || after[0].State != crash.Resolved ||
		after[0].Note != note || !after[0].FirstSeen.Equal(before[0].FirstSeen) || !slices.Equal(after[0].Versions, before[0].Versions) {
		t.Fatalf("%+v", after)
	}
	c, err := r.svc.Crash(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if top := c.Analysis.Threads[0].Frames; top[0].File != "/src/engine/lift.cc" || top[0].Line != 9 || top[0].Trust != "context" || top[1].Trust != "cfi" || top[3].Function != "main" {
		t.Errorf("%+v", top)
	}
	r.take(crash.Report{Thing: rex, Version: "1.9.0.1", Dump: append(slices.Clone(dump), 0)}) // symbols are there already
	if g := r.groups(crash.GroupQuery{Program: "vic-engine"}); len(g) != 1 || g[0].Crashes != 3 || g[0].State != crash.Regressed {
		t.Errorf("%+v", g)
	}
	if _, err := r.svc.Upload(t.Context(), bytes.NewReader(sym), int64(len(sym)), "ann"); err != nil { // replaces it
		t.Fatal(err)
	}
	r.pass(2 * time.Hour)
	if n, err := r.svc.Expire(t.Context()); err != nil || n != 1 {
		t.Errorf("%d objects deleted, %v; want the symbols that were replaced", n, err)
	}
	if err := errors.Join(r.svc.Remove(t.Context(), f.DebugID)); err != nil {
		t.Error(err)
	}
	if err := r.svc.Remove(t.Context(), f.DebugID); !errors.Is(err, crash.ErrNoSymbols) {
		t.Errorf("removed twice: %v", err)
	}
}

// unreadable are objects of which one cannot be read now.
type unreadable struct {
	*blob.Store
	key string
}

var errAway = errors.New("the object store is away")

func (u unreadable) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blob.Info, error) {
	if key == u.key {
		return nil, blob.Info{}, errAway
	}
	return u.Store.Get(ctx, key, offset, length)
}

// A stored dump that the parser refuses by now is marked with the reason, once, and the others get their names; so they do when one cannot be read for a while.
func TestSymboliseBehindBadDump(t *testing.T) {
	r := newRig(t)
	dump, err := os.ReadFile("minidump/testdata/breakpad-amd64.dmp")
	if err != nil {
		t.Fatal(err)
	}
	sym, err := os.ReadFile("minidump/testdata/breakpad-amd64.sym")
	if err != nil {
		t.Fatal(err)
	}
	upload := func() {
		t.Helper()
		r.pass(time.Second)
		if _, err := r.svc.Upload(t.Context(), bytes.NewReader(sym), int64(len(sym)), "ann"); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Second)
	}
	get := func(id string) crash.Crash {
		t.Helper()
		c, err := r.svc.Crash(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	named := func(id string) bool { return get(id).Analysis.Threads[0].Frames[0].Function != "" }
	var ids []string
	for i := range 4 {
		ids = append(ids, r.take(crash.Report{Thing: thing.ID("vic:0000000" + string(rune('0'+i))), Name: "d.dmp", Version: "1", Dump: dump}))
	}
	slices.Sort(ids)
	bad, away := ids[0], ids[1]
	if err := r.blobs.Put(t.Context(), crash.Prefix+"dumps/"+bad, strings.NewReader("MDMP"), 4, blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	upload()
	elsewhere, err := crash.New(crash.Config{Store: r.store, Symbols: r.store, Objects: unreadable{r.blobs, crash.Prefix + "dumps/" + away}, Now: r.clock, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := elsewhere.Symbolise(t.Context()); n != 3 || !errors.Is(err, errAway) {
		t.Errorf("%d looked at, %v; want 3 and the error of the one that is away", n, err)
	}
	if get(bad).Problem == "" || get(bad).Analysis == nil || named(bad) || named(away) || !named(ids[2]) || !named(ids[3]) {
		t.Errorf("bad %q, %v %v %v %v", get(bad).Problem, named(bad), named(away), named(ids[2]), named(ids[3]))
	}
	if list, err := r.svc.Crashes(t.Context(), crash.Query{}); err != nil || slices.IndexFunc(list, func(c crash.Crash) bool { return c.ID == bad && c.Problem != "" }) < 0 {
		t.Errorf("operators do not see the problem in the list: %+v, %v", list, err)
	}
	if n, err := r.svc.Symbolise(t.Context()); n != 1 || err != nil || !named(away) {
		t.Errorf("back again: %d looked at, %v", n, err)
	}
	if n, err := r.svc.Symbolise(t.Context()); n != 0 || err != nil {
		t.Errorf("nothing is new: %d looked at, %v", n, err)
	}
	// A later parser takes it again.
	if err := r.blobs.Put(t.Context(), crash.Prefix+"dumps/"+bad, bytes.NewReader(dump), int64(len(dump)), blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	upload()
	if n, err := r.svc.Symbolise(t.Context()); n != 4 || err != nil || get(bad).Problem != "" || !named(bad) {
		t.Errorf("%d looked at, %v; problem %q", n, err, get(bad).Problem)
	}
}
