// Package moodkit has the command of robotkit for what a robot feels.
package moodkit

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mood"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

const program = "robotkit"

// Mood returns the command (part of VEC-EMO-11).
func Mood() *cobra.Command {
	var root string
	cmd := &cobra.Command{
		Use:   "mood",
		Short: "Look at a robot's mood, and change it",
		Long: `Look at the mood of the robot whose mindd runs in -root, and change it. A mood has the emotions Stimulated and Trust, from 0 to 1, and Social, Confident and Happy, from
-1 to 1; they fade to 0. Only root and the user of mindd may connect.`,
		Example: `  robotkit mood show -root ./r1
  robotkit mood watch -root ./r1
  robotkit mood set -root ./r1 Happy=1 Confident=-0.5
  robotkit mood post -root ./r1 ReactToTriggerWord`,
	}
	cmd.PersistentFlags().StringVar(&root, "root", "", "the robot's folder `DIR` (required)")
	_ = cmd.MarkPersistentFlagRequired("root") // the flag exists
	cmd.AddCommand(showCommand(&root), watchCommand(&root), setCommand(&root), postCommand(&root))
	return cmd
}

func showCommand(root *string) *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Show what a robot feels",
		Example: "  robotkit mood show -root ./r1\n  robotkit mood show -root ./r1 -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return show(cmd, *root) },
	}
}

// show prints what the robot feels now.
func show(cmd *cobra.Command, root string) error {
	now, err := feels(cmd, root)
	if err != nil {
		return err
	}
	return cli.Print(cmd, now, func(t *cli.Table) {
		t.Row("EMOTION", "VALUE", "RANGE")
		for _, name := range slices.Sorted(maps.Keys(now.Emotions)) {
			e := now.Emotions[name]
			t.Row(name, fmt.Sprintf("%.2f", e.Value), fmt.Sprintf("%g to %g", e.Min, e.Max))
		}
		t.Row("mood", now.Simple, "")
	})
}

func feels(cmd *cobra.Command, root string) (now mindlink.Feeling, err error) {
	seen := false
	err = mindlink.NewClient(root).Feelings(cmd.Context(), func(f mindlink.Feeling) error {
		now, seen = f, true
		return errSeen
	})
	if seen {
		err = nil
	}
	return now, err
}

// errSeen ends the reading after the first feeling.
var errSeen = errors.New("seen")

func watchCommand(root *string) *cobra.Command {
	return &cobra.Command{
		Use:   "watch",
		Short: "Show each change of a robot's mood, and what caused it",
		Long: `Show each change of a robot's mood, with the emotion events that caused it, until interrupted. A change without an event is the mood fading, or a program that set it. With -o json each
change is a document.`,
		Example: "  robotkit mood watch -root ./r1\n  robotkit mood watch -root ./r1 -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			first := true
			err := mindlink.NewClient(*root).Feelings(cmd.Context(), func(f mindlink.Feeling) error {
				if cli.JSON(cmd) {
					return cli.Print(cmd, f, nil)
				}
				var parts []string
				for _, name := range slices.Sorted(maps.Keys(f.Emotions)) {
					if e := f.Emotions[name]; first || e.Value != e.Before {
						parts = append(parts, fmt.Sprintf("%s %+.2f", name, e.Value))
					}
				}
				if first || f.Simple != f.SimpleBefore {
					parts = append(parts, "mood "+f.Simple)
				}
				if len(f.Events) > 0 {
					parts = append(parts, "after "+strings.Join(f.Events, ", "))
				}
				first = false
				_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(parts, "  "))
				return err
			})
			if cmd.Context().Err() != nil {
				return nil // as was asked
			}
			return err
		},
	}
}

func setCommand(root *string) *cobra.Command {
	return &cobra.Command{
		Use:   "set EMOTION=VALUE...",
		Short: "Set emotions of a robot",
		Long:  "Set emotions of a robot, and show its mood. A value outside an emotion's range becomes its nearest limit. The other emotions stay as they are.",
		Example: `  robotkit mood set -root ./r1 Stimulated=0.8
  robotkit mood set -root ./r1 Happy=-1 Confident=-1 -o json`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: emotions,
		RunE: func(cmd *cobra.Command, args []string) error {
			set := map[string]float64{}
			for _, arg := range args {
				name, text, _ := strings.Cut(arg, "=")
				v, err := strconv.ParseFloat(text, 64)
				if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
					return errs.New(errs.Invalid, "%q: want EMOTION=VALUE, such as Happy=0.5", arg)
				}
				set[name] = v
			}
			return feel(cmd, *root, mindlink.Feel{Set: set})
		},
	}
}

func postCommand(root *string) *cobra.Command {
	return &cobra.Command{
		Use:     "post EVENT...",
		Short:   "Post emotion events to a robot",
		Long:    "Post emotion events in the given order, as if they had happened, and show the mood. An event that is repeated soon counts for less.",
		Example: "  robotkit mood post -root ./r1 ReactToTriggerWord\n  robotkit mood post -root ./r1 RobotShaken ReactToPickedUp",
		Args:    cobra.MinimumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return mood.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return feel(cmd, *root, mindlink.Feel{Events: args}) },
	}
}

// feel changes the mood, and shows it.
func feel(cmd *cobra.Command, root string, f mindlink.Feel) error {
	f.Program = program
	if err := mindlink.NewClient(root).Feel(cmd.Context(), f); err != nil {
		return err
	}
	return show(cmd, root)
}

// emotions completes the arguments of set.
func emotions(*cobra.Command, []string, string) (out []string, _ cobra.ShellCompDirective) {
	for e := range len(mood.Emotions{}) {
		out = append(out, mood.Emotion(e).String()+"=")
	}
	return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
