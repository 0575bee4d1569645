// Command mindd is a robot's character (edge/app/mindapp).
package main

import (
	"os"

	"kennel/edge/app/mindapp"
)

func main() { os.Exit(mindapp.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }
