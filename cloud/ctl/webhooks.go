package ctl

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/webhook"
	"kennel/cloud/webhook/webhookapi"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) webhooks() *cobra.Command {
	cmd := &cobra.Command{Use: "webhooks", Short: "Programs elsewhere that are told what happens to robots",
		Long: "Each event arrives at a webhook's URL as one POST, signed as the Standard Webhooks specification says, at least once and in order for each\n" +
			"robot. What fails is tried again for about a day, then it is dead and can be replayed.\n\nKinds: " + kindWords(),
		Example: "  kennelctl webhooks add https://example.org/kennel -kind thing.absent -filter cohort:lab\n  kennelctl webhooks ping WEBHOOK\n" +
			"  kennelctl webhooks deliveries WEBHOOK -state dead"}
	cmd.AddCommand(a.webhooksList(), a.webhooksShow(), a.webhooksAdd(), a.webhooksChange(), a.webhooksAble("disable", "Stop a webhook; what waits for it stays", true),
		a.webhooksAble("enable", "Start a webhook again", false), a.webhooksRemove(), a.webhooksSecret(), a.webhooksPing(), a.webhooksDeliveries(), a.webhooksReplay())
	return cmd
}

func kindWords() string {
	var out []string
	for _, k := range webhook.Kinds {
		out = append(out, string(k))
	}
	return strings.Join(out, ", ")
}

const webhooksPath = "/v1/webhooks"

// completeWebhook offers the ids of webhooks, with their hosts.
func (a *app) completeWebhook(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := a.client(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []webhook.Hook
	if _, err := c.do(cmd.Context(), http.MethodGet, webhooksPath, nil, &all); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []string
	for _, h := range all {
		out = append(out, h.ID+"\t"+hostOf(h.URL))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func hostOf(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return s
	}
	return u.Host
}

func webhookPath(id string, more ...string) string {
	return strings.Join(append([]string{webhooksPath, url.PathEscape(id)}, more...), "/")
}

// webhookState says in a word how a webhook is doing.
func webhookState(h webhook.Hook) string {
	switch {
	case h.Disabled != nil:
		return "off"
	case h.Failures > 0:
		return "failing"
	case h.LastOK == nil:
		return "new"
	}
	return "ok"
}

func (a *app) webhooksList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List webhooks and how they stand", Args: cobra.NoArgs, Example: "  kennelctl webhooks list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(a, cmd, webhooksPath, func(t *cli.Table, rows []webhook.Hook) {
				t.Row("WEBHOOK", "STATE", "URL", "KINDS", "FILTER", "WAIT", "DEAD", "LAST OK", "NOTE")
				for _, h := range rows {
					t.Row(h.ID, webhookState(h), h.URL, joinKinds(h.Kinds), h.Filter, h.Open, h.Dead, agoOf(h.LastOK), h.Note)
				}
			})
		},
	}
}

func agoOf(t *time.Time) string {
	if t == nil {
		return ""
	}
	return ago(*t)
}

func joinKinds(kinds []webhook.Kind) string {
	var out []string
	for _, k := range kinds {
		out = append(out, string(k))
	}
	return strings.Join(out, ",")
}

func showWebhook(t *cli.Table, h webhook.Hook) {
	t.Row("webhook", h.ID)
	t.Row("url", h.URL)
	t.Row("kinds", joinKinds(h.Kinds))
	t.Row("filter", h.Filter)
	t.Row("note", h.Note)
	t.Row("made", ago(h.Created)+" by "+h.By)
	t.Row("state", webhookState(h))
	if h.Disabled != nil {
		why := h.DisabledWhy
		if why == "" {
			why = "an operator stopped it"
		}
		t.Row("off", since(*h.Disabled)+": "+why)
	}
	if h.FailingSince != nil {
		t.Row("failing", fmt.Sprintf("%s, %d times in a row", since(*h.FailingSince), h.Failures))
	}
	if h.RetryAt != nil {
		t.Row("tried again", ago(*h.RetryAt))
	}
	t.Row("last ok", agoOf(h.LastOK))
	t.Row("last error", h.LastError)
	t.Row("waiting", h.Open)
	t.Row("dead", h.Dead)
}

func (a *app) webhooksShow() *cobra.Command {
	return &cobra.Command{
		Use: "show WEBHOOK", Short: "Show a webhook and how its endpoint does", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeWebhook,
		Example: "  kennelctl webhooks show 0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11",
		RunE: func(cmd *cobra.Command, args []string) error {
			return mine(a, cmd, http.MethodGet, webhookPath(args[0]), nil, showWebhook)
		},
	}
}

