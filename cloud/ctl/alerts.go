package ctl

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/cloud/telemetry/alert"
	"kennel/infra/cli"
)

func (a *app) alerts() *cobra.Command {
	return group(&cobra.Command{Use: "alerts", Short: "Problems that many robots of one release have",
		Long: "An alert fires while many present robots of one release have the same problem: at least a number of them, and at least a share of the\n" +
			"release's present robots, or clearly more than on other releases. The rule has all of it. Thresholds are about crashes, faults and events.",
		Example: "  kennelctl alerts list\n  kennelctl alerts ack 12 -why 'looking at it'\n  kennelctl alerts rule -robots 10 -share 0.05"}, a.alertsRule(), a.alertsSilence(),
		describe("silences", "Alerts that post no letters for a time", "alerts silences list", "alerts silences end 3"),
		describe("thresholds", "Limits on crashes, faults and events of a version", "alerts thresholds list", "alerts thresholds add crash_share -level 0.02 -robots 3 -hours 24"),
		describe("mail", "Who gets a letter when an alert fires and when it is resolved", "alerts mail list", "alerts mail set duty@example.org"))
}

// stamp prints a time to come.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }

func (a *app) alertsSilence() *cobra.Command {
	var h client.Hush
	length := 4 * time.Hour
	cmd := does(a, describe("silence ALERT", "Post no letters about an alert, and those about the same, for a time", "alerts silence 12 -for 4h -why 'known, fixed in the next release'"),
		func(ctx context.Context, args []string) (r reply[client.Silence], err error) {
			if h.Alert, err = strconv.ParseInt(args[0], 10, 64); err != nil {
				return r, cli.Usage("ALERT %.20q: want the number of an alert", args[0])
			}
			h.Minutes = int64((length + time.Minute - 1) / time.Minute)
			return a.api.PostAlertsSilences(ctx, h)
		}, func(args []string, s client.Silence) string {
			return fmt.Sprintf("alert %s is silenced until %s (silence %d)", args[0], stamp(s.Until), s.ID)
		})
	cmd.Flags().DurationVar(&length, "for", length, "for so long")
	cmd.Flags().StringVar(&h.Why, "why", "", "the `REASON`")
	_ = cmd.MarkFlagRequired("why")
	return cmd
}

func (a *app) alertsRule() *cobra.Command {
	var rule client.Wanted
	var floorRobots int64
	var floorShare, excess float64
	var cmd *cobra.Command
	cmd = shows(a, &cobra.Command{Use: "rule", Short: "Show or change when an alert fires",
		Example: "  kennelctl alerts rule\n  kennelctl alerts rule -robots 10 -share 0.05\n  kennelctl alerts rule -robots 10 -share 0.05 -floor-robots 20 -floor-share 0.02 -excess 0.01"},
		func(ctx context.Context, _ []string) (r reply[client.Rule], err error) {
			robots, share := cmd.Flags().Changed("robots"), cmd.Flags().Changed("share")
			switch {
			case robots != share:
				return r, cli.Usage("want both -robots and -share, or neither")
			case !robots && (cmd.Flags().Changed("floor-robots") || cmd.Flags().Changed("floor-share") || cmd.Flags().Changed("excess")):
				return r, cli.Usage("want -robots and -share too: a rule is changed as a whole")
			case robots:
				if cmd.Flags().Changed("floor-robots") {
					rule.FloorRobots = &floorRobots
				}
				if cmd.Flags().Changed("floor-share") {
					rule.FloorShare = &floorShare
				}
				if cmd.Flags().Changed("excess") {
					rule.Excess = &excess
				}
				return a.api.PutAlertsRule(ctx, rule)
			}
			return a.api.GetAlertsRule(ctx)
		}, func(t *cli.Table, r client.Rule) {
			pairs(t, "robots", fmt.Sprintf("at least %d of one release", r.Robots), "share", fmt.Sprintf("at least %g of those present", r.Share), "or a fault of", fmt.Sprintf("at least %d, and at least %g of those present", r.FloorRobots, r.FloorShare),
				"or more by", fmt.Sprintf("at least %g than on other releases", r.Excess))
			if r.By != "" {
				pairs(t, "changed", ago(r.Changed)+" by "+r.By)
			}
		})
	cmd.Flags().Int64Var(&rule.Robots, "robots", 0, "fire when at least `N` present robots of a release have the same problem")
	cmd.Flags().Float64Var(&rule.Share, "share", 0, "and they are at least this `SHARE` of its present robots, 0 to 1")
	cmd.Flags().Int64Var(&floorRobots, "floor-robots", int64(alert.DefaultRule.FloorRobots), "fire for a fault of at least `N` robots, whatever -share says")
	cmd.Flags().Float64Var(&floorShare, "floor-share", alert.DefaultRule.FloorShare, "and they are at least this `SHARE`")
	cmd.Flags().Float64Var(&excess, "excess", alert.DefaultRule.Excess, "fire for a problem whose share is by this `MUCH` above the share on other releases; 1: never")
	return cmd
}
