// Command robotsim makes and runs simulated robots.
package main

import (
	"os"

	"kennel/edge/app/simapp"
)

func main() { os.Exit(simapp.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }
