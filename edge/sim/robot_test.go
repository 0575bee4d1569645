package sim

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/health/nightly"
	"kennel/edge/body/bodysim"
	"kennel/edge/body/vector/factory/bootparam"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/poke"
	"kennel/infra/errs"
	"kennel/infra/wav"
)

// TestBoots: VEC-BOOT-02: a button that is let go too early starts no program; then it is pressed for long enough. The state says which
// boot it is, of what kind, and which programs run; the body's socket is where a robot has its tty, and a poke reaches it.
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
		done <- Run(ctx, Config{
			Root: dir, Bin: bin, Press: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler), LogLevel: "info",
			Getenv: func(string) string { return "" },
		})
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for {
		var s State
		err := robotfs.ReadJSON(root, StateFile, &s)
		if err == nil && s.Pids["robotd"] != 0 && s.Pids["agentd"] != 0 && Poke(t.Context(), dir, poke.Poke{Verb: poke.Touch}) == nil {
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
	if err := Poke(t.Context(), dir, poke.Poke{Verb: poke.Lift}); err == nil || !strings.Contains(err.Error(), "has no world") {
		t.Errorf("a robot that is nowhere was lifted: %v", err)
	}
	// No head listens, and the sound ends all the same; the simulator keeps it, so that the cloud can have it played by its name.
	hello := wav.Append(nil, &wav.Sound{Rate: 16000, Channels: 1, Samples: make([]int16, 1600)})
	play := poke.Poke{Verb: poke.Play, File: "hello.wav"}
	if heard, err := Play(t.Context(), dir, play, hello); err != nil || heard.Ended-heard.Began < int64(80*time.Millisecond) {
		t.Errorf("a sound of 100 ms was heard %+v, %v", heard, err)
	}
	if err := Poke(t.Context(), dir, play); err != nil {
		t.Error(err)
	}
	if err := Poke(t.Context(), dir, poke.Poke{Verb: poke.Play, File: "none.wav"}); err == nil || !strings.Contains(err.Error(), "no such sound") {
		t.Errorf("a sound that is not there: %v", err)
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
	err = Poke(t.Context(), dir, poke.Poke{Verb: poke.Touch})
	if errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "not running") {
		t.Errorf("a robot that has ended: %v", err)
	}
	for _, dir := range []string{bin, filepath.Join(bin, "none")} {
		if err := Poke(t.Context(), dir, poke.Poke{Verb: poke.Touch}); errs.KindOf(err) != errs.NotFound {
			t.Errorf("no robot: %v", err)
		}
	}
}

// TestNight: VEC-BOOT-16: when agentd ended for the night the whole robot reboots. Its real-time core is shut down cleanly, so that the
// next start takes it as intended (VEC-PWR-42), and run/ is empty.
func TestNight(t *testing.T) {
	dir, bin := filepath.Join(t.TempDir(), "robot"), t.TempDir()
	if err := Make(dir, Birth{Thing: "vic:00e20100", Secret: "s", RootPEM: testRoot(t), OSVersion: "2.0.0.6074"}); err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]string{
		"robotd": "trap 'touch $2/polite; exit 0' TERM; touch $2/run/core; sleep 600 & wait\n",
		"agentd": "until [ -e $2/run/core ]; do sleep 0.01; done\n" +
			"if [ ! -e $2/night ]; then touch $2/night $2/run/old $2/" + nightly.AskedFile + "; exit 1; fi\n" +
			"rm -f $2/" + nightly.AskedFile + "; touch $2/run/new; exec sleep 600\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+program), 0o755); err != nil {
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
	for {
		if _, err := root.Stat("run/new"); err == nil {
			break
		}
		select {
		case <-tick.C:
		case err := <-done:
			t.Fatalf("Run ended: %v", err)
		case <-limit:
			t.Fatal("the robot does not boot anew")
		}
	}
	var s State
	if err := robotfs.ReadJSON(root, StateFile, &s); err != nil || s.Boots != 2 {
		t.Errorf("%+v, %v; want the second boot", s, err)
	}
	if _, err := root.Stat("polite"); err != nil {
		t.Errorf("the real-time core was not ended politely: %v", err)
	}
	if _, err := root.Stat("run/old"); err == nil {
		t.Error("run/ was not emptied")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestLoad: VEC-BOOT-03, VEC-BOOT-07: the boot-loader's word is on the kernel's command line for a
// recovery boot and for no other, beside what is said there anyway; then the logs are not among the
// user data.
func TestLoad(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	r := &robot{root: root}
	load := func(k bodysim.Boot, logs, line string) {
		t.Helper()
		_, got, err := r.load(k)
		b, readErr := root.ReadFile(bootparam.File)
		if line == "" && errors.Is(readErr, fs.ErrNotExist) {
			readErr = nil
		}
		if got != logs || string(b) != line || err != nil || readErr != nil {
			t.Errorf("%v: logs in %q, the kernel hears %q, %v, %v; want %q and %q", k, got, b, err, readErr, logs, line)
		}
		if fi, err := root.Stat(logs); err != nil || !fi.IsDir() {
			t.Errorf("%v: %v, %v", logs, fi, err)
		}
	}
	load(bodysim.Recovery, recoveryLogs, "anki.unbrick=1\n")
	if _, err := root.Stat("data"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a recovery boot made data/: %v", err)
	}
	if err := root.Remove(bootparam.File); err != nil {
		t.Fatal(err)
	}
	load(bodysim.Normal, LogDir, "")
	if err := root.WriteFile(bootparam.File, []byte("quiet anki.dev\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	load(bodysim.Recovery, recoveryLogs, "anki.unbrick=1 quiet anki.dev\n")
	load(bodysim.Recovery, recoveryLogs, "anki.unbrick=1 quiet anki.dev\n")
	load(bodysim.Normal, LogDir, "quiet anki.dev\n")
}
