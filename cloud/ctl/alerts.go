package ctl

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/cloud/telemetry/alert"
	"kennel/infra/api/status"
	"kennel/infra/cli"
)

func (a *app) alerts() *cobra.Command {
	return group(&cobra.Command{Use: "alerts", Short: "Problems that many robots of one release have",
		Long: "An alert fires while many present robots of one release have the same problem: at least a number of them, and at least a share of the\n" +
			"release's present robots, or clearly more than on other releases. The rule has all of it. Thresholds are about crashes, faults and events.",
		Example: "  kennelctl alerts list\n  kennelctl alerts ack 12 -why 'looking at it'\n  kennelctl alerts rule -robots 10 -share 0.05"}, a.alertsList(), a.alertsRule(), a.alertsAck(),
		does(a, describe("unack ALERT", "Take an acknowledgement back", "alerts unack 12"), first(a.api.DeleteAlertsAcksID), said[client.None]("alert %s is no longer acknowledged")),
		a.alertsSilence(),
		group(describe("silences", "Alerts that post no letters for a time", "alerts silences list", "alerts silences end 3"),
			shows(a, describe("list", "List silences in force", "alerts silences list"), none(a.api.GetAlertsSilences), rows("SILENCE|ABOUT|PROBLEM|UNTIL|BY|WHY", func(s client.Silence) cells {
				return cells{s.ID, cmp.Or(s.Place, s.Release, "none"), problemToken(s.Kind, s.Code), stamp(s.Until), s.By, s.Why}
			})),
			does(a, describe("end SILENCE", "End a silence now", "alerts silences end 3"), first(a.api.DeleteAlertsSilencesID), said[client.None]("silence %s is over"))),
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
		rows("ALERT|STATE|RELEASE|PROBLEM|ROBOTS|SINCE|RESOLVED|HANDLING", func(x client.Alert) cells {
			state := "firing"
			if !x.Resolved.IsZero() {
				state = "resolved"
			}
			var handling []string
			if x.Ack != nil {
				handling = append(handling, "acknowledged by "+x.Ack.By)
			}
			if x.Silenced != nil {
				handling = append(handling, "silenced by "+x.Silenced.By+" until "+stamp(x.Silenced.Until))
			}
			return cells{x.ID, state, cmp.Or(x.Place, x.Release, "none"), problemToken(x.Kind, x.Code), fmt.Sprintf("%d of %d", x.Robots, x.Present), x.Since, x.Resolved, cmp.Or(strings.Join(handling, ", "), "-")}
		}))
}

// problemToken names the problem of an alert or a silence.
func problemToken(kind, code string) string { return status.Problem{Kind: kind, Code: code}.Token() }

// stamp prints a time to come.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }

func (a *app) alertsAck() *cobra.Command {
	var note client.Note
	cmd := does(a, describe("ack ALERT", "Say that you take care of an alert, until it is resolved or becomes more severe", "alerts ack 12", "alerts ack 12 -why 'the rollout is stopped'"),
		func(ctx context.Context, args []string) (reply[client.None], error) {
			return a.api.PutAlertsAcksID(ctx, args[0], note)
		}, said[client.None]("alert %s is acknowledged"))
	cmd.Flags().StringVar(&note.Why, "why", "", "`NOTE` for others")
	return cmd
}

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

func thresholdCells(t client.Threshold) cells {
	return cells{t.ID, t.Kind, t.Of, t.Level, t.Robots, t.Hours, cmp.Or(t.By, "-")}
}

func (a *app) alertsThreshold() *cobra.Command {
	var w client.Limit
	cmd := shows(a, describe("add KIND [OF]", "Add a threshold: crash_share, fault_share [CODE], event_rate EVENT, crash_excess or fault_excess [CODE]",
		"alerts thresholds add crash_share -level 0.02", "alerts thresholds add fault_share 914 -level 0.1", "alerts thresholds add event_rate log.error -level 20 -hours 1",
		"alerts thresholds add crash_excess -level 0.01"),
		func(ctx context.Context, args []string) (reply[client.Threshold], error) {
			w.Kind, w.Of = args[0], ""
			if len(args) > 1 {
				w.Of = args[1]
			}
			return a.api.PostAlertsThresholds(ctx, w)
		}, func(t *cli.Table, x client.Threshold) {
			pairs(t, "threshold", x.ID, "kind", x.Kind, "of", cmp.Or(x.Of, "-"), "level", x.Level, "robots", x.Robots, "hours", x.Hours)
		})
	cmd.Flags().Float64Var(&w.Level, "level", 0, "fire at this `LEVEL`: a share from 0 to 1, how much the share is above that of other releases, or events per robot and hour")
	cmd.Flags().Int64Var(&w.Robots, "robots", 3, "and when it is at least `N` robots")
	cmd.Flags().Int64Var(&w.Hours, "hours", 24, "look at so many `HOURS`")
	return cmd
}

func showMailing(t *cli.Table, m client.Mailing) {
	for _, to := range m.To {
		t.Row(to)
	}
}
