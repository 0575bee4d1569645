package arch

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The limits of each part.
const (
	maxFanOut  = 30 // packages of ours that one package imports
	maxMethods = 12 // of an interface
	maxLines   = 90 // of a function

	maxTestLines = 600 // of a file of tests
)

// TestTestFiles: a file of tests is short enough to be read.
func TestTestFiles(t *testing.T) {
	eachFile(t, parser.PackageClauseOnly, func(name string, _ *ast.File) {
		if !strings.HasSuffix(name, "_test.go") {
			return
		}
		src, err := fs.ReadFile(house(), name)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(src, []byte("\n")); n > maxTestLines {
			t.Errorf("%s has %d lines, want at most %d", name, n, maxTestLines)
		}
	})
}

// TestSizes: no package imports, no interface has and no function is more than the limits above. testdata/sizes.txt names what is still larger, and how
// large it is: a line's number only goes down, and a line that is no longer needed goes.
func TestSizes(t *testing.T) {
	larger := map[string]int{}
	for _, p := range packages(t) {
		ours := slices.DeleteFunc(slices.Clone(p.Imports), func(to string) bool { return !strings.HasPrefix(to, module) })
		wiring := strings.HasPrefix(p.ImportPath, module+"cloud/app") || p.ImportPath == module+"edge/app/agentapp" // nothing but imports
		if len(ours) > maxFanOut && !wiring {
			larger["imports "+strings.TrimPrefix(p.ImportPath, module)] = len(ours)
		}
	}
	out, err := exec.Command("go", "list", "-f", `{{$p := .}}{{range .GoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}{{"\n"}}{{end}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	interfaces := map[string]*ast.InterfaceType{}
	for line := range strings.Lines(string(out)) {
		pkgPath, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		measure(t, strings.TrimPrefix(pkgPath, module), name, larger, interfaces)
	}
	for name := range interfaces {
		if n := methods(interfaces, name); n > maxMethods {
			larger["interface "+name] = n
		}
	}

	known := map[string]int{}
	f, err := os.Open("testdata/sizes.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		n, what, _ := strings.Cut(s.Text(), " ")
		if known[what], err = strconv.Atoi(n); err != nil {
			t.Fatalf("sizes.txt: %q: want a number first", s.Text())
		}
	}
	for what, n := range larger {
		if n > known[what] {
			t.Errorf("%s: %d; at most %d imports, %d methods, %d lines, or what sizes.txt says", what, n, maxFanOut, maxMethods, maxLines)
		}
	}
	for what, n := range known {
		if larger[what] < n {
			t.Errorf("%s: %d now, sizes.txt says %d: lower it, or take the line out", what, larger[what], n)
		}
	}
}

// measure notes the functions of one file that are too long, and all its interfaces.
func measure(t *testing.T, folder, name string, larger map[string]int, interfaces map[string]*ast.InterfaceType) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(f) {
		return
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if n := fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1; n > maxLines {
				who := d.Name.Name
				if d.Recv != nil {
					who = strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*") + "." + who
				}
				larger["func "+folder+" "+who] = n
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok {
					if i, ok := ts.Type.(*ast.InterfaceType); ok {
						interfaces[folder+" "+ts.Name.Name] = i
					}
				}
			}
		}
	}
}

// methods counts those of an interface, and of the interfaces of its package that it embeds: one that is put together is as large as its parts.
func methods(all map[string]*ast.InterfaceType, name string) int {
	n := 0
	for _, m := range all[name].Methods.List {
		folder, _, _ := strings.Cut(name, " ")
		if id, ok := m.Type.(*ast.Ident); ok && all[folder+" "+id.Name] != nil {
			n += methods(all, folder+" "+id.Name)
		} else {
			n += max(1, len(m.Names))
		}
	}
	return n
}
