package ctl

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/fleet/webhook"
	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) webhooks() *cobra.Command {
	return group(&cobra.Command{Use: "webhooks", Short: "Programs elsewhere that are told what happens to robots",
		Long: "Each event arrives at a webhook's URL as one POST, signed as the Standard Webhooks specification says, " +
			"at least once and in order for each\nrobot. What fails is tried again for about a day, then it is dead and can be replayed.\n\n" +
			"Kinds: " + kindWords() + eventKinds,
		Example: "  kennelctl webhooks add https://example.org/kennel -kind thing.absent -filter cohort:lab\n  kennelctl webhooks ping WEBHOOK\n" +
			"  kennelctl webhooks deliveries WEBHOOK -state dead"},
		shows(a, describe("list", "List webhooks and their state", "webhooks list"), none(a.api.GetWebhooks),
			rows("WEBHOOK|STATE|URL|KINDS|FILTER|WAIT|DEAD|LAST OK|NOTE", func(h client.Hook) cells {
				return cells{h.ID, webhookState(h), h.URL, strings.Join(h.Kinds, ","), h.Filter, h.Open, h.Dead, h.LastOK, h.Note}
			})),
		shows(a, describe("show WEBHOOK", "Show a webhook and how its endpoint does",
			"webhooks show 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11"), first(a.api.GetWebhooksID), showWebhook),
		a.webhooksAdd(), a.webhooksChange(),
		a.webhooksAble("disable", "Stop a webhook; its deliveries wait", true), a.webhooksAble("enable", "Start a webhook again", false),
		does(a, describe("remove WEBHOOK", "Remove a webhook and its waiting deliveries", "webhooks remove WEBHOOK"),
			first(a.api.DeleteWebhooksID), said[client.None]("%s is removed")),
		a.webhooksSecret(), a.webhooksPing(), a.webhooksDeliveries(), a.webhooksReplay())
}

func kindWords() string {
	var out []string
	for _, k := range webhook.Kinds {
		out = append(out, string(k))
	}
	return strings.Join(out, ", ")
}

const eventKinds = "; for events of robots, event: and the beginning of their name, such as event:battery."

// completeWebhook offers the ids of webhooks, with their hosts.
func (a *app) completeWebhook(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return offers(cmd, args, typed, none(a.api.GetWebhooks), func(h client.Hook) (string, string) {
		if u, err := url.Parse(h.URL); err == nil {
			return h.ID, u.Host
		}
		return h.ID, h.URL
	})
}

// webhookState says in a word how a webhook is doing.
func webhookState(h client.Hook) string {
	switch {
	case !h.Disabled.IsZero():
		return "off"
	case h.Failures > 0:
		return "failing"
	case h.LastOK.IsZero():
		return "new"
	}
	return "ok"
}

func showWebhook(t *cli.Table, h client.Hook) {
	pairs(t, "webhook", h.ID, "url", h.URL, "kinds", strings.Join(h.Kinds, ","), "filter", h.Filter, "note", h.Note,
		"made", ago(h.Created)+" by "+h.By, "state", webhookState(h))
	if !h.Disabled.IsZero() {
		t.Row("off", since(h.Disabled)+": "+cmp.Or(h.DisabledWhy, "an operator stopped it"))
	}
	if !h.FailingSince.IsZero() {
		t.Row("failing", fmt.Sprintf("%s, %d times in a row", since(h.FailingSince), h.Failures))
	}
	if !h.RetryAt.IsZero() {
		pairs(t, "tried again", h.RetryAt)
	}
	pairs(t, "last ok", h.LastOK, "last error", h.LastError, "waiting", h.Open, "dead", h.Dead)
}

// webhookFlags are the flags of both add and change.
type webhookFlags struct {
	kinds        []string
	filter, note string
}

func (f *webhookFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.kinds, "kind", nil, "`KINDS` of events to be told of, with commas; kennelctl webhooks -help lists them")
	cmd.Flags().StringVar(&f.filter, "filter", "", "only robots of this `FILTER`, as robots list takes it, such as cohort:lab; \"\": all")
	cmd.Flags().StringVar(&f.note, "note", "", "`TEXT` for people: whose it is")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(strings.Split(kindWords(), ", "), cobra.ShellCompDirectiveNoFileComp))
}

func showWebhookSecret(t *cli.Table, id, secret string) {
	pairs(t, "webhook", id, "secret", secret)
	t.Text("shown only once; the receiver checks signatures with it")
}

func (a *app) webhooksAdd() *cobra.Command {
	var f webhookFlags
	var secretFile string
	cmd := shows(a, &cobra.Command{Use: "add URL", Short: "Register a webhook, and print its secret",
		Long: "URL is https. Addresses that are not public are refused unless the cloud's setting webhooks.allow names their network.",
		Example: "  kennelctl webhooks add https://example.org/kennel -kind thing.present,thing.absent\n" +
			"  kennelctl webhooks add https://example.org/kennel -kind setting.changed -filter 'species:vic tag:lab' -note 'home automation'"},
		func(ctx context.Context, args []string) (r reply[client.Added], err error) {
			in := client.Draft{URL: args[0], Kinds: f.kinds, Filter: f.filter, Note: f.note}
			if secretFile != "" {
				if in.Secret, err = passwordIn(secretFile); err != nil {
					return r, err
				}
			}
			return a.api.PostWebhooks(ctx, in)
		}, func(t *cli.Table, got client.Added) { showWebhookSecret(t, got.Webhook.ID, got.Secret) })
	f.add(cmd)
	cmd.Flags().StringVar(&secretFile, "secret-file", "", "read the secret, whsec_..., from `FILE` instead of having one made")
	_ = cmd.MarkFlagRequired("kind")
	return cmd
}

