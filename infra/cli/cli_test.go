package cli

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kennel/infra/errs"
)

func tree(fail error) *cobra.Command {
	root := &cobra.Command{Use: "prog", Short: "A program", Example: "  prog"}
	AddOutput(root)
	root.PersistentFlags().String("onebox", "", "data `folder`")
	robots := &cobra.Command{Use: "robots", Short: "Robots", Example: "  prog robots list"}
	list := &cobra.Command{Use: "list", Short: "List", Example: "  prog robots list", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fail != nil {
				return fail
			}
			one := struct {
				Thing string `json:"thing"`
				Home  string `json:"home"`
			}{"vic:1", Getenv(cmd.Context())("HOME") + cmd.Flag("onebox").Value.String()}
			return Print(cmd, one, func(t *Table) { t.Row("THING", "HOME"); t.Row(one.Thing, one.Home) })
		}}
	list.Flags().Int("limit", 10, "show at most `N`")
	show := &cobra.Command{Use: "show THING [PART] [-old]", Short: "Show", Example: "  prog robots show vic:1 -reason x",
		Args: cobra.RangeArgs(1, 2), RunE: group}
	show.Flags().String("reason", "", "`TEXT` that says why")
	show.Flags().Duration("ttl", 0, "how long")
	show.Flags().Bool("old", false, "old ones")
	show.Flags().Bool("new", false, "new ones")
	_ = show.MarkFlagRequired("reason")
	show.MarkFlagsMutuallyExclusive("old", "new")
	robots.AddCommand(list, show)
	robot := &cobra.Command{Use: "robot", Short: "Robot", Example: "  prog robot drive vic:1"}
	robot.AddCommand(&cobra.Command{Use: "drive THING", Short: "Drive", Example: "  prog robot drive vic:1", RunE: group})
	root.AddCommand(robots, robot)
	return root
}

func run(t *testing.T, root *cobra.Command, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Run(t.Context(), root, args, func(k string) string { return "<" + k + ">" }, &o, &e)
	return code, o.String(), e.String()
}

