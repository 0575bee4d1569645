// Command wall follows the wall on the right with any robot that has wheels and looks ahead: it turns to the wall, measures, and drives on. $KENNEL_ROBOT names
// the robot's file.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"

	kennel "kennel/sdk/go"
)

const (
	want = 0.3 // m to the wall
	step = 0.1 // m
)

func main() {
	steps := flag.Int("steps", 20, "how many `steps` of 0.1 m to drive")
	flag.Parse()
	if err := run(context.Background(), *steps); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, steps int) error {
	robot, err := kennel.Connect(ctx, "")
	if err != nil {
		return err
	}
	defer robot.Close()
	ahead, err := robot.Ahead(ctx)
	if err != nil {
		return err
	}
	wheels, err := robot.Claim(ctx, "robot.go")
	if err != nil {
		return err
	}
	last := math.NaN() // distance of the wall one step ago
	for range steps {
		if _, err := wheels.Turn(ctx, math.Pi/2); err != nil {
			return err
		}
		wall, err := robot.Read(ctx, ahead)
		if err != nil {
			return err
		}
		fmt.Printf("%.2f m to the wall\n", wall)
		wall = min(wall, 2*want) // it has ended
		steer := math.Atan2(wall-want, 3*step)
		if !math.IsNaN(last) {
			steer -= math.Atan2(last-wall, step) // it drove towards the wall
		}
		last = wall
		if _, err := wheels.Turn(ctx, steer-math.Pi/2); err != nil {
			return err
		}
		if free, err := robot.Read(ctx, ahead); err != nil {
			return err
		} else if free < want+step { // a corner: the next wall is ahead
			last = math.NaN()
			_, err = wheels.Turn(ctx, -math.Pi/2)
			if err != nil {
				return err
			}
		} else if _, err := wheels.Go(ctx, step); err != nil {
			return err
		}
	}
	return nil
}
