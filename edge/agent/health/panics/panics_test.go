package panics

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"kennel/infra/api/events"
)

// TestCollect is VEC-DGN-13: the last words of an earlier run are in the log and among the events after the next start, once.
func TestCollect(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, text := range map[string]string{
		Dir + "/1700000000":         "<0>[ 12.1] Oops\n<0>[ 12.2] Kernel panic - not syncing: Fatal exception\n<0> trace\xff\n",
		Dir + "/1700000001":         strings.Repeat("x", 2*32<<10) + "\nlast words",
		pstore + "/dmesg-ramoops-0": "Panic#1 Part1\nKernel panic - not syncing: Attempted to kill init!\n",
		check:                       "battery low\n",
	} {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := root.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 * most {
		if err := root.WriteFile(fmt.Sprintf("%s/%d%s", Dir, 1600000000+i, seen), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var got []events.Event
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, nil))
	Collect(root, func(e events.Event) { got = append(got, e) }, log)
	var words []string
	for _, e := range got {
		words = append(words, e.S1+" "+e.S2[:min(len(e.S2), 50)])
	}
	want := []string{Dir + "/1700000000 Kernel panic - not syncing: Fatal exception", Dir + "/1700000001 " + strings.Repeat("x", 50),
		pstore + "/dmesg-ramoops-0 Kernel panic - not syncing: Attempted to kill init"}
	if !slices.Equal(words, want) {
		t.Errorf("%q, want %q", words, want)
	}
	for _, want := range []string{"Oops", "last words", "kill init", `text="battery low"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the log does not say %s", want)
		}
	}
	if b.Len() > 3*32<<10 {
		t.Errorf("%d bytes of log", b.Len())
	}
	left, err := fs.Glob(root.FS(), Dir+"/*"+seen)
	if err != nil || len(left) != most || !slices.Contains(left, Dir+"/1700000001"+seen) {
		t.Errorf("%q are left, %v; want the newest %d", left, err, most)
	}
	got = nil
	Collect(root, func(e events.Event) { got = append(got, e) }, log)
	if len(got) != 0 {
		t.Errorf("again: %v", got)
	}
}
