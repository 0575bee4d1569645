package mtnkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/motions"
	"kennel/edge/body/aibo/mtn"
	"kennel/edge/body/aibo/statics"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/env/robotfs"
	"kennel/edge/robot/claim"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// performed is the output of perform.
type performed struct {
	Motion  string   `json:"motion"`
	Model   string   `json:"model"`
	From    string   `json:"from,omitempty"`    // the posture in which the robot was; none: no known one
	Through []string `json:"through,omitempty"` // the ways before the motion
}

// connectFor is how long perform waits for robotd and its body.
const connectFor = 10 * time.Second

func performCommand() *cobra.Command {
	var root string
	var plan bool
	cmd := &cobra.Command{
		Use:   "perform FILE|MOTION",
		Short: "Play a motion on a running AIBO",
		Long: `Do a motion on the AIBO whose robotd runs in -root: a file for its model, or a motion of the library by its name. The robot first goes through known
postures to where the motion begins: from sleep to stand by way of sitting. A motion that would make it tip over is refused, with the 8 ms row.
Only root and the user of robotd may connect.`,
		Example: `  robotkit mtn perform -root ./r1 bow
  robotkit mtn perform -root ./r1 sit.mtn
  robotkit mtn perform -root ./r1 bow -plan`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := modelIn(root)
			if err != nil {
				return err
			}
			f, err := motionFor(cmd, m, args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			link := corelink.NewClient(root)
			c := coreclient.New(link)
			go link.Run(ctx, c.Handle) // ends with ctx
			at, err := joints(ctx, c, root, m)
			if err != nil {
				return err
			}
			p, err := motions.NewPlan(f, m, at, statics.Upright)
			if errors.Is(err, motions.ErrRefused) || errors.Is(err, motions.ErrModel) {
				return errs.New(errs.Conflict, "%s: %w", args[0], err)
			} else if err != nil {
				return err
			}
			if !plan {
				if err := p.Perform(ctx, c, claim.Program, func(string) {}); err != nil {
					return err
				}
			}
			out := performed{f.Name, m.String(), p.From, p.Through()}
			return cli.Print(cmd, out, func(t *cli.Table) {
				t.Row("MOTION", out.Motion)
				t.Row("MODEL", out.Model)
				t.Row("FROM", out.From)
				for _, w := range out.Through {
					t.Row("THROUGH", w)
				}
			})
		},
	}
	cmd.Flags().StringVar(&root, "root", "", "the robot's folder `DIR` (required)")
	cmd.Flags().BoolVar(&plan, "plan", false, "only print how it would begin")
	_ = cmd.MarkFlagRequired("root") // the flag exists
	return cmd
}

// modelIn returns the model of the robot in a folder.
func modelIn(root string) (aibo.Model, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return 0, errs.New(errs.NotFound, "-root: want the robot's folder: %w", err)
	}
	defer dir.Close() // read only
	name, err := robotfs.Model(dir)
	if err != nil || name == "" {
		return aibo.Usual, err
	}
	return modelNamed("root", name)
}

// motionFor returns the motion of a file, or of the library.
func motionFor(cmd *cobra.Command, m aibo.Model, name string) (*mtn.File, error) {
	if slices.Contains(motions.Library(), name) {
		return motions.Load(m, name)
	}
	f, _, err := open(cmd, name, mtn.Lenient)
	return f, err
}

// joints waits until the robot's joints were measured.
func joints(ctx context.Context, c *coreclient.Client, root string, m aibo.Model) ([]int32, error) {
	if _, err := os.Stat(filepath.Join(root, corelink.SocketPath)); err != nil {
		return nil, errs.New(errs.Unavailable, "no robotd runs in %s: %w", root, err)
	}
	wait, cancel := context.WithTimeout(ctx, connectFor)
	defer cancel()
	if err := c.Ready(wait); err != nil {
		return nil, errs.New(errs.Unavailable, "robotd in %s: %w", root, err)
	}
	at, err := motions.Where(wait, c, m)
	if err != nil {
		return nil, fmt.Errorf("joints of the robot: %w", err)
	}
	return at, nil
}
