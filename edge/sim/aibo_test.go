package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/edge/bodies"
	"kennel/edge/body/bodysim"
	"kennel/edge/env/robotfs"
	"kennel/infra/thing"
)

// TestModels: a simulated AIBO is the model that its folder names, its core too; without one it is the usual model, and another word is refused before
// anything is made.
func TestModels(t *testing.T) {
	species, _ := bodies.Of(thing.AIBO)
	for model, want := range map[string]int{"": 20, "ers-110": 18, "ers-210": 20, "ers-220": 15, "ers-310": 15, "ers-7": 20} {
		dir := filepath.Join(t.TempDir(), "robot")
		if err := Make(dir, Birth{Thing: "aibo:00e20100", Secret: "s", RootPEM: testRoot(t), OSVersion: "2.0.0.6074", Model: model}); err != nil {
			t.Fatal(err)
		}
		m, err := species.ModelIn(dir)
		if err != nil || len(m.Parts) != want {
			t.Errorf("%q: %d joints, want %d, %v", model, len(m.Parts), want, err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close() // read only
		kind, err := speciesOf("aibo:00e20100")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kind.New(bodysim.Place{Root: root, Volts: kind.Volts}); err != nil {
			t.Errorf("%q: %v", model, err)
		}
		if err := robotfs.WriteFile(root, robotfs.ModelFile, []byte("ers-9\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := species.ModelIn(dir); err == nil {
			t.Error("robotd takes a model that is none")
		}
		if _, err := kind.New(bodysim.Place{Root: root, Volts: kind.Volts}); err == nil {
			t.Error("the simulator takes a model that is none")
		}
	}
	dir := filepath.Join(t.TempDir(), "robot")
	err := Make(dir, Birth{Thing: "aibo:00e20100", Model: "ers-9"})
	if _, made := os.Stat(dir); err == nil || !strings.Contains(err.Error(), "ers-210") || made == nil {
		t.Errorf("made %v: %v", made, err)
	}
}
