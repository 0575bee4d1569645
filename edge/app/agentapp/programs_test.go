package agentapp

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPrograms is VEC-DGN-09: each of the original's 27 diagnostic programs has a counterpart that exists, or a word on why it has none.
func TestPrograms(t *testing.T) {
	b, err := os.ReadFile("testdata/programs.txt")
	if err != nil {
		t.Fatal(err)
	}
	root := command(func(string) string { return "" })
	root.AddCommand(localCommands()...)
	var names []string
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		names = append(names, f[0])
		switch {
		case len(f) > 2 && f[1] == "-":
		case len(f) > 3 && f[1] == "command" && f[2] == "agentd":
			if cmd, rest, err := root.Find(f[3:]); err != nil || cmd == root || len(rest) > 0 {
				t.Errorf("%s: agentd has no command %q", f[0], f[3:])
			}
		case len(f) == 4 && f[1] == "package":
			if !declares(t, "../../../"+f[2], f[3]) {
				t.Errorf("%s: package %s has no %s", f[0], f[2], f[3])
			}
		default:
			t.Errorf("%s: want a command, a package with a name, or - and why there is none", line)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) != 27 || !slices.IsSortedFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }) {
		t.Errorf("%d programs, want 27 in their order: %q", len(names), names)
	}
}

// declares reports whether a package declares a name at its top.
func declares(t *testing.T, dir, name string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == name {
					return true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && s.Name.Name == name {
						return true
					}
				}
			}
		}
	}
	return false
}
