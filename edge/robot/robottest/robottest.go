// Package robottest checks a body's tree against the table it comes from.
package robottest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"kennel/edge/robot"
)

// Row is a line of a mapping: id | full | compact | interfaces, and for some bodies what else the table says.
type Row struct {
	ID, Full, Compact, Interfaces, More string
}

// Rows reads a mapping; lines that begin with # are comments.
func Rows(t *testing.T, file string) []Row {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows []Row
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), " | ")
		if strings.HasPrefix(line, "#") || len(f) < 4 {
			continue
		}
		rows = append(rows, Row{f[0], f[1], f[2], f[3], strings.Join(f[4:], " | ")})
	}
	if len(rows) == 0 {
		t.Fatalf("%s holds no rows", file)
	}
	return rows
}

// Mapping checks that the devices of tree are exactly rows: full and compact names and interfaces.
func Mapping(t *testing.T, tree *robot.Tree, rows []Row) {
	t.Helper()
	devices := map[string]*robot.Node{}
	for _, d := range tree.Devices() {
		devices[d.Full()] = d
	}
	for _, r := range rows {
		d := devices[r.Full]
		if d == nil {
			t.Errorf("%s: no device %s", r.ID, r.Full)
			continue
		}
		delete(devices, r.Full)
		if is := robot.JoinInterfaces(d.Interfaces()); d.Compact() != r.Compact || is != r.Interfaces {
			t.Errorf("%s: %s is %s (%s), want %s (%s)", r.ID, r.Full, d.Compact(), is, r.Compact, r.Interfaces)
		}
		for _, name := range []string{r.Full, r.Compact} {
			if target, err := tree.Lookup(name); err != nil || !slices.Equal(target.Nodes, []*robot.Node{d}) {
				t.Errorf("%s: %s means %v, %v", r.ID, name, target.Nodes, err)
			}
		}
	}
	for full := range devices {
		t.Errorf("device %s is in no row", full)
	}
}
