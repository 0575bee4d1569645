package hints

import (
	"maps"
	"strings"
	"testing"
)

func TestJdocs(t *testing.T) {
	b, err := Jdocs{map[string]uint64{"vic.RobotSettings": 7, "vic.RobotLifetimeStats": 18446744073709551615}}.Encode()
	want := `{"docs":{"vic.RobotLifetimeStats":18446744073709551615,"vic.RobotSettings":7}}`
	if err != nil || string(b) != want {
		t.Fatalf("got %s, %v; want %s", b, err, want)
	}
	got, err := ParseJdocs([]byte(`{"docs":{"vic.RobotSettings":7},"new":true}`))
	if err != nil || !maps.Equal(got.Docs, map[string]uint64{"vic.RobotSettings": 7}) {
		t.Errorf("got %v, %v", got, err)
	}
	for in, want := range map[string]string{
		``:                  "jdocs hint",
		`{}`:                "0 documents",
		`{"docs":{"a":-1}}`: "number -1",
		`{"docs":["vic"]}`:  "array",
		`{"docs":{"":1}}`:   "document name",
		`{"docs":{"` + strings.Repeat("a", 65) + `":1}}`: "1 to 64",
	} {
		if got, err := ParseJdocs([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", in, got, err, want)
		}
	}
}

func FuzzParseJdocs(f *testing.F) {
	f.Add([]byte(`{"docs":{"vic.RobotSettings":7}}`))
	f.Add([]byte(`{"docs":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := ParseJdocs(b)
		if err != nil {
			return
		}
		e, err := j.Encode()
		if err != nil {
			t.Fatalf("%q: encode: %v", b, err)
		}
		// Compared after one encoding: a name with a damaged character is mended by it.
		again, err := ParseJdocs(e)
		if err != nil || len(again.Docs) > len(j.Docs) {
			t.Errorf("%q: %v, again %v, %v", b, j, again, err)
		}
	})
}
