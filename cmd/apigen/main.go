// Apigen writes cloud/openapi/openapi.json, the description of the public API, cloud/openapi/client, a client made of it, and
// cloud/access/operations.tsv, the rules of declared operations. make generate runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"kennel/cloud/access"
	"kennel/cloud/app"
	"kennel/cloud/openapi/clientgen"
	"kennel/cloud/openapi/describe"
)

func main() {
	root := flag.String("root", ".", "`folder` of the module")
	flag.Parse()
	if err := write(*root); err != nil {
		fmt.Fprintln(os.Stderr, "apigen:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	b, err := describe.Build(root, app.Operations())
	if err != nil {
		return err
	}
	src, err := clientgen.Write(b)
	if err != nil {
		return err
	}
	folder := filepath.Join(root, "cloud", "openapi")
	return errors.Join(os.WriteFile(filepath.Join(root, "cloud", "access", "operations.tsv"), []byte(access.Lines(app.Operations())), 0o644),
		os.WriteFile(filepath.Join(folder, "openapi.json"), b, 0o644), os.WriteFile(filepath.Join(folder, "client", "client.go"), src, 0o644))
}
