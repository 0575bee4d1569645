// Command photos turns a robot once around and saves what its camera sees in each direction, in photo-000.jpg and so on by degrees. $KENNEL_ROBOT names the
// robot's file.
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"

	kennel "kennel/sdk/go"
)

const looks = 8

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
	for i := range looks {
		p, err := robot.Picture(ctx, kennel.Look{Format: "jpeg"})
		if err != nil {
			return err
		}
		name := fmt.Sprintf("photo-%03d.jpg", i*360/looks)
		if err := os.WriteFile(name, p.Data, 0o666); err != nil {
			return err
		}
		fmt.Printf("%s: %d by %d pixels\n", name, p.Width, p.Height)
		if _, err := robot.Turn(ctx, 2*math.Pi/looks); err != nil {
			return err
		}
	}
	return nil
}
