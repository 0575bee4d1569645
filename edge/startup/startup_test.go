package startup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"
)

// TestWalk: the steps are done in the table's order, each with its own time and its own failure; one that may not fail ends the start.
func TestWalk(t *testing.T) {
	now := time.Duration(0)
	var order []string
	step := func(name string, takes time.Duration, err error, goOn bool) Stage {
		return Stage{name, func(context.Context) error { order = append(order, name); now += takes; return err }, goOn}
	}
	broken := errors.New("broken")
	var told []Took
	r := New(func() time.Duration { return now }, func(s Took) { told = append(told, s) })
	err := r.Walk(t.Context(), step("one", time.Second, nil, false), step("two", 2*time.Second, broken, true), step("three", 0, nil, false))
	if err != nil {
		t.Error(err)
	}
	now += time.Minute // between two tables
	err = r.Walk(t.Context(), step("four", time.Millisecond, broken, false), step("five", 0, nil, false))
	if !errors.Is(err, broken) || err.Error() != "start: four: broken" {
		t.Errorf("it ended with %v", err)
	}
	if want := []string{"one", "two", "three", "four"}; !slices.Equal(order, want) {
		t.Errorf("steps %v, want %v", order, want)
	}
	want := []Took{
		{"one", 0, time.Second, nil}, {"two", time.Second, 3 * time.Second, broken}, {"three", 3 * time.Second, 3 * time.Second, nil},
		{"four", 63 * time.Second, 63*time.Second + time.Millisecond, broken},
	}
	if !slices.Equal(r.Done(), want) || !slices.Equal(told, want) {
		t.Errorf("done %v\ntold %v\nwant %v", r.Done(), told, want)
	}
	if got := want[3].Spent(); got != time.Millisecond {
		t.Errorf("spent %v", got)
	}
}

// TestWalkThatIsEnded: a step that waits when the program is to end did not fail.
func TestWalkThatIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := New(func() time.Duration { return 0 }, nil)
	err := r.Walk(ctx, Stage{Name: "wait", GoOn: true, Do: func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() }},
		Stage{Name: "never", Do: func(context.Context) error { t.Error("a step after the end"); return nil }})
	if !errors.Is(err, context.Canceled) || len(r.Done()) != 0 {
		t.Errorf("%v, %v", err, r.Done())
	}
}

func TestUptime(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := Uptime(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a system that does not say: %v", err)
	}
	if err := root.Mkdir("proc", 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]time.Duration{"20.51 71.30\n": 20510 * time.Millisecond, "0.00 0.00\n": 0,
		"350735.47 234388.90\n": 350735470 * time.Millisecond,
		"":                      -1, "20.51": -1, "-1.00 2.00": -1, "1e9 2": -1, "NaN 1": -1, "1234567890.00 1.00": -1, "1 2 3": -1, ".5 1": -1} {
		if err := root.WriteFile(UptimeFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := Uptime(root)
		if want < 0 && !errors.Is(err, ErrUptime) || want >= 0 && (err != nil || got != want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

func FuzzParseUptime(f *testing.F) {
	f.Add("20.51 71.30\n")
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := ParseUptime(s); err == nil && (d < 0 || d > 1_000_000_000*time.Second) {
			t.Errorf("%q is %v", s, d)
		}
	})
}
