package ctl

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/speech/intent"
)

func (a *app) intent() *cobra.Command {
	return group(&cobra.Command{Use: "intent", Short: "Look up and add intents, the meanings of what people say to robots",
		Example: "  kennelctl intent match \"set a timer for five minutes\"\n  kennelctl intent list"},
		a.intentMatch(), a.intentList(),
		&cobra.Command{Use: "custom", Short: "Manage custom intents, for all robots or one",
			Long: "A phrase consists of words, (a|b), [optional] and the slots " + slotWords + ".\n" +
				"The robot answers with the reaction, and webhooks get an intent.custom event without the words.",
			Example: "  kennelctl intent custom add feed_cat \"feed (the|my) cat [at {time}]\"\n  kennelctl intent custom list"})
}

var slotWords = "{" + strings.Join(intent.Slots(), "}, {") + "}"

// matched is an answer of intent match.
type matched struct {
	UserIntent string            `json:"user_intent"`
	Cloud      string            `json:"cloud_intent"`
	Params     map[string]string `json:"params"`
	UserParams map[string]any    `json:"user_params"` // as the robot's programs name and write them
	Confidence float64           `json:"confidence"`
}

func (a *app) intentMatch() *cobra.Command {
	var lang string
	cmd := shows(a, describe("match TEXT...", "Show what a sentence means to a robot (works offline)", `intent match "set a timer for five minutes"`, `intent match "dreh dich um" -lang de-DE`),
		func(_ context.Context, args []string) (reply[matched], error) {
			m, err := intent.Load(lang)
			if err != nil {
				return reply[matched]{}, errs.New(errs.Invalid, "%w", err)
			}
			got := m.Match(strings.Join(args, " "))
			out := matched{got.UserIntent, got.Cloud, map[string]string{}, map[string]any{}, got.Confidence}
			if got.UserIntent != "" {
				maps.Copy(out.Params, got.Params)
				maps.Copy(out.UserParams, intent.DefaultMap().Cloud(got.Cloud, got.Params).Params)
			}
			return answerOf(out, nil)
		}, func(t *cli.Table, m matched) {
			pairs(t, "intent", cmp.Or(m.UserIntent, "none: robots do not understand this"))
			if m.UserIntent != "" {
				pairs(t, "cloud", m.Cloud, "confidence", fmt.Sprintf("%.2f", m.Confidence))
			}
			for _, name := range slices.Sorted(maps.Keys(m.Params)) {
				pairs(t, name, cmp.Or(m.Params[name], "-"))
			}
		})
	cmd.Flags().StringVar(&lang, "lang", "en-US", "`LANGUAGE` of the sentence: "+strings.Join(intent.Languages(), ", "))
	return cmd
}

func (a *app) intentList() *cobra.Command {
	return shows(a, describe("list", "List the intents that robots know, with all their names (works offline)", "intent list"),
		func(context.Context, []string) (reply[[]intent.Intent], error) { return answerOf(intent.All(), nil) },
		rows("INTENT|ID|CLOUD|APP|FEATURE|PHRASES", func(in intent.Intent) cells {
			id := "-"
			if in.ID >= 0 {
				id = fmt.Sprint(in.ID)
			}
			return cells{in.User, id, cmp.Or(in.Cloud, "-"), cmp.Or(in.App, "-"), cmp.Or(in.Gate, "-"), strings.Join(in.Phrases, "; ")}
		}))
}
