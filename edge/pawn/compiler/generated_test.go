package compiler_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"kennel/edge/pawn/compiler"
)

// writer makes random scripts that end and have one meaning: loops count, divisors are not zero, and indices are in bounds.
type writer struct {
	r     *rand.Rand
	b     strings.Builder
	depth int
	loops int
	vars  []string // cells in scope
	fixed int      // the first of vars that are loop counters: not assigned
	funcs int      // functions that can be called
}

func (w *writer) pick(list ...string) string { return list[w.r.IntN(len(list))] }

func (w *writer) line(format string, args ...any) {
	w.b.WriteString(strings.Repeat("  ", w.depth))
	fmt.Fprintf(&w.b, format+"\n", args...)
}

// expr returns an expression of at most depth levels.
func (w *writer) expr(depth int) string {
	if depth <= 0 || w.r.IntN(6) == 0 {
		switch w.r.IntN(8) {
		case 0, 1:
			return fmt.Sprint(w.r.IntN(200) - 60)
		case 2:
			return w.pick("0", "1", "cellmax", "- cellmax", "0xffff", "'a'", "K")
		case 3:
			return fmt.Sprintf("arr[%d]", w.r.IntN(5))
		case 4:
			return fmt.Sprintf("grid[%d][%d]", w.r.IntN(2), w.r.IntN(3))
		}
		return w.pick(w.vars...)
	}
	a, b := w.expr(depth-1), w.expr(depth-1)
	switch w.r.IntN(15) {
	case 0, 1, 2:
		return fmt.Sprintf("(%s %s %s)", a, w.pick("+", "-", "*", "&", "|", "^"), b)
	case 3:
		return fmt.Sprintf("(%s %s (%s & 7 | 1))", a, w.pick("/", "%"), b)
	case 4:
		return fmt.Sprintf("(%s %s (%s & 31))", a, w.pick("<<", ">>", ">>>"), b)
	case 5:
		return fmt.Sprintf("(_: (%s %s %s))", a, w.pick("<", "<=", ">", ">=", "==", "!="), b)
	case 6:
		return fmt.Sprintf("(%s%s + 0)", w.pick("- ", "~ ", "_: !"), a)
	case 7:
		return fmt.Sprintf("(_: (%s %s %s))", a, w.pick("&&", "||"), b)
	case 8:
		return fmt.Sprintf("(%s ? %s : %s)", a, b, w.expr(depth-1))
	case 9:
		return fmt.Sprintf("arr[at(%s)]", a)
	case 10:
		return fmt.Sprintf("grid[at(%s) & 1][at(%s) & 1]", a, b)
	case 11:
		return fmt.Sprintf("(%s %s %s %s %s ? 1 : 0)", a, w.pick("<", "<="), w.pick(w.vars...), w.pick("<", "<="), w.expr(depth-1))
	case 12:
		if w.funcs > 0 {
			return fmt.Sprintf("f%d(%s, %s)", w.r.IntN(w.funcs), a, b)
		}
	case 13:
		return fmt.Sprintf("str{at(%s)}", a)
	}
	return fmt.Sprintf("(%s %s %s)", a, w.pick("+", "-", "*"), b)
}

func (w *writer) target() string {
	switch w.r.IntN(6) {
	case 0:
		return fmt.Sprintf("arr[%d]", w.r.IntN(5))
	case 1:
		return "arr[at(" + w.expr(1) + ")]"
	case 2:
		return fmt.Sprintf("grid[%d][at(%s) %% 3]", w.r.IntN(2), w.expr(1))
	}
	return w.vars[w.r.IntN(w.fixed)]
}

