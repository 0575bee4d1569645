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
	return group(&cobra.Command{Use: "webhooks", Short: "Programs elsewhere that are told what happens to robots",
		Long: "Each event arrives at a webhook's URL as one POST, signed as the Standard Webhooks specification says, " +
			"at least once and in order for each\nrobot. What fails is tried again for about a day, then it is dead and can be replayed.\n\n" +
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
