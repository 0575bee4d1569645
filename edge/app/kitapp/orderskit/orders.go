// Package orderskit replays the orders of a recording of a robot for robotkit replay.
package orderskit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"kennel/infra/api/robotpb"
	"kennel/infra/cli"
	"kennel/infra/mcap"
	kennel "kennel/sdk/go"
	"kennel/sdk/recording"
)

// order is an order of a recording as it ended then and now.
type order struct {
	AtS      float64 `json:"at_s"` // since the first order
	Program  string  `json:"program"`
	Order    string  `json:"order"`
	Recorded string  `json:"recorded"`          // its end; "": the recording ends before it
	Replayed string  `json:"replayed"`          // "": refused
	Differs  string  `json:"differs,omitempty"` // how
}

// replayed is the output of replay for a recording of orders.
type replayed struct {
	Thing   string  `json:"thing"` // that was recorded
	On      string  `json:"on"`    // that the orders ran on
	Orders  []order `json:"orders"`
	Differ  int     `json:"differ"`
	Cut     bool    `json:"cut,omitempty"` // the recording was not finished
	Species string  `json:"species"`
}

// Is reports whether a recording holds orders of a robot rather than robotd's steps.
func Is(in *bufio.Reader) bool {
	head, _ := in.Peek(5) // a shorter file is none
	return string(head) == "\x89MCAP"
}

// Replay runs the orders of a recording on the robot of a file.
func Replay(cmd *cobra.Command, in io.Reader, name, file string) error {
	rec, err := recording.Read(in)
	if errors.Is(err, mcap.ErrFormat) {
		return cli.Usage("%s: %w", name, err)
	} else if err != nil {
		return err
	}
	ctx := cmd.Context()
	robot, err := kennel.Connect(ctx, file)
	if err != nil {
		return recording.Kind(err)
	}
	defer robot.Close()
	d, err := robot.Describe(ctx)
	if err != nil {
		return recording.Kind(err)
	}
	if rec.Species != "" && d.Species != rec.Species {
		return cli.Usage("%s is a recording of a %s, and %s is a %s", name, rec.Species, d.Thing, d.Species)
	}
	out := replayed{Thing: rec.Thing, On: d.Thing, Orders: []order{}, Cut: rec.Cut, Species: d.Species}
	err = recording.Replay(ctx, robot, rec.Orders, func(x recording.Ran) error {
		if x.Differs != "" {
			out.Differ++
		}
		out.Orders = append(out.Orders, order{AtS: x.At.Seconds(), Program: x.Program, Order: recording.Text(x.Request), Recorded: end(x.Ended), Replayed: end(x.Again), Differs: x.Differs})
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		return recording.Kind(err)
	}
	if perr := cli.Print(cmd, out, func(t *cli.Table) {
		t.Row("TIME", "PROGRAM", "ORDER", "RECORDED", "REPLAYED", "DIFFERENCE")
		for _, o := range out.Orders {
			t.Row(fmt.Sprintf("%.1f s", o.AtS), o.Program, o.Order, o.Recorded, o.Replayed, o.Differs)
		}
	}); perr != nil || err != nil {
		return errors.Join(perr, err)
	}
	if out.Differ > 0 {
		return fmt.Errorf("%s: %d of %d orders ended otherwise", name, out.Differ, len(out.Orders))
	}
	return nil
}

func end(e *robotpb.Ended) string {
	if e == nil {
		return ""
	}
	return e.Words
}
