package broker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/broker"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

func order(t *testing.T, c *client, d brokerapi.Deny) error {
	t.Helper()
	parts, err := d.Messages()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		ctx, cancel := context.WithTimeout(t.Context(), long)
		err := c.Publish(ctx, brokerapi.DenyTopic, 1, false, p)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func bySerial(c tls.Certificate) brokerapi.DenyCert {
	return brokerapi.DenyCert{Serial: c.Leaf.SerialNumber.Text(16), Thing: thing.ID(c.Leaf.Subject.CommonName), Until: c.Leaf.NotAfter, Reason: "stolen"}
}

func byKey(c tls.Certificate) brokerapi.DenyCert {
	sum := sha256.Sum256(c.Leaf.RawSubjectPublicKeyInfo)
	return brokerapi.DenyCert{Key: hex.EncodeToString(sum[:]), Until: c.Leaf.NotAfter, Reason: "stolen"}
}

// TestRevokedCertificates: a session of a revoked certificate ends at once, it does not come back, also after a restart of the broker without
// a cloud to tell it, and the same thing with another certificate does.
func TestRevokedCertificates(t *testing.T) {
	for name, entry := range map[string]func(tls.Certificate) brokerapi.DenyCert{"by serial number": bySerial, "by key": byKey} {
		t.Run(name, func(t *testing.T) { // its own broker: clients of the other that stop in the middle of a handshake are refused too
			b := mqtttest.New(t)
			b.Config.Denied = filepath.Join(t.TempDir(), "denied.json")
			b.Start(t)
			reason := refusals(t, b)
			cloud := connect(t, b, "kenneld-1", b.Cloud(t), nil)
			cert := b.Device.Issue(t, string(me))
			robot := connect(t, b, string(me), b.With(cert), nil, topics.ThingFilters(me)...)
			neighbour := connect(t, b, string(other), b.Thing(t, other), nil)
			if err := order(t, cloud, brokerapi.Deny{Certs: []brokerapi.DenyCert{entry(cert)}}); err != nil {
				t.Fatal(err)
			}
			testwait.For(t, robot.down, "the end of the session")
			if d := testwait.For(t, robot.down, "a refused return"); d.Step != "login" || d.Reason != mqtt.NotAuthorised {
				t.Errorf("%v (%s)", d, d.Reason)
			}
			robot.stop()
			if r := reason(brokerapi.CodeRevoked); r.CN != string(me) || !strings.Contains(r.Reason, "stolen") {
				t.Errorf("%+v", r)
			}
			if len(neighbour.down) > 0 {
				t.Errorf("another thing lost its session: %v", <-neighbour.down)
			}
			b.Stop()
			b.Start(t)
			robot, up := start(t, b, string(me), b.With(cert), nil)
			if d := testwait.For(t, robot.down, "a refusal after a restart"); d.Reason != mqtt.NotAuthorised || len(up) > 0 {
				t.Errorf("%v (%s)", d, d.Reason)
			}
			robot.stop()
			connect(t, b, string(me), b.Thing(t, me), nil) // enrolled again
		})
	}
}

// TestBlockedThings: by name, until allowed.
func TestBlockedThings(t *testing.T) {
	b := mqtttest.New(t)
	b.Config.Denied = filepath.Join(t.TempDir(), "denied.json")
	b.Start(t)
	cloud := connect(t, b, "kenneld-1", b.Cloud(t), nil)
	robot, up := start(t, b, string(me), b.Thing(t, me), nil)
	testwait.For(t, up, "connected")
	refused := func() {
		t.Helper()
		for testwait.For(t, robot.down, "the end of the session").Step == "login" { // refusals of the block before
		}
		if d := testwait.For(t, robot.down, "a refusal"); d.Step != "login" || d.Reason != mqtt.NotAuthorised || len(up) > 0 {
			t.Errorf("%v, %d logins", d, len(up))
		}
	}
	for _, allow := range []brokerapi.Deny{{Reset: true, Block: map[thing.ID]string{other: "x"}}, {Allow: []thing.ID{me}}} {
		if err := order(t, cloud, brokerapi.Deny{Block: map[thing.ID]string{me: "taken out of service"}}); err != nil {
			t.Fatal(err)
		}
		refused()
		if err := order(t, cloud, allow); err != nil {
			t.Fatal(err)
		}
		testwait.For(t, up, "allowed")
	}
	// An unreadable order changes nothing, and the service that sent it stays connected.
	if err := cloud.Publish(t.Context(), brokerapi.DenyTopic, 1, false, []byte("oops")); err != nil {
		t.Error(err)
	}
}

// TestOrderThatCannotBeKept: it is in force, and the cloud learns that it would not survive a restart.
func TestOrderThatCannotBeKept(t *testing.T) {
	b := mqtttest.New(t)
	dir := filepath.Join(t.TempDir(), "gone")
	b.Config.Denied = filepath.Join(dir, "denied.json")
	b.Start(t)
	cloud, up := start(t, b, "kenneld-1", b.Cloud(t), nil)
	testwait.For(t, up, "connected")
	d := brokerapi.Deny{Block: map[thing.ID]string{me: "x"}}
	if err := order(t, cloud, d); err == nil {
		t.Error("acknowledged, and nowhere on disk")
	}
	robot, _ := start(t, b, string(me), b.Thing(t, me), nil)
	testwait.For(t, robot.down, "a refusal all the same")
	robot.stop()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, up, "connected again")
	if err := order(t, cloud, d); err != nil { // the same order again
		t.Error(err)
	}
	if raw, err := os.ReadFile(b.Config.Denied); err != nil || !bytes.Contains(raw, []byte(me)) {
		t.Errorf("%q, %v", raw, err)
	}
}

// TestDeniedListDamaged: a broker that cannot know whom to refuse does not start.
func TestDeniedListDamaged(t *testing.T) {
	b := mqtttest.New(t)
	b.Config.Denied = filepath.Join(t.TempDir(), "denied.json")
	if err := os.WriteFile(b.Config.Denied, []byte(`{"v":1,"certs":[{`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := runBroker(ctx, b); err == nil || !strings.Contains(err.Error(), b.Config.Denied) {
		t.Errorf("%v", err)
	}
}

func runBroker(ctx context.Context, b *mqtttest.Broker) error {
	return broker.Run(ctx, b.Config, slog.New(slog.DiscardHandler))
}
