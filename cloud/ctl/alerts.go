package ctl

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

func (a *app) alerts() *cobra.Command {
	return group(&cobra.Command{Use: "alerts", Short: "Problems that many robots of one release have",
		Long: "An alert fires while many present robots of one release have the same problem: at least a number of them, and at least a share of the\n" +
			"release's present robots. The rule has both.",
		Example: "  kennelctl alerts list\n  kennelctl alerts rule -robots 10 -share 0.05"}, a.alertsList(), a.alertsRule())
}

func (a *app) alertsList() *cobra.Command {
	return shows(a, &cobra.Command{Use: "list", Short: "List alerts: those that fire, then the latest resolved", Example: "  kennelctl alerts list"},
		func(ctx context.Context, _ []string) (reply[[]client.Alert], error) { return a.api.GetAlerts(ctx) },
		rows("STATE|RELEASE|PROBLEM|ROBOTS|SINCE|RESOLVED", func(x client.Alert) cells {
			state, problem := "firing", x.Kind
			if !x.Resolved.IsZero() {
				state = "resolved"
			}
			if x.Code != "" {
				problem += "/" + x.Code
			}
			return cells{state, cmp.Or(x.Release, "none"), problem, fmt.Sprintf("%d of %d", x.Robots, x.Present), x.Since, x.Resolved}
		}))
}

func (a *app) alertsRule() *cobra.Command {
	var rule client.Wanted
	var cmd *cobra.Command
	cmd = shows(a, &cobra.Command{Use: "rule", Short: "Show or change when an alert fires",
		Example: "  kennelctl alerts rule\n  kennelctl alerts rule -robots 10 -share 0.05"},
		func(ctx context.Context, _ []string) (r reply[client.Rule], err error) {
			robots, share := cmd.Flags().Changed("robots"), cmd.Flags().Changed("share")
			switch {
			case robots != share:
				return r, cli.Usage("want both -robots and -share, or neither")
			case robots:
				return a.api.PutAlertsRule(ctx, rule)
			}
			return a.api.GetAlertsRule(ctx)
		}, func(t *cli.Table, r client.Rule) {
			pairs(t, "robots", fmt.Sprintf("at least %d of one release", r.Robots), "share", fmt.Sprintf("at least %g of those present", r.Share))
			if r.By != "" {
				pairs(t, "changed", ago(r.Changed)+" by "+r.By)
			}
		})
	cmd.Flags().Int64Var(&rule.Robots, "robots", 0, "fire when at least `N` present robots of a release have the same problem")
	cmd.Flags().Float64Var(&rule.Share, "share", 0, "and they are at least this `SHARE` of its present robots, 0 to 1")
	return cmd
}
