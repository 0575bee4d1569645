// Package certsbroker gives brokers the revocations: the set of certs.Revocations as brokerapi messages, and the things to refuse by name.
// Its methods fit brokeradmin.EmbeddedConfig, mosquitto.Config and brokeradmin.Keep.
package certsbroker

import (
	"context"

	"kennel/certs"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/thing"
)

// Source supplies the certificates and things that a broker must refuse. Make it with New; safe for concurrent use.
type Source struct {
	revoked *certs.Revocations
	blocked func(context.Context) (map[thing.ID]string, error)
}

// New returns a source. blocked lists things with the reason, such as certspg.Revocations.Blocked.
func New(revoked *certs.Revocations, blocked func(context.Context) (map[thing.ID]string, error)) Source {
	return Source{revoked, blocked}
}

// Denied serves brokeradmin.EmbeddedConfig.Denied. While the set was not read yet it is an error, because an empty answer would be a wrong one.
func (s Source) Denied(ctx context.Context, after int64) (d brokerapi.Deny, last int64, err error) {
	if err := s.revoked.Ready(ctx); err != nil {
		return d, after, err
	}
	list, last := s.revoked.List(after)
	for _, r := range list {
		d.Certs = append(d.Certs, brokerapi.DenyCert{Serial: r.Serial, Key: r.Key.String(), Thing: r.Thing, Until: r.NotAfter, Reason: r.Reason})
	}
	d.Block, err = s.blocked(ctx)
	return d, last, err
}

// Blocked serves mosquitto.Config.Blocked and brokeradmin.Keep.
func (s Source) Blocked(ctx context.Context) (map[thing.ID]string, error) { return s.blocked(ctx) }

// Changed serves brokeradmin.EmbeddedConfig.Changed and brokeradmin.Keep.
func (s Source) Changed() <-chan struct{} { return s.revoked.Changed() }
