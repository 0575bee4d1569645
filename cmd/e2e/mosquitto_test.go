package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Brokers that the cluster can run behind.
const (
	embedded  = "embedded"
	mosquitto = "mosquitto"
)

// startBroker runs the broker as a part of its own. Robots call addr["mqtt"], kenneld addr["mqtt-services"].
func (c *cluster) startBroker(ctx context.Context, kind string) {
	c.t.Helper()
	c.addr["mqtt-services"] = c.addr["mqtt"]
	if kind == embedded {
		c.child(ctx, "broker", filepath.Join(bin, "kenneld"), "part", "broker", "-config", c.brokerConfig())
		return
	}
	c.addr["mqtt-services"] = freeAddr(c.t)
	conf := c.mosquittoConfig()
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		path = "/usr/sbin/mosquitto" // not in everybody's search path
	}
	c.child(ctx, "broker", path, "-c", conf)
}

// mosquittoConfig is the deployment's own configuration (infra/compose), with this machine's paths and ports.
func (c *cluster) mosquittoConfig() string {
	t := c.t
	t.Helper()
	dir := filepath.Join(c.dir, "mosquitto")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) string {
		t.Helper()
		f := filepath.Join(dir, name)
		if err := os.WriteFile(f, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return f
	}
	pair, err := c.ca.IssueServer([]string{"localhost", "127.0.0.1"}, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	acl, err := os.ReadFile("../../infra/compose/mosquitto/acl")
	if err != nil {
		t.Fatal(err)
	}
	conf, err := os.ReadFile("../../infra/compose/mosquitto/mosquitto.conf")
	if err != nil {
		t.Fatal(err)
	}
	var trust []byte
	for _, b := range [][]byte{c.ca.Root(), c.ca.DeviceBundle(), c.ca.ServiceBundle()} {
		trust = append(trust, b...)
	}
	port := func(part string) string { _, p, _ := strings.Cut(c.addr[part], ":"); return p }
	text := strings.NewReplacer(
		"/etc/kennel/acl", write("acl", acl), "/run/kennel/ca.crt", write("ca.crt", trust), "/run/kennel/server.crt", write("server.crt", pair.Chain),
		"/run/kennel/server.key", write("server.key", pair.Key), "listener 8883", "listener "+port("mqtt")+" 127.0.0.1", "listener 8884", "listener "+port("mqtt-services")+" 127.0.0.1",
	).Replace(string(conf))
	if os.Geteuid() == 0 {
		text = "user root\n" + text // else it gives up the right to read these files
	}
	return write("mosquitto.conf", []byte(text))
}
