// Command kenneld is the cloud that companion robots phone home to.
package main

import (
	"os"
	_ "time/tzdata" // images of containers may have no database of time zones, by which settings are checked

	"kennel/cloud/app/kenneld"
)

func main() { os.Exit(kenneld.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }
