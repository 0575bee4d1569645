package health

import (
	"io"
	"os"

	"kennel/edge/agent/health/diag"
)

// LogRequest says which logs to send.
type LogRequest = diag.Request

// CatLog prints the log of a robot.
func CatLog(w io.Writer, root *os.Root) error { return diag.Cat(w, root, 0) }
