package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
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

// registries are the lists that make generate makes of infra/thing and edge/body.
var registries = []string{"edge/bodies/all.go", "edge/sim/all.go"}

// byName are the files that import packages of one species by name, and why. A * ends a path that may continue.
var byName = map[string]string{
	"edge/app/agentapp/local/* edge/body/vector/factory/*":    "agentd prints the factory record of Vector's head",
	"edge/app/agentapp/recovery/* edge/body/vector/factory/*": "the recovery system of Vector's head",
	"edge/sim/* edge/body/vector/factory/*":                   "every simulated robot has Vector's head: its factory record and its boot loader",
	"edge/app/kitapp/amigo* edge/body/amigobot/*":             "robotkit amigo",
	"edge/app/kitapp/mtnkit/* edge/body/aibo/*":               "robotkit mtn",
	"edge/app/kitapp/pleokit/* edge/body/pleo/*":              "robotkit pleo",
	"edge/app/kitapp/pleorun/* edge/body/pleo/*":              "robotkit pleo run",
	"cmd/playground/* edge/body/pleo/*":                       "scripts on a simulated Pleo",
	"edge/app/mindapp/aibo.go edge/body/aibo/*":               "the motions of AIBO's library, which its moods play",
	"edge/app/simapp/amigobot.go edge/body/amigobot/*":        "robotsim amigobot",
	"edge/app/simapp/board.go edge/body/vector/*":             "robotsim vector-board",
	"edge/app/simapp/world.go edge/body/vector/vectorsim":     "likewise",
}

// TestSpeciesByName: programs find a species in the generated lists. No other file outside edge/body/<species> imports a package of one.
func TestSpeciesByName(t *testing.T) {
	used := map[string]bool{}
	eachFile(t, parser.ImportsOnly, func(name string, f *ast.File) {
		if strings.HasSuffix(name, "_test.go") || slices.Contains(registries, name) {
			return
		}
		for _, i := range f.Imports {
			to := strings.Trim(i.Path.Value, `"`)
			if s := species(to); s == "" || s == species(module+name) {
				continue
			}
			exception := ""
			for e := range byName {
				from, what, _ := strings.Cut(e, " ")
				if fits(from, name) && fits(what, strings.TrimPrefix(to, module)) {
					exception = e
				}
			}
			if used[exception] = true; exception == "" {
				t.Errorf("%s imports %s by name; want edge/bodies, or edge/sim's list", name, to)
			}
		}
	})
	for e := range byName {
		if !used[e] {
			t.Errorf("%s: no import needs it any longer; remove it", e)
		}
	}
}

// fits reports whether a path is the pattern, or begins with it if that ends in *; "a/*" fits "a" too.
func fits(pattern, p string) bool {
	begin, open := strings.CutSuffix(pattern, "*")
	return p == pattern || open && (strings.HasPrefix(p, begin) || p == strings.TrimSuffix(begin, "/"))
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

// TestLeanCore: what edge/bodies brings into robotd is drivers: no simulator, and no network (docs/map.md).
func TestLeanCore(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"cmd/robotd").Output()
	if err != nil {
		t.Fatal(err)
	}
	for p := range strings.FieldsSeq(string(out)) {
		if testOnly(p) || p == "net/http" || p == "crypto/tls" {
			t.Errorf("robotd links %s", p)
		}
	}
}
