package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kennel/infra/thing"
)

// TestOneListOfSpecies: a species is one row of infra/thing. No other program text lists them, in code or in words for people (issue 29, what must hold 2).
func TestOneListOfSpecies(t *testing.T) {
	eachFile(t, parser.SkipObjectResolution, func(name string, f *ast.File) {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "infra/thing/") || strings.HasPrefix(name, "cloud/openapi/client/") {
			return
		}
		for _, what := range speciesLists(f) {
			t.Errorf("%s lists species: %s; want thing.AllSpecies or thing.SpeciesWords", name, what)
		}
	})
}

// many are as many species as make a list.
const many = 3

var speciesWord = regexp.MustCompile(`\b(` + thing.SpeciesWords("|") + `)\b`)

// speciesLists returns the lists in a file: texts with the words of several species, and literals with several of thing's constants.
func speciesLists(f *ast.File) (out []string) {
	constants := map[string]bool{}
	for _, s := range thing.AllSpecies() {
		constants[s.Name()] = true
	}
	ast.Inspect(f, func(n ast.Node) bool {
		found := map[string]bool{}
		switch n := n.(type) {
		case *ast.BasicLit:
			for _, w := range speciesWord.FindAllString(n.Value, -1) {
				found[w] = true
			}
		case *ast.CompositeLit:
			ast.Inspect(n, func(in ast.Node) bool {
				switch in := in.(type) {
				case *ast.SelectorExpr:
					if p, ok := in.X.(*ast.Ident); ok && p.Name == "thing" && constants[in.Sel.Name] {
						found[in.Sel.Name] = true
					}
				case *ast.BasicLit:
					for _, w := range speciesWord.FindAllString(in.Value, -1) {
						found[w] = true
					}
				}
				return true
			})
		}
		if len(found) >= many {
			out = append(out, strings.Join(slices.Sorted(maps.Keys(found)), " "))
		}
		return len(found) < many
	})
	return out
}

// TestSpeciesLists sees the rule refuse what it must.
func TestSpeciesLists(t *testing.T) {
	for src, want := range map[string]int{
		"package p\nvar v = []thing.Species{thing.Vector, thing.Pleo, thing.AIBO}":     1,
		"package p\nvar v = []string{\"vic\", \"pleo\", \"aibo\"}":                     1,
		"package p\nvar v = \"want vic, amigo, pleo or aibo\"":                         1,
		"package p\nvar v = map[thing.Species]int{thing.Vector: 1, thing.AmigoBot: 2}": 0,
		"package p\nvar v = \"such as vic:00e20100 or amigo:2345\"":                    0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := speciesLists(f); len(got) != want {
			t.Errorf("%s: %q, want %d", src, got, want)
		}
	}
}
