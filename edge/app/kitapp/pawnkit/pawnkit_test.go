package pawnkit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kennel/edge/pawn/amx"
	"kennel/infra/cli"
)

// robotkit runs the program with these arguments.
func robotkit(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	root := &cobra.Command{Use: "robotkit"}
	root.AddCommand(Pawn())
	cli.AddOutput(root)
	var out, errs bytes.Buffer
	code = cli.Main(root, append([]string{"pawn"}, args...), func(string) string { return "" }, &out, &errs)
	return out.String(), errs.String(), code
}

// demo is a script of ours, compiled by the reference compiler in version 10 with overlays; see testdata/demo.p.
const demo = "testdata/demo.amx"

// TestRun: what the reference machine printed for the same file, called in the same way.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
		code int
	}{
		{"main", nil, "pack-me|unpacked|p|BEEF 100%\n6 1 3 6\nN beep(1,-2,255)\n0 -1 1\nS sleep pri=5\nin b\nR main err=0 ret=2 sleeps=1\n", 0},
		{"several calls keep variables", []string{"-call", "@count(3)", "-call", "@count( -1 )", "-call=@count(0x10)"}, "R @count err=0 ret=3 sleeps=0\nR @count err=0 ret=2 sleeps=0\nR @count err=0 ret=18 sleeps=0\n", 0},
		{"open line", []string{"-call", "@open()"}, "no end of line\nR @open err=0 ret=0 sleeps=0\n", 0},
		{"bounds", []string{"-call", "@element(5)"}, "R @element err=4 ret=0 sleeps=0\n", 1},
		{"division", []string{"-call", "@ratio(1, 0)", "-call", "@ratio(-7, 2)"}, "R @ratio err=11 ret=0 sleeps=0\nR @ratio err=0 ret=-4 sleeps=0\n", 1},
		{"assert and exit", []string{"-call", "@check(0)", "-call", "@check(9)"}, "R @check err=2 ret=0 sleeps=0\nR @check err=1 ret=9 sleeps=0\n", 1},
		{"no such function", []string{"-call", "@nothing"}, "R @nothing err=19 ret=0 sleeps=0\n", 1},
		{"sleeps without end", []string{"-call", "@nap(8)"}, "S sleep pri=8\nS sleep pri=7\nS sleep pri=6\nS sleep pri=5\nS sleep pri=4\nS sleep pri=3\nR @nap err=12 ret=2 sleeps=6\n", 1},
		{"state without function", []string{"-call", "@inB"}, "R @inB err=13 ret=0 sleeps=0\n", 1},
		{"recursion", []string{"-call", "@deep(0)"}, "R @deep err=3 ret=0 sleeps=0\n", 1},
		{"missing argument of printf", []string{"-call", "@bad"}, "12 \nR @bad err=10 ret=0 sleeps=0\n", 1},
	} {
		out, stderr, code := robotkit(t, append([]string{"run", demo}, c.args...)...)
		if out != c.want || code != c.code {
			t.Errorf("%s: exit %d\n%s%s\nwant exit %d\n%s", c.name, code, out, stderr, c.code, c.want)
		}
	}
}

func TestRunJSON(t *testing.T) {
	out, _, code := robotkit(t, "run", demo, "-o", "json", "-call", "@open", "-call", "@element(5)")
	var got report
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code != 1 || got.Output != "no end of line" || len(got.Calls) != 2 || got.Calls[0].Err != 0 || got.Calls[1].Err != 4 || got.Calls[1].Reason == "" || got.Calls[1].At == "" {
		t.Errorf("exit %d, %+v", code, got)
	}
}

// TestUsage: a command line that cannot work is exit code 2, a missing file 3.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	file, err := os.ReadFile(demo)
	if err != nil {
		t.Fatal(err)
	}
	noMain, err := (&amx.Program{Version: 10, Code: []byte{120, 0, 0, 0, 0, 0, 0, 0}, StackHeapCells: 30, Main: amx.NoMain}).Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	bad, err := (&amx.Program{Version: 10, Code: []byte{213, 0, 0, 0}, StackHeapCells: 30, Main: amx.NoMain}).Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		args []string
	}{
		{cli.ExitUsage, []string{"run"}},
		{cli.ExitUsage, []string{"run", demo, "-call", "(1)"}},
		{cli.ExitUsage, []string{"run", demo, "-call", "@count(1"}},
		{cli.ExitUsage, []string{"run", demo, "-call", "@count(1)x"}},
		{cli.ExitUsage, []string{"run", demo, "-call", "@count(x)"}},
		{cli.ExitUsage, []string{"run", demo, "-call", "@count(5000000000)"}},
		{cli.ExitUsage, []string{"run", write("cut.amx", file[:100])}},
		{cli.ExitUsage, []string{"run", write("bad.amx", bad)}},
		{cli.ExitUsage, []string{"list", write("bad2.amx", bad)}},
		{cli.ExitNotFound, []string{"run", filepath.Join(dir, "none.amx")}},
		{cli.ExitFailed, []string{"run", write("nomain.amx", noMain)}},
		{cli.ExitOK, []string{"list", write("nomain2.amx", noMain)}},
	} {
		if out, stderr, code := robotkit(t, c.args...); code != c.code {
			t.Errorf("%q: exit %d, want %d\n%s%s", c.args, code, c.code, out, stderr)
		}
	}
}

func TestList(t *testing.T) {
	out, _, code := robotkit(t, "list", demo)
	for _, want := range []string{"version 10", "overlays", "public    @count", "native    printf", "icall", "iswitch", "casetbl", "frame +12"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("the list lacks %q", want)
		}
	}
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	out, _, code = robotkit(t, "list", demo, "-o", "json")
	var got listing
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("exit %d, %v", code, err)
	}
	last := got.Lines[len(got.Lines)-1]
	if got.Version != 10 || got.Main == nil || len(got.Overlays) < 10 || last.Offset >= got.Code || got.Lines[0].Name != "halt.p" || got.Lines[0].Label != "overlay 0" {
		t.Errorf("%+v", got)
	}
}

// TestWhere: with debug symbols an error names file, line and function; without them the place in the code.
func TestWhere(t *testing.T) {
	for _, c := range []struct{ file, call, want string }{
		{"testdata/demo_debug.amx", "@element(5)", "demo.p:38 in @element"}, {"testdata/demo_debug.amx", "@ratio(1, 0)", "demo.p:43 in @ratio"},
		{"testdata/demo_debug.amx", "@check(0)", "demo.p:48 in @check"}, {demo, "@element(5)", "code byte "},
	} {
		if _, stderr, code := robotkit(t, "run", c.file, "-call", c.call); code != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s of %s: exit %d, %q, want %q in it", c.call, c.file, code, stderr, c.want)
		}
	}
}
