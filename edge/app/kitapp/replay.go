package kitapp

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/app/kitapp/orderskit"
	"kennel/edge/bodies"
	"kennel/edge/body"
	"kennel/edge/core/control"
	"kennel/edge/core/rt"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// replayed is the output of replay.
type replayed struct {
	Identical bool    `json:"identical"`
	Steps     uint64  `json:"steps"`             // that matched the recording
	Bodies    int     `json:"bodies"`            // times a body was opened
	Seconds   float64 `json:"seconds"`           // from the first of them to the last
	Cut       string  `json:"cut,omitempty"`     // why the recording ends before its end
	Differs   string  `json:"differs,omitempty"` // where and how
}

func replayCommand() *cobra.Command {
	var robot string
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Replay a recording of robotd, or the orders of an MCAP recording, and compare",
		Long: `Replay a recording of "robotd -record FILE" through the real-time core: each step gets its recorded input and must produce the recorded
output, bit for bit. Prints "identical" and exits with 0, or prints the first step that differs and exits with 1.

An incomplete recording, after a power loss or a kill, is replayed as far as it goes. A recording by another version of robotd differs
where that version behaved differently. "-" is standard input.

An MCAP file of "kennelctl robot record" holds what programs ordered. Its orders run again, at their times, on the robot of -robot: a simulated one, for it
moves as recorded. Prints how each order ended then and now, and exits with 1 if one ended otherwise.`,
		Example: `  robotd -root ./r1 -record run.krt
  robotkit replay run.krt
  robotkit replay run.krt -o json
  robotkit replay run.mcap -robot robot.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, name := cmd.InOrStdin(), "standard input"
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if errors.Is(err, os.ErrNotExist) {
					return errs.New(errs.NotFound, "%w", err)
				} else if err != nil {
					return err
				}
				defer f.Close()
				in, name = f, args[0]
			}
			buffered := bufio.NewReader(in)
			if orderskit.Is(buffered) {
				return orderskit.Replay(cmd, buffered, name, cmp.Or(robot, cli.Getenv(cmd.Context())("KENNEL_ROBOT")))
			}
			in = buffered
			var first, last time.Duration
			var bad error
			done, err := rt.Replay(in, rt.Config{}, func(tape *rt.Tape, d body.Description) []rt.Task {
				var c *control.Control
				if c, bad = controlOf(d.Species, tape); bad != nil {
					return nil
				}
				return []rt.Task{c.Task()}
			}, func(s *rt.Snapshot) {
				if last = s.Frame.Now; first == 0 {
					first = last
				}
			})
			if bad != nil {
				return bad
			}
			out := replayed{Identical: err == nil, Steps: done.Steps, Bodies: done.Bodies, Seconds: (last - first).Seconds()}
			switch {
			case errors.Is(err, rt.ErrDiffers):
				out.Differs = err.Error()
			case errors.Is(err, rt.ErrRecording):
				return cli.Usage("%s: %w", name, err)
			case err != nil:
				return fmt.Errorf("%s: after %d identical steps: %w", name, done.Steps, err)
			}
			if done.Cut != nil {
				out.Cut = done.Cut.Error()
			}
			if perr := cli.PrintLine(cmd, out, func() string {
				if !out.Identical {
					return fmt.Sprintf("differs after %d identical steps", out.Steps)
				}
				line := fmt.Sprintf("identical: %d steps of %.1f s, bodies opened: %d", out.Steps, out.Seconds, out.Bodies)
				if out.Cut != "" {
					line += "; the recording breaks off: " + out.Cut
				}
				return line
			}); perr != nil {
				return perr
			}
			if !out.Identical {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&robot, "robot", "", "for an MCAP recording: the `FILE` of the robot that runs its orders; otherwise $KENNEL_ROBOT names it")
	_ = cmd.MarkFlagFilename("robot", "json")
	return cmd
}

// controlOf returns the control loop of a body of the given species, told by tape.
func controlOf(species string, tape *rt.Tape) (*control.Control, error) {
	s, _ := bodies.Of(thing.Species(species))
	if s.Open == nil {
		return nil, cli.Usage("recording of a body of species %.40q: want one of %s", species, bodies.Words(bodies.Driven()))
	}
	m, err := s.Model()
	if err != nil {
		return nil, err
	}
	return control.New(m, tape)
}
