package ctl

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

func (a *app) rollout() *cobra.Command {
	return group(describe("rollout", "Roll a release out in phases that stop when robots turn bad",
		"rollout create vic 2.0.1.6076 -cohort tag:beta -channel beta", "rollout show "+anID, "rollout why vic:00e20100"),
		a.rolloutCreate(),
		shows(a, describe("list", "List rollouts, the newest first", "rollout list"), none(a.api.GetRollouts),
			rows("ROLLOUT|RELEASE|STATE|PHASE|UPDATED|FAILED|CHANGED", func(r client.Rollout) cells {
				return cells{r.Rollout, r.Species + " " + r.Version, r.State, phase(r), fmt.Sprintf("%d/%d", r.Progress.Why["done"], r.Progress.Robots), r.Progress.Why["failed"], r.Changed}
			})),
		shows(a, describe("show ROLLOUT", "Show a rollout: phases, waiting robots and failed updates", "rollout show "+anID), first(a.api.GetRolloutsID), showRollout),
		a.rolloutRobots())
}

// phase names the open phase by its number of robots, once they were counted.
func phase(r client.Rollout) string {
	switch {
	case int(r.Phase) < len(r.Stages):
		return fmt.Sprintf("%d of %d (%s)", r.Phase+1, len(r.Stages), cli.Count(r.Stages[r.Phase].Robots, "robot"))
	case int(r.Phase) < len(r.Phases):
		return fmt.Sprintf("%d of %d (%g %%)", r.Phase+1, len(r.Phases), r.Phases[r.Phase].Percent)
	}
	return ""
}