// webhookFlags are what add and change have in common.
type webhookFlags struct {
	kinds  []string
	filter string
	note   string
}

func (f *webhookFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.kinds, "kind", nil, "`KINDS` of events to be told of, with commas")
	cmd.Flags().StringVar(&f.filter, "filter", "", "only robots of this `FILTER`, as robots list takes it, such as cohort:lab; \"\": all")
	cmd.Flags().StringVar(&f.note, "note", "", "`TEXT` for people: whose it is")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(strings.Split(kindWords(), ", "), cobra.ShellCompDirectiveNoFileComp))
}

func (f *webhookFlags) list() []webhook.Kind {
	out := []webhook.Kind{}
	for _, k := range f.kinds {
		out = append(out, webhook.Kind(k))
	}
	return out
}

func showWebhookSecret(t *cli.Table, id, secret string) {
	t.Row("webhook", id)
	t.Row("secret", secret)
	t.Text("shown only once; the receiver checks signatures with it")
}

func (a *app) webhooksAdd() *cobra.Command {
	var f webhookFlags
	var secretFile string
	cmd := &cobra.Command{
		Use: "add URL", Short: "Register a webhook, and print its secret", Args: cobra.ExactArgs(1),
		Long: "URL is https. Addresses that are not public are refused unless the cloud's setting webhooks.allow names their network.",
		Example: "  kennelctl webhooks add https://example.org/kennel -kind thing.present,thing.absent\n" +
			"  kennelctl webhooks add https://example.org/kennel -kind setting.changed -filter 'species:vic tag:lab' -note 'home automation'",
		RunE: func(cmd *cobra.Command, args []string) error {
			body := webhookapi.Draft{URL: args[0], Kinds: f.list(), Filter: f.filter, Note: f.note}
			if secretFile != "" {
				var err error
				if body.Secret, err = readPassword(cmd, nil, "", secretFile); err != nil {
					return err
				}
			}
			return mine(a, cmd, http.MethodPost, webhooksPath, body, func(t *cli.Table, got webhookapi.Added) { showWebhookSecret(t, got.Webhook.ID, got.Secret) })
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&secretFile, "secret-file", "", "read the secret, whsec_..., from `FILE` instead of having one made")
	_ = cmd.MarkFlagRequired("kind")
	return cmd
}

func (a *app) webhooksChange() *cobra.Command {
	var f webhookFlags
	var to string
	cmd := &cobra.Command{
		Use: "change WEBHOOK", Short: "Change a webhook; what no flag names stays", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeWebhook,
		Example: "  kennelctl webhooks change WEBHOOK -kind command.finished\n  kennelctl webhooks change WEBHOOK -url https://example.org/new -filter ''",
		RunE: func(cmd *cobra.Command, args []string) error {
			var d webhook.Draft
			changed := cmd.Flags().Changed
			if changed("url") {
				d.URL = &to
			}
			if changed("kind") {
				kinds := f.list()
				d.Kinds = &kinds
			}
			if changed("filter") {
				d.Filter = &f.filter
			}
			if changed("note") {
				d.Note = &f.note
			}
			if d == (webhook.Draft{}) {
				return cli.Usage("nothing to change; want at least one of -url, -kind, -filter and -note")
			}
			return mine(a, cmd, http.MethodPatch, webhookPath(args[0]), d, showWebhook)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&to, "url", "", "another `URL`")
	return cmd
}

func (a *app) webhooksAble(word, short string, disabled bool) *cobra.Command {
	return &cobra.Command{
		Use: word + " WEBHOOK", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeWebhook, Example: "  kennelctl webhooks " + word + " WEBHOOK",
		RunE: func(cmd *cobra.Command, args []string) error {
			return mine(a, cmd, http.MethodPatch, webhookPath(args[0]), webhook.Draft{Disabled: &disabled}, showWebhook)
		},
	}
}

func (a *app) webhooksRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove WEBHOOK", Short: "Forget a webhook and what waits for it", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeWebhook,
		Example: "  kennelctl webhooks remove WEBHOOK",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.order(cmd, http.MethodDelete, webhookPath(args[0]), nil, nil, func() string { return args[0] + " is removed" })
		},
	}
}

