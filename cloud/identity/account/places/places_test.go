package places

import (
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestNames(t *testing.T) {
	list := Names()
	if len(list) < 300 || !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Errorf("%d names; want some hundred, sorted, each once", len(list))
	}
	for _, n := range list {
		f := strings.Split(n, ", ")
		if len(f) != 3 {
			t.Errorf("%q: want City, Region, Country", n)
		}
		for _, p := range f {
			if p != strings.TrimSpace(p) || !unicode.IsUpper([]rune(p)[0]) || strings.ContainsFunc(p, unicode.IsControl) {
				t.Errorf("%q: part %q", n, p)
			}
		}
	}
	for _, want := range []string{"San Francisco, California, United States", "Berlin, Berlin, Germany", "Tokyo, Tokyo, Japan"} {
		if !slices.Contains(list, want) {
			t.Errorf("no %s", want)
		}
	}
	list[0] = "changed"
	if Names()[0] == "changed" {
		t.Error("a caller changed the list for others")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("# x\nA = B/C, D/E\n")
	f.Add("A = B")
	f.Fuzz(func(t *testing.T, s string) {
		list, err := parse(s)
		for _, n := range list {
			if err != nil || strings.Count(n, ", ") < 2 {
				t.Fatalf("%q in %q, %v", n, s, err)
			}
		}
	})
}
