package orders

import (
	"kennel/cloud/app/link"
	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/updates/rollout/rolloutwire"
	"kennel/cloud/wire"
)

// WireRollouts wires what brings releases to parts of the fleet, which are kept while a rollout is for them.
func WireRollouts(b wire.Base, l *link.Link, robots *registry.Service, cohorts *cohort.Service, releases Releases) wire.Slice {
	return rolloutwire.Wire(b, robots, cohorts, releases.Service, releases.Archives, l)
}
