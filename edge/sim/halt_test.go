package sim

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kennel/edge/env/robotfs"
)

// TestHaltsWhatRobotdLeft: VEC-WDOG-01: as the unit of a robot does, the supervisor of a simulated one halts the body when robotd died, and before
// it starts the next.
func TestHaltsWhatRobotdLeft(t *testing.T) {
	dir, bin := filepath.Join(t.TempDir(), "robot"), t.TempDir()
	if err := Make(dir, Birth{Thing: "vic:00e20100", Secret: "s", RootPEM: testRoot(t), OSVersion: "2.0.0.6074"}); err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]string{
		"robotd": `case "$*" in *" -halt") echo halt >>$2/story; exit 0;; esac; echo start >>$2/story; exec sleep 600`,
		"agentd": "exec sleep 600",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+program+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{Root: dir, Bin: bin, Log: slog.New(slog.DiscardHandler), LogLevel: "info", Getenv: func(string) string { return "" }})
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	killed := 0
	for story := ""; story != "start\nhalt\nstart\n"; {
		select {
		case <-tick.C:
		case err := <-done:
			t.Fatalf("Run ended: %v", err)
		case <-limit:
			t.Fatalf("the story is %q", story)
		}
		b, _ := root.ReadFile("story") // it is not there yet
		story = string(b)
		var s State
		if story == "start\n" && killed == 0 && robotfs.ReadJSON(root, StateFile, &s) == nil && s.Pids["robotd"] != 0 {
			killed = s.Pids["robotd"]
			if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
