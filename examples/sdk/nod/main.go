// Command nod lets any robot with a head nod: it looks up, down and ahead again, and prints how far it looked up. $KENNEL_ROBOT names the robot's file.
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"time"

	kennel "kennel/sdk/go"
)

// head is the standard name of the part that nods, on a Vector as on every AIBO.
const head = "robot.body.head.pitch"

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
	held, err := robot.Claim(ctx, head) // others cannot move it meanwhile
	if err != nil {
		return err
	}
	var up float64
	for _, angle := range []float64{-0.3, 0.1, 0} { // rad; a head that looks down has a positive pitch
		if _, err := held.Set(ctx, head+".angle", angle, kennel.Time(600*time.Millisecond)); err != nil {
			return err
		}
		at, err := robot.Read(ctx, head+".angle")
		if err != nil {
			return err
		}
		up = min(up, at)
	}
	fmt.Printf("nodded; it looked up by %.0f degrees\n", -up*180/math.Pi)
	return nil
}
