// Command s3d is the S3 gateway of one-machine mode: objects as files in a folder.
package main

import (
	"os"

	"kennel/infra/blob/gateway"
)

func main() { os.Exit(gateway.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }
