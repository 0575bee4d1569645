package commandwire

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// LogRequest are the arguments of SendLogs.
type LogRequest struct {
	Diagnostics bool   `json:"diagnostics,omitempty"` // with the state of the robot's computer and network (VEC-LOG-07)
	Reason      string `json:"reason,omitempty"`      // why, as a word such as battery-drain; "": request
}

var reasonPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// IsReason reports whether s is a word for why a robot sends a log. It is safe in a file name.
func IsReason(s string) bool { return reasonPattern.MatchString(s) }

// ParseLogRequest reads the arguments of SendLogs.
func ParseLogRequest(args json.RawMessage) (LogRequest, error) {
	r := LogRequest{Reason: "request"}
	if err := strict(args, &r); err != nil {
		return LogRequest{}, fmt.Errorf("%s: %w; want diagnostics and reason", SendLogs, err)
	}
	if r.Reason == "" {
		r.Reason = "request"
	}
	if !IsReason(r.Reason) {
		return LogRequest{}, fmt.Errorf("%s: reason %.60q: want a word of at most 40 letters a to z, digits and hyphens", SendLogs, r.Reason)
	}
	return r, nil
}

// queued follows the name in the result of SendLogs.
const queued = " waits for its upload"

// Queued is the result of SendLogs: the name under which the robot uploads.
func Queued(name string) string { return name + queued }

// ParseQueued returns the name in such a result; false: it is none.
func ParseQueued(detail string) (name string, ok bool) {
	name, ok = strings.CutSuffix(detail, queued)
	return name, ok && name != "" && !strings.ContainsAny(name, " /")
}
