package fleet

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/fleet/webhook"
	"kennel/cloud/fleet/webhook/webhookapi"
	"kennel/cloud/fleet/webhook/webhookpg"
	"kennel/cloud/identity/account/audit"
	"kennel/cloud/identity/owner"
	"kennel/cloud/wire"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/logging"
)

// WebhooksConfig says whom webhooks may call.
type WebhooksConfig struct {
	// Allow are networks, such as 10.1.0.0/16, that webhooks may call although they are not public. Empty: public addresses only.
	Allow []string `koanf:"allow"`
	// RootFile holds the authorities of receivers' certificates, PEM, beside the system's; "": those alone.
	RootFile string `koanf:"root_file"`
}

// Validate reports a network that cannot be read.
func (c WebhooksConfig) Validate() error {
	if _, err := webhook.NewGuard(c.Allow); err != nil {
		return fmt.Errorf("webhooks.allow: %w", err)
	}
	return nil
}

// roots returns whom to trust; nil: the system's.
func (c WebhooksConfig) roots() (*x509.CertPool, error) {
	if c.RootFile == "" {
		return nil, nil
	}
	b, err := os.ReadFile(c.RootFile)
	if err != nil {
		return nil, fmt.Errorf("webhooks.root_file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a machine without any
	}
	if !pool.AppendCertsFromPEM(b) {
		return nil, errs.New(errs.Invalid, "webhooks.root_file %s holds no certificate; want PEM blocks of type CERTIFICATE", c.RootFile)
	}
	return pool, nil
}

// WireWebhooks wires what tells programs elsewhere.
func WireWebhooks(b wire.Base, cfg WebhooksConfig, robots *registry.Service, log *audit.Log, owners *owner.Service) (webhook.Audited, wire.Slice, *webhookpg.Store, error) {
	steps := registrypg.New(b.Pool, b.Log)
	store := webhookpg.New(b.Pool)
	roots, err := cfg.roots()
	if err != nil {
		return webhook.Audited{}, wire.Slice{}, store, err
	}
	sender, err := webhook.NewSender(webhook.SenderConfig{Allow: cfg.Allow, Roots: roots})
	if err != nil {
		return webhook.Audited{}, wire.Slice{}, store, err
	}
	svc, err := webhook.New(webhook.Config{
		Store: store, Outbox: store, Sealer: b.Seal.For("webhook/secret"), Sender: sender, Select: robots.Select, Log: b.Log,
		Order: func(ctx context.Context, hook string) error { return b.Orders.Add(ctx, webhook.TaskDeliver, hook) },
		Notice: func(ctx context.Context, h webhook.Hook, why string) {
			// The line is beside the people's own lines, where an operator looks for it; it has no actor.
			if err := log.Append(ctx, audit.Entry{Actor: "kenneld", Action: "webhook.disabled", Object: h.ID, Detail: why}); err != nil {
				b.Log.WarnContext(ctx, "notice of a disabled webhook not sent", "webhook", h.ID, logging.Err, err)
			}
		},
	})
	return webhook.Audited{Service: svc, Audit: log.Note}, wire.Slice{
		Operations: func(d wire.Doors) wire.Operations { return webhookapi.Operations(svc, d.Audit) },

		Runs:  []wire.Run{{Name: "webhooks", Run: svc.Run, Role: wire.Jobs}},
		Jobs:  []jobs.Job{{Name: "webhook.forget", Every: time.Hour, Run: svc.Forget}},
		Tasks: []jobs.Task{{Name: webhook.TaskDeliver, Run: svc.Deliver}},

		Personal: []wire.Holding{{Name: "addresses", Keeps: []string{"registry_step"}, Data: owner.Held{Kind: "addresses of robots", Owners: owners, List: steps.Peers, Drop: steps.ForgetPeers}},
			{Name: "webhooks", Keeps: []string{"webhook_delivery", "webhook_event"}, Data: owner.Held{Kind: "messages to webhooks", Owners: owners, List: store.Of, Drop: store.Erase}}},
	}, store, err
}
