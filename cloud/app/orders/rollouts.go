package orders

import (
	"kennel/cloud/app/link"
	"kennel/cloud/registry"
	"kennel/cloud/rollout/rolloutwire"
	"kennel/cloud/wire"
)

// WireRollouts wires what brings releases to parts of the fleet.
func WireRollouts(b wire.Base, l *link.Link, robots *registry.Service, releases Releases) wire.Slice {
	return rolloutwire.Wire(b, robots, releases.Service, releases.Archives, l)
}
