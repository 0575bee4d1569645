package ctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) experiments() *cobra.Command {
	return group(describe("experiments", "Compare robots with different variations of an experiment", "experiments list", "experiments compare faster -name robot.fault_code"),
		a.experimentsCompare())
}

func (a *app) experimentsCompare() *cobra.Command {
	var q client.GetExperimentsKeyQuery
	var name, of, since, until string
	cmd := shows(a, describe("compare EXPERIMENT", "Compare its variations by how often an event comes on a robot's day, or by the mean of a number",
		"experiments compare faster -name robot.fault_code", "experiments compare faster -name battery.low -of battery -since 14d"),
		func(ctx context.Context, args []string) (r reply[client.Comparison], err error) {
			if name == "" {
				return r, errs.New(errs.Invalid, "-name is missing: want the event to compare by, such as robot.fault_code")
			}
			q.Name, q.Of, q.Since, q.Until = given(name), given(of), given(since), given(until)
			return a.api.GetExperimentsKey(ctx, args[0], q)
		}, showComparison)
	cmd.Flags().StringVar(&name, "name", "", "compare by the event `NAME`")
	cmd.Flags().StringVar(&of, "of", "", "compare the means of its number `VALUE`")
	cmd.Flags().StringVar(&since, "since", "", "from `TIME` on, such as 14d; a week if not given")
	cmd.Flags().StringVar(&until, "until", "", "before `TIME`")
	return cmd
}

func showComparison(t *cli.Table, c client.Comparison) {
	difference := map[string]client.DasDifference{}
	for _, d := range c.Differences {
		difference[d.Variation] = d
	}
	t.Row("VARIATION", "ROBOTS", "DAYS", "EVENTS", "MEAN", "DIFFERENCE", "95 % INTERVAL", "CLEAR")
	for _, a := range c.Arms {
		line := []any{a.Variation, a.Robots, a.Days, a.Events, fmt.Sprintf("%.4g", a.Mean)}
		if d, ok := difference[a.Variation]; ok && d.Few {
			line = append(line, fmt.Sprintf("%+.4g", d.By), "too few robots", "no")
		} else if ok {
			line = append(line, fmt.Sprintf("%+.4g", d.By), fmt.Sprintf("%.4g to %.4g", d.Low, d.High), map[bool]string{true: "yes", false: "no"}[d.Clear])
		}
		t.Row(line...)
	}
	if c.Changed > 0 {
		t.Text(fmt.Sprintf("%d robots told of several variations and are left out", c.Changed))
	}
}
