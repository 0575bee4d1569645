package orders

import (
	"kennel/cloud/app/link"
	"kennel/cloud/registry"
	"kennel/cloud/rollout/rolloutwire"
	"kennel/cloud/wire"
	"kennel/ota"
)

// WireRollouts wires what brings releases to parts of the fleet.
func WireRollouts(b wire.Base, l *link.Link, robots *registry.Service, releases *ota.Service) wire.Slice {
	return rolloutwire.Wire(b, robots, releases, l)
}
