package health

import (
	"kennel/edge/agent/info"
	"kennel/edge/crash"
)

// Capture records the crash of this process; nil: none.
type Capture = *crash.Capture

// Record begins the record of agentd.
func Record(r info.Robot) Capture { return crash.Begin(r.Dir, "agentd", r.Getenv, r.Log) }
