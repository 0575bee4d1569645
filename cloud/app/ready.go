package app

import (
	"path/filepath"

	"kennel/cloud/app/fleet"
)

// ready tells the checks of the page "Ready for the internet?" what they must know of the settings.
func (c Config) ready() fleet.ReadyConfig {
	return fleet.ReadyConfig{
		PublicURL: c.API.publicURL(), API: c.API.Listen, MailServer: c.Mail.SMTP.Host, Events: c.Events.KeepDays, Uploads: c.Uploads.KeepDays,
		Folder: filepath.Dir(filepath.Clean(c.CA.Dir)), Postgres: c.Postgres.DSN, S3: c.S3.Endpoint, MQTT: c.MQTT.URL,
		Open:   map[string]string{"public API": c.API.Listen, "original robots": c.Robots.Listen, "uploads of original robots": c.Robots.Uploads},
		Closed: map[string]string{"metrics": c.Metrics.Listen, "console without TLS": c.Console.Listen},
	}
}
