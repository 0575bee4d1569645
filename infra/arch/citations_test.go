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
	statedRow    = regexp.MustCompile(`(?m)^- ([A-Z]+(?:-[A-Z]+)*)-(\d[\d.]*) \[(absent|partly)\]`)
	absentFamily = regexp.MustCompile(`(?m)^- ([A-Z]+(?:-[A-Z]+)*)(?: but ([\d ]+))? \[not begun\]`)
	// A citation: a row, and further numbers of its family: "06..08, 12", "00 to 92". "part of" comes before a row, or a range, that holds in part.
	citation = regexp.MustCompile(`(part of )?\b((?:VEC|AMIGO|GOSTAI|PLEO|MTN)(?:-[A-Z]+)*)-(\d+(?:\.\d+)?[a-z]?)\b((?:(?:, | and | to |\.\.)(?:part of )?\d+(?:\.\d+)?\b)*)`)
	further  = regexp.MustCompile(`(, | and | to |\.\.)(part of )?(\d+(?:\.\d+)?)`)
)

// stated are the rows of which infra/docs/status.md says that they are absent or hold in part.
type stated struct{ absent, partly rows }

func (r rows) put(family, n string) {
	if r[family] == nil {
		r[family] = map[string]bool{}
	}
	r[family][n] = true
}

// readStatus reads infra/docs/status.md.
func readStatus(t *testing.T, all rows) stated {
	t.Helper()
	text, out := read(t, "../docs/status.md"), stated{rows{}, rows{}}
	for _, m := range statedRow.FindAllStringSubmatch(text, -1) {
		if !all[m[1]][m[2]] {
			t.Errorf("infra/docs/status.md names %s-%s, which the specification does not have", m[1], m[2])
		}
		map[string]rows{"absent": out.absent, "partly": out.partly}[m[3]].put(m[1], m[2])
	}
	for _, m := range absentFamily.FindAllStringSubmatch(text, -1) {
		if len(all[m[1]]) == 0 {
			t.Errorf("infra/docs/status.md names the family %s, which the specification does not have", m[1])
		}
		for n := range all[m[1]] {
			if !strings.Contains(" "+m[2]+" ", " "+n+" ") {
				out.absent.put(m[1], n)
			}
		}
	}
	if len(out.absent) < 50 || len(out.partly) < 20 {
		t.Fatalf("infra/docs/status.md: %d families with absent rows, %d with partial ones", len(out.absent), len(out.partly))
	}
	return out
}

// TestCitations: code cites rows that the specification has, none that infra/docs/status.md calls absent, and with "part of" those that it says hold
// in part.
func TestCitations(t *testing.T) {
	all := readRows(t)
	status := readStatus(t, all)
	eachFile(t, parser.PackageClauseOnly, func(file string, _ *ast.File) {
		for i, line := range strings.Split(read(t, filepath.Join("..", "..", file)), "\n") {
			for _, m := range citation.FindAllStringSubmatch(line, -1) {
				family, last, part := m[2], m[3], m[1] != ""
				judge := func(n string, exact bool) {
					wrong := ""
					switch {
					case exact && !all[family][n] && !all[family][n+".1"] && !all[family][n+"a"]:
						wrong = "which the specification does not have"
					case status.absent[family][n] && !(part && !exact):
						wrong = "which infra/docs/status.md calls absent"
					case status.partly[family][n] && !part:
						wrong = `which holds in part (infra/docs/status.md): cite it as "part of" it`
					}
					if wrong != "" {
						t.Errorf("%s:%d cites %s-%s, %s", file, i+1, family, n, wrong)
					}
				}
				judge(last, true)
				for _, f := range further.FindAllStringSubmatch(m[4], -1) {
					if span := f[1] == " to " || f[1] == ".."; span { // which may include numbers that are none
						for _, n := range between(last+"-"+f[3], "-") {
							judge(n, false)
						}
					} else {
						part = f[2] != ""
					}
					judge(f[3], true)
					last = f[3]
				}
			}
		}
	})
}
