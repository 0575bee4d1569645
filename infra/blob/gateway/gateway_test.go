package gateway

import (
	"bytes"
	"os"
	"testing"

	"kennel/infra/cli"
)

func TestRefusedCommandLines(t *testing.T) {
	for name, args := range map[string][]string{
		"network":  {"-dir", "d", "-listen", "0.0.0.0:9000", "-access-key-file", "a", "-secret-key-file", "s"},
		"unknown":  {"-color", "red"},
		"argument": {"-dir", "d", "-listen", "127.0.0.1:9000", "-access-key-file", "a", "-secret-key-file", "s", "more"},
		"nothing":  nil,
	} {
		var out bytes.Buffer
		if code := Main(args, os.Getenv, &out, &out); code != cli.ExitUsage {
			t.Errorf("%s: exit %d, want %d: %s", name, code, cli.ExitUsage, out.Bytes())
		}
	}
}
