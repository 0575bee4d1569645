package plan

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"kennel/cloud/page"
	"kennel/infra/cli"
	"kennel/infra/config"
)

// Command is kenneld plan.
func Command() *cobra.Command {
	o := Options{KeepDays: 30, Machine: Machine{Cores: 16, Share: 0.6}}
	robots, profile, prices, costs, memory := "", "lively", "", "", "64GiB"
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Say what an installation for a number of robots needs: nodes, disks, traffic, limits, price",
		Long: `Say what an installation for a number of robots needs, from costs of each act of a robot that were measured with light robots:
machines, disks and traffic, the five limits that are met first with what lifts each, and with -prices what a robot costs a
month. The costs were measured with the broker inside kenneld onebox; memory and logins of the brokers are those of three NATS
servers. See Plan in docs/operate.md.

-prices names a file like cloud/app/plan/prices.example.yaml. -costs names a file that bench -costs wrote on your own machine.`,
		Example: `  kenneld plan -robots 1e6
  kenneld plan -robots 100000 -profile idle -cores 8 -memory 32GiB -prices prices.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := strconv.ParseFloat(robots, 64)
			if err != nil || n != math.Trunc(n) || !(n >= 1 && n <= 1e8) {
				return cli.Usage("-robots %.40q: want a whole number of 1 to 1e8, such as 1e6", robots)
			}
			var size config.Size
			if err := size.UnmarshalText([]byte(memory)); err != nil {
				return cli.Usage("-memory: %w", err)
			}
			o.Robots, o.Machine.Memory = int(n), float64(size)
			if o.Behaviour, err = BehaviourOf(profile); err != nil {
				return cli.Usage("-%w", err)
			}
			if err := o.Validate(); err != nil {
				return cli.Usage("%w", err)
			}
			c, err := Measured()
			if costs != "" {
				var b []byte
				if b, err = os.ReadFile(costs); err == nil {
					c, err = ParseCosts(b)
				}
			}
			if err != nil {
				return err
			}
			need, err := Plan(c, o)
			if err != nil {
				return err
			}
			if prices != "" {
				p, err := LoadPrices(prices)
				if err != nil {
					return err
				}
				price := p.Of(need, o.Machine)
				need.Price = &price
			}
			return cli.Print(cmd, need, func(t *cli.Table) { tell(t, c, need) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&robots, "robots", "", "`NUMBER` of robots, such as 1e6 (required)")
	f.StringVar(&profile, "profile", profile, "behaviour of the robots: idle or lively, as robotsim fleet has them")
	f.IntVar(&o.KeepDays, "keep-days", o.KeepDays, "days that events are kept (events.keep_days)")
	f.Float64Var(&o.Machine.Cores, "cores", o.Machine.Cores, "processors of each machine")
	f.StringVar(&memory, "memory", memory, "memory of each machine, a `SIZE` such as 64GiB")
	f.Float64Var(&o.Machine.Share, "share", o.Machine.Share, "share of a machine that may be used, above 0 and at most 1")
	f.StringVar(&prices, "prices", "", "`FILE` with prices (YAML)")
	f.StringVar(&costs, "costs", "", "`FILE` with costs measured on your own machine (default: those of this version)")
	_ = cmd.MarkFlagRequired("robots") // the flag exists
	cli.AddOutput(cmd)
	return cmd
}

// tell draws the plan for people.
func tell(t *cli.Table, c Costs, n Need) {
	t.Row("PART", "MACHINES", "BUSY CORES", "MEMORY", "DISK EACH")
	for _, p := range n.Nodes {
		t.Row(p.Part, p.Count, fmt.Sprintf("%.1f", p.Cores), size(p.Memory), size(p.Disk))
	}
	t.Section("Amounts")
	t.Row("messages of robots", fmt.Sprintf("%.0f a second", n.MessagesPerSecond))
	t.Row("traffic", fmt.Sprintf("%s a second from robots, %s to them", size(n.UpPerSecond), size(n.DownPerSecond)))
	t.Row("events", fmt.Sprintf("%.3g a day", n.EventsPerDay))
	t.Row("Postgres", fmt.Sprintf("%.0f statements and %s of log a second", n.StatementsPerSecond, size(n.WALPerSecond)))
	t.Row("object store", fmt.Sprintf("%.3g objects a month, %s kept", n.ObjectsPerMonth, size(n.ObjectBytes)))
	t.Section("First limits")
	t.Row("ROBOTS", "LIMIT", "WHAT LIFTS IT")
	for _, l := range n.Limits {
		t.Row(l.Robots, l.Name, l.Lift)
	}
	if p := n.Price; p != nil {
		t.Section("Price in " + p.Currency)
		t.Row("a robot and month", fmt.Sprintf("%.4g", p.Robot))
		t.Row("a month", fmt.Sprintf("%.4g", p.Month), fmt.Sprintf("machines %.3g, disks %.3g, objects %.3g, traffic %.3g, service %.3g", p.Machines, p.Disks, p.Objects, p.Traffic, p.Service))
	}
	t.Text("")
	t.Text(fmt.Sprintf("Costs measured on %s with %d light robots, %s: %s", c.Measured, c.Robots, c.Machine, c.Command))
	if c.Note != "" {
		t.Text(c.Note)
	}
}

// size writes bytes for people.
func size(b float64) string { return page.Bytes(int64(min(b, 1<<62))) }
