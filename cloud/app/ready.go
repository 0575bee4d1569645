package app

import (
	"context"

	"kennel/cloud/app/fleet"
	"kennel/infra/telemetry"
)

// readiness tells the checks of the page "Ready for the internet?" what they must know of the settings and of this process.
func (c *Cloud) readiness() fleet.ReadyConfig {
	cfg := c.cfg
	parts := []fleet.ReadyPart{{Name: "api_certificate", Title: "Renewal of the certificate"}}
	if cfg.API.ACME.Directory != "" {
		parts = append(parts, fleet.ReadyPart{Name: "acme", Title: "Certificates by ACME"})
	}
	if cfg.Robots.Listen != "" {
		parts = append(parts, fleet.ReadyPart{Name: "robots_certificate", Title: "Certificate for original robots"})
	}
	return fleet.ReadyConfig{
		PublicURL: cfg.API.publicURL(), API: cfg.API.Listen, MailServer: cfg.Mail.SMTP.Host, Events: cfg.Events.KeepDays, Uploads: cfg.Uploads.KeepDays,
		Postgres: cfg.Postgres.DSN, S3: cfg.S3.Endpoint, MQTT: cfg.MQTT.URL,
		Open:   map[string]string{"public API": cfg.API.Listen, "original robots": cfg.Robots.Listen, "uploads of original robots": cfg.Robots.Uploads},
		Closed: map[string]string{"metrics": cfg.Metrics.Listen, "console without TLS": cfg.Console.Listen},
		Parts:  parts, Report: func(ctx context.Context) telemetry.Report { return c.ready.Now(ctx) },
	}
}
