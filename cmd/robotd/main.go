// Command robotd is a robot's real-time core (edge/app/robotapp).
package main

import (
	"os"

	"kennel/edge/app/robotapp"
)

func main() { os.Exit(robotapp.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }
