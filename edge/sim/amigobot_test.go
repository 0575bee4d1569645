package sim

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/edge/agent/teleop/simulator"
	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/sysmode"
	"kennel/edge/body/port"
	"kennel/edge/body/vector/factory"
	"kennel/edge/env/platform"
	"kennel/edge/sim/plane"
	"kennel/infra/api/poke"
)

// TestAmigobot: an AmigoBot is born with its serial number, has its two serial lines where robotd and agentd look, and keeps what is stored in its
// FLASH (AMIGO-FLASH-38). Its programs hear which body they have (VEC-FLE-07).
func TestAmigobot(t *testing.T) {
	dir, bin := filepath.Join(t.TempDir(), "robot"), t.TempDir()
	if err := Make(dir, Birth{Thing: "amigo:00e20100", Secret: "s", RootPEM: testRoot(t), OSVersion: "2.0.0.6074"}); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if id, err := platform.ID(root, factory.Hardware{}); err != nil || id != "amigo:00e20100" {
		t.Errorf("it is %s, %v", id, err)
	}
	for _, name := range []string{"robotd", "agentd"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho $@ > $2/run/"+name+"\nexec sleep 600\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	room, err := plane.Builtin("room")
	if err != nil {
		t.Fatal(err)
	}
	run := func(during func(ctx context.Context)) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			done <- Run(ctx, Config{Root: dir, Bin: bin, World: room, Log: slog.New(slog.DiscardHandler), LogLevel: "info",
				Getenv: func(string) string { return "" }})
		}()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			said, err := root.ReadFile("run/robotd")
			if err == nil && bytes.HasSuffix(said, []byte("\n")) && Poke(ctx, dir, poke.Poke{Verb: poke.Tools}) == nil {
				break
			}
			select {
			case <-tick.C:
			case err := <-done:
				t.Fatalf("Run ended: %v", err)
			}
		}
		during(ctx)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	tools := func(ctx context.Context) (*sysmode.Client, func()) {
		t.Helper()
		line, err := port.Open(ctx, filepath.Join(dir, "dev/ttyAmigoSystem"), 9600, false)
		if err != nil {
			t.Fatal(err)
		}
		return sysmode.NewClient(line), func() { _ = line.Close() }
	}
	run(func(ctx context.Context) {
		if said, _ := root.ReadFile("run/robotd"); !bytes.Contains(said, []byte("-body amigobot -device "+filepath.Join(dir, "dev/ttyAmigo"))) {
			t.Errorf("robotd is told %s", said)
		}
		if w, err := simulator.NewClient(root).Ask(ctx); err != nil || w == nil || w.Map.Name != "room" || w.Map.Body.Width != 0.36 {
			t.Errorf("its world is %+v, %v", w, err)
		}
		c, leave := tools(ctx)
		defer leave()
		v, err := c.Params(ctx)
		if err != nil || v.Value(flash.Serial) != "00E20100" {
			t.Errorf("its serial number is %s, %v", v.Value(flash.Serial), err)
		}
		if err := v.Set("WatchDog", "4000"); err != nil {
			t.Error(err)
		}
		if err := c.Save(ctx, &v); err != nil {
			t.Error(err)
		}
	})
	run(func(ctx context.Context) {
		c, leave := tools(ctx)
		defer leave()
		if v, err := c.Params(ctx); err != nil || v.Int(flash.WatchDog) != 4000 || v.Value(flash.Serial) != "00E20100" {
			t.Errorf("another day it holds %+v, %v", v, err)
		}
	})
	if err := Make(filepath.Join(t.TempDir(), "robot"), Birth{Thing: "pleo:00e20100"}); err == nil {
		t.Error("a robot without a simulated body was made")
	}
}
