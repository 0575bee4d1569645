package pleokit_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kennel/edge/app/kitapp"
	"kennel/edge/body/pleo/lifeos"
)

// TestNatives: LifeOS has each function that the kit's include files declare, with as many arguments, so that a script that compiles finds them.
func TestNatives(t *testing.T) {
	has := map[string]int{}
	arguments := func(declaration string) int { return strings.Count(declaration, ",") }
	for _, n := range lifeos.Natives() {
		has[n.Name()] = arguments(regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(n.Declaration, ""))
	}
	dir := filepath.Join(t.TempDir(), "pdk")
	var out bytes.Buffer
	if code := kitapp.Main([]string{"pleo", "init", dir, "-kit"}, func(string) string { return "" }, &out, &out); code != 0 {
		t.Fatalf("%d %s", code, out.String())
	}
	native, found := regexp.MustCompile(`(?m)^native\s+(?:\w+:\s*)?(\w+)\(([^;]*)\)(?:\s*=\s*(\w+))?;`), 0
	err := filepath.WalkDir(filepath.Join(dir, "include"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range native.FindAllStringSubmatch(string(b), -1) {
			name, args := m[1], arguments(regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(m[2], ""))
			if m[3] != "" {
				name = m[3]
			}
			found++
			if want, ok := has[name]; !ok || want != args {
				t.Errorf("%s: %s, %d arguments; LifeOS: %v, %d", filepath.Base(path), m[0], args+1, ok, want+1)
			}
		}
		return err
	})
	if err != nil || found < 150 {
		t.Errorf("%d natives, %v", found, err)
	}
}
