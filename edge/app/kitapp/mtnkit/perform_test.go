package mtnkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/edge/env/robotfs"
	"kennel/infra/cli"
)

// TestCheckBalance: with -balance the row in which the body tips is a finding, and only then; a motion that does not tip has none.
func TestCheckBalance(t *testing.T) {
	desk(t)
	fall := strings.Replace(rise, "a_sleep#sit_rise", "a_stand#stand_fall", 1)
	lines := strings.Split(strings.TrimSpace(fall), "\n")
	stand := "MOUTH=-3 FL_LEG_VERT=-10 FL_LEG_KNEE=30 FR_LEG_VERT=-10 FR_LEG_KNEE=30 BL_LEG_KNEE=24 BR_LEG_KNEE=24"
	text := strings.Join(lines[:4], "\n") + "\npose 0 " + stand + "\npose 1600ms FL_LEG_VERT=-70 FR_LEG_VERT=-70 BL_LEG_VERT=-60 BR_LEG_VERT=-60\n"
	if err := os.WriteFile("fall.txt", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		tips bool
	}{
		{[]string{"check", "fall.txt", "-strict", "-o", "json"}, -1, false},
		{[]string{"check", "fall.txt", "-balance", "-o", "json"}, cli.ExitOK, true},
		{[]string{"check", "fall.txt", "-balance", "-strict", "-o", "json"}, cli.ExitFailed, true},
		{[]string{"check", "rise.mtn", "-balance", "-strict", "-o", "json"}, cli.ExitOK, false},
	} {
		code, out, errOut := run(t, "", tc.args...)
		if tips := strings.Contains(out, `"tip"`); tips != tc.tips || tc.code >= 0 && code != tc.code {
			t.Errorf("%v: %d %s %s", tc.args, code, out, errOut)
		}
	}
}

// TestPerformMistakes: a folder that is none, a model that is none, a robot that does not run, and a motion that is none.
func TestPerformMistakes(t *testing.T) {
	desk(t)
	dir, err := os.OpenRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := robotfs.WriteFile(dir, filepath.Join("bad", robotfs.ModelFile), []byte("ers-9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
	}{
		{[]string{"perform", "bow"}, cli.ExitUsage},
		{[]string{"perform", "-root", "nowhere", "bow"}, cli.ExitNotFound},
		{[]string{"perform", "-root", "bad", "bow"}, cli.ExitUsage},
		{[]string{"perform", "-root", ".", "no-such-motion"}, cli.ExitNotFound},
		{[]string{"perform", "-root", ".", "bow"}, cli.ExitUnavailable},
	} {
		if code, out, errOut := run(t, "", tc.args...); code != tc.code || errOut == "" {
			t.Errorf("%v: %d %s %s", tc.args, code, out, errOut)
		}
	}
}
