package bootparam

import (
	"os"
	"testing"

	"kennel/edge/env"
)

// TestParse: VEC-BOOT-08.
func TestParse(t *testing.T) {
	for line, want := range map[string]env.Boot{
		"":                               {},
		"root=/dev/x quiet":              {},
		"anki.unbrick=1 root=/dev/x\n":   {Recovery: true},
		"quiet anki.unbrick":             {Recovery: true},
		"anki.unbrick=0 anki.dev=0":      {},
		"anki.unbricked=1 anki.devel":    {},
		"root=/dev/x anki.developer":     {},
		"androidboot.slot_suffix=_b rw":  {Slot: "b"},
		"quiet anki.dev rw":              {Dev: true},
		"dm=\"system none ro\" anki.dev": {Dev: true},
		"anki.unbrick=1 anki.dev=1":      {Dev: true, Recovery: true},
	} {
		if got := Parse(line); got != want {
			t.Errorf("%q: %+v, want %+v", line, got, want)
		}
	}
}

// TestRead: without the file nothing was said; one that cannot be read is no normal boot either.
func TestRead(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if p, err := Read(root); p != (env.Boot{}) || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
	if err := root.MkdirAll(File, 0o755); err != nil {
		t.Fatal(err)
	}
	if p, err := Read(root); err == nil {
		t.Errorf("a folder says %+v", p)
	}
}
