package deploy

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// moduleRoot is where the pages are, and where those commands run that need the sources.
const moduleRoot = "../../.."

// printed is a command that a page prints, and what the page shows as its output.
type printed struct {
	page, cmd string
	line      int
	shown     []string // nil: the page shows no output
}

func (p printed) String() string { return fmt.Sprintf("%s:%d: %s", p.page, p.line, p.cmd) }

// Some pages come first, while all is new, and some last, because their commands change the fleet for the others.
var firstPages, lastPages = []string{"README.md", "docs/start.md"}, []string{"docs/operate.md", "docs/rollouts.md", "docs/public.md"}

// printedCommands returns the commands of README.md, CONTRIBUTING.md and docs/ in the order in which they run.
func printedCommands(t *testing.T) (all []printed) {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join(moduleRoot, "docs", "*.md"))
	if err != nil || len(docs) < 20 {
		t.Fatalf("%d pages: %v", len(docs), err)
	}
	names := slices.Concat(firstPages, []string{"CONTRIBUTING.md"})
	for _, d := range docs {
		if name := path.Join("docs", filepath.Base(d)); !slices.Contains(names, name) && !slices.Contains(lastPages, name) {
			names = append(names, name)
		}
	}
	for _, name := range append(names, lastPages...) {
		b, err := os.ReadFile(filepath.Join(moduleRoot, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(b), "<!-- Made by ") {
			continue // of help texts, whose commands the tests of cmd/docs hold to the programs
		}
		all = append(all, commandsOf(name, string(b))...)
	}
	return all
}

var (
	starters = []string{"kenneld", "kennelctl", "agentd", "robotd", "robotsim", "robotkit", "k", "make", "echo", "mkdir", "flite", "alias"}
	spans    = regexp.MustCompile("`([^`]+)`")
	comment  = regexp.MustCompile(`\s+#\s.*$`)
	bareWord = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

// starts reports whether a line begins with a program that the pages print.
func starts(line string) bool {
	words := strings.Fields(strings.TrimPrefix(line, "sudo "))
	return len(words) > 0 && slices.Contains(starters, path.Base(words[0])) || strings.HasPrefix(line, "go run ")
}

// commandsOf returns the commands of a page. In a block that has lines with a prompt, those are commands and the rest is output; in another one whose first
// line is a command, all are. A span of code is a command if it has an argument; else it is the name of one.
func commandsOf(page, text string) (all []printed) {
	lines := strings.Split(text, "\n")
	inBlock := func(i int, fenced bool) bool {
		return i < len(lines) && (fenced && !strings.HasPrefix(lines[i], "```") || !fenced && strings.HasPrefix(lines[i], "    "))
	}
	for i := 0; i < len(lines); i++ {
		fenced := strings.HasPrefix(lines[i], "```")
		if !fenced && !inBlock(i, false) {
			for _, m := range spans.FindAllStringSubmatch(lines[i], -1) {
				if words := strings.Fields(m[1]); starts(m[1]) && slices.ContainsFunc(words[1:], func(w string) bool { return !bareWord.MatchString(path.Base(w)) }) {
					all = append(all, printed{page: page, cmd: m[1], line: i + 1})
				}
			}
			continue
		}
		if fenced {
			i++
		}
		first, block := i, []string(nil)
		for ; inBlock(i, fenced) || i+1 < len(lines) && lines[i] == "" && inBlock(i+1, fenced); i++ {
			block = append(block, strings.TrimPrefix(lines[i], "    "))
		}
		if !fenced {
			i--
		}
		all = append(all, commandsIn(page, first+1, block)...)
	}
	return all
}

func commandsIn(page string, first int, block []string) (all []printed) {
	prompts := slices.ContainsFunc(block, func(l string) bool { return strings.HasPrefix(l, "$ ") })
	if len(block) > 0 && block[0] == welcome {
		return []printed{{page: page, cmd: "make run", line: first, shown: block}}
	}
	if !prompts && (len(block) == 0 || !starts(block[0])) {
		return nil
	}
	for i, line := range block {
		cmd, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case isCommand || !prompts && line != "":
			all = append(all, printed{page: page, cmd: comment.ReplaceAllString(cmd, ""), line: first + i})
		case prompts && len(all) > 0:
			last := &all[len(all)-1]
			last.shown = append(last.shown, line)
		}
	}
	for i := range all {
		for n := len(all[i].shown); n > 0 && all[i].shown[n-1] == ""; n-- {
			all[i].shown = all[i].shown[:n-1]
		}
	}
	return all
}

// welcome begins what kenneld onebox prints when all is up.
const welcome = "Kennel is ready."

// welcomeOf returns what kenneld onebox prints when all is up: its log follows, and the addresses of the robots' pages once the robots have them, with no line of the log
// between if nothing happened meanwhile.
func welcomeOf(out string) string {
	_, said, _ := strings.Cut(out, welcome)
	for _, next := range []string{"\n\ntime=", "\n\nThe robots' own pages"} {
		said, _, _ = strings.Cut(said, next)
	}
	return welcome + said
}

