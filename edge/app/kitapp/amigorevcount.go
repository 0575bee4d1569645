package kitapp

import (
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"kennel/edge/body/amigobot/sip"
	"kennel/infra/cli"
)

func amigoRevcountCommand() *cobra.Command {
	var address, system string
	var turns int
	var drive bool
	cmd := &cobra.Command{
		Use:   "revcount",
		Short: "Measure an AmigoBot's RevCount",
		Long: `Measure RevCount, the encoder ticks of a full turn. Put the robot on a mark and press Enter. Turn it by hand on the spot,
counter-clockwise, for -turns full turns until it is on the mark again, and press Enter. The motors stay off; with -drive the
robot turns slowly by itself, and stops when you press Enter.

With -system it offers to save RevCount in a simulated robot, which must then be in System mode.`,
		Example: `  robotkit amigo revcount -port tcp:localhost:8101 -turns 5
  robotkit amigo revcount -port tcp:localhost:8101 -system tcp:localhost:8102`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if turns < 1 || turns > 100 {
				return cli.Usage("-turns %d: want 1 to 100", turns)
			}
			lines := typed(cmd.InOrStdin())
			var out revcount
			err := withClient(cmd, address, func(c *client) (err error) {
				out, err = measure(c, lines, turns, drive)
				return err
			})
			if err != nil {
				return err
			}
			if implausible(out.RevCount) {
				fmt.Fprintf(cmd.ErrOrStderr(), "Warning: an AmigoBot has about %d ticks a turn, this is %d. Did it make %d full turns? Measure again before you save it.\n",
					usualRevCount, out.RevCount, turns)
			}
			if err := cli.PrintLine(cmd, out, func() string {
				return fmt.Sprintf("RevCount %d; the robot has %d", out.RevCount, out.Was)
			}); err != nil {
				return err
			}
			if system == "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "To save it: robotkit amigo params -port ADDRESS set revcount %d\n", out.RevCount)
				return nil
			}
			answer, err := prompt(cmd, lines, "Save it? Put the robot into System mode first. [y/N] ")
			if err != nil && err != io.EOF {
				return err
			}
			if !agreed(answer) {
				return nil
			}
			return saveParam(cmd, system, "RevCount", fmt.Sprint(out.RevCount))
		},
	}
	controlFlag(cmd, &address)
	f := cmd.Flags()
	f.StringVar(&system, "system", "", "`address` of the System port, to save RevCount")
	f.IntVar(&turns, "turns", 3, "number of full turns; more are more accurate")
	f.BoolVar(&drive, "drive", false, "let the robot turn by itself")
	return cmd
}

// revcount is the result of the command revcount.
type revcount struct {
	RevCount int `json:"rev_count"`
	Was      int `json:"was"` // in the robot
	Turns    int `json:"turns"`
}

// usualRevCount is the default of an AmigoBot (AMIGO-FLASH-22).
const usualRevCount = 23310

// implausible reports whether a RevCount is farther from the usual one than another floor or other tyres can make it.
func implausible(n int) bool { return n < usualRevCount*7/10 || n > usualRevCount*14/10 }

// turnSpeed is how fast the robot turns by itself, rad/s (own default).
const turnSpeed = math.Pi / 6

// measure returns the ticks of a turn by which the wheels differ, half of them on each (AMIGO-OPEN-03, AMIGO-POS-05).
func measure(c *client, lines <-chan string, turns int, drive bool) (revcount, error) {
	st := c.State()
	err := c.Command(sip.Switch(sip.Encoder, true))
	if err == nil && drive {
		err = c.Enable(true)
	}
	if err != nil {
		return revcount{}, err
	}
	var marks [2]int32
	for i, ask := range []string{"Put the robot on the mark and press Enter.", fmt.Sprintf("Press Enter after %d counter-clockwise turns.", turns)} {
		c.say("%s", ask)
		for asked := true; asked; {
			if err := c.run(); err != nil {
				return revcount{}, err
			}
			if drive && i == 1 {
				c.Velocity(0, turnSpeed)
			}
			select {
			case _, ok := <-lines:
				if !ok {
					return revcount{}, cli.Usage("input ended before the turns were complete")
				}
				asked = false
			default:
			}
		}
		c.Stop()
		for since := c.now; st.EncodersAt <= since; { // until the first packet after the key
			if err := c.run(); err != nil {
				return revcount{}, err
			}
		}
		marks[i] = st.Encoders.Right - st.Encoders.Left
	}
	ticks := int(marks[1]-marks[0]) / 2 / turns
	if ticks < 1 || ticks > 65535 {
		return revcount{}, fmt.Errorf("the wheels counted %d ticks in each turn, want 1 to 65535: did the robot turn counter-clockwise", ticks)
	}
	return revcount{ticks, int(st.Config.RevCount), turns}, nil
}
