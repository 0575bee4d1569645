// Package bootparam reads the boot-loader's parameters to the kernel, as far as the robot's programs act on them.
package bootparam

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"kennel/edge/env"
)

// File is the kernel's command line, below the robot's root.
const File = "proc/cmdline"

// The robot's own words on it (VEC-BOOT-08). The third, dm=, is the kernel's: the table with which it checks the system before it is mounted
// (VEC-BOOT-10).
const (
	Unbrick = "anki.unbrick"
	dev     = "anki.dev"
	slot    = "androidboot.slot_suffix=" // _a or _b, by Android's boot loader
)

// Parse reads a command line. A word counts bare or with the value 1.
func Parse(line string) env.Boot {
	var p env.Boot
	for _, w := range strings.Fields(line) {
		p.Dev = p.Dev || is(w, dev)
		p.Recovery = p.Recovery || is(w, Unbrick)
		if name, ok := strings.CutPrefix(w, slot+"_"); ok && (name == "a" || name == "b") {
			p.Slot = name
		}
	}
	return p
}

func is(word, name string) bool { return word == name || word == name+"=1" }

// InSlot returns the word that names the running slot.
func InSlot(name string) string { return slot + "_" + name }

// Read reads the file. Without one nothing was said.
func Read(root *os.Root) (env.Boot, error) {
	b, err := root.ReadFile(File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return env.Boot{}, fmt.Errorf("kernel's command line: %w", err)
	}
	return Parse(string(b)), nil
}
