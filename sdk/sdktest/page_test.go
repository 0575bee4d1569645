package sdktest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kennel/sdk/sdktest"
)

// TestPage: the lines that docs/sdk.md prints for each language drive a square, and print what is ahead.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/sdk.md")
	if err != nil {
		t.Fatal(err)
	}
	client, err := os.ReadFile("../js/kennel.mjs")
	if err != nil {
		t.Fatal(err)
	}
	sdk, err := filepath.Abs("../python")
	if err != nil {
		t.Fatal(err)
	}
	run := map[string][]string{"python": {python, "square.python"}, "js": {"node", "square.mjs"}, "go": {"./square"}}
	for _, m := range regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```").FindAllStringSubmatch(string(page), -1) {
		lang, lines := m[1], m[2]
		command := run[lang]
		delete(run, lang)
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			robot, dir := sdktest.Start(t, nil), t.TempDir()
			robot.InRoom = true
			for name, text := range map[string]string{"kennel.mjs": string(client), "square." + lang: lines, "square.mjs": lines} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Rename(robot.File(t, nil), filepath.Join(dir, "robot.json")); err != nil {
				t.Fatal(err)
			}
			if lang == "go" {
				build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "square"), filepath.Join(dir, "square.go"))
				build.Dir = "../.."
				if out, err := build.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "PYTHONPATH="+sdk, "PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.CombinedOutput()
			x, y, theta := robot.Pose()
			if said := string(out); err != nil || !strings.HasPrefix(said, "1.2") && !strings.HasPrefix(said, "1.19999") || x*x+y*y > 1e-6 || theta > -6.28 {
				t.Errorf("%v: it says %q and is at %v, %v, %v", err, said, x, y, theta)
			}
		})
	}
	if len(run) > 0 {
		t.Errorf("docs/sdk.md has no lines for %v", run)
	}
}
