package ctl

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/fleet/webhook"
	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) webhooks() *cobra.Command {
	return group(&cobra.Command{Use: "webhooks", Short: "Manage webhooks, which notify other programs of events",
		Long: "Each event is sent to the webhook's URL as one POST, signed according to the Standard Webhooks specification, " +
			"at least once and in order\nfor each robot. Failed deliveries are retried for about a day; then they are dead and can be replayed.\n\n" +
			"Kinds: " + kindWords() + eventKinds,
		Example: "  kennelctl webhooks add https://example.org/kennel -kind thing.absent -filter cohort:lab\n  kennelctl webhooks ping WEBHOOK\n" +
			"  kennelctl webhooks deliveries WEBHOOK -state dead"},
		a.webhooksPing())
}

func kindWords() string {
	var out []string
	for _, k := range webhook.Kinds {
		out = append(out, string(k))
	}
	return strings.Join(out, ", ")
}

const eventKinds = "; for robots' events, event: and the beginning of the name, such as event:battery."

// completeWebhook offers the ids of webhooks, with their hosts.
func (a *app) completeWebhook(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return offers(cmd, args, typed, none(a.api.GetWebhooks), func(h client.Hook) (string, string) {
		if u, err := url.Parse(h.URL); err == nil {
			return h.ID, u.Host
		}
		return h.ID, h.URL
	})
}

func (a *app) webhooksPing() *cobra.Command {
	return shows(a, describe("ping WEBHOOK", "Send a test event and show the response", "webhooks ping WEBHOOK"),
		func(ctx context.Context, args []string) (reply[client.Delivery], error) {
			d, err := a.api.PostWebhooksIDPing(ctx, args[0])
			if err == nil && d.Value.State != "done" {
				d.Raw, err = nil, errs.Coded(errs.Unavailable, "ping_failed", "test not delivered: %s (after %v)", d.Value.Error, latency(d.Value))
			}
			return d, err
		}, func(t *cli.Table, d client.Delivery) { t.Text(fmt.Sprintf("answered %d in %v", d.Status, latency(d))) })
}

func latency(d client.Delivery) time.Duration {
	return (time.Duration(d.LatencyUS) * time.Microsecond).Round(100 * time.Microsecond)
}