func TestRun(t *testing.T) {
	const table = "THING  HOME\nvic:1  <HOME>/d\n"
	for _, tt := range []struct {
		name string
		args string
		fail error
		code int
		out  string
		err  string // part of standard error
	}{
		{name: "two dashes", args: "--onebox /d robots list", out: table},
		{name: "one dash", args: "-onebox /d robots list -limit=3", out: table},
		{name: "one dash at the end", args: "robots list -limit 3 -onebox=/d", out: table},
		{name: "json", args: "robots list -onebox /d -o json", out: "{\n  \"thing\": \"vic:1\",\n  \"home\": \"<HOME>/d\"\n}\n"},
		{name: "json, long", args: "-output=json -onebox /d robots list", out: "{\n  \"thing\": \"vic:1\",\n  \"home\": \"<HOME>/d\"\n}\n"},
		{name: "unknown flag", args: "robots list -limt=3", code: 2, err: "prog: unknown flag -limt; did you mean -limit? (see prog robots list -help)\n"},
		{name: "unknown flag, two dashes", args: "robots list --limt", code: 2, err: "unknown flag -limt; did you mean -limit?"},
		{name: "flag far from all", args: "robots list -elsewhere", code: 2, err: "unknown flag -elsewhere (see"},
		{name: "flag of an unknown subcommand", args: "robots lits -reason x", code: 2, err: `unknown command "lits"; did you mean list?`},
		{name: "unknown command", args: "robos", code: 2, err: `prog: unknown command "robos"; did you mean robot or robots? (see prog -help)`},
		{name: "unknown subcommand", args: "robots lits", code: 2, err: `unknown command "lits"; did you mean list?`},
		{name: "subcommand far from all", args: "robots nosuch", code: 2, err: `unknown command "nosuch"; want list or show (see`},
		{name: "command far from all", args: "nosuch", code: 2, err: `unknown command "nosuch" (see`},
		{name: "subcommand at the top", args: "show vic:1", code: 2, err: `unknown command "show"; did you mean robots show?`},
		{name: "subcommand of another group", args: "robots drive vic:1", code: 2, err: `unknown command "drive"; want list or show; did you mean robot drive?`},
		{name: "group alone", args: "robots", code: 2, err: "missing subcommand: list or show (see"},
		{name: "argument in place of a subcommand", args: "robots vic:1 lab", code: 2, err: "missing subcommand: list or show (see"},
		{name: "extra argument", args: "robots list x", code: 2, err: `unexpected argument "x"; usage: prog robots list (see`},
		{name: "argument missing", args: "robots show", code: 2, err: "missing THING; usage: prog robots show THING [PART] (see"},
		{name: "too many arguments", args: "robots show a b c", code: 2, err: `unexpected argument "c"; usage: prog robots show THING [PART] (see`},
		{name: "flag missing", args: "robots show a", code: 2, err: "missing -reason TEXT (see"},
		{name: "flags that exclude each other", args: "robots show a -reason x -old -new", code: 2, err: "-new and -old exclude each other"},
		{name: "flag without value", args: "robots list -limit", code: 2, err: "-limit needs a value: -limit N (see"},
		{name: "not a number", args: "robots list -limit x", code: 2, err: `-limit "x": want a whole number (see`},
		{name: "not a duration", args: "robots show -ttl 5", code: 2, err: `-ttl "5": want a duration such as 90s or 1h30m (see`},
		{name: "bad output", args: "robots list -o xml", code: 2, err: `-output "xml": want table or json`},
		{name: "help of nothing", args: "help robts", code: 2, err: `unknown command "robts"; did you mean robots or robot? (see prog -help)`},
		{name: "help of nothing below", args: "help robots lst", code: 2, err: `unknown command "lst"; did you mean list?`},
		{name: "help of a command", args: "help robots list", out: "List\n\nUsage:\n"},
		{name: "version flag", args: "--version", out: "prog version dev"},
		{name: "usage as json", args: "robots list -limit x -o json", code: 2, err: `"kind":"invalid"`},
		{name: "plain failure", args: "robots list", fail: errors.New("broke\x1b[2J"), code: 1, err: "prog: broke\ufffd[2J\n"},
		{name: "not found", args: "robots list -o json", fail: errs.Coded(errs.NotFound, "no_thing", "thing vic:9 is unknown"), code: 3,
			err: `{"error":"thing vic:9 is unknown","kind":"not_found","code":"no_thing","exit":3}` + "\n"},
		{name: "denied", args: "robots list", fail: errs.New(errs.Unauthenticated, "sign in first"), code: 4, err: "sign in first"},
		{name: "unavailable", args: "robots list", fail: errs.New(errs.Unavailable, "not now"), code: 5, err: "not now"},
		{name: "help", args: "robots list -help", out: "List\n\nUsage:\n"},
		{name: "version", args: "version", out: "prog dev"},
		{name: "completion", args: "completion bash", out: "# bash completion"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errOut := run(t, tree(tt.fail), strings.Fields(tt.args)...)
			if code != tt.code {
				t.Errorf("exit %d, want %d (%s)", code, tt.code, errOut)
			}
			if !strings.HasPrefix(out, tt.out) || (tt.out == "" && out != "") {
				t.Errorf("stdout %q, want prefix %q", out, tt.out)
			}
			if !strings.Contains(errOut, tt.err) || (tt.err == "" && errOut != "") {
				t.Errorf("stderr %q, want %q in it", errOut, tt.err)
			}
		})
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	table := NewTable(&b)
	table.Row("model", "vector")
	table.Section("Loop")
	table.Row("missed periods", 3, "of many")
	table.Row("late", "140 µs", "")
	table.Row("load", "90 %", "high")
	table.Text("a line of its own\x07")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "model           vector\n\nLoop\nmissed periods  3       of many\n" +
		"late            140 µs  -\nload            90 %    high\na line of its own\ufffd\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestHelpWritesOneDash: help writes flags as the examples and the errors do.
func TestHelpWritesOneDash(t *testing.T) {
	for _, args := range [][]string{{"-help"}, {"robots", "list", "-help"}, {"help", "robots", "list"}} {
		if code, out, _ := run(t, tree(nil), args...); code != 0 || strings.Contains(out, "--") || !strings.Contains(out, " -onebox folder") {
			t.Errorf("%v: exit %d, %s; want flags with one dash", args, code, out)
		}
	}
}

func TestNormalizeStopsAtDashes(t *testing.T) {
	got := Normalize(tree(nil), []string{"-onebox", "d", "-o", "json", "-x", "--", "-limit"})
	want := []string{"--onebox", "d", "-o", "json", "-x", "--", "-limit"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLint(t *testing.T) {
	root := tree(nil)
	if got := Lint(root); len(got) != 0 {
		t.Errorf("clean tree: %q", got)
	}
	root.AddCommand(&cobra.Command{Use: "bare"})
	if got := Lint(root); len(got) != 2 {
		t.Errorf("bare command: %q, want two lines", got)
	}
}
