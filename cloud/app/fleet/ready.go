package fleet

import (
	"kennel/cloud/preflight/preflightwire"
	"kennel/cloud/wire"
)

// ReadyConfig tells the checks of the page "Ready for the internet?" what they must know of the settings.
type ReadyConfig = preflightwire.Config

// ReadyPart is a part of this process whose readiness that page shows.
type ReadyPart = preflightwire.Part

// WireReady wires those checks.
func WireReady(b wire.Base, c ReadyConfig) wire.Slice { return preflightwire.Wire(b, c) }
