package compiler_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"kennel/edge/pawn"
	"kennel/edge/pawn/amx"
	"kennel/edge/pawn/compiler"
)

// prefix declares the natives of the programs.
const prefix = `native printf(const format[], {Float,Fixed,_}:...);
native numargs();
native getarg(arg, index=0);
native setarg(arg, index=0, value);
native heapspace();
native funcidx(const name[]);
`

var files = map[string]string{"inc/default.inc": prefix, "inc/sample.inc": "const SAMPLE = 4\nstock sample(a) return a * 2\n",
	"inc/guarded.inc": "#if defined guarded\n\t#endinput\n#endif\n#define guarded\nconst GUARDED = 4\n", "inc/again.inc": "#include <guarded>\n"}

func open(name string) ([]byte, error) {
	if s, ok := files[name]; ok {
		return []byte(s), nil
	}
	return nil, fs.ErrNotExist
}

func options() compiler.Options {
	return compiler.Options{Debug: 1, Prefix: "default.inc", Include: []string{"inc"}, Open: open}
}

// section is a script of a corpus file and what belongs to it.
type section struct{ name, source, want string }

func sections(t testing.TB, file string) []section {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var out []section
	for _, part := range strings.Split(string(b), "#### ")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		source, want, ok := strings.Cut(rest, "\n----\n")
		if !ok {
			t.Fatalf("%s: %q has no ---- line", file, name)
		}
		out = append(out, section{name, source + "\n", want})
	}
	return out
}

// natives returns the native functions of programs that print into out.
func natives(out *strings.Builder) func(string) pawn.Native {
	return func(name string) pawn.Native {
		if name != "printf" {
			return pawn.Basics(name)
		}
		return func(c pawn.Call) (int32, pawn.Code) {
			text, code := pawn.Format(nil, c, 0)
			out.Write(text)
			return 0, code
		}
	}
}

// run runs main and returns what it prints; a line at the end says which error stopped it.
func run(p *amx.Program) (string, error) {
	file, err := p.Append(nil)
	if err != nil {
		return "", err
	}
	if p, err = amx.Read(file); err != nil {
		return "", err
	}
	var out strings.Builder
	m, err := pawn.New(p, pawn.Options{Natives: natives(&out)})
	if err != nil {
		return "", err
	}
	var r pawn.Running
	if code := m.Begin(&r, pawn.Main); code != pawn.OK {
		return "", fmt.Errorf("begin main: %v", code)
	}
	for range 10 {
		switch result := m.Run(&r, 5_000_000); {
		case result.State == pawn.Preempted:
			return out.String(), errors.New("the script does not end")
		case result.State == pawn.Ended && result.Code != pawn.OK:
			fmt.Fprintf(&out, "Run time error %d\n", result.Code)
			return out.String(), nil
		case result.State == pawn.Ended:
			return out.String(), nil
		}
	}
	return out.String(), errors.New("the script sleeps for ever")
}

// TestPrograms compiles each program at every level, with and without overlays and checks, and compares what it prints. The output is
// the reference compiler's and machine's, except where those are wrong: a chain of constants compared, ++ of an array's element as
// argument, a packed character incremented, arrays compared, a comma behind the last row, char of a variable, a name that variables of two states
// share, destructors where a break or a goto leaves several blocks, what comes before a constant in a comma expression, a state that no function has, and the
// smallest number divided (testdata/README.md)
// (PLEO-AMX-04, PLEO-PBT-06, PLEO-PBT-07).
func TestPrograms(t *testing.T) {
	list := sections(t, "programs.txt")
	if len(list) < 200 {
		t.Errorf("%d programs, want at least 200", len(list))
	}
	older := 0
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) {
			for level := range 3 {
				for _, overlay := range []int{0, 8192} {
					o := options()
					o.Optimise, o.Overlay = level, overlay
					for _, o.Debug = range []int{0, 1, 2} {
						check(t, s, o)
					}
				}
			}
			for _, version := range []uint8{8, 9} { // as firmware 1.0 runs them
				o := options()
				o.Optimise, o.Version = 2, version
				if r := compiler.Compile("main.p", []byte(s.source), o); r.Errors() > 0 && r.Messages[len(r.Messages)-1].Number == 104 {
					continue // an instruction of version 10
				}
				check(t, s, o)
				older++
			}
		})
	}
	if older < 2*len(list)*95/100 {
		t.Errorf("%d of %d programs compile for older versions", older, 2*len(list))
	}
}

