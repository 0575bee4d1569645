package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kennel/cloud/app/kenneld"
	"kennel/cloud/ctl"
	"kennel/edge/app/agentapp"
	"kennel/edge/app/kitapp"
	"kennel/edge/app/mindapp"
	"kennel/edge/app/robotapp"
	"kennel/edge/app/simapp"
	"kennel/infra/blob/gateway"
)

// programs are the main functions of the programs, by name.
var programs = map[string]func(args []string, getenv func(string) string, stdout, stderr io.Writer) int{
	"kenneld": kenneld.Main, "kennelctl": ctl.Main, "agentd": agentapp.Main, "mindd": mindapp.Main, "robotsim": simapp.Main, "robotkit": kitapp.Main, "s3d": gateway.Main,
	"robotd": func(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
		return robotapp.Main(args, getenv, stdout, stderr)
	},
}

// command is one command, as its help describes it.
type command struct {
	usage  string // "kennelctl robots list [FILTER...] [flags]"
	short  string // what the command above says about it
	flags  []string
	global []string
	takes  map[string]bool // flags, without dashes: whether a value follows
	below  map[string]*command
}

// commands asks each program for its help.
func commands() (map[string]*command, error) {
	out := map[string]*command{}
	for name, main := range programs {
		c, err := ask(main, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = c
	}
	return out, nil
}

var (
	flagLine   = regexp.MustCompile(`^ +(?:-(\w), )?-([a-z][a-z0-9-]*)( \S.*?)?(?:   *(.*))?$`)
	childLine  = regexp.MustCompile(`^  (\S+) +(.*)$`)
	machineOwn = regexp.MustCompile(` \(default \[[^\]]*\]\)$`) // a default that depends on the machine
)

// ask returns the command at path, with all commands below it.
func ask(main func([]string, func(string) string, io.Writer, io.Writer) int, path ...string) (*command, error) {
	var help bytes.Buffer
	if code := main(append(slices.Clone(path[1:]), "-help"), func(string) string { return "" }, &help, &help); code != 0 {
		return nil, fmt.Errorf("%s -help: exit code %d: %s", strings.Join(path, " "), code, help.String())
	}
	c := &command{takes: map[string]bool{}, below: map[string]*command{}}
	section := ""
	for line := range strings.Lines(help.String()) {
		line = strings.TrimRight(line, "\n")
		if strings.HasSuffix(line, ":") && !strings.HasPrefix(line, " ") {
			section = line
			continue
		}
		switch section {
		case "Usage:":
			if c.usage == "" {
				c.usage = strings.TrimSpace(line)
			}
		case "Available Commands:":
			if m := childLine.FindStringSubmatch(line); m != nil && m[1] != "help" {
				below, err := ask(main, append(slices.Clone(path), m[1])...)
				if err != nil {
					return nil, err
				}
				below.short = m[2]
				c.below[m[1]] = below
			}
		case "Flags:", "Global Flags:":
			m := flagLine.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			c.takes[m[2]] = m[3] != ""
			if m[1] != "" {
				c.takes[m[1]] = m[3] != ""
			}
			line = machineOwn.ReplaceAllString(line, "")
			switch {
			case m[2] == "help" || m[2] == "version":
			case section == "Flags:":
				c.flags = append(c.flags, line)
			default:
				c.global = append(c.global, line)
			}
		}
	}
	return c, nil
}

// commandsPage returns docs/commands.md.
func commandsPage(all map[string]*command) string {
	var b strings.Builder
	b.WriteString("<!-- Made by cmd/docs from the programs' own help; make generate writes it. -->\n" +
		"# Commands and flags\n\nFlags have one dash or two, and a value follows after a space or an equals sign. Every command has `-help`, and `-o json` where it prints a table.\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		fmt.Fprintf(&b, "\n## %s\n", name)
		list(&b, name, c)
		for _, below := range sorted(c) {
			if g := below.global; len(g) > 0 {
				fmt.Fprintf(&b, "\nAll commands of `%s` also take:\n\n```text\n%s\n```\n", name, strings.Join(g, "\n"))
				break
			}
		}
		for _, sub := range slices.Sorted(maps.Keys(c.below)) {
			describe(&b, name+" "+sub, c.below[sub])
		}
	}
	return b.String()
}

func sorted(c *command) (out []*command) {
	for _, name := range slices.Sorted(maps.Keys(c.below)) {
		out = append(out, c.below[name])
	}
	return out
}

// list writes the flags of one command.
func list(b *strings.Builder, path string, c *command) {
	if len(c.flags) > 0 && (len(c.below) == 0 || path != "kennelctl" && path != "robotsim" && path != "robotkit") {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", strings.Join(c.flags, "\n"))
	}
}

// describe writes a command and those below it.
func describe(b *strings.Builder, path string, c *command) {
	if path == strings.Fields(path)[0]+" completion" {
		return
	}
	if len(c.below) == 0 || !strings.HasSuffix(c.usage, path+" [flags]") {
		fmt.Fprintf(b, "\n**`%s`** %s\n", strings.TrimSuffix(c.usage, " [flags]"), c.short)
		list(b, path, c)
	}
	for _, sub := range slices.Sorted(maps.Keys(c.below)) {
		describe(b, path+" "+sub, c.below[sub])
	}
}
