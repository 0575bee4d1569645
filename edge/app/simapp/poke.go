package simapp

import (
	"github.com/spf13/cobra"

	"kennel/edge/sim"
	"kennel/infra/api/poke"
	"kennel/infra/cli"
)

func pokeCommand() *cobra.Command {
	var p poke.Poke
	var dir string
	cmd := &cobra.Command{
		Use:   "poke VERB [SIDE]",
		Short: "Touch a simulated robot, or move it by hand",
		Long: "Do to a running simulated robot what a person beside it would. Its sensors feel it.\n" +
			"Only a robot in a world (robotsim robot -world) can be moved.\n\nVERB is one of:\n\n" + poke.Help(),
		Example: `  robotsim poke touch -for 2s -root ./r1
  robotsim poke lift -height 0.2 -root ./r1
  robotsim poke push -by 0.05 -toward 90 -root ./r1
  robotsim poke turn back -root ./r1 -o json`,
		Args: cobra.RangeArgs(1, 2), ValidArgs: poke.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := p.Named(args...)
			if err != nil {
				return cli.Usage("%w", err)
			}
			if err := sim.Poke(cmd.Context(), dir, p); err != nil {
				return err
			}
			return cli.Print(cmd, p, func(t *cli.Table) { t.Text("done: " + p.String()) })
		},
	}
	cmd.Flags().StringVar(&dir, "root", "", "the robot's folder (required)")
	_ = cmd.MarkFlagRequired("root") // the flag exists
	p.Flags(cmd.Flags().Func)
	return cmd
}
