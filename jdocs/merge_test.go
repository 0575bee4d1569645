package jdocs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"kennel/jdocs"
)

func TestMerge(t *testing.T) { // VEC-JDS-08
	for _, c := range []struct{ name, base, local, remote, want, conflicts string }{
		{"nothing changed", `{"a":1}`, `{"a":1}`, `{"a":1}`, `{"a":1}`, ""},
		{"two fields, two sides", `{"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":1,"b":2}`, `{"a":2,"b":2}`, ""},
		{"one field, two sides", `{"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":3,"b":2}`, `{"a":2,"b":2}`, "a"},
		{"the same change on both", `{"a":1}`, `{"a":2}`, `{"a":2}`, `{"a":2}`, ""},
		{"below an object", `{"o":{"x":1,"y":1}}`, `{"o":{"x":2,"y":1}}`, `{"o":{"x":1,"y":2,"z":3}}`, `{"o":{"x":2,"y":2,"z":3}}`, ""},
		{"conflict below", `{"o":{"x":1}}`, `{"o":{"x":2}}`, `{"o":{"x":3,"new":1}}`, `{"o":{"new":1,"x":2}}`, "o.x"},
		{"unknown fields of both", `{}`, `{"l":1}`, `{"r":2}`, `{"l":1,"r":2}`, ""},
		{"removed here", `{"a":1,"b":1}`, `{"b":1}`, `{"a":1,"b":2}`, `{"b":2}`, ""},
		{"removed there", `{"a":1,"b":1}`, `{"a":1,"b":2}`, `{"b":1}`, `{"b":2}`, ""},
		{"removed here, changed there", `{"a":1}`, `{"x":1}`, `{"a":2}`, `{"x":1}`, "a"},
		{"removed there, changed here", `{"a":1}`, `{"a":2}`, `{"x":1}`, `{"a":2,"x":1}`, "a"},
		{"arrays are one value", `{"a":[1]}`, `{"a":[1,2],"x":1}`, `{"a":[1],"b":1}`, `{"a":[1,2],"b":1,"x":1}`, ""},
		{"object here, value there", `{"a":1}`, `{"a":{"x":1},"b":1}`, `{"a":2}`, `{"a":{"x":1},"b":1}`, "a"},
		{"no base", ``, `{"a":1,"b":1}`, `{"a":2,"c":3}`, `{"a":1,"b":1,"c":3}`, "a"},
		{"null is a value", `{"a":1}`, `{"a":null}`, `{"a":1,"b":1}`, `{"a":null,"b":1}`, ""},
		{"spelling of a number is no change", `{"a":1,"b":1}`, `{"a":1.0,"b":2}`, `{"a":2,"b":1}`, `{"a":2,"b":2}`, ""},
		{"large numbers are compared whole", `{"a":9007199254740993}`, `{"a":9007199254740992,"b":1}`, `{"a":9007199254740993,"c":1}`, `{"a":9007199254740992,"b":1,"c":1}`, ""},
		{"text is kept", `{"a":"","b":1}`, `{"a":"<&\u00e9>","b":1}`, `{"a":"","b":2}`, `{"a":"<&\u00e9>","b":2}`, ""},
		{"not an object", `1`, `2`, `3`, `2`, ""},
	} {
		got, conflicts, err := jdocs.Merge([]byte(c.base), []byte(c.local), []byte(c.remote))
		if err != nil || string(got) != c.want || strings.Join(conflicts, " ") != c.conflicts {
			t.Errorf("%s: %s, conflicts %q, %v; want %s, %q", c.name, got, conflicts, err, c.want, c.conflicts)
		}
	}
	for _, c := range [][3]string{{"{", "{}", "{}"}, {"{}", "", "{}"}, {"{}", "{}", "nope"}} {
		if got, _, err := jdocs.Merge([]byte(c[0]), []byte(c[1]), []byte(c[2])); err == nil {
			t.Errorf("merge of %q: %s; want an error", c, got)
		}
	}
}

