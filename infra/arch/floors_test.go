package arch

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// floors are the families of each side, from the ground. A package belongs to the longest name that fits its path, and imports its own family and
// floors below it.
var floors = map[string][][]string{
	"cloud": {
		{"access", "chart"},
		{"page"},
		{"wire"},
		{"fleet", "identity"},
		{"telemetry", "voice"},
		{"updates"},
		{"originals"},
		{"web"},
		{"bridge", "preflight"},
		{"metrics"},
		{"openapi"},
		{"ctl"},
		{"app"},
	},
	"edge": {
		{"faultcode", "startup", "pawn", "face", "marker", "body/monoclock", "body/rawfd", "body/scanbuf"},
		{"env", "body/port", "sim/plane", "sim/uart"},
		{"robot", "body"}, // of the folder body the interface alone: motion, sense and rt speak its words
		{"power", "mic", "sight", "sim/camera", "cube"},
		{"motion", "sense"},
		{"core/rt", "core"},
		{"core/control", "core/corelink", "anim"},
		{"sound"},
		{"core/coreserver", "core/coreclient"},
		{"body/species", "body/bodysim"},
		speciesFolders("body/"),
		{"bodies", "update", "crash", "consolefilter"},
		{"mind"},
		{"agent"},
		{"gateway"},
		{"vectorsdk"},
		{"sim"},
		{"app"},
	},
}

// upward are the imports that run against floors, from a family or from one package to a family, and why.
var upward = map[string]string{
	"cloud/wire -> cloud/identity":                      "what a slice holds about people has the types of account and owner",
	"cloud/wire -> cloud/metrics":                       "a slice's instruments; metrics reads the registry, the events and the commands by itself",
	"cloud/telemetry -> cloud/metrics":                  "likewise",
	"cloud/voice -> cloud/metrics":                      "likewise",
	"cloud/identity/token/tokentest -> cloud/originals": "the original robot of the tests reads its token as the replayed one does",
}

// height returns the floor of each family.
func height(t *testing.T) map[string]int {
	heights := map[string]int{}
	for side, all := range floors {
		for h, families := range all {
			for _, f := range families {
				f = side + "/" + f
				if _, twice := heights[f]; twice {
					t.Errorf("floors has two places for %s", f)
				}
				heights[f] = h
			}
		}
	}
	return heights
}

// familyOf returns the family of a package; "" for one that belongs to no side, or to none of the families.
func familyOf(p string, heights map[string]int) string {
	p = strings.TrimPrefix(p, module)
	for ; p != "."; p = path.Dir(p) {
		if _, known := heights[p]; known {
			return p
		}
	}
	return ""
}

// TestFloors: between the families of a side no import runs upward, and no two import each other (house of issue 29, what must hold 5).
func TestFloors(t *testing.T) {
	heights := height(t)
	used, seen := map[string]bool{}, map[string]bool{}
	for _, p := range packages(t) {
		from := familyOf(p.ImportPath, heights)
		if from == "" && in(p.ImportPath, slices.Collect(maps.Keys(floors))...) {
			t.Errorf("%s: floors does not say where it is", p.ImportPath)
		}
		seen[from] = true
		if from == "" {
			continue
		}
		for _, to := range p.Imports {
			family := familyOf(to, heights)
			if family == "" || family == from || heights[family] < heights[from] {
				continue
			}
			pair := from + " -> " + family
			if own := strings.TrimPrefix(p.ImportPath, module) + " -> " + family; upward[own] != "" {
				pair = own
			}
			if used[pair] = true; upward[pair] == "" {
				t.Errorf("%s imports %s: %s runs against the floors", p.ImportPath, to, pair)
			}
		}
	}
	for pair := range maps.Keys(upward) {
		if !used[pair] {
			t.Errorf("%s: no package imports that way any longer; remove it", pair)
		}
	}
	for f := range maps.Keys(heights) {
		if !seen[f] {
			t.Errorf("floors has a place for %s: there is no such package", f)
		}
	}
}
