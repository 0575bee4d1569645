package ctl

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

func (a *app) fleet() *cobra.Command {
	return shows(a, describe("fleet", "Count robots that are online and offline", "fleet", "fleet -o json"),
		none(a.api.GetFleet), func(t *cli.Table, c client.Count) { pairs(t, "online", c.Present, "offline", c.Absent) })
}

func (a *app) health() *cobra.Command {
	var q client.GetFleetHealthQuery
	cmd := shows(a, describe("health", "Show the fleet's health: crashes by version, faults, batteries, voice and activation",
		"health", "health -period 30d -cohort beta"),
		func(ctx context.Context, _ []string) (reply[client.Overview], error) {
			return a.api.GetFleetHealth(ctx, q)
		},
		func(t *cli.Table, o client.Overview) {
			pairs(t, "period", o.Period, "cohort", cmp.Or(o.Cohort, "whole fleet"), "robots", o.Robots, "without a crash", share(o.CrashFree))
			voice := "no data"
			if o.Voice != nil && o.Voice.Heard+o.Voice.Done+o.Voice.Lost > 0 {
				voice = share(o.Voice.Share) + " of requests understood"
			}
			pairs(t, "voice", voice)
			for _, l := range o.Battery.Levels {
				pairs(t, "battery "+l.Name, l.Robots)
			}
			for _, l := range o.Battery.Lowest {
				pairs(t, "lowest battery", fmt.Sprintf("%.2f V, %s", l.Volts, l.Thing))
			}
			for _, s := range o.Funnel {
				pairs(t, s.Name, s.Robots)
			}
			t.Section("Versions")
			t.Row("VERSION", "STATE", "CRASH-FREE", "ROBOTS", "CRASHED", "CRASHES", "ERRORS", "LOW BATTERY")
			for _, v := range o.Versions {
				t.Row(cmp.Or(v.Version, "none"), v.State, share(v.CrashFree), v.Robots, v.Crashed, v.Crashes, v.Failures, v.Low)
			}
			t.Section("Faults")
			t.Row("CODE", "ROBOTS", "TIMES", "MOST ON")
			for _, f := range o.Faults {
				t.Row(f.Code, f.Robots, f.Times, f.Version)
			}
		})
	q.Period = cmd.Flags().String("period", "24h", "look at this `PERIOD`: 24h, 7d or 30d")
	q.Cohort = cmd.Flags().String("cohort", "", "only robots of `COHORT`")
	return cmd
}

// share writes a share as a percentage that is 100 only if it is whole.
func share(s float64) string {
	if s < 1 && s > 0.999 {
		s = 0.999
	}
	return fmt.Sprintf("%.1f %%", 100*s)
}
