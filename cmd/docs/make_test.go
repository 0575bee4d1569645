package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var makeCommand = regexp.MustCompile("(?m)(?:^    |`)make ([a-z][a-z-]*)((?: [A-Z]+=[^ `#\n]+)*)")

// TestMakeCommands: every make command that a page names exists, with the variables that it is given; make soak runs what CONTRIBUTING.md tells people
// to run first.
func TestMakeCommands(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, page := range written(t) {
		for _, m := range makeCommand.FindAllStringSubmatch(page, -1) {
			found++
			args := append([]string{"-n", "-C", root, m[1]}, strings.Fields(m[2])...)
			if out, err := exec.CommandContext(t.Context(), "make", args...).CombinedOutput(); err != nil {
				t.Errorf("%s: make %s%s: %v\n%s", name, m[1], m[2], err, out)
			}
			for _, v := range strings.Fields(m[2]) {
				if word, _, _ := strings.Cut(v, "="); !strings.Contains(string(makefile), "$("+word+")") {
					t.Errorf("%s: make %s%s: the Makefile does not use %s", name, m[1], m[2], word)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d make commands found", found)
	}
	if os.Getenv("KENNEL_SOAK") == "" {
		return
	}
	for _, args := range [][]string{{"vet"}, {"test", "PKG=./jdocs/..."}} {
		if out, err := exec.CommandContext(t.Context(), "make", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Errorf("make %v: %v\n%s", args, err, out)
		}
	}
}
