// Package natsservertest starts real NATS servers with Kennel's configuration and small authorities of its own, for tests that want the cluster.
// The server is a tool of the module: go builds it once and keeps it in its cache.
package natsservertest

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kennel/infra/freeaddr"
	"kennel/infra/mqtt/brokeradmin/natsserver"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/mqtt/brokerauth"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/proc"
	"kennel/infra/testwait"
)

// secret is the cluster's, in tests.
const secret = "a secret of tests, thirty-two characters or more"

// Cluster is one NATS server or several, as processes.
type Cluster struct {
	Auth  *mqtttest.Broker // authorities; its embedded broker never starts
	Nodes []*Node
	Keys  natsserver.Keys

	program string
}

// Node is one server of the cluster.
type Node struct {
	MQTT   *mqtttest.Broker // the cluster's authorities, and this node's address for MQTT
	Config natsserver.Node

	file    string
	program string
	stop    func()
	pid     int
}

// New makes authorities, files and ports for n servers without starting them; n is 1 or at least 3.
func New(t testing.TB, n int) *Cluster {
	t.Helper()
	path, err := exec.Command("go", "tool", "-n", "github.com/nats-io/nats-server/v2").Output()
	if err != nil {
		t.Fatalf("no nats-server: %v", err)
	}
	c := &Cluster{Auth: mqtttest.New(t), program: strings.TrimSpace(string(path))}
	if c.Keys, err = natsserver.NewKeys(secret); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data ...[]byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, bytes.Join(data, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	cert, key, err := natsserver.NewRoute([]string{"127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	common := natsserver.Node{
		Cert: c.Auth.Config.Cert, Key: c.Auth.Config.Key, ServiceCA: c.Auth.Config.ServiceCA,
		ClientCA:  write("clients.crt", c.Auth.Device.PEM(), c.Auth.Service.PEM()),
		RouteCert: write("route.crt", cert), RouteKey: write("route.key", key), Replicas: min(n, 3),
	}
	for i := range n {
		node := &Node{Config: common, program: c.program}
		node.Config.Name, node.Config.Dir = fmt.Sprint("n", i+1), filepath.Join(dir, fmt.Sprint("n", i+1))
		node.Config.MQTT, node.Config.Services, node.Config.Cluster = freeaddr.For(t), freeaddr.For(t), freeaddr.For(t)
		node.Config.Monitor = freeaddr.For(t)
		node.file = filepath.Join(dir, fmt.Sprintf("n%d.conf", i+1))
		at := *c.Auth
		at.URL = "ssl://" + node.Config.MQTT
		node.MQTT = &at
		c.Nodes = append(c.Nodes, node)
	}
	for i, node := range c.Nodes {
		for j, other := range c.Nodes {
			if i != j {
				node.Config.Routes = append(node.Config.Routes, other.Config.Cluster)
			}
		}
	}
	return c
}

// Start makes and starts n servers that stop with the test, and waits until the cluster stores streams.
func Start(t testing.TB, n int) *Cluster {
	t.Helper()
	c := New(t, n)
	for _, node := range c.Nodes {
		node.Launch(t, c.Keys)
	}
	for _, node := range c.Nodes {
		node.Wait(t)
	}
	return c
}

// Launch starts the server and does not wait for it. After Kill it can be started again.
func (n *Node) Launch(t testing.TB, keys natsserver.Keys) {
	t.Helper()
	text, err := n.Config.Config(keys)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	pid, done := make(chan int, 1), make(chan error, 1)
	go func() {
		done <- proc.Once(ctx, proc.Spec{
			Name: n.Config.Name, Path: n.program, Args: []string{"-c", n.file}, Log: output{t, n.Config.Name}, OnStart: func(p int) { pid <- p },
		})
	}()
	n.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(n.stop)
	select {
	case n.pid = <-pid:
	case err := <-done:
		done <- nil
		t.Fatalf("nats-server: %v", err)
	}
}

// Wait blocks until the server is part of a cluster that has a leader for its streams.
func (n *Node) Wait(t testing.TB) {
	t.Helper()
	testwait.Until(t, testwait.Long, n.Config.Name+" is healthy", func() error {
		r, err := http.Get("http://" + n.Config.Monitor + "/healthz?js-meta-only=true")
		if err != nil {
			return err
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", r.StatusCode)
		}
		return nil
	})
}

// Kill ends the server with SIGKILL and waits for its end.
func (n *Node) Kill() {
	_ = syscall.Kill(n.pid, syscall.SIGKILL) // gone already is as good
	n.stop()
}

// PID returns the process of the server.
func (n *Node) PID() int { return n.pid }

// Servers returns how a process of the cloud reaches the cluster.
func (c *Cluster) Servers(t testing.TB) natsserver.Servers {
	t.Helper()
	s := natsserver.Servers{TLS: c.Auth.Cloud(t), Keys: c.Keys}
	for _, n := range c.Nodes {
		s.URLs = append(s.URLs, "tls://"+n.Config.Services)
	}
	return s
}

// Admin returns an Admin of the cluster that runs until the test ends, with an empty deny list.
func (c *Cluster) Admin(t testing.TB) *natsserver.Admin {
	t.Helper()
	a, err := natsserver.New(natsserver.Config{
		Servers: c.Servers(t), Trust: func() brokerauth.Trust { return c.Trust() },
		Denied:  func(context.Context, int64) (brokerapi.Deny, int64, error) { return brokerapi.Deny{}, 0, nil },
		Changed: func() <-chan struct{} { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	Run(t, a.Run)
	return a
}

// Trust returns the authorities of things and services.
func (c *Cluster) Trust() brokerauth.Trust {
	tr := brokerauth.Trust{Devices: x509.NewCertPool(), Services: x509.NewCertPool()}
	tr.Devices.AddCert(c.Auth.Device.Cert)
	tr.Services.AddCert(c.Auth.Service.Cert)
	return tr
}

// Run runs f until the test ends, or until stop is called, and demands that it returns nil.
func Run(t testing.TB, f func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// output passes a server's log on to the test's.
type output struct {
	t    testing.TB
	name string
}

func (o output) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		_, _ = o.t.Output().Write([]byte(o.name + ": " + line))
	}
	return len(p), nil
}
