// Gen writes cloud/openapi/openapi.json, the description of the public API. make generate runs it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"kennel/cloud/openapi/describe"
)

func main() {
	root := flag.String("root", ".", "`folder` of the module")
	flag.Parse()
	if err := write(*root); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	b, err := describe.Build(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "cloud", "openapi", "openapi.json"), b, 0o644)
}
