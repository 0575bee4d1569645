package orders

import (
	"context"
	"crypto/x509"

	"kennel/certs"
	"kennel/certs/certspg"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/updates/hawkbit/hawkbitwire"
	"kennel/cloud/wire"
	"kennel/infra/thing"
)

// DevicesConfig is the settings of devices that update themselves with SWUpdate.
type DevicesConfig = hawkbitwire.Config

// Devices holds what the API of such devices needs.
type Devices struct {
	DevicesConfig
	Releases Releases
	Identify func([]*x509.Certificate) (thing.ID, error) // whose a certificate is
}

func (d Devices) wire(b wire.Base, robots *registry.Service) (wire.Slice, error) {
	store := certspg.New(b.Pool)
	return hawkbitwire.Wire(b, d.DevicesConfig, hawkbitwire.Needs{Releases: d.Releases.Service, Archives: d.Releases.Archives, Robots: robots, Identify: d.Identify,
		Revoked: func(ctx context.Context, id thing.ID) (bool, error) {
			st, err := store.Standing(ctx, id, certs.Key{})
			return !st.Revoked.IsZero(), err
		}})
}