func (a *app) webhooksSecret() *cobra.Command {
	return &cobra.Command{
		Use: "secret WEBHOOK", Short: "Give a webhook another secret, and print it", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeWebhook,
		Long: "For a day requests are signed with both, so that the receiver can change over.", Example: "  kennelctl webhooks secret WEBHOOK",
		RunE: func(cmd *cobra.Command, args []string) error {
			return mine(a, cmd, http.MethodPost, webhookPath(args[0], "secret"), nil, func(t *cli.Table, got webhookapi.NewSecret) { showWebhookSecret(t, args[0], got.Secret) })
		},
	}
}

func (a *app) webhooksPing() *cobra.Command {
	return &cobra.Command{
		Use: "ping WEBHOOK", Short: "Send a test now, and say how it went", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeWebhook,
		Example: "  kennelctl webhooks ping WEBHOOK",
		RunE: func(cmd *cobra.Command, args []string) error {
			var d webhook.Delivery
			if err := a.do(cmd, http.MethodPost, webhookPath(args[0], "ping"), nil, &d); err != nil {
				return err
			}
			if d.State != webhook.Done {
				return errs.Coded(errs.Unavailable, "ping_failed", "the test did not arrive: %s (after %v)", d.Error, latency(d))
			}
			return cli.Print(cmd, d, func(t *cli.Table) { t.Text(fmt.Sprintf("answered %d in %v", d.Status, latency(d))) })
		},
	}
}

func latency(d webhook.Delivery) time.Duration {
	return (time.Duration(d.LatencyUS) * time.Microsecond).Round(100 * time.Microsecond)
}

func (a *app) webhooksDeliveries() *cobra.Command {
	var state string
	var limit int
	var before int64
	cmd := &cobra.Command{
		Use: "deliveries WEBHOOK", Short: "List what was sent, the newest first", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeWebhook,
		Long:    "What arrived is kept for a week, what was given up for 30 days.",
		Example: "  kennelctl webhooks deliveries WEBHOOK\n  kennelctl webhooks deliveries WEBHOOK -state dead -limit 500 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			q := url.Values{"limit": {strconv.Itoa(limit)}, "before": {strconv.FormatInt(before, 10)}, "state": {state}}
			return list(a, cmd, webhookPath(args[0], "deliveries")+"?"+q.Encode(), func(t *cli.Table, rows []webhook.Delivery) {
				t.Row("DELIVERY", "KIND", "THING", "CREATED", "STATE", "ATTEMPTS", "LAST", "STATUS", "TOOK", "NEXT", "ERROR")
				for _, d := range rows {
					next := ""
					if d.State == webhook.Open {
						next = ago(d.Next)
					}
					t.Row(d.ID, d.Kind, d.Thing, ago(d.Created), d.State, d.Attempts, agoOf(d.Last), d.Status, latency(d), next, d.Error)
				}
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those in `STATE`: open, done or dead")
	cmd.Flags().IntVar(&limit, "limit", webhook.DefaultLimit, "show at most `N`, up to 500")
	cmd.Flags().Int64Var(&before, "before", 0, "only those before delivery `N`; 0: from the newest")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions([]string{"open", "done", "dead"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) webhooksReplay() *cobra.Command {
	var dead bool
	cmd := &cobra.Command{
		Use: "replay WEBHOOK [DELIVERY]", Short: "Send a delivery once more, or with -dead all that were given up", Args: cobra.RangeArgs(1, 2), ValidArgsFunction: a.completeWebhook,
		Long:    "They come after what waits already, with the id they had: a receiver that took one before knows it again.",
		Example: "  kennelctl webhooks replay WEBHOOK 4711\n  kennelctl webhooks replay WEBHOOK -dead",
		RunE: func(cmd *cobra.Command, args []string) error {
			body := webhookapi.Replay{Dead: dead}
			if len(args) == 2 {
				var err error
				if body.Delivery, err = strconv.ParseInt(args[1], 10, 64); err != nil || body.Delivery < 1 {
					return cli.Usage("delivery %.40q: want a number such as webhooks deliveries shows", args[1])
				}
			}
			if (len(args) == 2) == dead {
				return cli.Usage("want a delivery or -dead")
			}
			return mine(a, cmd, http.MethodPost, webhookPath(args[0], "replay"), body, func(t *cli.Table, got webhookapi.Replayed) {
				t.Text(fmt.Sprintf("%d will be sent once more", got.Replayed))
			})
		},
	}
	cmd.Flags().BoolVar(&dead, "dead", false, "all that were given up")
	return cmd
}
