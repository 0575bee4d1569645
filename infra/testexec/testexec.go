// Package testexec starts a test's own binary once more, as another process: behind the emulator KENNEL_TEST_EXEC if the binary is for another processor
// (make test-arm). The test's TestMain sees from its environment what the process is to do.
package testexec

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Emulator returns the command of the emulator; empty for this machine's own processor.
func Emulator() []string { return strings.Fields(os.Getenv("KENNEL_TEST_EXEC")) }

// Command returns the binary as a command with these arguments, not started, and with the environment of this process and more.
func Command(ctx context.Context, t testing.TB, more []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := append(append(Emulator(), self), args...)
	cmd := exec.CommandContext(ctx, all[0], all[1:]...)
	cmd.Env = append(os.Environ(), more...)
	return cmd
}
