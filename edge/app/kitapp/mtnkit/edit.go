package mtnkit

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"kennel/edge/body/aibo/motions"
	"kennel/edge/body/aibo/mtn"
	"kennel/infra/cli"
)

// maxDifferences is how many lines diff prints.
const maxDifferences = 1000

func diffCommand() *cobra.Command {
	var tolerance float64
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two motions",
		Long:  `Compare two motions, whatever the layout of their files. Exits 0 if they are the same, 1 if they differ.`,
		Example: `  robotkit mtn diff sit.mtn sit2.mtn
  robotkit mtn diff sit.mtn sit2.mtn -tolerance 0.5`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, _, err := open(cmd, args[0], mtn.Lenient)
			if err != nil {
				return err
			}
			b, _, err := open(cmd, args[1], mtn.Lenient)
			if err != nil {
				return err
			}
			found := append([]motions.Difference{}, motions.Diff(a, b, tolerance, maxDifferences)...)
			err = cli.Print(cmd, found, func(t *cli.Table) {
				for i, d := range found {
					if i == 0 {
						t.Row("WHAT", args[0], args[1])
					}
					t.Row(d.What, d.A, d.B)
				}
			})
			if err == nil && len(found) > 0 {
				err = fmt.Errorf("%s and %s differ", args[0], args[1])
			}
			return err
		},
	}
	cmd.Flags().Float64Var(&tolerance, "tolerance", 0, "ignore angles that differ by at most so many `DEGREES`")
	return cmd
}

// edit returns a command that makes one motion of another.
func edit(use, short, long, example string, do func(f *mtn.File) (*mtn.File, []motions.Change, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, _, err := open(cmd, args[0], mtn.Lenient)
			if err != nil {
				return err
			}
			out, changes, err := do(f)
			if err != nil {
				return unfit(fmt.Errorf("%s: %w", args[0], err))
			}
			return save(cmd, out, argument(args, 1), changes)
		},
	}
}

// unfit makes an error of the command line of what cannot be done to a motion.
func unfit(err error) error {
	if errors.Is(err, motions.ErrEdit) {
		return cli.Usage("%w", err)
	}
	return err
}

func mirrorCommand() *cobra.Command {
	return edit("mirror FILE [OUT.mtn]", "Exchange left and right of a motion", "", "  robotkit mtn mirror left.mtn right.mtn",
		func(f *mtn.File) (*mtn.File, []motions.Change, error) {
			out, err := motions.Mirror(f)
			return out, nil, err
		})
}

func reverseCommand() *cobra.Command {
	return edit("reverse FILE [OUT.mtn]", "Turn a motion round, so that it ends where it began", "", "  robotkit mtn reverse sit.mtn stand.mtn",
		func(f *mtn.File) (*mtn.File, []motions.Change, error) { return motions.Reverse(f), nil, nil })
}

func scaleCommand() *cobra.Command {
	var time, angle float64
	cmd := edit("scale FILE [OUT.mtn]", "Make a motion slower or faster, smaller or larger",
		"Multiply the times of a motion, and the ways of its joints from the first keyframe. Times are whole frames of 16 ms.",
		"  robotkit mtn scale wag.mtn slow.mtn -time 2\n  robotkit mtn scale wag.mtn small.mtn -angle 0.5",
		func(f *mtn.File) (*mtn.File, []motions.Change, error) {
			out, err := motions.Scale(f, time, angle)
			return out, nil, err
		})
	cmd.Flags().Float64Var(&time, "time", 1, "`factor` of times, 0.01 to 100")
	cmd.Flags().Float64Var(&angle, "angle", 1, "`factor` of ways, 0 to 100")
	return cmd
}

func retargetCommand() *cobra.Command {
	var to string
	cmd := edit("retarget FILE [OUT.mtn]", "Write a motion for another model",
		`Write a motion for another model. Every joint that both models have keeps its angle, and so each paw its path. What cannot be kept within 5 degrees
is printed, and so are joints that the model does not have. A head that nods in one joint and one that nods in two keep the direction of the nose.`,
		"  robotkit mtn retarget sit.mtn sit7.mtn -to ers-7\n  robotkit mtn retarget sit.mtn sit7.mtn -to ers-7 -o json",
		func(f *mtn.File) (*mtn.File, []motions.Change, error) {
			m, err := modelNamed("to", to)
			if err != nil {
				return nil, nil, err
			}
			return motions.Retarget(f, m)
		})
	cmd.Flags().StringVar(&to, "to", "", "`MODEL` to write the motion for")
	_ = cmd.MarkFlagRequired("to") // it is there
	return cmd
}

func limitCommand() *cobra.Command {
	return edit("limit FILE [OUT.mtn]", "Keep a motion within the ranges and speeds of its model",
		"Cut angles that are beyond the range of their joint, and give more time to the ways that are too fast. What was changed is printed.",
		"  robotkit mtn limit wild.mtn tame.mtn", motions.Limit)
}

func blendCommand() *cobra.Command {
	var weight float64
	cmd := &cobra.Command{
		Use:   "blend A B [OUT.mtn]",
		Short: "Mix two motions of one model",
		Long: `Mix two motions of one model with the same joints: of each angle so much is from B as -weight says, and the rest from A. The keyframes of the result
are at the times of both; the shorter motion stays in its last keyframe.`,
		Example: "  robotkit mtn blend happy.mtn tired.mtn both.mtn -weight 0.3",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, _, err := open(cmd, args[0], mtn.Lenient)
			if err != nil {
				return err
			}
			b, _, err := open(cmd, args[1], mtn.Lenient)
			if err != nil {
				return err
			}
			out, err := motions.Blend(a, b, weight)
			if err != nil {
				return unfit(err)
			}
			return save(cmd, out, argument(args, 2), nil)
		},
	}
	cmd.Flags().Float64Var(&weight, "weight", 0.5, "`share` of B, 0 to 1")
	return cmd
}
