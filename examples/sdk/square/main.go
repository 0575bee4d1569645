// Command square drives a square with any robot that has wheels, over the network, and prints how far away it then sees something. $KENNEL_ROBOT names the
// robot's file.
package main

import (
	"context"
	"fmt"
	"log"
	"math"

	kennel "kennel/sdk/go"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	robot, err := kennel.Connect(ctx, "")
	if err != nil {
		return err
	}
	defer robot.Close()
	ahead, err := robot.Ahead(ctx)
	if err != nil {
		return err
	}
	wheels, err := robot.Claim(ctx, "robot.go") // others cannot drive it meanwhile
	if err != nil {
		return err
	}
	for range 4 {
		if _, err := wheels.Go(ctx, 0.1); err != nil {
			return err
		}
		if _, err := wheels.Turn(ctx, math.Pi/2); err != nil {
			return err
		}
	}
	distance, err := robot.Read(ctx, ahead)
	if err == nil {
		fmt.Printf("drove a square; the next thing is %.2f m away\n", distance)
	}
	return err
}
