// Package hawkbitwire wires the slice of devices that take their releases by hawkBit's device API.
package hawkbitwire

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/updates/artifact"
	"kennel/cloud/updates/artifact/artifactapi"
	"kennel/cloud/updates/hawkbit"
	"kennel/cloud/updates/hawkbit/hawkbitapi"
	"kennel/cloud/updates/hawkbit/hawkbitpg"
	"kennel/cloud/wire"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/ota"
)

// Config is the settings of devices.
type Config struct {
	Poll time.Duration `koanf:"poll"` // how often idle devices ask; 0: hawkbit.DefaultPoll
	// GatewayTokenFile holds a token with which a gateway may speak for every registered device; "": there is none.
	GatewayTokenFile string `koanf:"gateway_token_file"`
}

// minGateway is the least length of a gateway's token in bytes, so that it cannot be guessed.
const minGateway = 20

func (c Config) open() (Config, logging.Secret, error) {
	if c.Poll == 0 {
		c.Poll = hawkbit.DefaultPoll
	}
	if c.Poll < time.Second || c.Poll > hawkbit.DefaultPoll {
		return c, "", errs.New(errs.Invalid, "devices.poll %v: want 1s to %v", c.Poll, hawkbit.DefaultPoll)
	}
	if c.GatewayTokenFile == "" {
		return c, "", nil
	}
	b, err := os.ReadFile(c.GatewayTokenFile)
	if err != nil {
		return c, "", fmt.Errorf("devices.gateway_token_file: %w", err)
	}
	token := bytes.TrimSpace(b)
	if len(token) < minGateway {
		return c, "", errs.New(errs.Invalid, "devices.gateway_token_file %s: token of %d bytes, want at least %d", c.GatewayTokenFile, len(token), minGateway)
	}
	return c, logging.Secret(token), nil
}

// maxDownloads bounds the downloads that one process serves devices at once. SWUpdate ends an update as failed that is turned away; so this is more than for
// strangers, and a rollout's cap is the finer limit.
const maxDownloads = 1000

// Needs holds the services that devices are served by.
type Needs struct {
	Releases *ota.Service
	Archives *artifact.Service
	Robots   *registry.Service
	Identify func(chain []*x509.Certificate) (thing.ID, error)
	Revoked  func(ctx context.Context, id thing.ID) (bool, error)
}

// Wire wires them.
func Wire(b wire.Base, cfg Config, n Needs) (wire.Slice, error) {
	cfg, gateway, err := cfg.open()
	if err != nil {
		return wire.Slice{}, err
	}
	svc := hawkbit.New(hawkbit.Config{
		Store: hawkbitpg.New(b.Pool), Wish: n.Releases.Ask, Report: n.Releases.Report, Seen: n.Robots.Apply, Tag: n.Robots.Tag, Every: cfg.Poll, Log: b.Log,
		Archive: func(ctx context.Context, species thing.Species, v ota.Version) (artifact.Artifact, bool, error) {
			list, err := n.Archives.List(ctx, species, v)
			i := slices.IndexFunc(list, func(a artifact.Artifact) bool { return a.Kind == artifact.SWU })
			if err != nil || i < 0 {
				return artifact.Artifact{}, false, err
			}
			return list[i], true, nil
		},
	})
	download := artifactapi.NewSender(n.Archives, maxDownloads, b.Log)
	return wire.Slice{
		Public: func(mux *http.ServeMux, d wire.Doors) {
			hawkbitapi.Mount(mux, svc, hawkbitapi.Config{Known: d.Known, Identify: n.Identify, Revoked: n.Revoked, Gateway: gateway, Record: n.Robots.Record, Download: download, Log: b.Log})
		},
		Operations: func(d wire.Doors) wire.Operations { return hawkbitapi.Operations(svc, d.Known, d.Audit) },
	}, nil
}
