// Command around turns a robot once around and saves in around.csv what its distance sensors read in each direction. $KENNEL_ROBOT names the robot's file.
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"slices"

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
	d, err := robot.Describe(ctx)
	if err != nil {
		return err
	}
	var sensors []string
	for _, p := range d.Parts {
		if slices.Contains(p.Interfaces, "DistanceSensor") {
			sensors = append(sensors, p.Full+".distance")
		}
	}
	rows := [][]string{append([]string{"degrees"}, sensors...)}
	for i := range looks {
		v, err := robot.Values(ctx, sensors...)
		if err != nil {
			return err
		}
		row := []string{fmt.Sprint(i * 360 / looks)}
		for _, r := range v.Readings {
			row = append(row, fmt.Sprint(r.Value))
		}
		rows = append(rows, row)
		if _, err := robot.Turn(ctx, 2*math.Pi/looks); err != nil {
			return err
		}
	}
	f, err := os.Create("around.csv")
	if err != nil {
		return err
	}
	if err := errors.Join(csv.NewWriter(f).WriteAll(rows), f.Close()); err != nil {
		return err
	}
	fmt.Printf("around.csv has what %d sensors read in %d directions\n", len(sensors), looks)
	return nil
}
