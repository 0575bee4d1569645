// Command nod lets any robot with a head or a neck nod: it prints where the robot is touched, looks up, down and ahead again, and prints how far it looked up.
// $KENNEL_ROBOT names the robot's file.
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"slices"
	"time"

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
	about, err := robot.Describe(ctx)
	if err != nil {
		return err
	}
	var nods string
	for _, p := range about.Parts { // parents first, so a head comes after the neck that carries it
		if p.Full == "robot.body.neck.pitch" || p.Full == "robot.body.head.pitch" {
			nods = p.Full
		}
		if !slices.Contains(p.Interfaces, "TouchSensor") {
			continue
		}
		if pressure, err := robot.Read(ctx, p.Full); err == nil && pressure > 0 {
			fmt.Println("touched:", p.Compact)
		}
	}
	held, err := robot.Claim(ctx, nods) // others cannot move it meanwhile
	if err != nil {
		return err
	}
	var up float64
	for _, angle := range []float64{-0.3, 0.1, 0} { // rad; a head that looks down has a positive pitch
		if _, err := held.Set(ctx, nods+".angle", angle, kennel.Time(600*time.Millisecond)); err != nil {
			return err
		}
		at, err := robot.Read(ctx, nods+".angle")
		if err != nil {
			return err
		}
		up = min(up, at)
	}
	fmt.Printf("nodded; it looked up by %.0f degrees\n", -up*180/math.Pi)
	return nil
}
