// Command docs writes the pages of docs/ that are made of other files: the settings (configure.md), the commands (commands.md) and the map of the
// cloud (map.md). make generate runs it. Its tests hold the hand-written pages to the programs: links, commands and flags.
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

// pages returns the generated pages by their names below root.
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
	return map[string]string{"docs/commands.md": commandsPage(all), "docs/configure.md": settings, "docs/map.md": house}, nil
}
