package simapp

import (
	"os"

	"github.com/spf13/cobra"

	"kennel/edge/agent/teleop/simulator"
	"kennel/edge/sim"
	"kennel/infra/api/poke"
	"kennel/infra/cli"
)

// played is a poke with a sound, and when it was heard.
type played struct {
	poke.Poke
	Heard *simulator.Sound `json:"heard"`
}

func pokeCommand() *cobra.Command {
	var p poke.Poke
	var dir string
	cmd := &cobra.Command{
		Use:   "poke VERB [SIDE|FILE]",
		Short: "Touch or move a simulated robot by hand",
		Long: "Do to a running simulated robot what a person beside it would do. Its sensors notice.\n" +
			"Only a robot in a world (robotsim robot -world) can be moved. Sounds are played to the end.\n\nVERB is one of:\n\n" + poke.Help(),
		Example: `  robotsim poke touch -for 2s -root ./r1
  robotsim poke lift -height 0.2 -root ./r1
  robotsim poke push -by 0.05 -toward 90 -root ./r1
  robotsim poke turn back -root ./r1 -o json
  robotsim poke play hello.wav -direction 90 -root ./r1`,
		Args: cobra.RangeArgs(1, 2), ValidArgs: poke.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			var wav []byte
			if args[0] == poke.Play && len(args) == 2 {
				var err error
				if wav, err = os.ReadFile(args[1]); err != nil {
					return err
				}
				args[1] = poke.FileName(args[1])
			}
			p, err := p.Named(args...)
			if err != nil {
				return cli.Usage("%w", err)
			}
			if p.Verb != poke.Play {
				err = sim.Poke(cmd.Context(), dir, p)
			} else if heard, err := sim.Play(cmd.Context(), dir, p, wav); err != nil {
				return err
			} else {
				return cli.Print(cmd, played{p, heard}, func(t *cli.Table) { t.Text("done: " + p.String()) })
			}
			if err != nil {
				return err
			}
			return cli.Print(cmd, p, func(t *cli.Table) { t.Text("done: " + p.String()) })
		},
	}
	cmd.Flags().StringVar(&dir, "root", "", "the robot's folder `DIR` (required)")
	_ = cmd.MarkFlagRequired("root") // the flag exists
	p.Flags(cmd.Flags().Func)
	return cmd
}
