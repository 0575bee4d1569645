package compiler_test

import (
	"slices"
	"strings"
	"testing"

	"kennel/edge/pawn/amx"
	"kennel/edge/pawn/compiler"
)

// numbers compiles a script and returns the numbers of its messages.
func numbers(source string, o compiler.Options) (*compiler.Result, []int) {
	r := compiler.Compile("main.p", []byte(source), o)
	var out []int
	for _, m := range r.Messages {
		out = append(out, m.Number)
	}
	return r, out
}

// TestRecursion shows that warning 237 names each function of a circle, and comes only with symbols for a debugger, as in the reference.
func TestRecursion(t *testing.T) {
	const script = "f(n) return n ? f(n - 1) : 0\na(n) return n ? b(n - 1) : 0\nb(n) return n ? a(n - 1) : 0\ng() return f(1)\nmain() { g(); a(3); }\n"
	o := options()
	for _, o.Debug = range []int{0, 1, 2, 3} {
		r, got := numbers(script, o)
		want := []int(nil)
		if o.Debug >= 2 {
			want = []int{237, 237, 237}
		}
		if !slices.Equal(got, want) {
			t.Errorf("-d%d: %v, want %v", o.Debug, r.Messages, want)
		}
		for i, m := range r.Messages {
			if m.Line != i+1 {
				t.Errorf("-d%d: %v, want line %d", o.Debug, m, i+1)
			}
		}
	}
}

// TestCompactTooLong shows that compact encoding is given up, with warning 232, where it would make the file longer than the plain one.
func TestCompactTooLong(t *testing.T) {
	o := options()
	o.Compact = true
	for _, c := range []struct {
		value string
		want  []int
	}{{"5", nil}, {"0x7fffffff", []int{232}}} {
		r, got := numbers("new a[] = {"+strings.Repeat(c.value+",\n", 99)+c.value+"}\nmain() return a[1]\n", o)
		if !slices.Equal(got, c.want) || r.Program == nil {
			t.Fatalf("%s: %v", c.value, r.Messages)
		}
		if compact := r.Program.Flags&amx.FlagCompact != 0; compact != (c.want == nil) {
			t.Errorf("%s: compact encoding %v", c.value, compact)
		}
		if _, err := r.Program.Append(nil); err != nil {
			t.Errorf("%s: %v", c.value, err)
		}
	}
}

// TestEntryPoint shows what counts as an entry point: the heading of a public function too, as in the reference.
func TestEntryPoint(t *testing.T) {
	for script, want := range map[string]int{
		"forward public f()\nstock g() return 1\n": 0,
		"forward @f()\n": 0, "forward f()\nstock f() return 1\n": 13, "native x()\n": 13, "new v = 3\nstock g() return v\n": 13,
	} {
		r, got := numbers(script, options())
		if (want == 0) != (r.Program != nil) || want != 0 && !slices.Contains(got, want) {
			t.Errorf("%q: %v, want %d", script, r.Messages, want)
		}
	}
}
