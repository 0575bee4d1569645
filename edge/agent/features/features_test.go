package features

import (
	"os"
	"slices"
	"testing"

	"kennel/edge/env/robotfs"
	"kennel/infra/errs"
)

func open(t *testing.T, dir string) *Set {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	s, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names(s *Set, on bool) (out []string) {
	for _, f := range s.List() {
		if f.On == on {
			out = append(out, f.Name)
		}
	}
	return out
}

// TestDelivered: the 30 features of annex B, of which 8 are off as delivered and the three of Alexa here (VEC-DOC-11, VEC-AVS-02).
func TestDelivered(t *testing.T) {
	s := open(t, t.TempDir())
	if on, off := names(s, true), names(s, false); len(on) != 19 || !slices.Equal(off, []string{"Alexa", "Alexa_AU", "Alexa_UK", "AttentionTransfer", "CubeSpinner", "GazeDirection",
		"Invalid", "Laser", "Messaging", "PRDemo", "TestFeature"}) || !slices.Contains(on, "Keepaway") || !slices.Contains(on, "StayOnChargerUntilCharged") {
		t.Errorf("on %v, off %v", on, off)
	}
	if !s.On("NewerThanThis") {
		t.Error("a feature that nothing lists is off")
	}
}

// TestOverride: the file counts, an override more, until it is reset; a restart keeps it (VEC-DOC-11, VEC-DOC-12).
func TestOverride(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := robotfs.WriteFile(root, File, []byte(`[{"feature":"Volume","enabled":false},{"feature":"Laser","enabled":true},{"feature":"Own","enabled":false}]`), 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if s.On("Volume") || !s.On("Laser") || s.On("Own") || len(s.List()) != 31 {
		t.Errorf("%+v", s.List())
	}
	for _, o := range []Feature{{"Volume", true, Enabled}, {"Laser", false, Disabled}, {"PRDemo", true, Enabled}} {
		if err := s.Override(o.Name, o.Override); err != nil {
			t.Error(err)
		}
	}
	s = open(t, dir)
	for name, on := range map[string]bool{"Volume": true, "Laser": false, "PRDemo": true, "Own": false} {
		if s.On(name) != on {
			t.Errorf("after a restart %s is %v", name, !on)
		}
	}
	if !slices.Contains(s.List(), Feature{"Laser", false, Disabled}) {
		t.Errorf("%+v", s.List())
	}
	if err := s.Override("PRDemo", None); err != nil || s.On("PRDemo") {
		t.Errorf("given back: %v", err)
	}
	if err := s.Override("Fly", Enabled); errs.CodeOf(err) != "feature_unknown" {
		t.Errorf("unknown: %v", err)
	}
	if err := s.Override("Own", "on"); errs.KindOf(err) != errs.Invalid {
		t.Errorf("no state: %v", err)
	}
	if err := s.Reset(); err != nil || s.On("Volume") || !s.On("Laser") {
		t.Errorf("reset: %v, %+v", err, s.List())
	}
	if s := open(t, dir); s.On("Volume") {
		t.Error("the reset is forgotten")
	}
	if err := robotfs.WriteFile(root, Overrides, []byte("damage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(root); err == nil || s == nil || !s.On("Laser") {
		t.Errorf("damaged overrides: %v, want them as none beside the error", err)
	}
}
