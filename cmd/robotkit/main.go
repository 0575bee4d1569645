// Command robotkit has the tools of robot programmers.
package main

import (
	"os"

	"kennel/edge/app/kitapp"
)

func main() { os.Exit(kitapp.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }
