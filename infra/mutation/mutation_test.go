package mutation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	seed   = 31
	wanted = 100 // facts in make soak
	least  = 95  // of them that tests must notice
)

// fact is a literal beside a citation of a row that holds as a whole.
type fact struct {
	file       string // below the repository
	line       int
	from, to   int // bytes of the literal in the file
	was, is    string
	row, whole string // whole is the line
}

func (f fact) String() string {
	return fmt.Sprintf("%s:%d: %s for %s (%s): %s", f.file, f.line, f.is, f.was, f.row, strings.TrimSpace(f.whole))
}

var cites = regexp.MustCompile(`(part of )?\b((?:VEC|AMIGO|GOSTAI)(?:-[A-Z]+)+-\d+)`)

// row returns the row that a comment cites; "": none, or one that holds in part, or one that leaves the value to us.
func row(text string) string {
	if m := cites.FindStringSubmatch(text); m != nil && m[1] == "" && !ours(text) {
		return m[2]
	}
	return ""
}

// ours reports whether a comment says that the value is ours, and cites a row for what is beside it.
func ours(text string) bool { return strings.Contains(strings.ToLower(text), "own default") }

// change returns another value for a literal; "" if it is none that a row would name, such as a sentence.
func change(l *ast.BasicLit) string {
	switch l.Kind {
	case token.INT:
		if n, err := strconv.ParseInt(l.Value, 0, 32); err == nil {
			return strconv.FormatInt(2*n+1, 10)
		}
	case token.FLOAT:
		if x, err := strconv.ParseFloat(l.Value, 64); err == nil && x != 0 {
			return strconv.FormatFloat(2*x, 'g', -1, 64)
		}
	case token.STRING:
		if s, err := strconv.Unquote(l.Value); err == nil && s != "" && !strings.ContainsAny(s, " %") {
			return strconv.Quote(s + "x")
		}
	}
	return ""
}

// facts returns the literals beside a comment that cites a row, and those of constants and plain variables whose doc comment does.
func facts(t *testing.T, root string) (out []fact) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "node_modules", "cmd", "bin"}, d.Name())) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go") {
			return nil
		}
		src, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, src, parser.ParseComments)
		if err != nil {
			return err
		}
		lines := strings.Split(string(src), "\n")
		take := func(n ast.Node, doc string) {
			ast.Inspect(n, func(n ast.Node) bool {
				l, ok := n.(*ast.BasicLit)
				if !ok {
					return true
				}
				at := set.Position(l.Pos())
				_, comment, _ := strings.Cut(lines[at.Line-1], "//")
				r := doc
				if cites.MatchString(comment) {
					r = row(comment)
				}
				if is := change(l); r != "" && is != "" && !ours(comment) {
					out = append(out, fact{name, at.Line, at.Offset, at.Offset + len(l.Value), l.Value, is, r, lines[at.Line-1]})
				}
				return true
			})
		}
		for _, decl := range tree.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				take(decl, "")
				continue
			}
			for _, s := range gen.Specs {
				spec, ok := s.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for _, v := range spec.Values {
					doc := cmp.Or(row(spec.Doc.Text()), row(gen.Doc.Text()))
					if _, table := v.(*ast.CompositeLit); table {
						doc = "" // a row is about a line of it, or about what the table is for
					}
					take(v, doc)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// outcome says whether the tests of a package failed with a changed fact.
type outcome int

const (
	missed outcome = iota
	noticed
	rejected // by the compiler
)

// try runs the tests of the fact's package with the fact changed. The file itself is left alone.
func (f fact) try(t *testing.T, root string) outcome {
	t.Helper()
	dir := t.TempDir()
	path, err := filepath.Abs(filepath.Join(root, f.file))
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: copied}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{copied: slices.Concat(src[:f.from], []byte(f.is), src[f.to:]), overlay: replace} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pkg := "./" + filepath.ToSlash(filepath.Dir(f.file))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a change that makes tests wait for ever is noticed
	defer cancel()
	run := func(dir, program string, args ...string) bool {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(os.Environ(), "KENNEL_SOAK="), 10*time.Second
		return cmd.Run() == nil
	}
	tests := filepath.Join(dir, "changed.test")
	if !run(root, "go", "test", "-c", "-o", tests, "-overlay", overlay, "-vet=off", "-ldflags=-s -w", pkg) {
		return rejected
	}
	if _, err := os.Stat(tests); err != nil {
		return missed // a package without tests
	}
	within := filepath.Dir(path)
	if run(within, tests, "-test.run=^TestFacts$", "-test.timeout=4m") && run(within, tests, "-test.failfast", "-test.timeout=4m") {
		return missed
	}
	return noticed
}

// TestRow: a comment gives its values a row if it cites one that holds as a whole, and does not call them ours.
func TestRow(t *testing.T) {
	for text, want := range map[string]string{
		"Period is the body's rhythm (VEC-BODY-10).":                        "VEC-BODY-10",
		"Limits (AMIGO-SON-03, AMIGO-SON-04).":                              "AMIGO-SON-03",
		"FaultDevice: no fault (part of VEC-BODY-18)":                       "",
		"Own defaults of a motion, below GOSTAI-OPEN-11.":                   "",
		"downloads at once; they ask again later (VEC-OTA-19); own default": "",
		"of silence": "",
	} {
		if got := row(text); got != want {
			t.Errorf("%q cites %q, want %q", text, got, want)
		}
	}
}

// TestFactsAreNoticed: of facts drawn by a fixed seed, at least 95 of 100 are noticed by the tests of their package when they change. make soak draws
// 100, make test one that it knows.
func TestFactsAreNoticed(t *testing.T) {
	root := filepath.Join("..", "..")
	all := facts(t, root)
	if len(all) < 3*wanted {
		t.Fatalf("%d facts found", len(all))
	}
	want, need := 1, 1
	if os.Getenv("KENNEL_SOAK") != "" {
		want, need = wanted, least
	} else {
		all = slices.DeleteFunc(all, func(f fact) bool { return f.file != "edge/body/amigobot/sip/convert.go" || f.row != "AMIGO-SIP-15" })
	}
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	tried, good := 0, 0
	for _, f := range all {
		if tried == want {
			break
		}
		switch f.try(t, root) {
		case rejected:
			continue
		case noticed:
			good++
		case missed:
			t.Logf("not noticed: %s", f)
		}
		tried++
	}
	if t.Logf("%d of %d changed facts are noticed", good, tried); tried < want || good < need {
		t.Errorf("%d of %d changed facts are noticed; want %d of %d", good, tried, need, want)
	}
}
