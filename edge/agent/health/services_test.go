package health

import (
	"strings"
	"testing"
)

// TestRestartCommand: a service without anybody to start it is an error that says what to do, as is a command that fails.
func TestRestartCommand(t *testing.T) {
	for _, tc := range []struct {
		command       []string
		service, want string
	}{
		{nil, robotd, ""},
		{nil, "vic-engine", "set FAULT_RESTART_COMMAND in anki/etc/kennel-agent.env"},
		{[]string{"/bin/sh", "-c", `test "$0" = vic-engine`}, "vic-engine", ""},
		{[]string{"/bin/sh", "-c", `echo "no $0"; exit 3`}, "vic-engine", `exit status 3: "no vic-engine\n"`},
	} {
		err := (&supervised{command: tc.command}).Start(t.Context(), tc.service)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q, %s: %v; want %q", tc.command, tc.service, err, tc.want)
		}
	}
}