// normal are the parts of a line that differ from one run to the next.
var normal = []struct {
	re *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`\b[A-Z2-7]{26}\b`), "SECRET"},
	{regexp.MustCompile(`\bagentd [0-9a-z-]+`), "agentd VERSION"},
	{regexp.MustCompile(`^(vic:\w+): .*`), "$1: VERDICT"}, // of the doctor: the loop of a busy machine is late
	{regexp.MustCompile(`\b\d+ (ms|s|min|h|d) ago|\bnow\b`), "AGO"},
	{regexp.MustCompile(`\bin \d+ (ms|s|min|h|d)\b`), "in TIME"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(h|m|s|ms|µs))+\b`), "TIME"},
	{regexp.MustCompile(`\d+([.:]\d+)*|\bADDRESS\b`), "N"}, // of a machine without a network
	{regexp.MustCompile(` {2,}`), "  "},
}

// shape returns a line without what differs from one run to the next: numbers, times, ids, and the width of columns.
func shape(line string) string {
	line = strings.TrimRight(line, " ")
	for _, n := range normal {
		line = n.re.ReplaceAllString(line, n.as)
	}
	return line
}

var (
	gap    = regexp.MustCompile(` {2,}`)
	header = regexp.MustCompile(`^[A-Z][A-Z0-9 /]*( {2,}[A-Z][A-Z0-9 /]*)+$`)
)

// mismatch compares output with what a page shows of it: the same lines by their shape. Of a row below a header the first column and the number of columns
// count. A line of three dots is any number of lines. It returns "" or the first line of the page that nothing matches.
func mismatch(shown, got []string) string {
	table := false
	for i, want := range shown {
		if strings.TrimSpace(want) == "..." {
			rest := shown[i+1:]
			for n := range len(got) + 1 {
				if mismatch(rest, got[n:]) == "" {
					return ""
				}
			}
			return fmt.Sprintf("nothing below matches %q", rest)
		}
		if len(got) == 0 {
			return fmt.Sprintf("%q is missing", want)
		}
		row := table && want != ""
		wants, has := gap.Split(want, -1), gap.Split(strings.TrimRight(got[0], " "), -1)
		if row && (len(wants) != len(has) || shape(wants[0]) != shape(has[0])) || !row && shape(want) != shape(got[0]) {
			return fmt.Sprintf("want %q, got %q", want, got[0])
		}
		got = got[1:]
		table = row || header.MatchString(want)
	}
	if len(got) > 0 {
		return fmt.Sprintf("%q is not on the page", got)
	}
	return ""
}

// TestShapes: what differs from one run to the next is no difference, and the rest is.
func TestShapes(t *testing.T) {
	t.Parallel()
	table := []string{"THING         PRESENCE  SINCE     PROBLEMS", "vic:00e20100  present   45 s ago  -", "..."}
	for name, tc := range map[string]struct {
		shown, got []string
		differs    bool
	}{
		"numbers, ages, widths": {table, []string{"THING  PRESENCE  SINCE    PROBLEMS", "vic:00e20107  present  2 h ago  loop: late by p99"}, false},
		"more rows":             {table, []string{table[0], table[1], table[1], table[1]}, false},
		"another header":        {table, []string{"THING  HERE  SINCE  PROBLEMS", table[1]}, true},
		"a column less":         {table, []string{table[0], "vic:00e20100  45 s ago  -"}, true},
		"no row":                {table, []string{table[0]}, true},
		"ids and releases":      {[]string{"command  403b149b-076d-467b-8b8a-4776f357540d of 2.0.0.6074"}, []string{"command  403b149b-1111-467b-8b8a-4776f357540d of 2.0.1.6076"}, false},
		"other words":           {[]string{"state    pending"}, []string{"state    sent"}, true},
		"a line that it lacks":  {[]string{"a", "...", "c"}, []string{"a", "b"}, true},
		"lines between":         {[]string{"a", "...", "c"}, []string{"a", "b", "b", "c"}, false},
		"a line too many":       {[]string{"a"}, []string{"a", "b"}, true},
	} {
		if got := mismatch(tc.shown, tc.got); (got != "") != tc.differs {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, next := range []string{"time=2026", "The robots' own pages, which"} {
		if got := welcomeOf("time=1 a\n" + welcome + "\n\n  stop\n\n" + next); got != welcome+"\n\n  stop" {
			t.Errorf("before %s: %q", next, got)
		}
	}
	page := "Say `kennelctl robots list`, then `kennelctl doctor THING`:\n\n    $ k robots list   # all\n    THING\n\n    row\n    $ k jdocs\n\n```sh\nmake run\n```\n\n    {\"no\": 1}\n"
	var got []string
	for _, c := range commandsOf("p.md", page) {
		got = append(got, fmt.Sprintf("%d %s %q", c.line, c.cmd, c.shown))
	}
	want := []string{`1 kennelctl doctor THING []`, `3 k robots list ["THING" "" "row"]`, `7 k jdocs []`, `10 make run []`}
	if !slices.Equal(got, want) {
		t.Errorf("commands of a page: %q, want %q", got, want)
	}
}
