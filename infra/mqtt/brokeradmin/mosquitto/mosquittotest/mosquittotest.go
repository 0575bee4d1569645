// Package mosquittotest starts a real Mosquitto with Kennel's configuration and small authorities of its own, for tests that want the
// foreign broker. It needs Debian's mosquitto package.
package mosquittotest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kennel/infra/freeaddr"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokeradmin/mosquitto"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/proc"
	"kennel/infra/thing"
)

// Broker is a Mosquitto process, or a place for one.
type Broker struct {
	Things   *mqtttest.Broker // authorities, and the address for robots
	Services *mqtttest.Broker // the same authorities, and the address for the cloud's processes
	Config   mosquitto.Broker // change it after New and before Start
	Dir      string           // its configuration

	program string
	stop    func()
	pid     func() int
}

// New makes authorities, files and ports for a Mosquitto without starting it.
func New(t testing.TB) *Broker {
	t.Helper()
	program, err := exec.LookPath("mosquitto")
	if err != nil {
		program = "/usr/sbin/mosquitto" // not in everybody's search path
		if _, err := os.Stat(program); err != nil {
			t.Fatalf("no mosquitto: run infra/setup.sh test: %v", err)
		}
	}
	auth := mqtttest.New(t) // authorities and files; its embedded broker never starts
	b := &Broker{Things: auth, Dir: t.TempDir(), program: program}
	services := *auth
	b.Services = &services
	things, svc := freeaddr.For(t), freeaddr.For(t)
	b.Things.URL, b.Services.URL = "ssl://"+things, "ssl://"+svc
	b.Config = mosquitto.Broker{
		Things: things, Services: svc, Cert: auth.Config.Cert, Key: auth.Config.Key, DeviceCA: auth.Config.DeviceCA, ServiceCA: auth.Config.ServiceCA,
		SecurityFile: filepath.Join(b.Dir, "security.json"),
	}
	if os.Geteuid() == 0 {
		b.Config.User = "root" // the test's folder is closed to everybody else
	}
	return b
}

// Start makes and starts a Mosquitto that stops with the test.
func Start(t testing.TB) *Broker {
	t.Helper()
	b := New(t)
	b.Start(t)
	return b
}

// Start starts Mosquitto and waits until it listens. After Stop or Kill it can be started again.
func (b *Broker) Start(t testing.TB) {
	t.Helper()
	file, err := b.Config.Write(b.Dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	log := &watcher{word: []byte(" running"), seen: make(chan struct{}), to: t}
	pid := make(chan int, 1) // the one start
	done := make(chan error, 1)
	go func() {
		done <- proc.Once(ctx, proc.Spec{Name: "mosquitto", Path: b.program, Args: []string{"-c", file}, Log: log, OnStart: func(p int) { pid <- p }})
	}()
	b.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(b.stop)
	select {
	case <-log.seen:
		p := <-pid
		b.pid = func() int { return p }
	case err := <-done:
		done <- nil
		t.Fatalf("mosquitto: %v", err)
	case <-time.After(20 * time.Second):
		t.Fatal("mosquitto does not say that it runs")
	}
}

// Kill ends Mosquitto with SIGKILL and waits for its end.
func (b *Broker) Kill() {
	_ = syscall.Kill(b.pid(), syscall.SIGKILL) // gone already is as good
	b.stop()
}

// Freeze stops the broker's process without ending it, until thaw: its port still accepts, and nothing is answered.
func (b *Broker) Freeze(t testing.TB) (thaw func()) {
	t.Helper()
	pid := b.pid()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) } // gone already is as good
}

// Reload asks Mosquitto to read its configuration and certificates again, and returns before it has.
func (b *Broker) Reload(t testing.TB) {
	t.Helper()
	if err := syscall.Kill(b.pid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// Admin returns an Admin for this Mosquitto that runs until the test ends and knows things.
func (b *Broker) Admin(t testing.TB, things ...thing.ID) *mosquitto.Admin {
	t.Helper()
	a, err := mosquitto.New(mosquitto.Config{
		MQTT:   mqtt.Config{URL: b.Services.URL, TLS: b.Services.Cloud(t), MinBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond},
		Things: func(context.Context) ([]thing.ID, error) { return things, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("admin: %v", err)
		}
	})
	return a
}

// watcher waits for a word in a log and passes the log on.
type watcher struct {
	word []byte
	once sync.Once
	seen chan struct{}
	to   testing.TB
}

func (w *watcher) Write(p []byte) (int, error) {
	if bytes.Contains(p, w.word) {
		w.once.Do(func() { close(w.seen) })
	}
	for line := range strings.Lines(string(p)) {
		_, _ = w.to.Output().Write([]byte("mosquitto: " + line))
	}
	return len(p), nil
}
