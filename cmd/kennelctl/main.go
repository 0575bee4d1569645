// Command kennelctl is the command line of operators (cloud/ctl).
package main

import (
	"os"

	"kennel/cloud/ctl"
)

func main() { os.Exit(ctl.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }
