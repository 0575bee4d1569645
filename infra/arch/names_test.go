package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// aliases are the imports of ours that need another name than their package's, and why.
var aliases = map[string]string{
	"kennel/cloud/telemetry/das as clouddas": "das is the field's word at both ends, and one test plays both",
}

// alias returns the other name that an import gives a package of ours, as "path as name"; "" if it gives none.
func alias(importPath, name, own string) string {
	if !strings.HasPrefix(importPath, module) || name == "" || name == "_" || name == "." || name == own {
		return ""
	}
	return importPath + " as " + name
}

// house is the repository.
func house() fs.FS { return os.DirFS(filepath.Join("..", "..")) }

// renamed is an import with a name of its own.
type renamed struct{ file, path, name string }

// eachFile parses the Go files of the repository.
func eachFile(t *testing.T, mode parser.Mode, each func(name string, f *ast.File)) {
	t.Helper()
	err := fs.WalkDir(house(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if hidden := strings.HasPrefix(d.Name(), ".") && name != "."; d.IsDir() && (hidden || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		src, err := fs.ReadFile(house(), name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, mode)
		if err != nil {
			return err
		}
		each(name, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// imports returns the names of all packages by folder, and the imports that rename.
func imports(t *testing.T) (names map[string]string, uses []renamed) {
	t.Helper()
	names = map[string]string{}
	eachFile(t, parser.ImportsOnly, func(name string, f *ast.File) {
		if !strings.HasSuffix(name, "_test.go") {
			names[path.Dir(name)] = f.Name.Name
		}
		for _, i := range f.Imports {
			if i.Name != nil {
				p, _ := strconv.Unquote(i.Path.Value) // the parser took it
				uses = append(uses, renamed{name, p, i.Name.Name})
			}
		}
	})
	return names, uses
}

// TestNoAliases: an import of ours has its package's name, so that a word means one package (house of issue 29, what must hold 5).
func TestNoAliases(t *testing.T) {
	names, uses := imports(t)
	used := map[string]bool{}
	for _, u := range uses {
		a := alias(u.path, u.name, names[strings.TrimPrefix(u.path, module)])
		if a == "" {
			continue
		}
		if used[a] = true; aliases[a] == "" {
			t.Errorf("%s imports %s: want the package's own name; rename the package, or the word that it collides with", u.file, a)
		}
	}
	for a := range aliases {
		if !used[a] {
			t.Errorf("%s: no file imports it so any longer; remove it", a)
		}
	}
}

// TestAliasRefuses sees the rule refuse what it must.
func TestAliasRefuses(t *testing.T) {
	for _, tc := range []struct {
		path, name, own, want string
	}{
		{"kennel/ota/delta", "otadelta", "delta", "kennel/ota/delta as otadelta"},
		{"kennel/ota/delta", "delta", "delta", ""}, {"kennel/ota/delta", "", "delta", ""}, {"kennel/ota/delta", "_", "delta", ""},
		{"kennel/ota/delta", ".", "delta", ""}, {"math/rand/v2", "other", "", ""},
	} {
		if got := alias(tc.path, tc.name, tc.own); got != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.name, tc.path, got, tc.want)
		}
	}
}

// below returns the folders directly under one that have files in version control: bin/ and hidden ones are left out.
func below(t *testing.T, folder string) (all []string) {
	t.Helper()
	entries, err := fs.ReadDir(house(), folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "bin" && e.Name() != "testdata" && !strings.HasPrefix(e.Name(), ".") {
			all = append(all, path.Join(folder, e.Name()))
		}
	}
	return all
}

// subjects returns the folders directly under cloud/ and edge/.
func subjects(t *testing.T) []string { return slices.Concat(below(t, "cloud"), below(t, "edge")) }

// TestFoldersAreExplained: the first sentence of a folder's doc comment says what it is, as go doc prints it.
func TestFoldersAreExplained(t *testing.T) {
	for _, folder := range subjects(t) {
		files, err := fs.Glob(house(), folder+"/*.go")
		if err != nil {
			t.Fatal(err)
		}
		begin, found := "Package "+path.Base(folder)+" ", false
		for _, name := range files {
			src, err := fs.ReadFile(house(), name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.HasPrefix(f.Doc.Text(), begin)
		}
		if !found {
			t.Errorf("%s has no doc comment that begins with %q; a folder without Go files of its own has it in doc.go", folder, begin)
		}
	}
}

// TestMap: docs/map.md names each folder at the top, directly under cloud/ and edge/, and each slice of a family there. That its links lead somewhere
// is tested in cmd/docs.
func TestMap(t *testing.T) {
	page, err := fs.ReadFile(house(), "docs/map.md")
	if err != nil {
		t.Fatal(err)
	}
	named := func(folder string) bool {
		return folder == "docs" || bytes.Contains(page, []byte("(../"+folder+")")) || bytes.Contains(page, []byte("(../"+folder+"/"))
	}
	want := slices.Concat(below(t, "."), subjects(t))
	for _, folder := range subjects(t) {
		if files, _ := fs.Glob(house(), folder+"/*.go"); len(files) == 1 && path.Base(files[0]) == "doc.go" { // a family
			want = append(want, below(t, folder)...)
		}
	}
	for _, folder := range want {
		if !named(folder) {
			t.Errorf("docs/map.md does not name %s", folder)
		}
	}
	if named("cloud/nothing") || len(want) < 60 {
		t.Errorf("the test looks for %d folders, and finds one that is not there: %v", len(want), named("cloud/nothing"))
	}
}
