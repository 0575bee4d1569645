package das

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rowsOf reads a table of testdata without its comments.
func rowsOf(t *testing.T, name string) (rows []string) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "#") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	return rows
}

// TestCatalogue is VEC-DAS-10: each of the 168 names of the source has an emitter, in whose file the name is written, or a word on what is missing; and an
// event that is emitted is not called missing. The events that open and close sessions are in session.go, too, which emits none.
func TestCatalogue(t *testing.T) {
	var annex []string
	rows := 0
	for _, row := range rowsOf(t, "annex-e.txt") {
		cells := strings.Split(row, "|")
		for name := range strings.SplitSeq(cells[4], ",") {
			annex = append(annex, strings.TrimSpace(name))
			rows++
		}
	}
	slices.Sort(annex)
	if annex = slices.Compact(annex); len(annex) != 168 || rows != 175 {
		t.Fatalf("the annex has %d names in %d rows, want 168 in 175", len(annex), rows)
	}
	const root = "../../.." // of the tree
	written := map[string][]string{}
	name := regexp.MustCompile(`"([A-Za-z_]+(?:\.[A-Za-z_0-9]+)*\.?)"`)
	err := filepath.WalkDir(root+"/edge", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "das/session.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range name.FindAllSubmatch(b, -1) {
			if s := string(m[1]); slices.Contains(annex, s) {
				written[s] = append(written[s], strings.TrimPrefix(filepath.ToSlash(path), root+"/"))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	emitted := 0
	for _, row := range rowsOf(t, "catalogue.txt") {
		name, rest, _ := strings.Cut(row, " ")
		names = append(names, name)
		switch missing, isMissing := strings.CutPrefix(strings.TrimSpace(rest), "- "); {
		case isMissing && strings.TrimSpace(missing) == "":
			t.Errorf("%s is missing, and nothing says why", name)
		case isMissing && len(written[name]) > 0:
			t.Errorf("%s is called missing (%s), and is in %v", name, missing, written[name])
		case !isMissing && !slices.Contains(written[name], missing):
			t.Errorf("%s is not in %s, but in %v", name, missing, written[name])
		case !isMissing:
			emitted++
		}
	}
	if !slices.Equal(names, annex) {
		t.Errorf("the catalogue is not the annex in its order:\n%q\n%q", names, annex)
	}
	t.Logf("%d of %d events have an emitter", emitted, len(annex))
}
