package arch

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// floors are the families of cloud/, from the ground. A package imports its own family and floors below it.
var floors = [][]string{
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
}

// upward are the imports that run against floors and still have to turn, from family to family.
var upward = map[string]string{
	"wire -> identity":     "what a slice holds about people has the types of account and owner",
	"wire -> metrics":      "a slice's instruments; metrics reads the registry, the events and the commands by itself",
	"telemetry -> metrics": "likewise",
	"voice -> metrics":     "likewise",
}

func familyOf(p string) string {
	p, ours := strings.CutPrefix(p, module+"cloud/")
	if !ours {
		return ""
	}
	family, _, _ := strings.Cut(p, "/")
	return family
}

// TestFloors: between the families of cloud/ no import runs upward, and no two import each other (house of issue 29, what must hold 5).
func TestFloors(t *testing.T) {
	height := map[string]int{}
	for h, families := range floors {
		for _, f := range families {
			height[f] = h
		}
	}
	used := map[string]bool{}
	for _, p := range packages(t) {
		from := familyOf(p.ImportPath)
		if _, known := height[from]; from != "" && !known {
			t.Errorf("%s: floors does not say where cloud/%s is", p.ImportPath, from)
		}
		if from == "" || testOnly(p.ImportPath) {
			continue
		}
		for _, to := range p.Imports {
			family := familyOf(to)
			if family == "" || family == from || height[family] < height[from] {
				continue
			}
			pair := from + " -> " + family
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
	if n := len(slices.Concat(floors...)); n != len(height) {
		t.Errorf("floors has %d families and %d places", len(height), n)
	}
}
