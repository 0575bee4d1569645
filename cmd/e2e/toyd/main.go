// Command toyd is robotd with one more kind of body, which the tests bring: three servos at 100 ms. Its device is the file that takes its set-points.
package main

import (
	"context"
	"os"

	"kennel/edge/app/robotapp"
	"kennel/edge/body"
	"kennel/edge/body/species"
	"kennel/edge/core/control/toysim"
)

func main() {
	toy := species.Species{
		Species: "toy", Device: "toy.log", Model: toysim.Model,
		Open: func(_ context.Context, device string) (body.Body, error) {
			f, err := os.OpenFile(device, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			return toysim.Open(f), nil
		},
	}
	os.Exit(robotapp.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr, toy))
}
