package originalscmd

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"kennel/infra/cli"
)

// TestNoDataFolder (30.5): a data folder that is not there is refused by the name of this program's flag.
func TestNoDataFolder(t *testing.T) {
	usual := filepath.Join(t.TempDir(), "none")
	folder := func(given string) (string, error) {
		if given != "" {
			return given, nil
		}
		return usual, nil
	}
	for _, args := range [][]string{nil, {"check"}, {"-data", usual}} {
		var out, errOut bytes.Buffer
		code := cli.Run(t.Context(), Command(folder), args, func(string) string { return "" }, &out, &errOut)
		if code != cli.ExitUsage || !strings.Contains(errOut.String(), "-data "+usual) || strings.Contains(errOut.String(), "-onebox") {
			t.Errorf("%q: code %d, %s%s; want -data named", args, code, &out, &errOut)
		}
	}
}
