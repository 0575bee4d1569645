package animkit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/mind/mindlink"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func playCommand() *cobra.Command {
	var root string
	var r mindlink.Request
	cmd := &cobra.Command{
		Use:   "play MOOD|TRIGGER|CLIP",
		Short: "Play an animation on a running robot",
		Long: `Play an animation on the robot whose mindd runs in -root: a mood, which each body shows in its own way, a trigger, of whose clips one is drawn, or a clip. What the
body lacks is left out, and named. Interrupting the command ends the animation. Only root and the user of mindd may connect.`,
		Example: `  robotkit anim play -root ./r1 happy
  robotkit anim play -root ./r1 LookAround -ignore body
  robotkit anim play -root ./r1 anim_mood_sad_01 -loops 3 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := mindlink.NewClient(root)
			l, err := c.List(cmd.Context())
			if err != nil {
				return err
			}
			named := func(name string) bool { return name == args[0] }
			switch {
			case slices.ContainsFunc(l.Moods, func(m mindlink.Mood) bool { return named(m.Name) }):
				r.Mood = args[0]
			case slices.ContainsFunc(l.Triggers, named):
				r.Trigger = args[0]
			default:
				r.Clip = args[0]
			}
			r.Program = "robotkit"
			e, err := c.Play(cmd.Context(), r, func(p mindlink.Progress) error {
				if b := p.Began; b != nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "playing %s\n", b.Clip)
				}
				return nil
			})
			if err != nil {
				return err
			}
			if e.Outcome != mindlink.Done {
				return errs.Coded(errs.Conflict, e.Outcome, "%s: stopped after %d ms: %s", e.Clip, e.AtMS, e.Reason)
			}
			return cli.Print(cmd, e, func(t *cli.Table) {
				t.Row("CLIP", e.Clip)
				t.Row("OUTCOME", e.Outcome)
				t.Row("TIME", fmt.Sprintf("%d ms", e.AtMS))
				for _, x := range e.LeftOut {
					t.Row("LEFT OUT", x.Track+": "+x.Reason)
				}
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&root, "root", "", "the robot's folder `DIR` (required)")
	f.IntVar(&r.Loops, "loops", 1, fmt.Sprintf("how often, at most %d", mindlink.MaxLoops))
	f.StringSliceVar(&r.Ignore, "ignore", nil, "`TRACKS` that do not play: "+strings.Join([]string{mindlink.Head, mindlink.Lift, mindlink.Body}, ", "))
	_ = cmd.MarkFlagRequired("root") // the flag exists
	return cmd
}
