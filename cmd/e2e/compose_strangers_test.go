package e2e

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/infra/thing"
)

// TestComposeStrangers (issue 16: what must hold 1): compose.yaml's proxy and Mosquitto let a robot in about as fast as ever while one address or 200
// hold half-open connections. Connections without a greeting are closed, and no address keeps more than its share.
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

	visits := pick(20, 1000) // in full for longer than the proxy waits for a greeting, so that strangers come again meanwhile
	for _, who := range []struct {
		name string
		from []string
	}{{"one address", []string{"127.0.0.2"}}, {"200 addresses", from(200)}} {
		quiet := times(t, visits, addr, v.login)
		strangers := attack(t, addr, "mqtt", 2000, who.from)
		attacked := times(t, visits, addr, v.login)
		t.Logf("%s: %d connections held, %d opened", who.name, strangers.open.Load(), strangers.dialed.Load())
		strangers.end()
		quiet = append(quiet, times(t, visits, addr, v.login)...)
		slices.Sort(quiet)
		inTime(t, "Mosquitto behind the proxy, strangers of "+who.name, quiet, attacked)
	}

	strangers := attack(t, addr, "mqtt", 4000, []string{"127.0.0.3"})
	await(t, 30*time.Second, "the address has no more than its share", func() error {
		if n := strangers.open.Load(); n > 2000 {
			return fmt.Errorf("it holds %d connections", n)
		}
		return v.login(t.Context(), addr)
	})
	t.Logf("%d connections held, %d opened", strangers.open.Load(), strangers.dialed.Load())
}
