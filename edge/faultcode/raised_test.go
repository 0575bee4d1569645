package faultcode

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestRaised: every code of annex F is raised by a file that names it, and a test breaks the part for that; or the table says what is missing, and then no
// program names the code but the handler, to which others may post it.
func TestRaised(t *testing.T) {
	const tree = "../.."
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(tree, name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	names := map[Code][]string{} // as other packages write them
	for _, decl := range []struct{ file, in string }{{"edge/faultcode/tables.go", "faultcode."}, {"ota/code.go", "ota."}} {
		for _, m := range regexp.MustCompile(`(?m)^\t(\w+) +Code = (\d+)$`).FindAllStringSubmatch(read(decl.file), -1) {
			n, _ := strconv.Atoi(m[2]) // digits
			names[Code(n)] = append(names[Code(n)], decl.in+m[1])
		}
	}
	mentions := func(text string, c Code) bool {
		return slices.ContainsFunc(names[c], func(n string) bool { return regexp.MustCompile(regexp.QuoteMeta(n) + `\b`).MatchString(text) })
	}
	programs := map[string]string{}
	for _, pattern := range []string{"edge/*.go", "edge/*/*.go", "edge/*/*/*.go", "edge/*/*/*/*.go", "edge/*/*/*/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(tree, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if name, _ := filepath.Rel(tree, f); !strings.HasSuffix(name, "_test.go") && name != "edge/agent/health/faults/faults.go" {
				programs[name] = read(name)
			}
		}
	}
	var codes []Code
	raised := 0
	for row := range strings.Lines(read("edge/faultcode/testdata/raised.txt")) {
		if strings.HasPrefix(row, "#") {
			continue
		}
		cells := strings.SplitN(strings.TrimSpace(row), " ", 3)
		n, err := strconv.Atoi(cells[0])
		if err != nil || len(cells) != 3 {
			t.Fatalf("row %q: want a code, a file and a test", row)
		}
		c := Code(n)
		codes = append(codes, c)
		file, test := cells[1], cells[2]
		if file == "-" {
			for name, text := range programs {
				if mentions(text, c) {
					t.Errorf("%v is called missing (%s), and is in %s", c, test, name)
				}
			}
			continue
		}
		raised++
		if !mentions(read(file), c) {
			t.Errorf("%s does not name %v, %v", file, c, names[c])
		}
		if strings.HasPrefix(test, "- ") {
			continue
		}
		where, name, _ := strings.Cut(test, ":")
		if !strings.Contains(read(where), "\nfunc "+name+"(") {
			t.Errorf("%v: no %s in %s", c, name, where)
		}
	}
	if !slices.Equal(codes, System.Codes()) {
		t.Errorf("the table has\n%v, annex F\n%v", codes, System.Codes())
	}
	t.Logf("%d of %d codes are raised", raised, len(codes))
}
