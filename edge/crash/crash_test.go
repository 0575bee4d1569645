package crash

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kennel/edge/env"
	"kennel/edge/env/envtest"
	"kennel/infra/runner"
	"kennel/infra/testexec"
)

// The test binary runs itself as a robot's program that ends in a given way.
const (
	envRoot = "KENNEL_CRASH_TEST_ROOT"
	envEnd  = "KENNEL_CRASH_TEST_END"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envRoot); dir != "" {
		program(dir, os.Getenv(envEnd))
		return
	}
	os.Exit(m.Run())
}

func program(dir, end string) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	c := Begin(dir, "robotd", envtest.Hardware{}, func(string) string { return "" }, log)
	if c == nil {
		os.Exit(3)
	}
	started := make(chan bool)
	go deepInside(started)
	<-started
	switch end {
	case "panic":
		m := map[string]int{"x": 1}
		clear(m)
		_ = 1 / m["x"]
	case "throw":
		new(sync.Mutex).Unlock()
	case "exit":
		os.Exit(1)
	case "orderly":
		c.End()
		return
	case "service":
		ctx, cancel := context.WithCancel(context.Background())
		panics := 0
		_ = runner.Run(ctx, log, runner.Config{MinBackoff: time.Millisecond, OnPanic: c.Panicked}, runner.Service{Name: "lights", Run: func(context.Context) error {
			if panics++; panics == 3 {
				cancel()
				return nil
			}
			panic("no bulb")
		}})
		c.End()
		return
	}
	fmt.Println("up")
	time.Sleep(time.Hour) // without a timer the runtime would call this a deadlock
}

//go:noinline
func deepInside(started chan bool) {
	started <- true
	select {}
}

// live runs the program until it ended as said.
func live(t *testing.T, dir, end string, sig syscall.Signal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := testexec.Command(ctx, t, []string{envRoot + "=" + dir, envEnd + "=" + end})
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if sig != 0 {
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
			t.Fatalf("it said %q, %v", line, err)
		}
		f, err := os.Open(only(t, dir, Running))
		if err != nil {
			t.Fatal(err)
		}
		if !Alive(f) {
			t.Error("a program that runs does not seem to live")
		}
		if err := errors.Join(f.Close(), cmd.Process.Signal(sig)); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait() // the record says how it ended
}

// records lists the files of the crash folder.
func records(t *testing.T, dir, ending string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "data/data/com.anki.victor/cache/crashDumps", "*"+ending))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func only(t *testing.T, dir, ending string) string {
	t.Helper()
	names := records(t, dir, ending)
	if len(names) != 1 {
		t.Fatalf("records %q, want one", names)
	}
	return names[0]
}

// TestDeath: VEC-CRS-01, with a process each: each kind of end leaves its own record.
func TestDeath(t *testing.T) {
	for _, tc := range []struct {
		name, end string
		signal    syscall.Signal
		cause     string
		has       []string
	}{
		{"panic", "panic", 0, "panic: runtime error: integer divide by zero", []string{"goroutine 1 [running]", "crash.program", "crash.deepInside"}},
		{"throw", "throw", 0, "fatal error", []string{"goroutine 1 [running]", "crash.program"}},
		{"SIGQUIT", "", syscall.SIGQUIT, "SIGQUIT: quit", []string{"goroutine 1", "crash.deepInside"}},
		{"SIGABRT", "", syscall.SIGABRT, "SIGABRT: abort", []string{"goroutine 1", "crash.deepInside"}},
		{"SIGKILL", "", syscall.SIGKILL, "", nil},
		{"an exit that nobody announced", "exit", 0, "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "etc"), 0o755), os.WriteFile(filepath.Join(dir, "etc/os-version"), []byte("2.0.0.6074\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			live(t, dir, tc.end, tc.signal)
			name := only(t, dir, Running)
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if Alive(f) {
				t.Error("a program that ended seems to live")
			}
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Parse(b)
			if err != nil {
				t.Fatalf("%v\n%s", err, b)
			}
			boot, err := os.ReadFile(filepath.Join(dir, "run/boot_id"))
			if err != nil {
				t.Fatal(err)
			}
			if r.Program != "robotd" || r.Version == "" || r.OSVersion != "2.0.0.6074" || r.BootID != strings.TrimSpace(string(boot)) || r.PID < 1 ||
				r.Started.Before(began.Add(-time.Second)) || !r.At.IsZero() || r.Reason != "" || r.Cause() != tc.cause || filepath.Base(name) != r.Name()+Running {
				t.Errorf("%s: cause %q, want %q\n%s", name, r.Cause(), tc.cause, b)
			}
			for _, want := range tc.has {
				if !bytes.Contains(r.Text, []byte(want)) {
					t.Errorf("the record lacks %q:\n%s", want, r.Text)
				}
			}
			if all := records(t, dir, ""); len(all) != 1 {
				t.Errorf("%q beside it", all)
			}
		})
	}
}

