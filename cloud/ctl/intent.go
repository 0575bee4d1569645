package ctl

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/speech/intent"
)

func (a *app) intent() *cobra.Command {
	return group(&cobra.Command{Use: "intent", Short: "What people say to robots, and what it means",
		Example: "  kennelctl intent match \"set a timer for five minutes\"\n  kennelctl intent list"},
		a.intentMatch(), a.intentList(),
		group(&cobra.Command{Use: "custom", Short: "Intents of your own, for all robots or one",
			Long: "A phrase is words, (a|b), [optional] and the slots " + slotWords + ".\n" +
				"The robot answers with the reaction, and webhooks hear of the intent as intent.custom, without free words.",
			Example: "  kennelctl intent custom add feed_cat \"feed (the|my) cat [at {time}]\"\n  kennelctl intent custom list"},
			a.customList(), a.customAdd(),
			does(a, describe("remove INTENT", "Remove a custom intent, by the id that list shows", "intent custom remove 3"), first(a.api.DeleteIntentsCustomID), said[client.None]("custom intent %s is removed"))))
}

var slotWords = "{" + strings.Join(intent.Slots(), "}, {") + "}"

func (a *app) customList() *cobra.Command {
	var robot string
	cmd := shows(a, describe("list", "List custom intents", "intent custom list", "intent custom list -thing vic:00e20100"),
		func(ctx context.Context, _ []string) (reply[[]client.Custom], error) {
			return a.api.GetIntentsCustom(ctx, client.GetIntentsCustomQuery{Thing: given(robot)})
		}, rows("ID|INTENT|ROBOT|PHRASES|REACTION|OVERRIDES|BY", func(c client.Custom) cells {
			return cells{c.ID, c.Name, cmp.Or(c.Thing, "all"), strings.Join(c.Phrases, "; "), cmp.Or(c.Reaction, "-"), cmp.Or(strings.Join(c.Overrides, ","), "-"), c.By}
		}))
	cmd.Flags().StringVar(&robot, "thing", "", "only those that this `ROBOT` understands")
	return cmd
}

func (a *app) customAdd() *cobra.Command {
	var w client.CustomintentWanted
	cmd := shows(a, describe("add NAME PHRASE...", "Add a custom intent; refused if a phrase already means something else", `intent custom add feed_cat "feed (the|my) cat"`),
		func(ctx context.Context, args []string) (reply[client.CustomAdded], error) {
			w.Name, w.Phrases = args[0], args[1:]
			return a.api.PostIntentsCustom(ctx, w)
		}, func(t *cli.Table, c client.CustomAdded) {
			pairs(t, "custom intent", c.ID, "name", c.Name, "robot", cmp.Or(c.Thing, "all"))
			if len(c.Unheard) > 0 {
				pairs(t, "only typed", strings.Join(c.Unheard, ", ")+": no recogniser of this cloud has these words, so sentences with them are not heard")
			}
		})
	f := cmd.Flags()
	f.StringVar(&w.Thing, "thing", "", "for this `ROBOT` only")
	f.StringVar(&w.Reaction, "reaction", "", "`INTENT` that the robot gets; imperative_affirmative without it")
	f.StringSliceVar(&w.Languages, "lang", nil, "`LANGUAGE` of the phrases, such as en-US; may be repeated")
	f.StringSliceVar(&w.Overrides, "override", nil, "built-in `INTENT` whose phrases it may take; may be repeated")
	return cmd
}

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
	cmd := shows(a, describe("match TEXT...", "Say what a sentence means to a robot; no cloud is asked", `intent match "set a timer for five minutes"`, `intent match "dreh dich um" -lang de-DE`),
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
			pairs(t, "intent", cmp.Or(m.UserIntent, "none: a robot does not understand this"))
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
	return shows(a, describe("list", "List the intents that robots know, by all of their names; no cloud is asked", "intent list"),
		func(context.Context, []string) (reply[[]intent.Intent], error) { return answerOf(intent.All(), nil) },
		rows("INTENT|ID|CLOUD|APP|FEATURE|PHRASES", func(in intent.Intent) cells {
			id := "-"
			if in.ID >= 0 {
				id = fmt.Sprint(in.ID)
			}
			return cells{in.User, id, cmp.Or(in.Cloud, "-"), cmp.Or(in.App, "-"), cmp.Or(in.Gate, "-"), strings.Join(in.Phrases, "; ")}
		}))
}