func (w *writer) statement(depth int) {
	switch n := w.r.IntN(12); {
	case n < 4 || depth <= 0:
		w.line("%s %s %s;", w.target(), w.pick("=", "=", "=", "+=", "-=", "*=", "&=", "|=", "^="), w.expr(3))
	case n == 4:
		w.line("%s%s;", w.target(), w.pick("++", "--"))
	case n == 5:
		w.line("if (%s) {", w.expr(2))
		w.block(depth - 1)
		w.line("} else {")
		w.block(depth - 1)
		w.line("}")
	case n == 6 && w.loops < 2:
		name := fmt.Sprintf("i%d", w.loops)
		w.line("for (new %s = 0; %s < %d; %s++) {", name, name, 1+w.r.IntN(4), name)
		w.loops++
		w.vars = append(w.vars, name)
		w.block(depth - 1)
		w.vars = w.vars[:len(w.vars)-1]
		w.loops--
		w.line("}")
	case n == 7:
		w.line("switch (%s & 3) {", w.expr(2))
		w.depth++
		for i := range 1 + w.r.IntN(3) {
			w.line("case %d: {", i)
			w.block(depth - 1)
			w.line("}")
		}
		w.line("default: {")
		w.block(depth - 1)
		w.line("}")
		w.depth--
		w.line("}")
	case n == 8:
		w.line("str{at(%s)} = %s & 127;", w.expr(1), w.expr(1))
	case n == 9 && w.funcs > 0:
		w.line("g%d(%s, %s);", w.r.IntN(w.funcs), w.vars[w.r.IntN(w.fixed)], w.expr(1))
	default:
		w.line("printf(\"%%x \", %s);", w.expr(3))
	}
}

func (w *writer) block(depth int) {
	w.depth++
	for range 1 + w.r.IntN(3) {
		w.statement(depth)
	}
	w.depth--
}

// script makes a whole script.
func script(seed uint64) string {
	w := &writer{r: rand.New(rand.NewPCG(seed, 1))}
	w.line("const K = %d", w.r.IntN(100))
	w.line("new ga = %d, gb", w.r.IntN(100))
	w.line("new arr[5] = { %d, 2, ... }", w.r.IntN(9))
	w.line("new grid[2][3] = { { 1, 2, 3 }, { 4, 5, %d } }", w.r.IntN(50))
	w.line("new str[8 char] = !\"abcdefg\"")
	w.line("at(x) { x %%= 5; return x < 0 ? x + 5 : x; }")
	for i := range w.r.IntN(3) + 1 {
		w.vars, w.fixed = []string{"a", "b", "ga", "gb"}, 4
		w.line("f%d(a, b = K) {", i)
		w.block(1)
		w.depth++
		w.line("return %s;", w.expr(3))
		w.depth--
		w.line("}")
		w.line("g%d(&a, b) {", i)
		w.block(1)
		w.line("}")
		w.funcs = i + 1
	}
	w.vars, w.fixed = []string{"x", "y", "ga", "gb"}, 4
	w.line("main() {")
	w.depth++
	w.line("new x = %d, y = %s;", w.r.IntN(50), w.pick("3", "-7", "ga"))
	w.depth--
	for range 3 + w.r.IntN(5) {
		w.block(2)
	}
	w.depth++
	w.line("printf(\"%%x %%x %%x %%x\\n\", x, y, ga, gb);")
	w.line("for (new i = 0; i < 5; i++) printf(\"%%x \", arr[i]);")
	w.line("for (new i = 0; i < 6; i++) printf(\"%%x \", grid[i / 3][i %% 3]);")
	w.line("for (new i = 0; i < 8; i++) printf(\"%%x \", str{i});")
	w.depth--
	w.line("}")
	return w.b.String()
}

// TestGenerated compiles random scripts at all levels, with and without overlays: all programs must print the same.
func TestGenerated(t *testing.T) {
	n := 150
	if os.Getenv("KENNEL_SOAK") == "1" {
		n = 10_000
	}
	for seed := range uint64(n) {
		src := script(seed)
		want := ""
		for level := range 3 {
			o := options()
			o.Optimise, o.Overlay, o.Debug, o.StackHeap = level, []int{0, 0, 1 << 16}[level], []int{0, 1, 1}[level], 1<<14
			r := compiler.Compile("main.p", []byte(src), o)
			if r.Program == nil {
				t.Fatalf("seed %d: %v\n%s", seed, r.Messages, src)
			}
			got, err := run(r.Program)
			if err != nil && !strings.Contains(err.Error(), "does not end") {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err != nil {
				break // too long for a test
			}
			if level == 0 {
				want = got
			} else if got != want {
				t.Fatalf("seed %d: -O%d prints\n%s\nwant\n%s\n%s", seed, level, got, want, src)
			}
		}
	}
}