// TestOrderlyEnd leaves nothing, and neither does a recovery boot (VEC-BOOT-07); a panic that ended a service alone leaves one record.
func TestOrderlyEnd(t *testing.T) {
	dir := t.TempDir()
	live(t, dir, "orderly", 0)
	if all := records(t, dir, ""); len(all) > 0 {
		t.Errorf("after an orderly end there are %q", all)
	}
	live(t, dir, "service", 0)
	b, err := os.ReadFile(only(t, dir, ""))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Parse(b); err != nil || r.Reason != "panic: no bulb in service lights, which was started again" || r.At.IsZero() ||
		!bytes.Contains(r.Text, []byte("crash.program")) {
		t.Errorf("%v\n%s", err, b)
	}
	rescue := t.TempDir()
	if c := Begin(rescue, "robotd", envtest.Hardware{Started: env.Boot{Recovery: true}}, func(string) string { return "" }, slog.New(slog.DiscardHandler)); c != nil {
		t.Error("a record after a recovery boot")
	}
	if _, err := os.Stat(filepath.Join(rescue, "data")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the user data were touched: %v", err)
	}
}

func TestParse(t *testing.T) {
	r := Record{Program: "robotd", Version: "v1", Build: "abc", OSVersion: "2.0", Thing: "vic:00e20100", BootID: "b", PID: 7, Started: time.Unix(1, 0).UTC(),
		At: time.Unix(2, 5).UTC(), Reason: "panic: x", Text: []byte("panic: x\n")}
	if got, err := Parse(r.Append(nil)); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%+v, %v; want %+v", got, err, r)
	}
	long := Record{Program: "a\nb: c\x00", Reason: strings.Repeat("é", 400)}
	if got, err := Parse(long.Append(nil)); err != nil || got.Program != "a b: c" || got.Reason != strings.Repeat("é", 128) {
		t.Errorf("%+v, %v", got, err)
	}
	for b, want := range map[string]string{
		"":                                     `starts with ""`,
		"MDMP":                                 `starts with "MDMP"`,
		magic + "program: x\n":                 "no empty line",
		magic + "program\n\n":                  `"program": want a key`,
		magic + "pid: -1\n\n":                  "want at least 1",
		magic + "time: yesterday\n\n":          "yesterday",
		magic + strings.Repeat("a: b\n", 2000): "within 4096 bytes",
	} {
		if _, err := Parse([]byte(b)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", b, err, want)
		}
	}
}

// FuzzParse: what is read is written the same, and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(magic + "program: robotd\npid: 7\ntime: 2026-01-02T03:04:05Z\nnew: key\n\npanic: x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			return
		}
		_ = r.Cause()
		again, err := Parse(r.Append(nil))
		if err != nil || !bytes.Equal(again.Append(nil), r.Append(nil)) {
			t.Errorf("%+v, %v; want %+v", again, err, r)
		}
	})
}
