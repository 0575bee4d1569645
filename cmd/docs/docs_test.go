package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

// written returns the pages written for people, by their names below the root: all Markdown files of the repository.
func written(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || name == "bin" || name == "dist") {
			return fs.SkipDir
		}
		if path.Ext(name) == ".md" {
			b, err := fs.ReadFile(tree, name)
			out[name] = string(b)
			return err
		}
		return nil
	})
	if err != nil || len(out) < 20 {
		t.Fatalf("%d pages: %v", len(out), err)
	}
	return out
}

// TestGenerated: the pages that are made of the programs are as make generate makes them.
func TestGenerated(t *testing.T) {
	t.Parallel()
	made, err := pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range made {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s is not what the programs say (%v); make generate writes it", name, err)
		}
	}
}

// TestREADME: the README stays one page, and begins with the two commands.
func TestREADME(t *testing.T) {
	t.Parallel()
	readme := written(t)["README.md"]
	if n := strings.Count(readme, "\n"); n > 120 {
		t.Errorf("README.md has %d lines, want at most 120", n)
	}
	var block []string
	for line := range strings.Lines(readme) {
		if strings.HasPrefix(line, "    ") {
			block = append(block, strings.Fields(line)...)
		}
	}
	if got := strings.Join(block, " "); !strings.HasPrefix(got, "make run # ") || !strings.Contains(got[:min(len(got), 120)], " make test ") {
		t.Errorf("the first commands of README.md are %.120s", got)
	}
}

var (
	inline    = regexp.MustCompile(`!?\[[^\]]*\]\(([^)\s]+)\)`)
	reference = regexp.MustCompile(`(?m)^\[[^\]]+\]: (\S+)$`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// anchors returns the anchors of a page's headings.
func anchors(page string) (out []string) {
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		text := inline.ReplaceAllStringFunc(m[1], func(l string) string { return l[strings.Index(l, "[")+1 : strings.Index(l, "]")] })
		var b strings.Builder
		for _, r := range strings.ToLower(text) {
			switch {
			case r == ' ':
				b.WriteRune('-')
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				b.WriteRune(r)
			}
		}
		out = append(out, b.String())
	}
	return out
}

// broken returns the relative links of a page that lead nowhere.
func broken(name, page string, all map[string]string, exists func(string) bool) (out []string) {
	links := inline.FindAllStringSubmatch(page, -1)
	for _, m := range append(links, reference.FindAllStringSubmatch(page, -1)...) {
		target, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		file := name
		if target != "" {
			file = path.Join(path.Dir(name), target)
		}
		to, isPage := all[file]
		if !exists(file) || anchor != "" && (!isPage || !slices.Contains(anchors(to), anchor)) {
			out = append(out, m[1])
		}
	}
	return out
}

// TestLinks: each relative link of each page leads to a file, and to a heading if it names one.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := written(t)
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	}
	for name, page := range all {
		for _, link := range broken(name, page, all, exists) {
			t.Errorf("%s: %s leads nowhere", name, link)
		}
	}
	planted := map[string]string{"docs/a.md": "# One thing\n[x](b.md) [y](#one-thing) [z](#other)\n![p](../p.png)\n[r]: b.md#t\n", "docs/b.md": "# T\n"}
	if got := broken("docs/a.md", planted["docs/a.md"], planted, func(n string) bool { return planted[n] != "" }); !slices.Equal(got, []string{"#other", "../p.png"}) {
		t.Errorf("of the planted links %q lead nowhere", got)
	}
}

// printed returns the commands of our programs that a page prints, each as its words, the program first.
func printed(page string) (out [][]string) {
	add := func(line string) {
		for _, part := range regexp.MustCompile(`\s(?:\||&&|;|&)(?:\s|$)`).Split(line, -1) {
			words := split(part)
			for len(words) > 0 && slices.Contains([]string{"$", "sudo", "ExecStart="}, words[0]) {
				words = words[1:]
			}
			if len(words) == 0 {
				continue
			}
			if words[0] = path.Base(words[0]); words[0] == "k" {
				words[0] = "kennelctl" // the README's alias
			}
			if programs[words[0]] != nil {
				out = append(out, words)
			}
		}
	}
	fenced, more := false, ""
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if fenced || strings.HasPrefix(line, "    ") {
			if rest, continued := strings.CutSuffix(line, `\`); continued {
				more += rest
				continue
			}
			add(strings.TrimSpace(more + line))
			more = ""
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
			add(m[1])
		}
	}
	return out
}

// split returns the words of a command line, up to a comment or a redirection.
func split(line string) (out []string) {
	word, open := "", rune(0)
	quoted := false
	end := func() {
		if word != "" || quoted {
			out = append(out, word)
		}
		word, quoted = "", false
	}
	for i, r := range line {
		switch {
		case open != 0:
			if r == open {
				open = 0
			} else {
				word += string(r)
			}
		case r == '\'' || r == '"':
			open, quoted = r, true
		case r == '(' && strings.HasSuffix(word, "$"):
			open = ')'
		case r == ' ' || r == '\t':
			end()
		case r == '#' && word == "" || r == '>' && i > 0:
			end()
			return out
		default:
			word += string(r)
		}
	}
	end()
	return out
}

// wrong says what of a command line the program does not have; "" if it has all.
func wrong(all map[string]*command, words []string) string {
	c := all[words[0]]
	for i := 1; i < len(words); i++ {
		w := words[i]
		if w == "--" || w == "..." {
			return ""
		}
		if strings.HasPrefix(w, "-") && len(w) > 1 {
			name, _, given := strings.Cut(strings.TrimLeft(w, "-"), "=")
			name = strings.TrimRight(name, ",.")
			takes, ok := c.takes[name]
			if !ok {
				return "flag " + w
			}
			if takes && !given {
				i++
			}
			continue
		}
		if len(c.below) == 0 || w == "help" {
			continue // an argument
		}
		below, ok := c.below[strings.Trim(w, ",.")]
		if !ok {
			if len(c.below) > 0 && strings.ToUpper(w) == w || strings.Contains(c.usage, "[BODY]") {
				continue // an argument of a command that has commands too
			}
			return "command " + w
		}
		c = below
	}
	return ""
}

// TestCommands: each program, command and flag that a page prints exists.
func TestCommands(t *testing.T) {
	t.Parallel()
	all, err := commands()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for name, page := range written(t) {
		if name == "docs/commands.md" || strings.HasPrefix(name, "infra/adr/") || name == "cmd/e2e/SOAK.md" {
			continue // made of the programs; about the past
		}
		for _, words := range printed(page) {
			seen++
			if what := wrong(all, words); what != "" {
				t.Errorf("%s: %s: there is no %s", name, strings.Join(words, " "), what)
			}
		}
	}
	if seen < 150 {
		t.Errorf("only %d commands found", seen)
	}
	for line, want := range map[string]string{
		"kennelctl -onebox DIR robots list":             "",
		"$ sudo bin/kenneld originals check -data DIR":  "",
		"kennelctl robot watch vic:1 headPitch 'a # b'": "",
		"kennelctl robots lst":                          "command lst",
		"kennelctl robots list -nosuch":                 "flag -nosuch",
		"kennelctl robot drive vic:1 -wait -nosuch":     "flag -nosuch",
		"robotkit amigo watch -port x":                  "command watch",
	} {
		got := printed("    " + line + "\n")
		if len(got) != 1 {
			t.Fatalf("%s: %q", line, got)
		}
		if what := wrong(all, got[0]); what != want {
			t.Errorf("%s: there is no %q, want %q", line, what, want)
		}
	}
}
