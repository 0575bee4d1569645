package fleet

import (
	"kennel/cloud/preflight/preflightwire"
)

// ReadyConfig tells the checks of the page "Ready for the internet?" what they must know of the settings.
type ReadyConfig = preflightwire.Config

// ReadyPart is a part of this process whose readiness that page shows.
type ReadyPart = preflightwire.Part
