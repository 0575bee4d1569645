package fleet

import (
	"kennel/cloud/ready/readywire"
	"kennel/cloud/wire"
)

// ReadyConfig tells the checks of the page "Ready for the internet?" what they must know of the settings.
type ReadyConfig = readywire.Config

// ReadyPart is a part of this process whose readiness that page shows.
type ReadyPart = readywire.Part

// WireReady wires those checks.
func WireReady(b wire.Base, c ReadyConfig) wire.Slice { return readywire.Wire(b, c) }