func (a *app) webhooksChange() *cobra.Command {
	var f webhookFlags
	var to string
	cmd := describe("change WEBHOOK", "Change a webhook; what no flag names stays",
		"webhooks change WEBHOOK -kind command.finished", "webhooks change WEBHOOK -url https://example.org/new -filter ''")
	shows(a, cmd, func(ctx context.Context, args []string) (r reply[client.Hook], err error) {
		changed := func(flag string, value *string) *string {
			if !cmd.Flags().Changed(flag) {
				return nil
			}
			return value
		}
		d := client.WebhookDraft{URL: changed("url", &to), Filter: changed("filter", &f.filter), Note: changed("note", &f.note)}
		if cmd.Flags().Changed("kind") {
			d.Kinds = &f.kinds
		}
		if d == (client.WebhookDraft{}) {
			return r, cli.Usage("nothing to change; want at least one of -url, -kind, -filter and -note")
		}
		return a.api.PatchWebhooksID(ctx, args[0], d)
	}, showWebhook)
	f.add(cmd)
	cmd.Flags().StringVar(&to, "url", "", "another `URL`")
	return cmd
}

func (a *app) webhooksAble(word, short string, disabled bool) *cobra.Command {
	return shows(a, describe(word+" WEBHOOK", short, "webhooks "+word+" WEBHOOK"),
		func(ctx context.Context, args []string) (reply[client.Hook], error) {
			return a.api.PatchWebhooksID(ctx, args[0], client.WebhookDraft{Disabled: &disabled})
		}, showWebhook)
}

func (a *app) webhooksSecret() *cobra.Command {
	cmd := &cobra.Command{Use: "secret WEBHOOK", Short: "Give a webhook another secret, and print it",
		Long: "For a day requests are signed with both, so that the receiver can change over.", Example: "  kennelctl webhooks secret WEBHOOK"}
	return a.runs(cmd, func(cmd *cobra.Command, args []string) error {
		r, err := a.api.PostWebhooksIDSecret(cmd.Context(), args[0])
		return show(cmd, r, err, func(t *cli.Table, got client.NewSecret) { showWebhookSecret(t, args[0], got.Secret) })
	})
}

func (a *app) webhooksPing() *cobra.Command {
	return shows(a, describe("ping WEBHOOK", "Send a test now, and say how it went", "webhooks ping WEBHOOK"),
		func(ctx context.Context, args []string) (reply[client.Delivery], error) {
			d, err := a.api.PostWebhooksIDPing(ctx, args[0])
			if err == nil && d.Value.State != "done" {
				d.Raw, err = nil, errs.Coded(errs.Unavailable, "ping_failed", "the test did not arrive: %s (after %v)", d.Value.Error, latency(d.Value))
			}
			return d, err
		}, func(t *cli.Table, d client.Delivery) { t.Text(fmt.Sprintf("answered %d in %v", d.Status, latency(d))) })
}

func latency(d client.Delivery) time.Duration {
	return (time.Duration(d.LatencyUS) * time.Microsecond).Round(100 * time.Microsecond)
}

func (a *app) webhooksDeliveries() *cobra.Command {
	var q client.GetWebhooksIDDeliveriesQuery
	cmd := shows(a, &cobra.Command{Use: "deliveries WEBHOOK", Short: "List what was sent, the newest first",
		Long:    "What arrived is kept for a week, what was given up for 30 days.",
		Example: "  kennelctl webhooks deliveries WEBHOOK\n  kennelctl webhooks deliveries WEBHOOK -state dead -limit 500 -o json"},
		func(ctx context.Context, args []string) (reply[[]client.Delivery], error) {
			return a.api.GetWebhooksIDDeliveries(ctx, args[0], q)
		},
		rows("DELIVERY|KIND|THING|CREATED|STATE|ATTEMPTS|LAST|STATUS|TOOK|NEXT|ERROR", func(d client.Delivery) cells {
			if d.State != "open" {
				d.Next = time.Time{}
			}
			return cells{d.ID, d.Kind, d.Thing, d.Created, d.State, d.Attempts, d.Last, d.Status, latency(d), d.Next, d.Error}
		}))
	q.State = cmd.Flags().String("state", "", "only those in `STATE`: open, done or dead")
	q.Limit = cmd.Flags().Int64("limit", webhook.DefaultLimit, "show at most `N`, up to 500")
	q.Before = cmd.Flags().Int64("before", 0, "only those before delivery `N`; 0: from the newest")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions([]string{"open", "done", "dead"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) webhooksReplay() *cobra.Command {
	var dead bool
	cmd := shows(a, &cobra.Command{Use: "replay WEBHOOK [DELIVERY]", Short: "Send a delivery once more, or with -dead all that were given up",
		Long:    "They come after what waits already, with the id they had: a receiver that took one before knows it again.",
		Example: "  kennelctl webhooks replay WEBHOOK 4711\n  kennelctl webhooks replay WEBHOOK -dead"},
		func(ctx context.Context, args []string) (r reply[client.Replayed], err error) {
			in := client.Replay{Dead: dead}
			if len(args) == 2 {
				if in.Delivery, err = strconv.ParseInt(args[1], 10, 64); err != nil || in.Delivery < 1 {
					return r, cli.Usage("delivery %.40q: want a number such as webhooks deliveries shows", args[1])
				}
			}
			if (len(args) == 2) == dead {
				return r, cli.Usage("want a delivery or -dead")
			}
			return a.api.PostWebhooksIDReplay(ctx, args[0], in)
		}, func(t *cli.Table, got client.Replayed) {
			t.Text(fmt.Sprintf("%d will be sent once more", got.Replayed))
		})
	cmd.Flags().BoolVar(&dead, "dead", false, "all that were given up")
	return cmd
}
