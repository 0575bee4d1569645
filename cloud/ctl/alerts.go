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
		Example: "  kennelctl alerts list\n  kennelctl alerts rule -robots 10 -share 0.05"}, a.alertsList(), a.alertsRule(),
		group(describe("thresholds", "Limits on crashes, faults and events of a version", "alerts thresholds list", "alerts thresholds add crash_share -level 0.02 -robots 3 -hours 24"),
			shows(a, describe("list", "List thresholds", "alerts thresholds list"), none(a.api.GetAlertsThresholds), rows("THRESHOLD|KIND|OF|LEVEL|ROBOTS|HOURS|BY", thresholdCells)),
			a.alertsThreshold(),
			does(a, describe("remove THRESHOLD", "Remove a threshold; its alerts are resolved", "alerts thresholds remove 1"), first(a.api.DeleteAlertsThresholdsID), said[client.None]("threshold %s is removed"))),
		group(describe("mail", "Who gets a letter when an alert fires and when it is resolved", "alerts mail list", "alerts mail set duty@example.org"),
			shows(a, describe("list", "List the recipients", "alerts mail list"), none(a.api.GetAlertsMail), showMailing),
			shows(a, describe("set [ADDRESS...]", "Set the recipients; without any, none are sent", "alerts mail set duty@example.org"),
				func(ctx context.Context, to []string) (reply[client.Mailing], error) {
					return a.api.PutAlertsMail(ctx, client.Mailing{To: append([]string{}, to...)})
				}, showMailing)))
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

func thresholdCells(t client.Threshold) cells {
	return cells{t.ID, t.Kind, t.Of, t.Level, t.Robots, t.Hours, cmp.Or(t.By, "-")}
}

func (a *app) alertsThreshold() *cobra.Command {
	var w client.Limit
	cmd := shows(a, describe("add KIND [OF]", "Add a threshold: crash_share, fault_share [CODE] or event_rate EVENT",
		"alerts thresholds add crash_share -level 0.02", "alerts thresholds add fault_share 914 -level 0.1", "alerts thresholds add event_rate log.error -level 20 -hours 1"),
		func(ctx context.Context, args []string) (reply[client.Threshold], error) {
			w.Kind, w.Of = args[0], ""
			if len(args) > 1 {
				w.Of = args[1]
			}
			return a.api.PostAlertsThresholds(ctx, w)
		}, func(t *cli.Table, x client.Threshold) {
			pairs(t, "threshold", x.ID, "kind", x.Kind, "of", cmp.Or(x.Of, "-"), "level", x.Level, "robots", x.Robots, "hours", x.Hours)
		})
	cmd.Flags().Float64Var(&w.Level, "level", 0, "fire at this `LEVEL`: a share from 0 to 1, or events per robot and hour")
	cmd.Flags().Int64Var(&w.Robots, "robots", 3, "and when it is at least `N` robots")
	cmd.Flags().Int64Var(&w.Hours, "hours", 24, "look at so many `HOURS`")
	return cmd
}

func showMailing(t *cli.Table, m client.Mailing) {
	for _, to := range m.To {
		t.Row(to)
	}
}
