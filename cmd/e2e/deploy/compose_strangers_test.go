package deploy

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/cmd/e2e/housetest"
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
	v := housetest.Visitor{Robot: &tls.Config{RootCAs: authority.RootPool(), ServerName: "localhost", Certificates: []tls.Certificate{robot.cert}}, ID: id}
	addr := d.addr["localhost:8883"]
	housetest.Await(t, time.Minute, "the proxy has found the broker", func() error { return v.Login(t.Context(), addr) })

	visits := housetest.Pick(20, 1000) // in full for longer than the proxy waits for a greeting, so that strangers come again meanwhile
	for _, who := range []struct {
		name string
		from []string
	}{{"one address", []string{"127.0.0.2"}}, {"200 addresses", housetest.Addresses(200)}} {
		quiet := housetest.Visits(t, visits, addr, v.Login)
		strangers := housetest.Attack(t, addr, "mqtt", 2000, who.from)
		attacked := housetest.Visits(t, visits, addr, v.Login)
		t.Logf("%s: %d connections held, %d opened", who.name, strangers.Open.Load(), strangers.Dialed.Load())
		strangers.End()
		quiet = append(quiet, housetest.Visits(t, visits, addr, v.Login)...)
		slices.Sort(quiet)
		housetest.InTime(t, "Mosquitto behind the proxy, strangers of "+who.name, quiet, attacked)
	}

	strangers := housetest.Attack(t, addr, "mqtt", 4000, []string{"127.0.0.3"})
	housetest.Await(t, 30*time.Second, "the address has no more than its share", func() error {
		if n := strangers.Open.Load(); n > 2000 {
			return fmt.Errorf("it holds %d connections", n)
		}
		return v.Login(t.Context(), addr)
	})
	t.Logf("%d connections held, %d opened", strangers.Open.Load(), strangers.Dialed.Load())
}
