package app

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"

	"kennel/cloud/account"
	"kennel/cloud/webhook"
	"kennel/cloud/webhook/webhookpg"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// WebhooksConfig says whom webhooks may call.
type WebhooksConfig struct {
	// Allow are networks, such as 10.1.0.0/16, that may be called although they are not public. Empty: public addresses alone.
	Allow []string `koanf:"allow"`
	// RootFile holds the authorities of receivers' certificates, PEM, beside the system's; "": those alone.
	RootFile string `koanf:"root_file"`
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

// wireWebhooks makes what tells programs elsewhere. The fleet, accounts and orders are wired before it.
func (c *Cloud) wireWebhooks() error {
	roots, err := c.cfg.Webhooks.roots()
	if err != nil {
		return err
	}
	sender, err := webhook.NewSender(webhook.SenderConfig{Allow: c.cfg.Webhooks.Allow, Roots: roots})
	if err != nil {
		return err
	}
	store := webhookpg.New(c.pool)
	c.Webhooks, err = webhook.New(webhook.Config{
		Store: store, Outbox: store, Sealer: c.seal.For("webhook/secret"), Sender: sender, Select: c.Registry.Select, Log: c.log,
		Order: func(ctx context.Context, hook string) error { return c.orders.Add(ctx, webhook.TaskDeliver, hook) },
		Notice: func(ctx context.Context, h webhook.Hook, why string) {
			// The line is beside the people's own lines, where an operator looks for it; it has no actor.
			if err := c.Accounts.Audit(ctx, account.Entry{Actor: "kenneld", Action: "webhook.disabled", Object: h.ID, Detail: why}); err != nil {
				c.log.WarnContext(ctx, "notice of a disabled webhook not sent", "webhook", h.ID, logging.Err, err)
			}
		},
	})
	return err
}
