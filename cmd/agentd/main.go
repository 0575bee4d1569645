// Command agentd is the part of a robot that faces the network.
package main

import (
	"os"
	"runtime/debug"

	"kennel/edge/app/agentapp"
)

// garbage is how much of what is in use may be garbage, in per cent: half of what Go allows, because a robot has little memory and an update takes some of it.
const garbage = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	os.Exit(agentapp.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
