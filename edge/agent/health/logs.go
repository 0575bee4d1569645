package health

import (
	"context"
	"io"
	"net/http"
	"os"

	"kennel/edge/agent/health/diag"
	"kennel/edge/agent/host"
	"kennel/edge/env/platform"
)

// Logs are the robot's logs, and LogRequest says which to send.
type (
	Logs       = *diag.Logs
	LogRequest = diag.Request
)

// OpenLogs opens the logs before the rest of the health, because commands of the cloud ask for them.
func OpenLogs(robot host.Robot, ways platform.Uploads, allowed func() bool, profile func() string, upload func(context.Context, *http.Request) (*http.Response, error)) Logs {
	return diag.New(robot, ways, allowed, profile, upload)
}

// CatLog prints the log of a robot.
func CatLog(w io.Writer, root *os.Root) error { return diag.Cat(w, root, 0) }
