package e2e

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/infra/thing"
)

// TestComposeStrangers (issue 16: what must hold 1): compose.yaml's proxy and Mosquitto let a robot in about as fast as ever while one address holds
// half-open connections; those that do not greet are gone, and of the others the address has no more than its share.
func TestComposeStrangers(t *testing.T) {
	const id thing.ID = "vic:00e20100"
	d := newDeployment(t)
	for _, name := range []string{"install", "broker", "proxy"} {
		d.bringUp(name)
	}
	authority, err := ca.Load(filepath.Join(d.dir, "state/kenneld/ca"))
	if err != nil {
		t.Fatal(err)
	}
	robot := identities{t, authority, d}.thing(id)
	v := visitor{robot: &tls.Config{RootCAs: authority.RootPool(), ServerName: "localhost", Certificates: []tls.Certificate{robot.cert}}, id: id}
	addr := d.addr["localhost:8883"]
	await(t, time.Minute, "the proxy has found the broker", func() error { return v.login(t.Context(), addr) })

	quiet := times(t, pick(30, 300), addr, v.login)
	strangers := attack(t, addr, "mqtt", 4000, []string{"127.0.0.2"})
	attacked := times(t, pick(30, 300), addr, v.login)
	inTime(t, "Mosquitto behind the proxy", quiet, attacked)
	await(t, 30*time.Second, "the address has no more than its share", func() error {
		if n := strangers.open.Load(); n > 2000 {
			return fmt.Errorf("it holds %d connections", n)
		}
		return nil
	})
	t.Logf("%d connections held, %d opened", strangers.open.Load(), strangers.dialed.Load())
}
