package docs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/jdocs"
)

// running starts Run and returns what the robot was told and what was pushed, as it comes.
func running(t *testing.T, r *robot) (changed chan Change, pushed chan uint64, stop func()) {
	t.Helper()
	changed, pushed = make(chan Change, 64), make(chan uint64, 64) // more than any test here makes
	r.cfg.OnChanged = func(c Change) { changed <- c }
	r.cfg.OnPushed = func(n jdocs.Name, v uint64) {
		if n == jdocs.RobotSettings {
			pushed <- v
		}
	}
	r.boot()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
	t.Cleanup(stop)
	return changed, pushed, stop
}

func next[T any](t *testing.T, what string, c chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: nothing happened", what)
		panic("unreachable")
	}
}

func TestRun(t *testing.T) {
	c := newCloud(t)
	r := newRobot(t, c)
	changed, pushed, stop := running(t, r)
	r.Connected()
	if v := next(t, "first push", pushed); v != 1 {
		t.Errorf("pushed version %d, want 1", v)
	}

	// The cloud changes, a hint comes: the file has it within a second (issue 2, 3).
	start := time.Now()
	c.set(jdocs.RobotSettings, `{"master_volume":1}`)
	r.Hint(map[string]uint64{"vic.RobotSettings": 2, "vic.Other": 9})
	if ch := next(t, "change from the cloud", changed); ch.Source != FromCloud || string(ch.Fields["master_volume"]) != "1" {
		t.Errorf("told %+v, want volume 1 from the cloud", ch)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}

	// A program edits the file, in place.
	p := filepath.Join(r.dir, settingsFile)
	b, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(strings.Replace(string(b), `"en-US"`, `"de-DE"`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if ch := next(t, "change of the file", changed); ch.Source != FromFile || string(ch.Fields["locale"]) != `"de-DE"` {
		t.Errorf("told %+v, want locale de-DE from the file", ch)
	}
	if v := next(t, "push of the edit", pushed); v != 3 {
		t.Errorf("pushed version %d, want 3", v)
	}

	// Several changes in a row are one write, if the machine leaves this test no pause longer than the save period between them: one of five rounds.
	together := false
	for round := 0; round < 5 && !together; round++ {
		before := c.doc(jdocs.RobotSettings).Version
		last := ""
		for i := 1; i <= 3; i++ {
			last = fmt.Sprintf(`"eye_color":%d`, (3*round+i)%7)
			r.set("{" + last + "}")
			next(t, "change on the robot", changed)
		}
		v := uint64(0)
		for rev := c.doc(jdocs.RobotSettings); v != rev.Version || !strings.Contains(rev.JSON, last); rev = c.doc(jdocs.RobotSettings) {
			v = next(t, "push of three changes", pushed)
		}
		together = v == before+1
	}
	if !together {
		t.Error("three changes in a row were never one write")
	}

	// Counters are flushed at the end.
	r.AddStats(map[string]float64{"Pet.ms": 5})
	stop()
	want(t, "Pet.ms", r.field(statsFile, "Pet.ms"), any(5.0))
}

func TestRunWhenTheFolderIsReplaced(t *testing.T) {
	r := newRobot(t, newCloud(t))
	changed, _, _ := running(t, r)
	// Wait until it watches: the first change is seen.
	r.set(`{"eye_color":1}`)
	next(t, "change on the robot", changed)
	dir := filepath.Join(r.dir, filepath.Dir(settingsFile))
	b, err := os.ReadFile(filepath.Join(r.dir, settingsFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	r.write(settingsFile, strings.Replace(string(b), `"eye_color": 1`, `"eye_color": 5`, 1))
	for {
		if ch := next(t, "change in the new folder", changed); string(ch.Fields["eye_color"]) == "5" {
			return
		}
	}
}

func TestOfflineNothingIsTried(t *testing.T) {
	c := newCloud(t)
	r := newRobot(t, c)
	changed, pushed, _ := running(t, r)
	r.Connected()
	next(t, "first push", pushed)
	r.Disconnected()
	r.set(`{"eye_color":1}`)
	next(t, "change on the robot", changed)
	if at := r.at(r.docs[0]); !at.IsZero() {
		t.Errorf("due at %v, want never", at)
	}
	r.Connected() // reconnect: at once, without waiting for more changes
	if v := next(t, "push after reconnect", pushed); v != 2 {
		t.Errorf("pushed version %d, want 2", v)
	}
}

// TestFlushHourly: counters reach the local copy an hour after the last time at most (VEC-DOC-15).
func TestFlushHourly(t *testing.T) {
	r := newRobot(t, newCloud(t)).boot()
	for _, when := range []string{"after the start", "after a flush"} {
		if in := time.Until(r.flushAt); in > time.Hour || in < 50*time.Minute {
			t.Errorf("%s the next flush is in %v, want an hour", when, in)
		}
		r.flushAt = time.Time{}
		if err := r.FlushStats(); err != nil {
			t.Fatal(err)
		}
	}
}
