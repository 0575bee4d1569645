// Command agentd is the part of a robot that faces the network.
package main

import (
	"os"

	"kennel/edge/app/agentapp"
)

func main() { os.Exit(agentapp.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }
