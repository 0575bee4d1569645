package sdktest_test

import (
	"encoding/csv"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kennel/sdk/sdktest"
)

// TestExamples: the programs of examples/sdk do in each language what they say. Bodies with a motor drive them in cmd/e2e/lives.
func TestExamples(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin, "./examples/sdk/...")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	examples, err := filepath.Abs("../../examples/sdk")
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]func(name string) []string{
		"Go":     func(name string) []string { return []string{filepath.Join(bin, name)} },
		"Python": func(name string) []string { return []string{python, filepath.Join(examples, name+".py")} },
		"Node":   func(name string) []string { return []string{"node", filepath.Join(examples, name+".mjs")} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := func(name string) (robot *sdktest.Robot, said string) {
				t.Helper()
				robot = sdktest.Start(t, nil)
				robot.InRoom = true
				args := command(name)
				cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "KENNEL_ROBOT="+robot.File(t, nil), "PYTHONPATH="+filepath.Join(examples, "../../sdk/python"), "PYTHONDONTWRITEBYTECODE=1")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", name, err, out)
				}
				return robot, string(out)
			}
			robot, said := run("square")
			if x, y, _ := robot.Pose(); math.Hypot(x, y) > 1e-6 || said != "drove a square; the next thing is 1.20 m away\n" {
				t.Errorf("it says %q and is at %v, %v", said, x, y)
			}
			robot, said = run("wall")
			if x, y, _ := robot.Pose(); math.Abs(x-0.9) > 0.05 || y < 0.2 || strings.Count(said, " m to the wall\n") != 20 {
				t.Errorf("it says %q and is at %v, %v; want to be beyond the corner, 0.3 m from the wall", said, x, y)
			}
			_, said = run("photos")
			if b, err := os.ReadFile(filepath.Join(dir, "photo-315.jpg")); err != nil || len(b) != 4 || b[0] != 0xff || strings.Count(said, ".jpg: 4 by 2 pixels\n") != 8 {
				t.Errorf("photos says %q, %x, %v", said, b, err)
			}
			_, said = run("around")
			b, err := os.ReadFile(filepath.Join(dir, "around.csv"))
			if err != nil || said != "around.csv has what 2 sensors read in 8 directions\n" {
				t.Errorf("it says %q, %v", said, err)
			}
			rows, err := csv.NewReader(strings.NewReader(string(b))).ReadAll()
			if err != nil || len(rows) != 9 || rows[0][2] != "robot.body.laser.distance" || rows[3][0] != "90" || !strings.HasPrefix(rows[3][2], "0.35") || !strings.Contains(strings.ToLower(rows[6][2]), "inf") {
				t.Errorf("around.csv: %q, %v", rows, err)
			}
		})
	}
}
