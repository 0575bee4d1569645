// Command kenneld is the cloud that companion robots phone home to.
package main

import (
	"os"

	"kennel/cloud/app"
)

func main() { os.Exit(app.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }
