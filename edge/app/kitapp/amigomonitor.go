package kitapp

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/amigobot/session"
	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/port"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func amigoMonitorCommand() *cobra.Command {
	var address string
	var passive, raw, all bool
	var count int
	cmd := &cobra.Command{
		Use:   "monitor",
		Short: "Print the packets of an AmigoBot as they come",
		Long: `Print the packets of an AmigoBot as they come: time in seconds, kind, and content in SI units, or with -raw in hexadecimal. It opens a
session, in which the motors stay off. With -passive it sends nothing: connect it to a line on which another program talks to the robot.
It ends with Ctrl-C or after -count packets.`,
		Example: `  robotkit amigo monitor -port tcp:localhost:8101
  robotkit amigo monitor -port tcp:localhost:8101 -all -o json
  robotkit amigo monitor -port serial:/dev/ttyUSB1 -passive -raw -count 100`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if passive && all {
				return cli.Usage("-all asks the robot for packets; give it without -passive")
			}
			seen, start := 0, time.Duration(-1)
			var failed error
			show := func(now time.Duration, payload []byte) {
				if start < 0 {
					start = now
				}
				if failed == nil && (count == 0 || seen < count) {
					failed = printPacket(cmd, payload, (now - start).Seconds(), raw)
				}
				seen++
			}
			ended := func() bool { return failed != nil || count > 0 && seen >= count || cmd.Context().Err() != nil }
			if passive {
				return errors.Join(listen(cmd, address, show, ended), failed)
			}
			err := withClient(cmd, address, show, func(c *client) error {
				if all {
					for _, ask := range []sip.Command{sip.Switch(sip.Encoder, true), sip.Int(sip.IORequest, 2)} {
						if err := c.Command(ask); err != nil {
							return err
						}
					}
				}
				phase := c.State().Phase
				for !ended() {
					if err := c.run(); err != nil && cmd.Context().Err() == nil {
						return err
					}
					if p := c.State().Phase; p != phase {
						phase = p
						c.say("The session is %s", p)
					}
				}
				return nil
			})
			return errors.Join(err, failed)
		},
	}
	controlFlag(cmd, &address)
	f := cmd.Flags()
	f.BoolVar(&passive, "passive", false, "only listen")
	f.BoolVar(&raw, "raw", false, "print the content of packets in hexadecimal")
	f.BoolVar(&all, "all", false, "ask for encoder and I/O packets too")
	f.IntVar(&count, "count", 0, "end after this many `packets`")
	return cmd
}

func printPacket(cmd *cobra.Command, payload []byte, seconds float64, raw bool) error {
	p := readPacket(payload)
	if raw {
		p = rawPacket(p.Packet, payload)
	}
	p.Seconds = seconds
	return cli.PrintLine(cmd, p, func() string { return fmt.Sprintf("%9.3f  %-8s  %s", p.Seconds, p.Packet, p.text) })
}

// listen shows the packets that come over a line, without a session.
func listen(cmd *cobra.Command, address string, show func(time.Duration, []byte), ended func() bool) error {
	return withAmigo(cmd, address, func(line *port.Line) error {
		var p sip.Parser
		for !ended() {
			if _, err := line.Wait(line.Now() + session.Pacing); err != nil {
				return errs.New(errs.Unavailable, "wait for the line: %w", err)
			}
			n, err := line.Read(p.Space())
			if err != nil {
				return errs.New(errs.Unavailable, "read from the line: %w", err)
			}
			p.Fill(n)
			p.Expire(line.Now())
			for payload, ok := p.Next(); ok; payload, ok = p.Next() {
				show(line.Now(), payload)
			}
		}
		if c := p.Counters(); c.Skipped > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "%d bytes belonged to no good packet; %d checksums were wrong\n", c.Skipped, c.BadChecksum)
		}
		return nil
	})
}

func amigoRevcountCommand() *cobra.Command {
	var address, system string
	var turns int
	var drive bool
	cmd := &cobra.Command{
		Use:   "revcount",
		Short: "Measure an AmigoBot's RevCount",
		Long: `Measure RevCount, the encoder ticks of a full turn. Put the robot on a mark and press Enter. Turn it by hand on the spot,
counter-clockwise, until it has made -turns full turns and is on the mark again, and press Enter. The motors stay off; with -drive the
robot turns slowly by itself, and stops when you press Enter.

With -system it offers to save RevCount in a simulated robot, which must be in System mode by then.`,
		Example: `  robotkit amigo revcount -port tcp:localhost:8101 -turns 5
  robotkit amigo revcount -port tcp:localhost:8101 -system tcp:localhost:8102`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if turns < 1 || turns > 100 {
				return cli.Usage("-turns %d: want 1 to 100", turns)
			}
			lines := typed(cmd.InOrStdin())
			var out revcount
			err := withClient(cmd, address, nil, func(c *client) (err error) {
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
	f.IntVar(&turns, "turns", 3, "full turns to make; more are more accurate")
	f.BoolVar(&drive, "drive", false, "the robot turns by itself")
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
					return revcount{}, cli.Usage("the input ended before the turns were made")
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
