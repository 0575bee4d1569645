package storms

import (
	"context"
	"crypto"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/freeaddr"
	"kennel/infra/mqtt/brokeradmin/mosquitto"
)

// Brokers that the cluster can run behind: words of mqtt.broker.
const (
	embedded        = "embedded"
	mosquittoBroker = "mosquitto"
)

// startBroker runs the broker as a part of its own. Robots call addr["mqtt"], kenneld addr["mqtt-services"].
func (c *cluster) startBroker(ctx context.Context, kind string) {
	c.t.Helper()
	c.broker = kind
	c.addr["mqtt-services"] = c.addr["mqtt"]
	c.brokers = []string{"broker"}
	if kind == natsBroker {
		c.startNATS(ctx)
		return
	}
	if kind == embedded {
		c.child(ctx, "broker", filepath.Join(housetest.Bin, "kenneld"), "part", "broker", "-config", c.brokerConfig())
		return
	}
	c.addr["mqtt-services"] = freeaddr.For(c.t)
	conf := c.mosquittoConfig()
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		path = "/usr/sbin/mosquitto" // not in everybody's search path
	}
	c.child(ctx, "broker", path, "-c", conf)
}

// mosquittoConfig is the deployment's own configuration (composeMosquitto) with this machine's paths and ports. The security file names no
// robot: the cloud tells the broker.
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
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	anchor := func(authority string) string {
		t.Helper()
		file := filepath.Join(c.inst.Paths.CA, authority)
		pair, err := tls.LoadX509KeyPair(file+".crt", file+".key")
		if err != nil {
			t.Fatal(err)
		}
		b, err := mosquitto.Anchor(pair.Leaf, pair.PrivateKey.(crypto.Signer))
		if err != nil {
			t.Fatal(err)
		}
		return write(authority+"-anchor.crt", b)
	}
	pair, err := c.ca.IssueServer([]string{"localhost", "127.0.0.1"}, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b := housetest.ComposeMosquitto
	b.Things, b.Services = c.addr["mqtt"], c.addr["mqtt-services"]
	b.Cert, b.Key = write("server.crt", pair.Chain), write("server.key", pair.Key)
	b.DeviceCA, b.ServiceCA = anchor("device"), anchor("service")
	b.DeviceCRL, b.PIDFile = filepath.Join(dir, "device.crl"), filepath.Join(dir, "mosquitto.pid")
	lists, err := c.ca.DeviceCRLs(nil, 0, time.Now().Add(-time.Hour)) // as kenneld install does
	if err != nil || len(lists) != 1 {
		t.Fatalf("%d revocation lists, %v", len(lists), err)
	}
	write("device.crl", pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: lists[0].DER}))
	c.lists = fmt.Sprintf(", crl_file: %q, pid_file: %q", b.DeviceCRL, b.PIDFile)
	b.SecurityFile, b.Plugin = filepath.Join(dir, "security.json"), housetest.MosquittoPlugin(t)
	if os.Geteuid() == 0 {
		b.User = "root" // else it gives up the right to read these files
	}
	file, err := b.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
