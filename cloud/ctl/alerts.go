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
	return group(&cobra.Command{Use: "alerts", Short: "Show and manage alerts",
		Long: "An alert fires while many online robots of one release have the same problem: at least a number and a share of them, or clearly more\n" +
			"than on other releases (see alerts rule). Thresholds add limits on crashes, faults and events.",
		Example: "  kennelctl alerts list\n  kennelctl alerts ack 12 -why 'looking at it'\n  kennelctl alerts rule -robots 10 -share 0.05"}, a.alertsRule(), a.alertsSilence(),
		describe("silences", "Manage silences, which stop e-mails about an alert", "alerts silences list", "alerts silences end 3"),
		describe("thresholds", "Manage thresholds: limits on crashes, faults and events of a version", "alerts thresholds list", "alerts thresholds add crash_share -level 0.02 -robots 3 -hours 24"),
		describe("mail", "Manage who gets an e-mail when an alert fires or is resolved", "alerts mail list", "alerts mail set duty@example.org"))
}

// stamp prints a time to come.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }

func (a *app) alertsSilence() *cobra.Command {
	var h client.Hush
	length := 4 * time.Hour
	cmd := does(a, describe("silence ALERT", "Stop e-mails about an alert, and about others with the same problem, for a while", "alerts silence 12 -for 4h -why 'known, fixed in the next release'"),
		func(ctx context.Context, args []string) (r reply[client.Silence], err error) {
			if h.Alert, err = strconv.ParseInt(args[0], 10, 64); err != nil {
				return r, cli.Usage("ALERT %.20q: want the number of an alert", args[0])
			}
			h.Minutes = int64((length + time.Minute - 1) / time.Minute)
			return a.api.PostAlertsSilences(ctx, h)
		}, func(args []string, s client.Silence) string {
			return fmt.Sprintf("alert %s is silenced until %s (silence %d)", args[0], stamp(s.Until), s.ID)
		})
	cmd.Flags().DurationVar(&length, "for", length, "how long")
	cmd.Flags().StringVar(&h.Why, "why", "", "a `REASON` for other operators")
	_ = cmd.MarkFlagRequired("why")
	return cmd
}

func (a *app) alertsRule() *cobra.Command {
	var rule client.Wanted
	var floorRobots int64
	var floorShare, excess float64
	var cmd *cobra.Command
	cmd = shows(a, &cobra.Command{Use: "rule", Short: "Show or change the rule for when an alert fires",
		Example: "  kennelctl alerts rule\n  kennelctl alerts rule -robots 10 -share 0.05\n  kennelctl alerts rule -robots 10 -share 0.05 -floor-robots 20 -floor-share 0.02 -excess 0.01"},
		func(ctx context.Context, _ []string) (r reply[client.Rule], err error) {
			robots, share := cmd.Flags().Changed("robots"), cmd.Flags().Changed("share")
			switch {
			case robots != share:
				return r, cli.Usage("missing -%s: -robots and -share go together", map[bool]string{true: "share", false: "robots"}[robots])
			case !robots && (cmd.Flags().Changed("floor-robots") || cmd.Flags().Changed("floor-share") || cmd.Flags().Changed("excess")):
				return r, cli.Usage("missing -robots and -share: the rule is changed as a whole")
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
			pairs(t, "robots", fmt.Sprintf("at least %d of a release", r.Robots), "share", fmt.Sprintf("at least %g of those online", r.Share), "or a fault of", fmt.Sprintf("at least %d robots, and %g of those online", r.FloorRobots, r.FloorShare),
				"or an excess of", fmt.Sprintf("at least %g over other releases", r.Excess))
			if r.By != "" {
				pairs(t, "changed", ago(r.Changed)+" by "+r.By)
			}
		})
	cmd.Flags().Int64Var(&rule.Robots, "robots", 0, "fire when at least `N` online robots of a release have the same problem")
	cmd.Flags().Float64Var(&rule.Share, "share", 0, "and they are at least this `SHARE` of its online robots, from 0 to 1")
	cmd.Flags().Int64Var(&floorRobots, "floor-robots", int64(alert.DefaultRule.FloorRobots), "also fire when at least `N` robots have the same fault, whatever -share is")
	cmd.Flags().Float64Var(&floorShare, "floor-share", alert.DefaultRule.FloorShare, "and they are at least this `SHARE` of the online robots, from 0 to 1")
	cmd.Flags().Float64Var(&excess, "excess", alert.DefaultRule.Excess, "also fire when a problem's `SHARE` is this much above its share on other releases; 1: never")
	return cmd
}
