package ctl

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"kennel/cloud/alert"
	"kennel/cloud/alert/alertapi"
	"kennel/infra/api/status"
	"kennel/infra/cli"
)

const alertsPath = "/v1/alerts"

func (a *app) alerts() *cobra.Command {
	cmd := &cobra.Command{Use: "alerts", Short: "Problems that many robots of one release have",
		Long: "An alert fires while at least so many present robots of one release have the same problem, and they are at least a set share of the\n" +
			"present robots of that release.",
		Example: "  kennelctl alerts list\n  kennelctl alerts rule -robots 10 -share 0.05"}
	cmd.AddCommand(a.alertsList(), a.alertsRule())
	return cmd
}

func (a *app) alertsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List alerts: those that fire, then the latest resolved", Args: cobra.NoArgs, Example: "  kennelctl alerts list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(a, cmd, alertsPath, func(t *cli.Table, rows []alert.Alert) {
				t.Row("STATE", "RELEASE", "PROBLEM", "ROBOTS", "SINCE", "RESOLVED")
				for _, x := range rows {
					state := "firing"
					if x.Resolved != nil {
						state = "resolved"
					}
					t.Row(state, cmp.Or(x.Release, "none"), status.Problem{Kind: x.Kind, Code: x.Code}.Token(), fmt.Sprintf("%d of %d", x.Robots, x.Present), ago(x.Since), agoOf(x.Resolved))
				}
			})
		},
	}
}

func (a *app) alertsRule() *cobra.Command {
	var rule alertapi.Rule
	cmd := &cobra.Command{
		Use: "rule", Short: "Show or change when an alert fires", Args: cobra.NoArgs,
		Example: "  kennelctl alerts rule\n  kennelctl alerts rule -robots 10 -share 0.05",
		RunE: func(cmd *cobra.Command, _ []string) error {
			method, body := http.MethodGet, any(nil)
			if robots, share := cmd.Flags().Changed("robots"), cmd.Flags().Changed("share"); robots && share {
				method, body = http.MethodPut, rule
			} else if robots || share {
				return cli.Usage("want both -robots and -share, or neither")
			}
			return mine(a, cmd, method, alertsPath+"/rule", body, func(t *cli.Table, r alert.Rule) {
				t.Row("robots", fmt.Sprintf("at least %d of one release", r.Robots))
				t.Row("share", fmt.Sprintf("at least %g of those present", r.Share))
				if r.By != "" {
					t.Row("changed", ago(r.Changed)+" by "+r.By)
				}
			})
		},
	}
	cmd.Flags().IntVar(&rule.Robots, "robots", 0, "fire when at least `N` present robots of a release have the same problem")
	cmd.Flags().Float64Var(&rule.Share, "share", 0, "and they are at least this `SHARE` of its present robots, 0 to 1")
	return cmd
}
