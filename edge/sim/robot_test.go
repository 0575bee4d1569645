package sim

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/edge/agent/robotfs"
)

// TestBoots: VEC-BOOT-02: a button that is let go too early starts no program; then somebody presses it for long enough. The state says which boot it
// is, of what kind, and who runs; the body is where a robot has its tty.
func TestBoots(t *testing.T) {
	dir, bin := filepath.Join(t.TempDir(), "robot"), t.TempDir()
	if err := Make(dir, Birth{Thing: "vic:00e20100", Secret: "s", RootPEM: testRoot(t), OSVersion: "2.0.0.6074"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"robotd", "agentd"} { // heads that are silent
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nexec sleep 600\n"), 0o755); err != nil {
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
		done <- Run(ctx, Config{Root: dir, Bin: bin, Press: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler), LogLevel: "info", Getenv: func(string) string { return "" }})
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for {
		var s State
		err := robotfs.ReadJSON(root, StateFile, &s)
		if err == nil && s.Pids["robotd"] != 0 && s.Pids["agentd"] != 0 {
			if s.Boots != 2 || s.Boot != "normal" {
				t.Errorf("its programs run in %+v, want the second boot, normal", s)
			}
			break
		}
		select {
		case <-tick.C:
		case err := <-done:
			t.Fatalf("Run ended: %v", err)
		case <-limit:
			t.Fatalf("%+v, %v", s, err)
		}
	}
	if fi, err := root.Lstat("dev/ttyHS0"); err != nil || fi.Mode()&os.ModeSocket == 0 {
		t.Errorf("the body's line: %v, %v", fi, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := root.Lstat("dev/ttyHS0"); err == nil {
		t.Error("the body's line is left behind")
	}
}
