package compiler_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"kennel/edge/pawn"
	"kennel/edge/pawn/amx"
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
	label int      // labels given out
	steps bool     // inside a loop: break and continue are allowed
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
	switch w.r.IntN(27) {
	case 0, 1, 2:
		return fmt.Sprintf("(%s %s %s)", a, w.pick("+", "-", "*", "&", "|", "^"), b)
	case 3:
		return fmt.Sprintf("(low(%s) %s (%s & 7 | 1))", a, w.pick("/", "%"), b)
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
		return fmt.Sprintf("(%s %s %s %s %s ? 1 : 0)", w.vary(a), w.pick("<", "<="), w.pick(w.vars...), w.pick("<", "<="), w.expr(depth-1))
	case 12:
		if w.funcs > 0 {
			return fmt.Sprintf("f%d(%s, %s)", w.r.IntN(w.funcs), a, b)
		}
	case 13:
		return fmt.Sprintf("str{at(%s)}", a)
	case 14:
		return fmt.Sprintf("(%s %s %s)", w.vars[w.r.IntN(w.fixed)], w.pick("=", "+=", "-=", "^="), a)
	case 15:
		return fmt.Sprintf("(%s%s)", w.vars[w.r.IntN(w.fixed)], w.pick("++", "--"))
	case 16:
		return fmt.Sprintf("(%s%s)", w.pick("++", "--"), w.vars[w.r.IntN(w.fixed)])
	case 17:
		return fmt.Sprintf("(%s, %s ^ x_)", a, b) // the reference forgets what is before a constant
	case 18:
		return fmt.Sprintf("sum(%s, %d)", w.pick("arr", "grid[0]", "grid[at("+a+") & 1]"), 1+w.r.IntN(3))
	case 19:
		return fmt.Sprintf("many(%s, %s, %s)", a, b, w.pick("arr[1]", "x_", "- 3"))
	case 20:
		return fmt.Sprintf("(_: (Mod: (%s) %s Mod: (%s)))", a, w.pick("+", "-"), b)
	case 21:
		return fmt.Sprintf("down(%s & 7)", a)
	case 22:
		return fmt.Sprintf("TWICE(%s)", a)
	case 23:
		return w.pick("(_: green)", "(_: blue)", "sizeof arr", "sizeof grid[]", "0b1011", "'\\n'", "K * 3 - 1", "(K > 50 ? 7 : -7)", "(_: true)", "text[1]", "text[at(ga)]")
	case 24:
		return fmt.Sprintf("mode(%s)", a)
	case 25:
		return fmt.Sprintf("(%s %s %s %s %s %s %s ? 2 : 3)", w.vary(a), w.pick("<", "<="), b, w.pick("<", "<="), w.pick(w.vars...), w.pick("<", "<="), w.expr(depth-1))
	case 26:
		return fmt.Sprintf("(low(%s) %s %s)", a, w.pick("*", "/", "%", "<<", "|", "+", "-"), w.pick("1", "2", "4", "8", "3", "16", "-1", "5", "31"))
	}
	return fmt.Sprintf("(%s %s %s)", a, w.pick("+", "-", "*"), b)
}

// vary makes sure that an operand is no constant: the reference is wrong about a chain that begins with two.
func (w *writer) vary(s string) string { return fmt.Sprintf("(%s ^ x_)", s) }

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
	switch n := w.r.IntN(22); {
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
		was := w.steps
		w.loops, w.steps = w.loops+1, true
		w.vars = append(w.vars, name)
		w.block(depth - 1)
		w.vars = w.vars[:len(w.vars)-1]
		w.loops, w.steps = w.loops-1, was
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
	case n == 10 && w.loops < 2:
		w.while(depth)
	case n == 11:
		w.line("%s %s = %s;", w.pick("new", "static"), w.local(), w.pick("3", "K", "- 9"))
		w.line("printf(\"%%d \", %s);", w.expr(2))
	case n == 12:
		w.line("state %s;", w.pick("one", "two"))
	case n == 13 && w.steps:
		w.line("if (%s) %s;", w.expr(1), w.pick("break", "continue"))
	case n == 14:
		w.line("%s;", w.pick("spare = arr", "arr = spare", "arr = grid5[1]", "grid5[at(ga) & 1] = arr", "grid[0] = grid[1]", "text = \"wxyz\""))
	case n == 15:
		w.line("printf(\"%%s %%c%%%% \", text, 'a' + (%s & 15));", w.expr(1))
	case n == 16:
		w.line("switch (low(%s) %% 40) {", w.expr(2))
		w.line("  case %d .. %d: %s = %s;", w.r.IntN(9), 10+w.r.IntN(9), w.target(), w.expr(1))
		w.line("  case %d, %d, -1: %s = %s;", 20+w.r.IntN(5), 25+w.r.IntN(9), w.target(), w.expr(1))
		w.line("}")
	case n == 17:
		w.line("spread(%s, %s);", w.pick("arr", "spare", "grid5[0]", "grid5[at(gb) & 1]"), w.expr(2))
	case n == 18 && w.r.IntN(3) == 0:
		w.line("sleep %s;", w.expr(1))
	case n == 19 && w.r.IntN(8) == 0:
		w.line("%s", w.pick("assert ga != 5;", "if (ga == gb) exit 3;", "arr[gb & 7] = 1;", "ga = low(gb) / (ga & 7);", "deep(gb & 511);"))
	default:
		w.line("printf(\"%%x \", %s);", w.expr(3))
	}
}

// local returns the name of a new local variable, which nothing uses: labels and names are numbered.
func (w *writer) local() string {
	w.label++
	return fmt.Sprintf("l%d", w.label)
}

// while writes a loop that a counter ends.
func (w *writer) while(depth int) {
	name := w.local()
	was := w.steps
	w.loops++
	defer func() { w.loops, w.steps = w.loops-1, was }()
	w.line("new %s = %d;", name, 1+w.r.IntN(4))
	switch w.r.IntN(3) {
	case 0:
		w.steps = true
		w.line("while (%s-- > 0) {", name)
		w.block(depth - 1)
		w.line("}")
	case 1:
		w.steps = true
		w.line("do {")
		w.block(depth - 1)
		w.line("} while (--%s > 0);", name)
	default: // no break: the label is not in a loop
		w.steps = false
		w.line("again_%s:", name)
		w.block(depth - 1)
		w.line("if (--%s > 0) goto again_%s;", name, name)
	}
}

func (w *writer) block(depth int) {
	w.depth++
	for range 1 + w.r.IntN(3) {
		w.statement(depth)
	}
	w.depth--
}

// library is the beginning of all scripts. low keeps the smallest number away from division: the reference's machine computes it without its sign.
const library = `low(x) return x == 0x80000000 ? 1 : x
enum Colour { red, green = 5, blue }
#define TWICE(%1) ((%1) * 2)
new spare[5] = { 9, 8, 7 }
new grid5[2][5] = { { 1, 2, 3, 4, 5 }, { 5, 4, 3, 2, 1 } }
new text[5] = "abcd"
new x_ = 12
Mod: operator+(Mod: a, Mod: b) return Mod: ((_: a & 0xff) + (_: b & 0xff))
Mod: operator-(Mod: a, Mod: b) return Mod: (_: b - _: a)
sum(const a[], n = 2) { new s; for (new i = 0; i < n; i++) s += a[i] * (i + 1); return s; }
many(...) { new s; for (new i = 0; i < numargs(); i++) s = s * 3 + getarg(i); setarg(2, 0, s); return s; }
spread(a[5], v, w = 2) { for (new i = 0; i < sizeof a; i++) a[i] += v * w + i; }
down(n) { if (n <= 0) return 1; return n * down(n - 1) + x_; }
deep(n) { new big[40]; big[n % 40] = n; return n <= 0 ? big[0] : deep(n - 1) + big[1]; }
mode(v) <one> { if (v & 1) state two; return v + 1; }
mode(v) <two> { x_ += v; state one; return v - 1; }
entry() <two> { x_++; }
`

// script makes a whole script.
func script(seed uint64) string {
	w := &writer{r: rand.New(rand.NewPCG(seed, 1))}
	w.line("const K = %d", w.r.IntN(100))
	w.line("new ga = %d, gb", w.r.IntN(100))
	w.line("new arr[5] = { %d, 2, ... }", w.r.IntN(9))
	w.line("new grid[2][3] = { { 1, 2, 3 }, { 4, 5, %d } }", w.r.IntN(50))
	w.line("new str[8 char] = !\"abcdefg\"")
	w.line("%s", library)
	w.line("at(x) { x = low(x) %% 5; return x < 0 ? x + 5 : x; }")
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
	w.line("state one;")
	w.line("mode(0);") // the reference forgets the variable of an automaton that no function uses
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
	w.line("return %s;", w.expr(2))
	w.depth--
	w.line("}")
	return w.b.String()
}

// trace runs main and returns what "robotkit pawn run" prints: the output, a line for each sleep and one for the end. false: it does not end.
func trace(t testing.TB, p *amx.Program) (string, bool) {
	t.Helper()
	var out strings.Builder
	line := func(format string, args ...any) {
		if s := out.String(); s != "" && s[len(s)-1] != '\n' {
			out.WriteByte('\n')
		}
		fmt.Fprintf(&out, format, args...)
	}
	m, err := pawn.New(p, pawn.Options{Natives: natives(&out)})
	if err != nil {
		t.Fatal(err)
	}
	var r pawn.Running
	if code := m.Begin(&r, pawn.Main); code != pawn.OK {
		t.Fatal(code)
	}
	for sleeps := 0; ; sleeps++ {
		end := m.Run(&r, 2_000_000)
		if end.State == pawn.Preempted {
			return out.String(), false
		}
		if end.State == pawn.Sleeping && sleeps < 6 {
			line("S sleep pri=%d\n", end.Pri)
			continue
		}
		if end.Code != pawn.OK && end.Code != pawn.ErrExit {
			end.Value = 0 // where an error stops it the registers are what the optimiser left there
		}
		line("R main err=%d ret=%d sleeps=%d\n", end.Code, end.Value, sleeps)
		return out.String(), true
	}
}

// file writes a program and reads it.
func file(t testing.TB, p *amx.Program) ([]byte, *amx.Program) {
	t.Helper()
	b, err := p.Append(nil)
	if err == nil {
		p, err = amx.Read(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b, p
}

// TestGenerated compiles random scripts at all levels: all programs must print the same, sleep at the same places and end in the same way. With
// KENNEL_PAWN_COMPILER and KENNEL_PAWN_MACHINE, both of the reference's programs join: see judge. KENNEL_PAWN_SEED chooses scripts.
func TestGenerated(t *testing.T) {
	n, from := 150, 0
	if os.Getenv("KENNEL_SOAK") == "1" {
		n = 10_000
	}
	if s := os.Getenv("KENNEL_PAWN_SEED"); s != "" { // one, or FROM-TO
		first, last, more := strings.Cut(s, "-")
		var err error
		if from, err = strconv.Atoi(first); err != nil {
			t.Fatal(err)
		}
		if n = 1; more {
			to, err := strconv.Atoi(last)
			if n = to - from + 1; err != nil || n < 1 {
				t.Fatalf("KENNEL_PAWN_SEED=%s: want a number, or FROM-TO", s)
			}
		}
	}
	other := newJudge(t)
	ended := 0
	for i := range n {
		seed := uint64(from + i)
		src := script(seed)
		want := ""
		for level := range 3 {
			o := options()
			o.Optimise, o.Debug, o.StackHeap = level, 1, 1<<12
			if other == nil {
				o.Overlay = []int{0, 0, 1 << 16}[level]
			}
			r := compiler.Compile("main.p", []byte(src), o)
			if r.Program == nil {
				t.Fatalf("seed %d: %v\n%s", seed, r.Messages, src)
			}
			b, p := file(t, r.Program)
			got, end := trace(t, p)
			if !end {
				break // too long for a test
			}
			ended++
			if level == 0 {
				want = got
			} else if got != want {
				t.Errorf("seed %d: -O%d prints\n%s\nwant\n%s\n%s", seed, level, got, want, src)
			}
			if other != nil {
				other.compare(t, seed, level, src, b, got)
			}
		}
	}
	if ended < 2*n {
		t.Errorf("%d of %d programs end", ended, 3*n)
	}
	if other != nil {
		t.Logf("%d programs compared with the reference; left out: %v", other.compared, other.out)
	}
}
