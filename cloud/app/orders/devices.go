package orders

import (
	"context"
	"crypto/x509"

	"kennel/certs"
	"kennel/certs/certspg"
	"kennel/cloud/ddi/ddiwire"
	"kennel/cloud/registry"
	"kennel/cloud/wire"
	"kennel/infra/thing"
)

// DevicesConfig is the settings of devices that update themselves with SWUpdate.
type DevicesConfig = ddiwire.Config

// WireDevices wires the API by which such devices take releases. identify returns whose a certificate is.
func WireDevices(b wire.Base, cfg DevicesConfig, releases Releases, robots *registry.Service, identify func([]*x509.Certificate) (thing.ID, error)) (wire.Slice, error) {
	store := certspg.New(b.Pool)
	return ddiwire.Wire(b, cfg, ddiwire.Needs{Releases: releases.Service, Archives: releases.Archives, Robots: robots, Identify: identify,
		Revoked: func(ctx context.Context, id thing.ID) (bool, error) {
			st, err := store.Standing(ctx, id, certs.Key{})
			return !st.Revoked.IsZero(), err
		}})
}
