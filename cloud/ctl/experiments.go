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
	return group(describe("experiments", "Compare the variations of an experiment", "experiments list", "experiments compare faster -name robot.fault_code"),
		a.experimentsCompare())
}

func (a *app) experimentsCompare() *cobra.Command {
	var q client.GetExperimentsKeyQuery
	var name, of, since, until string
	cmd := shows(a, describe("compare EXPERIMENT", "Compare variations by how often an event occurs per robot and day, or by the mean of a number",
		"experiments compare faster -name robot.fault_code", "experiments compare faster -name battery.low -of battery -since 14d"),
		func(ctx context.Context, args []string) (r reply[client.Comparison], err error) {
			if name == "" {
				return r, errs.New(errs.Invalid, "missing -name: the event to compare by, such as robot.fault_code")
			}
			q.Name, q.Of, q.Since, q.Until = given(name), given(of), given(since), given(until)
			return a.api.GetExperimentsKey(ctx, args[0], q)
		}, showComparison)
	cmd.Flags().StringVar(&name, "name", "", "compare by event `NAME`")
	cmd.Flags().StringVar(&of, "of", "", "compare the means of its number `VALUE`")
	cmd.Flags().StringVar(&since, "since", "", "from `TIME`, such as 14d (default: a week ago)")
	cmd.Flags().StringVar(&until, "until", "", "until `TIME` (default: now)")
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
		t.Text(fmt.Sprintf("%s with several variations left out", cli.Count(c.Changed, "robot")))
	}
}
