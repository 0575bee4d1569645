package compiler_test

import (
	"strings"
	"testing"
	"time"

	"kennel/edge/pawn/compiler"
)

// TestCrashes compiles what other compilers of the language crashed or hung on. The first five were reported by users to
// pawn-lang/compiler under these numbers; the programs are our own.
func TestCrashes(t *testing.T) {
	deep := strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000)
	for _, c := range []struct {
		name, source string
		want         int // number of the first message
	}{
		{"232 constant with another tag", "const Speed: slow = 4\nmain() printf(\"%d\", _: slow)\n", 213},
		{"232 tagged value of a constant", "const slow = Speed: 4\nmain() printf(\"%d\", slow)\n", 213},
		{"314 size is an unknown name", "new map[6][width][2]\nmain() printf(\"%d\", map[0][0][0])\n", 17},
		{"439 row is missing", "main() { static const legs[4][] = { \"front\", \"back\", \"tail\" }; printf(legs[1]); }\n", 52},
		{"439 row is missing in a block", "main() { static const legs[2][2][] = { { \"front\" }, { \"back\", \"tail\" } }; printf(legs[1][0]); }\n", 18},
		{"490 row too many", "static const moods[2][10] = { \"happy\", \"hungry\", \"tired\" }\nmain() printf(moods[0])\n", 18},
		{"606 rows are variables", "new word[12] = \"Pleo\"\nnew list[2][] = { word, word }\nmain() printf(list[0])\n", 8},
		{"string for two dimensions", "stock const moods[5][] = \"happy\"\nmain() printf(moods[0])\n", 1},
		{"field with the name of an enumeration", "enum _: one {}\nenum _: two { one }\nmain() printf(\"%d\", two)\n", 21},
		{"states of two automata with other arguments", "f(a[]) <x: on> { return a[0]; }\nf(b[]) <y: on> { return b[0]; }\nmain() { new v[2]; f(v); }\n", 25},
		{"empty error directive", "#error\nmain() {}\n", 111},
		{"macro that replaces itself", "#define again again again\nmain() again\n", 75},
		{"two macros that replace each other", "#define ping pong\n#define pong ping\nmain() ping\n", 75},
		{"nesting", "main() printf(\"%d\", " + deep + ")\n", 102},
		{"braces", "main() " + strings.Repeat("{", 5000), 102},
		{"brackets", "new a[" + strings.Repeat("a[", 5000), 102},
		{"many operands", "main() return 1" + strings.Repeat("\n + 1", 20_000) + "\n", 102},
		{"huge array", "new a[2000][2000][2000]\nmain() printf(\"%d\", a[0][0][0])\n", 9},
		{"many large arrays", manyArrays(), 102},
		{"huge range", "main() { new a = 1; switch (a) { case 0 .. 2000000000: a = 2; } }\n", 102},
		{"includes itself", "#include <self>\nmain() {}\n", 0},
		{"missing end of comment", "main() {} /* never\n", 57},
		{"zero bytes", "main() \x00{}\x00\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options()
			o.Open = func(name string) ([]byte, error) {
				if name == "inc/self.inc" {
					return []byte("#include <self>\n"), nil
				}
				return open(name)
			}
			begin := time.Now()
			r := compiler.Compile("crash.p", []byte(c.source), o)
			first := 0
			if len(r.Messages) > 0 {
				first = r.Messages[0].Number
			}
			if first != c.want {
				t.Errorf("first message %d of %v, want %d", first, r.Messages, c.want)
			}
			if d := time.Since(begin); d > 5*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

func manyArrays() string {
	var b strings.Builder
	for i := range 20 {
		b.WriteString("new a" + string(rune('a'+i)) + "[2000000]\n")
	}
	return b.String() + "main() {}\n"
}
