package mtnkit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/body/aibo/motions"
	"kennel/edge/body/aibo/mtn"
	"kennel/infra/api/motionwire/skeleton"
	"kennel/infra/atomicfile"
	"kennel/infra/cli"
)

// drawn is the output of draw and urdf.
type drawn struct {
	File  string `json:"file"`
	Model string `json:"model"`
	Bytes int    `json:"bytes"`
	MS    int64  `json:"ms,omitempty"`
}

func drawCommand() *cobra.Command {
	var view string
	cmd := &cobra.Command{
		Use:   "draw FILE [OUT.svg]",
		Short: "Draw a motion as an animated SVG",
		Long: `Draw a motion as an SVG in which the bones of its model move, again and again, as any browser shows it. Joints that the motion does not list are as in the posture
in which it begins.`,
		Example: `  robotkit mtn draw sit.mtn sit.svg
  robotkit mtn draw wag.mtn wag.svg -view front`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			v := slices.Index(skeleton.Views, view)
			if v < 0 {
				return cli.Usage("-view %.40q: want %s", view, strings.Join(skeleton.Views, " or "))
			}
			f, _, err := open(cmd, args[0], mtn.Lenient)
			if err != nil {
				return err
			}
			m, known := motions.ModelOf(f)
			if !known {
				return fmt.Errorf("%s: %w: format %.40q", args[0], motions.ErrModel, f.Format)
			}
			motion, base, err := motions.Show(f, m)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			body, err := motions.Describe(m)
			if err != nil {
				return err
			}
			return hand(cmd, argument(args, 1), skeleton.AppendSVG(nil, &body, motion, base, skeleton.View(v)), drawn{Model: body.Model, MS: motion.SpanMS})
		},
	}
	cmd.Flags().StringVar(&view, "view", skeleton.Views[skeleton.Side], "`side or front` of the robot")
	return cmd
}

func urdfCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "urdf MODEL [OUT.urdf]",
		Short: "Write the body of a model as URDF",
		Long: `Write the body of a model as URDF: its links, its joints by standard names with their ranges and speeds, and a cylinder for each bone. Lengths are those with which
the simulated bodies rest and fall; there are no masses.`,
		Example: "  robotkit mtn urdf ers-7 ers-7.urdf",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := modelNamed("model", args[0])
			if err != nil {
				return cli.Usage("MODEL %.40q: want one of %s", args[0], modelWords())
			}
			body, err := motions.Describe(m)
			if err != nil {
				return err
			}
			return hand(cmd, argument(args, 1), skeleton.AppendURDF(nil, &body), drawn{Model: body.Model})
		},
	}
}

// hand writes a document and says what was written, unless it went to standard output.
func hand(cmd *cobra.Command, name string, b []byte, done drawn) error {
	if name == "-" {
		_, err := cmd.OutOrStdout().Write(b)
		return err
	}
	if err := atomicfile.WriteFile(name, b, 0o644); err != nil {
		return err
	}
	done.File, done.Bytes = name, len(b)
	return cli.Print(cmd, done, func(t *cli.Table) { t.Text(fmt.Sprintf("%s: %s, %d bytes", name, done.Model, len(b))) })
}