func check(t *testing.T, s section, o compiler.Options) {
	t.Helper()
	r := compiler.Compile("main.p", []byte(s.source), o)
	if r.Program == nil {
		t.Fatalf("-O%d -V%d -d%d: %v", o.Optimise, o.Overlay, o.Debug, r.Messages)
	}
	got, err := run(r.Program)
	if err != nil || strings.TrimRight(got, "\n ") != strings.TrimRight(s.want, "\n ") {
		t.Errorf("-O%d -V%d -d%d: %v, prints\n%s\nwant\n%s", o.Optimise, o.Overlay, o.Debug, err, got, s.want)
	}
}

// TestErrors compiles scripts with errors. Each must give the listed numbers at the listed places.
func TestErrors(t *testing.T) {
	numbers := map[string]bool{}
	for _, s := range sections(t, "errors.txt") {
		t.Run(s.name, func(t *testing.T) {
			r := compiler.Compile("main.p", []byte(s.source), options())
			var got []string
			for _, m := range r.Messages {
				got = append(got, fmt.Sprintf("%03d %d:%d", m.Number, m.Line, m.Column))
				if m.Text == "" || m.File == "" || m.Kind == "" || strings.Contains(m.String(), "%!") {
					t.Errorf("message %+v", m)
				}
			}
			if want := strings.Fields(strings.ReplaceAll(s.want, " ", "@")); !slices.Equal(want, strings.Fields(strings.ReplaceAll(strings.Join(got, "\n"), " ", "@"))) {
				t.Errorf("messages %q, want %q", got, s.want)
			}
			for _, g := range got {
				numbers[g[:3]] = true
			}
			if (r.Errors() == 0) != (r.Program != nil) {
				t.Errorf("%d errors and program %v", r.Errors(), r.Program != nil)
			}
		})
	}
	if len(numbers) < 60 {
		t.Errorf("%d numbers, want at least 60", len(numbers))
	}
}

// TestMessage pins what a message says of its place, the mistake and its repair.
func TestMessage(t *testing.T) {
	r := compiler.Compile("dance.p", []byte("main()\n{\n\tnew counter = 1;\n\tcuonter = counter;\n}\n"), options())
	if len(r.Messages) != 1 {
		t.Fatalf("messages %v", r.Messages)
	}
	m := r.Messages[0]
	if m.Number != 17 || m.File != "dance.p" || m.Line != 4 || m.Column != 2 || m.Found != `"cuonter"` || m.Fix != `write "counter"` {
		t.Errorf("message %+v", m)
	}
	r = compiler.Compile("dance.p", []byte("#define BAD(%1) undefined_%1\nmain() { new a = 1 +   BAD(x) + a;  b(a); }\n"), options())
	if len(r.Messages) < 2 || r.Messages[0].Column != 24 || r.Messages[1].Column != 37 {
		t.Errorf("columns around a macro: %v", r.Messages)
	}
}

// TestLimits shows the limits on programs: of the whole, of data with stack and heap, and of one overlay (PLEO-PBT-06, PLEO-PBT-12).
func TestLimits(t *testing.T) {
	src := []byte("new a[100]\nmain() { for (new i = 0; i < 100; i++) a[i] = i * i + a[i / 2]; printf(\"%d\", a[9]); }\n")
	for _, c := range []struct {
		set  func(*compiler.Options)
		want int
	}{
		{func(o *compiler.Options) {}, 0},
		{func(o *compiler.Options) { o.Limit, o.DataLimit, o.Overlay = 20_000, 17_000, 8192 }, 0},
		{func(o *compiler.Options) { o.Limit = 16_384 }, 106},
		{func(o *compiler.Options) { o.DataLimit = 16_384 + 300 }, 106},
		{func(o *compiler.Options) { o.Overlay = 64 }, 112},
	} {
		o := options()
		c.set(&o)
		r := compiler.Compile("main.p", src, o)
		got := 0
		if len(r.Messages) > 0 {
			got = r.Messages[0].Number
		}
		if got != c.want || (r.Program == nil) != (c.want > 0) {
			t.Errorf("limits %d %d %d: %v, want %d", o.Limit, o.DataLimit, o.Overlay, r.Messages, c.want)
		}
	}
}
