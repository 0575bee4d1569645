package agentapp

import (
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"kennel/edge/agent/health/diagnosis"
	"kennel/edge/core/corelink"
	"kennel/edge/env/platform"
	"kennel/edge/startup"
)

// starter is a real-time core that says how its start was.
type starter struct {
	sleeper
	says []corelink.Message
}

func (s starter) Run(ctx context.Context, handle func(corelink.Message)) error {
	for _, m := range s.says {
		handle(m)
	}
	s.began()
	<-ctx.Done()
	return nil
}

const (
	spentEvent = "robot.init.time_spent_ms"
	made       = "slots user_data identity boot events documents parts owner commands supervisor"
)

// TestStartIsTold: VEC-BOOT-06, part of VEC-BOOT-11: each step of agentd's start is an event and a line of the report, in the order in which it
// was done, with those of robotd and the time that the system took before; an agentd that restarts in the same boot does not report the
// system's time.
func TestStartIsTold(t *testing.T) {
	dir, root, _ := newRobot(t, nil)
	if err := root.RemoveAll("run"); err != nil { // power came on
		t.Fatal(err)
	}
	if err := root.MkdirAll("proc", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile(startup.UptimeFile, []byte("3600.00 100.00\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		core := starter{sleeper{began: cancel}, []corelink.Message{&corelink.Hello{Program: "robotd", PID: 7},
			&corelink.Start{BeganUS: 5_000_000, Over: true, Stages: []corelink.StageTime{
				{Name: "socket", BeganUS: 5_000_000, EndedUS: 5_001_000}, {Name: "body", BeganUS: 5_001_000, EndedUS: 7_001_000, Error: "nobody is there"}}}}}
		a := newAgent(t, dir, root, func(c *Config) { c.Core = core })
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
		all := inOrder(t, root, spentEvent)
		seen = append(seen, strings.Join(all[len(strings.Fields(strings.Join(seen, " "))):], " "))
		var report []string
		for _, l := range a.facts().Start {
			report = append(report, l.Program+"/"+l.Step)
			if l.Step == "body" && (l.Problem != "nobody is there" || l.TookMS != 2000) {
				t.Errorf("%+v", l)
			}
			if l.Program == "system" && (l.TookMS < 3_590_000 || l.TookMS > 3_600_000) {
				t.Errorf("the system took %d ms until agentd began, an hour later", l.TookMS)
			}
		}
		want := []string{"robotd/socket", "robotd/body"}
		for _, s := range strings.Fields(made) {
			want = append(want, "agentd/"+s)
		}
		if len(seen) == 1 {
			want = slices.Insert(want, 0, "system/start")
		}
		// it may be over when all is
		if report = slices.DeleteFunc(report, func(s string) bool { return s == "agentd/reach_core" }); !slices.Equal(report, want) {
			t.Errorf("the report has %v, want %v", report, want)
		}
	}
	own := made + " start socket body start"
	for i, want := range []string{"start " + own, own} {
		got := strings.Join(slices.DeleteFunc(strings.Fields(seen[i]), func(s string) bool { return s == "reach_core" }), " ")
		if got != want {
			t.Errorf("start %d: events of %q, want %q", i, got, want)
		}
	}
}

// inOrder are s1 of the events of that name below root, as they were recorded.
func inOrder(t *testing.T, root *os.Root, name string) (out []string) {
	t.Helper()
	type numbered struct {
		Seq       uint64
		Event, S1 string
	}
	var all []numbered
	err := fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".ndjson") {
			return err
		}
		b, err := root.ReadFile(path)
		for line := range strings.Lines(string(b)) {
			var e numbered
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				return err
			}
			all = append(all, e)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(x, y numbered) int { return int(x.Seq) - int(y.Seq) })
	for _, e := range all {
		if e.Event == name {
			out = append(out, e.S1)
		}
	}
	return out
}

// TestStartThatFails: the error names the step; what comes after it is not done.
func TestStartThatFails(t *testing.T) {
	dir, root, _ := newRobot(t, nil)
	if err := root.RemoveAll("run"); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile("run", nil, 0o600); err != nil { // in the way of the boot's id
		t.Fatal(err)
	}
	_, err := New(root, Config{Root: dir, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.HasPrefix(err.Error(), "start: boot: boot id: ") {
		t.Errorf("it ended with %v", err)
	}
}

// TestFrugalStartIsQuiet: many robots in one process do not report their starts.
func TestFrugalStartIsQuiet(t *testing.T) {
	dir, root, _ := newRobot(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := newAgent(t, dir, root, func(c *Config) { c.Frugal, c.Core = true, starter{sleeper: sleeper{began: cancel}} })
	if err := a.Run(ctx); err != nil {
		t.Error(err)
	}
	if got := inOrder(t, root, spentEvent); len(got) > 0 {
		t.Errorf("events of %v", got)
	}
	if _, err := root.Stat(platform.BootIDFile); err != nil {
		t.Error(err)
	}
}

// TestDoctorShowsTheStart: what the agent left of it.
func TestDoctorShowsTheStart(t *testing.T) {
	dir, root, a := newRobot(t, nil)
	k := diagnosis.NewKeeper(root, a.facts, a.Now, a.Log)
	if err := k.Keep(); err != nil {
		t.Fatal(err)
	}
	_, out, _ := runCommand(dir, "", "doctor", "-offline")
	if !strings.Contains(out, "start       agentd, ms: slots ") || !strings.Contains(out, ", commands ") {
		t.Errorf("doctor says\n%s", out)
	}
}
