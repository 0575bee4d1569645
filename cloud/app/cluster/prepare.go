package cluster

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kennel/cloud/app"
	"kennel/cloud/app/onebox"
	"kennel/infra/logging"
)

const (
	adminEmail = "operator@kennel.example"
	sessionTTL = 30 * 24 * time.Hour
)

// install writes authorities, certificates and passwords, those of kenneld install, and the brokers' secret.
func (c *cluster) install() error {
	if err := (onebox.Install{Dir: filepath.Join(c.dir, "install"), Names: []string{"localhost"}}).Run(); err != nil {
		return err
	}
	file, err := c.inst.Secret("nats")
	if err != nil {
		return err
	}
	b, err := os.ReadFile(file)
	secret := strings.TrimSpace(string(b))
	if err != nil || len(secret) >= 32 {
		return err
	}
	return c.inst.PutSecret("nats", []byte(secret+"-for-the-brokers\n")) // 26 random characters are enough; NewKeys wants 32
}

// prepare makes tables, bucket and administrator.
func prepare(ctx context.Context, cfg app.Config, passwordFile string, log *slog.Logger) error {
	return onebox.Prepare(ctx, cfg, adminEmail, passwordFile, log)
}

// session returns a session of the administrator's, for the registration of robots.
func session(ctx context.Context, cfg app.Config) (logging.Secret, error) {
	return onebox.Session(ctx, cfg, adminEmail, sessionTTL)
}