func (a *app) rolloutCreate() *cobra.Command {
	var in client.RolloutRequest
	var phases, guards []string
	var window string
	var watch time.Duration
	var needs client.Needs
	cmd := shows(a, &cobra.Command{Use: "create SPECIES VERSION", Short: "Create and start a rollout", ValidArgsFunction: completeSpecies,
		Long: "A phase is a share of the cohort and how long to wait after its robots are done, such as 1%:1h. A guard is a metric (failures, silent or problems),\n" +
			"how many more bad robots than usual it allows, and how many robots it needs, such as failures:5%:20. Updated robots are watched for a day and\n" +
			"compared with robots that have not updated; a phase passes on evidence, or when a person releases it. Fleets of fewer than 100 robots update 1, 2,\n" +
			"4, 8 and so on, and a person releases each phase. A rollout to prod needs approval by a second person.\n\n" + filterHelp,
		Example: "  kennelctl rollout create vic 2.0.1.6076 -cohort tag:beta -channel beta\n" +
			"  kennelctl rollout create vic 2.0.1.6076 -phases 1%:2h,10%:1d,100%:1d -cap 500 -window 01:00-05:00 -charger -rollback"},
		func(ctx context.Context, args []string) (r reply[client.Rollout], err error) {
			in.Species, in.Version, in.WatchS = args[0], args[1], int64(watch.Seconds())
			if in.Phases, in.Guards, err = parsePlan(phases, guards); err != nil {
				return r, err
			}
			if window != "" {
				from, to, ok := strings.Cut(window, "-")
				if !ok {
					return r, cli.Usage("-window %q: want hours such as 01:00-05:00", window)
				}
				in.Window = &client.Window{From: from, To: to}
			}
			if needs != (client.Needs{}) {
				in.Needs = &needs
			}
			return a.api.PostRollouts(ctx, in)
		}, func(t *cli.Table, r client.Rollout) {
			showRollout(t, client.Told{Rollout: r.Rollout, Species: r.Species, Version: r.Version, Channel: r.Channel, Cohort: r.Cohort, State: r.State, Phase: r.Phase, Phases: r.Phases, Changed: r.Changed})
		})
	f := cmd.Flags()
	f.StringVar(&in.Cohort, "cohort", "", "only robots that match `FILTER`")
	f.StringVar(&in.Channel, "channel", "prod", "`CHANNEL`: prod, beta or dev; prod needs approval by a second person")
	f.StringSliceVar(&in.Regions, "region", nil, "only robots whose time zone begins with `REGION`, such as Europe; may be repeated")
	f.StringSliceVar(&phases, "phases", nil, "`PERCENT:WAIT` of each phase (default 1%:1h,10%:1h,50%:1h,100%:1h)")
	f.StringSliceVar(&guards, "guards", nil, "`METRIC:SHARE:ROBOTS` of each guard (default failures:5%:20,silent:3%:30,problems:5%:30); none: phases pass by time alone")
	f.DurationVar(&watch, "watch", 24*time.Hour, "watch each robot for this `DURATION` after its update")
	f.Int64Var(&in.Cap, "cap", 100, "update at most `N` robots at once")
	f.Int64Var(&in.Bandwidth, "bandwidth", 0, "limit all robots together to `BYTES` per second (0: no limit)")
	f.StringVar(&window, "window", "", "update only in these `HOURS` of the robot's local time, such as 01:00-05:00")
	f.BoolVar(&needs.Battery, "battery", false, "update only if the battery is not low")
	f.BoolVar(&needs.Charger, "charger", false, "update only on the charger")
	f.BoolVar(&in.Rollback, "rollback", false, "if a guard stops the rollout, return updated robots to their previous release, ten of them first")
	f.BoolVar(&in.Draft, "draft", false, "create it without starting (start with rollout resume)")
	f.StringVar(&in.Note, "note", "", "a `TEXT` for other operators")
	_ = cmd.RegisterFlagCompletionFunc("channel", cobra.FixedCompletions([]string{"prod", "beta", "dev"}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return cmd
}

// parsePlan reads phases such as 10%:2h and guards such as failures:5%:20.
func parsePlan(phases, guards []string) (ps []client.RolloutPhase, gs []client.Guard, err error) {
	percent := func(s string) (float64, bool) {
		n, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
		return n, err == nil && n >= 0 && n <= 100
	}
	for _, s := range phases {
		share, wait, _ := strings.Cut(s, ":")
		n, ok := percent(share)
		days, isDays := strings.CutSuffix(cmp.Or(wait, "1h"), "d")
		d, err := time.ParseDuration(cmp.Or(wait, "1h"))
		if isDays {
			var k float64
			k, err = strconv.ParseFloat(days, 64)
			ok = ok && k >= 0
			d = time.Duration(min(k, 1e4) * 24 * float64(time.Hour)) // the cloud takes fewer
		}
		if !ok || err != nil || d < 0 {
			return nil, nil, cli.Usage("-phases %q: want a share from 0 to 100 %% and how long to wait, such as 10%%:2h", s)
		}
		ps = append(ps, client.RolloutPhase{Percent: n, BakeS: int64(d.Seconds())})
	}
	if slices.Equal(guards, []string{"none"}) {
		return ps, []client.Guard{}, nil
	}
	for _, s := range guards {
		parts := strings.Split(s, ":")
		if len(parts) < 3 {
			return nil, nil, cli.Usage("-guards %q: want a metric, a share and a number of robots, such as failures:5%%:20", s)
		}
		n, ok := percent(parts[1])
		sample, err := strconv.ParseInt(parts[2], 10, 64)
		if !ok || err != nil {
			return nil, nil, cli.Usage("-guards %q: want a metric, a share and a number of robots, such as failures:5%%:20", s)
		}
		gs = append(gs, client.Guard{Metric: parts[0], Share: n / 100, Sample: sample, Problem: strings.Join(parts[3:], ":")})
	}
	return ps, gs, nil
}

func showRollout(t *cli.Table, r client.Told) {
	pairs(t, "rollout", r.Rollout, "release", r.Species+" "+r.Version+" ("+r.Channel+")", "cohort", cmp.Or(r.Cohort, "all robots of the species"),
		"state", r.State, "changed", r.Changed, "phase", phase(client.Rollout{Phase: r.Phase, Phases: r.Phases, Stages: r.Stages}))
	if r.Why != "" {
		t.Row("why", r.Why)
	}
	if e := r.Evidence; e != nil {
		t.Row("robots", strings.Join(e.Robots, ", "))
	}
	if r.State == "held" {
		t.Row("next", "kennelctl rollout release "+r.Rollout)
	}
	if len(r.Progress.Phases) == 0 {
		return
	}
	t.Row("robots", fmt.Sprintf("%d, counted %s", r.Progress.Robots, ago(r.Progress.At)))
	t.Text("")
	rows("PHASE|SHARE|ROBOTS|DONE|FAILED|UPDATING|OFFLINE", func(p client.PhaseProgress) cells {
		return cells{1 + slices.Index(r.Progress.Phases, p), fmt.Sprintf("%g %%", p.Percent), p.Robots, p.Done, p.Failed, p.Open, p.Offline}
	})(t, r.Progress.Phases)
	if len(r.Progress.Guards) > 0 {
		t.Text("")
		rows("GUARD|UPDATED BAD|CONTROL BAD|EVIDENCE|HOLDS AT|STOPS AT|PASSES", func(v client.Verdict) cells {
			name := v.Metric
			if v.Problem != "" {
				name += ":" + v.Problem
			}
			return cells{name, fmt.Sprintf("%d of %d", v.Updated.Bad, v.Updated.Of), fmt.Sprintf("%d of %d", v.Controls.Bad, v.Controls.Of), fmt.Sprintf("%.3g", v.Evidence), fmt.Sprintf("%.3g", v.HoldAt),
				fmt.Sprintf("%.3g", v.StopAt), map[bool]string{true: "yes", false: "not yet"}[v.Pass]}
		})(t, r.Progress.Guards)
	}
	if len(r.Progress.Lacks) > 0 {
		t.Text("")
		rows("NEEDED TO PASS|DETAIL", func(l client.Lack) cells { return cells{l.Code, l.Words} })(t, r.Progress.Lacks)
	}
	t.Text("")
	rows("ROBOTS|STATE", func(code string) cells {
		return cells{r.Progress.Why[code], strings.ReplaceAll(code, "_", " ")}
	})(t, slices.SortedFunc(maps.Keys(r.Progress.Why), func(x, y string) int {
		return cmp.Or(cmp.Compare(r.Progress.Why[y], r.Progress.Why[x]), cmp.Compare(x, y))
	}))
	if len(r.Progress.Codes) > 0 {
		t.Text("")
		rows("FAILED|CODE|MEANING", func(c client.CodeCount) cells { return cells{c.Robots, c.Code, c.Words} })(t, r.Progress.Codes)
	}
	if len(r.Turns) > 0 {
		t.Text("")
		rows("TIME|ACTION|BY|DETAIL", func(x client.Turn) cells { return cells{x.At, strings.TrimPrefix(x.Kind, "rollout."), x.By, x.Words} })(t, r.Turns)
	}
}

// robotsAtOnce is how many robots one page has: the cloud judges all of them for each page.
const robotsAtOnce = 10_000

func (a *app) rolloutRobots() *cobra.Command {
	var why string
	var phase int64
	cmd := a.runs(describe("robots ROLLOUT", "List the robots of a rollout with their states", "rollout robots "+anID+" -why failed"),
		func(cmd *cobra.Command, args []string) error {
			q := client.GetRolloutsIDRobotsQuery{Why: given(why), Limit: new(int64(robotsAtOnce))}
			if phase > 0 {
				q.Phase = &phase
			}
			all, err := pages(func(after *string) (reply[[]client.Why], error) {
				q.After = after
				r, err := a.api.GetRolloutsIDRobots(cmd.Context(), args[0], q)
				if n := len(r.Value); n == robotsAtOnce {
					r.After = r.Value[n-1].Thing
				}
				return r, err
			})
			return show(cmd, all, err, rows("THING|PHASE|CODE|REASON", func(w client.Why) cells { return cells{w.Thing, w.Phase, w.Code, w.Words} }))
		})
	cmd.Flags().StringVar(&why, "why", "", "only robots with this `CODE`, such as failed or outside_window")
	cmd.Flags().Int64Var(&phase, "phase", 0, "only robots of this `PHASE`, from 1")
	return cmd
}
