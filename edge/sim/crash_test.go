package sim

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/edge/agent/health/faults"
	"kennel/infra/testwait"
)

// TestSupervisorPosts: VEC-WDOG-04: a process that ends by itself and not well posts its fault, which waits for an agentd; it is started again.
func TestSupervisorPosts(t *testing.T) {
	for name, want := range map[string]string{"robotd": "916", "agentd": "923"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, bin := filepath.Join(t.TempDir(), "robot"), t.TempDir()
			if err := Make(dir, Birth{Thing: "vic:00e20100", Secret: "s", RootPEM: testRoot(t), OSVersion: "2.0.0.6074"}); err != nil {
				t.Fatal(err)
			}
			for _, p := range []string{"robotd", "agentd"} {
				program := "#!/bin/sh\nexec sleep 600\n"
				if p == name { // it dies in its first life
					program = "#!/bin/sh\ncase \"$*\" in *-halt*) exit 0; esac\nif [ ! -e $2/died ]; then touch $2/died; kill -9 $$; fi\n[ -e $2/posted ] || cp $2/run/fault_code $2/posted\nexec sleep 600\n"
				}
				if err := os.WriteFile(filepath.Join(bin, p), []byte(program), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- Run(ctx, Config{Root: dir, Bin: bin, Log: slog.New(slog.DiscardHandler), LogLevel: "info", Getenv: func(string) string { return "" }})
			}()
			testwait.Until(t, 5*testwait.Long, "second life, which sees the posted fault", func() error {
				b, err := os.ReadFile(filepath.Join(dir, "posted"))
				if err == nil && strings.TrimSpace(string(b)) != want {
					err = fmt.Errorf("%s has %q, want %s", faults.File, b, want)
				}
				return err
			})
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