func TestMergeStats(t *testing.T) {
	for _, c := range []struct{ name, base, local, remote, want, conflicts string }{
		{"both counted", `{"n":10}`, `{"n":13}`, `{"n":12}`, `{"n":15}`, ""},
		{"counted here alone", `{"n":10}`, `{"n":13}`, `{"n":10}`, `{"n":13}`, ""},
		{"new keys", `{}`, `{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`, ""},
		{"the same new key", `{"x":0}`, `{"x":0,"a":1}`, `{"x":0,"a":2}`, `{"a":3,"x":0}`, ""},
		{"fractions", `{"n":0.5}`, `{"n":1}`, `{"n":1.25}`, `{"n":1.75}`, ""},
		{"after a wipe", ``, `{"Alive.seconds":5,"Pet.ms":7}`, `{"Alive.seconds":900,"Pet.ms":100}`, `{"Alive.seconds":5,"Pet.ms":107}`, ""},
		{"an alias", `{"Odom.Rwheel":1}`, `{"Odom.RWheel":4}`, `{"Odom.Rwheel":2}`, `{"Odom.Rwheel":5}`, ""},
		{"no number", `{"n":1}`, `{"n":"x"}`, `{"n":2}`, `{"n":"x"}`, "n"},
		{"too large for a sum", `{"n":0}`, `{"n":1e308}`, `{"n":1.7e308}`, `{"n":1e308}`, "n"},
		{"not an object", `{}`, `[1]`, `{"n":1}`, `[1]`, ""},
	} {
		got, conflicts, err := jdocs.MergeStats([]byte(c.base), []byte(c.local), []byte(c.remote))
		if c.name == "not an object" {
			conflicts = nil // the whole document
		}
		if err != nil || string(got) != c.want || strings.Join(conflicts, " ") != c.conflicts {
			t.Errorf("%s: %s, conflicts %q, %v; want %s, %q", c.name, got, conflicts, err, c.want, c.conflicts)
		}
	}
}

func TestAddStats(t *testing.T) {
	nan := 0.0
	nan /= nan
	got, err := jdocs.AddStats([]byte(`{"Pet.ms":1,"x":"text","Odom.RWheel":2}`),
		map[string]float64{"Pet.ms": 2, "Alive.seconds": 0.5, "x": 1, "bad": nan, "Odom.RWheel": 1})
	if want := `{"Alive.seconds":0.5,"Odom.Rwheel":3,"Pet.ms":3,"x":"text"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestDefaultsAreWithinTheRules(t *testing.T) {
	for _, n := range []jdocs.Name{jdocs.RobotSettings, jdocs.RobotLifetimeStats, "vic.Other"} {
		d := jdocs.Default(n)
		if err := d.Check(); err != nil || d.Version != 0 || d.FmtVersion != n.FmtVersion() {
			t.Errorf("%s: %+v, %v", n, d, err)
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(d.JSON), &m); err != nil {
			t.Fatal(err)
		}
		for k, v := range m {
			if got, err := jdocs.CheckField(n, k, v); err != nil || !jdocs.Equal(got, v) {
				t.Errorf("%s: default %s = %s is refused: %s, %v", n, k, v, got, err)
			}
		}
	}
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":1,"o":{"x":1}}`), []byte(`{"a":2,"o":{"x":2}}`), []byte(`{"a":3,"o":{}}`))
	f.Add([]byte(``), []byte(`{"Alive.seconds":2}`), []byte(`{"Alive.seconds":1e300}`))
	f.Add([]byte(`{"a":null}`), []byte(`null`), []byte(`[1]`))
	f.Add([]byte(`{"a":1,"a":2}`), []byte(`{"\ud800":1}`), []byte(`{"\udfff":1}`))
	f.Fuzz(func(t *testing.T, base, x, y []byte) {
		for name, merge := range map[string]func(a, b, c []byte) ([]byte, []string, error){"Merge": jdocs.Merge, "MergeStats": jdocs.MergeStats} {
			got, _, err := merge(base, x, y)
			if err == nil {
				if err := jdocs.CheckJSON(got); err != nil && len(got) <= jdocs.MaxJSON {
					t.Errorf("%s(%q, %q, %q) = %q: %v", name, base, x, y, got, err)
				}
			}
			if jdocs.CheckJSON(base) != nil {
				continue
			}
			if jdocs.CheckJSON(x) == nil {
				if got, c, err := merge(base, x, base); err != nil || len(c) > 0 || !jdocs.Equal(got, x) {
					t.Errorf("%s(base, %q, base %q) = %q, conflicts %q, %v", name, x, base, got, c, err)
				}
			}
			if jdocs.CheckJSON(y) == nil {
				if got, c, err := merge(base, base, y); err != nil || len(c) > 0 || !jdocs.Equal(got, y) {
					t.Errorf("%s(base, base %q, %q) = %q, conflicts %q, %v", name, base, y, got, c, err)
				}
			}
		}
	})
}

func FuzzSetFields(f *testing.F) {
	f.Add(`{"a":{"b":1}}`, "a.b", []byte(`2`))
	f.Add(`{}`, "master_volume", []byte(`"high"`))
	f.Add(`[]`, "..", []byte(`null`))
	f.Add(`{}`, "time_zone", []byte(`"Europe/Berlin"`))
	f.Fuzz(func(t *testing.T, doc, field string, v []byte) {
		if jdocs.CheckJSON([]byte(doc)) != nil {
			return
		}
		for _, name := range []jdocs.Name{jdocs.RobotSettings, jdocs.RobotLifetimeStats} {
			got, err := jdocs.SetFields(name, doc, map[string]json.RawMessage{field: v})
			if err == nil && !json.Valid([]byte(got)) {
				t.Errorf("%s: set %q to %q in %q: %q", name, field, v, doc, got)
			}
		}
	})
}
