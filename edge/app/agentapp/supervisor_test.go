package agentapp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/edge/env/platform"
	"kennel/edge/sim"
	"kennel/infra/cli"
	"kennel/infra/sdnotify"
)

// rootPEM is some cloud's root certificate.
func rootPEM(t *testing.T) []byte {
	t.Helper()
	a, err := ca.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a.Root()
}

// notifySocket is where a supervisor listens.
func notifySocket(t *testing.T) (sock *net.UnixConn, addr string) {
	t.Helper()
	addr = filepath.Join(t.TempDir(), "notify")
	sock, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: addr, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sock.Close() }) // read only
	return sock, addr
}

// TestSupervisorHears: agentd tells its supervisor that it is ready although there is no cloud, that it is alive while every part answers and not
// while one hangs, and that it ends.
func TestSupervisorHears(t *testing.T) {
	dir := t.TempDir()
	var e platform.Endpoints
	e.Kennel.API, e.Kennel.MQTT = "https://127.0.0.1:1", "ssl://127.0.0.1:1" // no supervisor
	if err := sim.Make(dir, sim.Birth{Thing: "vic:00e20100", Secret: "unused", Endpoints: e, RootPEM: rootPEM(t), OSVersion: "2.0.0.6074"}); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	sock, addr := notifySocket(t)
	// hear returns "" if nothing comes.
	hear := func(within time.Duration) string {
		t.Helper()
		b := make([]byte, 4096)
		_ = sock.SetReadDeadline(time.Now().Add(within)) // a closed one fails in Read
		n, err := sock.Read(b)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	const every = 10 * time.Millisecond
	a, err := New(root, Config{
		Root: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Supervisor: sdnotify.Supervisor{Addr: addr, Every: every},
	})
	if err != nil {
		t.Fatal(err)
	}
	var hang sync.Mutex
	uptime := a.Uptime
	a.Uptime = func() time.Duration {
		hang.Lock()
		defer hang.Unlock()
		return uptime()
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for _, want := range []string{sdnotify.Ready, sdnotify.Watchdog, sdnotify.Watchdog} {
		if got := hear(20 * time.Second); got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
	hang.Lock() // a part that hangs
	silent := false
	for range 100 { // what was said before
		if silent = hear(50*every) == ""; silent {
			break
		}
	}
	hang.Unlock()
	if !silent {
		t.Error("the watchdog is fed while a part hangs")
	}
	if got := hear(20 * time.Second); got != sdnotify.Watchdog {
		t.Errorf("heard %q after it hung, want %q", got, sdnotify.Watchdog)
	}
	cancel()
	last := sdnotify.Watchdog
	for last == sdnotify.Watchdog {
		last = hear(20 * time.Second)
	}
	if last != sdnotify.Stopping {
		t.Errorf("heard %q, want %q", last, sdnotify.Stopping)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSupervisorThatIsNotThere: what the environment says of a supervisor is believed or refused, not overlooked.
func TestSupervisorThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	if err := sim.Make(dir, sim.Birth{Thing: "vic:00e20100", Secret: "unused", RootPEM: rootPEM(t), OSVersion: "2.0.0.6074"}); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{"NOTIFY_SOCKET": filepath.Join(dir, "nobody"), "WATCHDOG_USEC": "soon"} {
		var out, errOut bytes.Buffer
		code := Main([]string{"-root", dir}, func(k string) string { return map[string]string{key: value}[k] }, &out, &errOut)
		if code == cli.ExitOK || !strings.Contains(errOut.String(), key) {
			t.Errorf("%s=%s: code %d, %s", key, value, code, &errOut)
		}
	}
}
