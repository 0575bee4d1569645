// Command docs writes what is made of other files: of docs/ the settings (configure.md), the commands (commands.md) and the map of the
// cloud (map.md), and the lists of species of the robot's programs. make generate runs it. Its tests hold the hand-written pages to the programs: links, commands and flags.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "`folder` of the module")
	flag.Parse()
	if err := write(*root); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	made, err := pages(root)
	if err != nil {
		return err
	}
	for name, text := range made {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pages returns the generated files by their names below root.
func pages(root string) (map[string]string, error) {
	all, err := commands()
	if err != nil {
		return nil, err
	}
	settings, err := configurePage(root)
	if err != nil {
		return nil, err
	}
	house, err := mapPage(root)
	if err != nil {
		return nil, err
	}
	made := speciesLists(root)
	made["docs/commands.md"], made["docs/configure.md"], made["docs/map.md"] = commandsPage(all), settings, house
	return made, nil
}
