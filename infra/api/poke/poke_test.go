package poke

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestParse: a poke is completed from the table, and refused where the table does not know it.
func TestParse(t *testing.T) {
	for _, tc := range []struct{ name, in, want, err string }{
		{"defaults", `{"verb":"touch"}`, "touch -for 2s", ""},
		{"seconds", `{"verb":"press","args":{"for":1.5}}`, "press -for 1.5s", ""},
		{"metres", `{"verb":"lift","args":{"height":0.5}}`, "lift -height 0.5", ""},
		{"no argument", `{"verb":"put"}`, "put", ""},
		{"two arguments", `{"verb":"push","args":{"by":0.1}}`, "push -by 0.1 -toward 0", ""},
		{"a side", `{"verb":"turn","side":"back"}`, "turn back", ""},
		{"volts", `{"verb":"drain","args":{"volts":10.5}}`, "drain -volts 10.5", ""},
		{"degrees", `{"verb":"spin","args":{"for":1}}`, "spin -angle 90 -for 1s", ""},
		{"unknown verb", `{"verb":"kick"}`, "", "want one of touch, pat, press, lift, put, push, turn, spin, shake, hold, drain, dip, reset, tools, insert, eject, cube, play"},
		{"no verb", `{}`, "", "want one of"},
		{"unknown field", `{"verb":"put","hard":1}`, "", `poke: unknown field "hard"; want verb, side, file and args`},
		{"unknown argument", `{"verb":"touch","args":{"height":1}}`, "", `touch takes no argument "height"`},
		{"too long", `{"verb":"touch","args":{"for":61}}`, "", "for 1m1s: want 50ms to 1m0s"},
		{"too low", `{"verb":"push","args":{"by":-1}}`, "", "by -1: want 0.005 to 0.5"},
		{"no side", `{"verb":"turn"}`, "", "want one of back, left, right, face"},
		{"a file", `{"verb":"play","file":"hello.wav","args":{"direction":1.5707963267948966}}`, "play hello.wav -direction 90", ""},
		{"no file", `{"verb":"play"}`, "", `play: file "": want a name`},
		{"a file elsewhere", `{"verb":"play","file":"../hello.wav"}`, "", `play: file "../hello.wav": want a name`},
		{"a file too many", `{"verb":"put","file":"hello.wav"}`, "", `put: file "hello.wav": want none`},
		{"a side too many", `{"verb":"put","side":"back"}`, "", "put takes no side"},
		{"no JSON", `touch`, "", "invalid character"},
	} {
		p, err := Parse([]byte(tc.in))
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || err == nil && p.String() != tc.want {
			t.Errorf("%s: %s, %v; want %q, %q", tc.name, p, err, tc.want, tc.err)
		}
	}
	if _, err := (Poke{Verb: Lift, Args: map[string]float64{Height: math.NaN()}}).Complete(); err == nil {
		t.Error("a height that is no number was taken")
	}
}

// TestFlags: people write durations, metres and degrees; the flags are all arguments of the table.
func TestFlags(t *testing.T) {
	var p Poke
	set := map[string]func(string) error{}
	p.Flags(func(name, _ string, f func(string) error) { set[name] = f })
	for name, text := range map[string]string{For: "2s", Height: "0.3", By: "0.05", Toward: "90", Angle: "-180", Volts: "11", From: "180"} {
		if err := set[name](text); err != nil {
			t.Error(err)
		}
		if err := set[name]("far"); err == nil {
			t.Errorf("-%s far was taken", name)
		}
	}
	want := map[string]float64{For: 2, Height: 0.3, By: 0.05, Toward: math.Pi / 2, Angle: -math.Pi, Volts: 11, From: math.Pi}
	if !reflect.DeepEqual(p.Args, want) || p.Seconds() != 2*time.Second {
		t.Errorf("got %v, want %v", p.Args, want)
	}
	for _, v := range verbs {
		for _, a := range v.args {
			if set[a.name] == nil {
				t.Errorf("%s: no flag -%s", v.name, a.name)
			}
		}
		if !strings.Contains(Help(), "  "+v.name) {
			t.Errorf("the help leaves out %s", v.name)
		}
	}
	if len(Names()) != len(verbs) {
		t.Errorf("%d names", len(Names()))
	}
}

func TestNamed(t *testing.T) {
	for _, tc := range []struct{ words, want string }{
		{"turn back", "turn back"}, {"press", "press -for 200ms"}, {"play a.wav", "play a.wav -direction 0"}, {"play", ""}, {"", ""}, {"turn", ""}, {"turn on back", ""},
	} {
		if p, err := (Poke{}).Named(strings.Fields(tc.words)...); p.String() != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%q: %q, %v; want %q", tc.words, p, err, tc.want)
		}
	}
}

func TestRefused(t *testing.T) {
	if got, want := (Poke{Verb: Touch}).Refused().Error(), "this body cannot be touched"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzParse: a poke that is taken is complete: it parses to itself again, and each number is within its range.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"verb":"touch"}`, `{"verb":"push","args":{"by":0.1,"toward":-1}}`, `{"verb":"turn","side":"face"}`, `{"verb":"play","file":"a.wav"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := Parse(again); err != nil || !reflect.DeepEqual(p, q) {
			t.Fatalf("%s is %v, then %v, %v", b, p, q, err)
		}
	})
}
