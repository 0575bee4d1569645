package simapp

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/infra/cli"
)

func noenv(string) string { return "" }

// TestHelp: every command says what it is and how to call it.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"-help"}, {"make", "-help"}, {"robot", "-help"}, {"poke", "-help"}, {"vector-board", "-help"},
		{"vector-firmware", "-help"},
		{"fleet", "-help"}, {"amigobot", "-help"}} {
		var out, errOut bytes.Buffer
		if code := Main(args, noenv, &out, &errOut); code != cli.ExitOK || !strings.Contains(out.String(), "robotsim") {
			t.Errorf("%v: code %d\n%s%s", args, code, &out, &errOut)
		}
	}
}

// TestFleetMistakes: each is named before any robot is made.
func TestFleetMistakes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	ca := write("root.crt", "not a certificate")
	base := []string{"fleet", "-n", "2", "-root", filepath.Join(dir, "fleet"), "-api", "https://localhost:1", "-ca", ca}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-first", "vic"}, cli.ExitUsage, "-first"},
		{[]string{"-profile", "lifely"}, cli.ExitUsage, "idle, lively, rough"},
		{[]string{"-log-level", "loud"}, cli.ExitUsage, "debug, info, warn or error"},
		{[]string{"-token-file", filepath.Join(dir, "none")}, cli.ExitFailed, "-token-file"},
		{[]string{"-token-file", ca}, cli.ExitUsage, "has no certificate"},
		{[]string{"-secrets", write("s.csv", "vic:00f00000\n")}, cli.ExitUsage, "secrets"},
		{[]string{"-secrets", write("empty.csv", ""), "-token-file", ca}, cli.ExitUsage, "token-file"},
		{[]string{"-secrets", write("other.csv", "vic:00000001,x\n"), "-progress", "0"}, cli.ExitNotFound, "vic:00f0000"},
		{[]string{"-n", "0"}, cli.ExitUsage, "want at least 1"},
		{[]string{"-n", "10000000"}, cli.ExitUsage, "file descriptors"},
		{[]string{"-status", "0.0.0.0:9100", "-progress", "0", "-secrets", write("one.csv", "")}, cli.ExitUsage, "status address"},
	} {
		var out, errOut bytes.Buffer
		code := Main(append(append([]string{}, base...), tc.args...), noenv, &out, &errOut)
		if code != tc.code || !strings.Contains(errOut.String(), tc.want) {
			t.Errorf("%v: code %d, %s; want %d, %q", tc.args, code, &errOut, tc.code, tc.want)
		}
	}
}
