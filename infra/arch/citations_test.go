package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// rows are the capabilities that the specification numbers, by family ("VEC-JDS") and number ("01", "17.6").
type rows map[string]map[string]bool

// readRows reads testdata/rows.txt: a family a line, its numbers as ranges.
func readRows(t *testing.T) rows {
	t.Helper()
	out := rows{}
	for line := range strings.Lines(read(t, "testdata/rows.txt")) {
		f := strings.Fields(line)
		out[f[0]] = map[string]bool{}
		for _, span := range f[1:] {
			for _, n := range between(span, "-") {
				out[f[0]][n] = true
			}
		}
	}
	return out
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// between returns the numbers of "07-53"; another text is one number.
func between(span, dash string) (out []string) {
	first, last, ok := strings.Cut(span, dash)
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	if !ok || err1 != nil || err2 != nil {
		return []string{span}
	}
	for n := from; n <= to; n++ {
		out = append(out, fmt.Sprintf("%02d", n))
	}
	return out
}

var (
	absentRow    = regexp.MustCompile(`(?m)^- ([A-Z]+(?:-[A-Z]+)*)-(\d[\d.]*) \[absent\]`)
	absentFamily = regexp.MustCompile(`(?m)^- ([A-Z]+(?:-[A-Z]+)*)(?: but ([\d ]+))? \[not begun\]`)
	// A citation: a row, and further numbers of its family: "06..08, 12", "00 to 92".
	citation = regexp.MustCompile(`\b((?:VEC|AMIGO|GOSTAI|PLEO|MTN)(?:-[A-Z]+)*)-(\d+(?:\.\d+)?[a-z]?)\b((?:(?:, | and | to |\.\.)\d+(?:\.\d+)?\b)*)`)
	further  = regexp.MustCompile(`(, | and | to |\.\.)(\d+(?:\.\d+)?)`)
)

// readAbsent returns the rows that infra/docs/status.md calls absent, alone or with their whole family.
func readAbsent(t *testing.T, all rows) rows {
	t.Helper()
	status, out := read(t, "../docs/status.md"), rows{}
	put := func(family, n string) {
		if !all[family][n] {
			t.Errorf("infra/docs/status.md names %s-%s, which the specification does not have", family, n)
		}
		if out[family] == nil {
			out[family] = map[string]bool{}
		}
		out[family][n] = true
	}
	for _, m := range absentRow.FindAllStringSubmatch(status, -1) {
		put(m[1], m[2])
	}
	for _, m := range absentFamily.FindAllStringSubmatch(status, -1) {
		for n := range all[m[1]] {
			if !strings.Contains(" "+m[2]+" ", " "+n+" ") {
				put(m[1], n)
			}
		}
	}
	if len(out) < 100 {
		t.Fatalf("infra/docs/status.md: %d families with absent rows read", len(out))
	}
	return out
}

// TestCitations: code cites rows that the specification has, and none that infra/docs/status.md calls absent. A row that holds in part is listed
// there as partly, with what lacks.
func TestCitations(t *testing.T) {
	all := readRows(t)
	absent := readAbsent(t, all)
	eachFile(t, parser.PackageClauseOnly, func(file string, _ *ast.File) {
		for i, line := range strings.Split(read(t, filepath.Join("..", "..", file)), "\n") {
			for _, m := range citation.FindAllStringSubmatch(line, -1) {
				family, last := m[1], m[2]
				judge := func(n string, exact bool) {
					switch {
					case all[family][n] && absent[family][n]:
						t.Errorf("%s:%d cites %s-%s, which infra/docs/status.md calls absent", file, i+1, family, n)
					case exact && !all[family][n] && !all[family][n+".1"]:
						t.Errorf("%s:%d cites %s-%s, which the specification does not have", file, i+1, family, n)
					}
				}
				judge(last, true)
				for _, f := range further.FindAllStringSubmatch(m[3], -1) {
					if f[1] == " to " || f[1] == ".." { // which may span numbers that are none
						for _, n := range between(last+"-"+f[2], "-") {
							judge(n, false)
						}
					}
					judge(f[2], true)
					last = f[2]
				}
			}
		}
	})
}
