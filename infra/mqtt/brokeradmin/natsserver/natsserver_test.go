package natsserver_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/errs"
	"kennel/infra/mqtt/brokeradmin/brokeradmintest"
	"kennel/infra/mqtt/brokeradmin/natsserver"
	"kennel/infra/mqtt/brokeradmin/natsserver/natsservertest"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/mqtt/brokerauth"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

func TestContract(t *testing.T) {
	brokeradmintest.Run(t, func(t *testing.T) *brokeradmintest.Broker {
		c := natsservertest.Start(t, 1)
		node := c.Nodes[0]
		return &brokeradmintest.Broker{
			Things: node.MQTT, Services: node.MQTT, Admin: c.Admin(t), Stop: node.Kill, Start: func() { node.Launch(t, c.Keys); node.Wait(t) },
			Uplink:   func(t *testing.T) brokeradmintest.Uplink { return uplink(t, c, 1) },
			SaysWill: true, OneRefusal: true,
		}
	})
}

func uplink(t testing.TB, c *natsservertest.Cluster, replicas int) *natsserver.Uplink {
	t.Helper()
	u, err := natsserver.OpenUplink(c.Servers(t), replicas)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestDenied: a revoked certificate's session ends and it does not come back, the reason is reported, and the same thing with another certificate is
// let in. What was denied before this process began is refused from its first answer on.
func TestDenied(t *testing.T) {
	c := natsservertest.Start(t, 1)
	at := c.Nodes[0].MQTT
	robot := func(name string) (thing.ID, tls.Certificate) { return thing.ID(name), at.Device.Issue(t, name) }
	old, oldCert := robot("vic:old")
	fresh, freshCert := robot("vic:fresh")
	entry := func(id thing.ID, cert tls.Certificate) brokerapi.DenyCert {
		return brokerapi.DenyCert{Serial: cert.Leaf.SerialNumber.Text(16), Thing: id, Until: cert.Leaf.NotAfter, Reason: "stolen"}
	}
	var list atomic.Pointer[[]brokerapi.DenyCert]
	list.Store(&[]brokerapi.DenyCert{entry(old, oldCert)})
	changed := make(chan struct{})
	refused := make(chan brokerapi.Refusal, 100)
	a, err := natsserver.New(natsserver.Config{
		Servers: c.Servers(t), Trust: c.Trust,
		Denied: func(_ context.Context, after int64) (brokerapi.Deny, int64, error) {
			all := *list.Load()
			return brokerapi.Deny{Certs: all[after:]}, int64(len(all)), nil
		},
		Changed: func() <-chan struct{} { return changed },
		Refused: func(_ context.Context, r brokerapi.Refusal) { refused <- r },
	})
	if err != nil {
		t.Fatal(err)
	}
	natsservertest.Run(t, a.Run)
	if err := a.Answering(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := login(t.Context(), at, old, oldCert, 0); err == nil {
		t.Error("a certificate that was revoked before is let in")
	}
	if r := testwait.For(t, refused, "the refusal"); r.Code != brokerapi.CodeRevoked || r.CN != string(old) || r.Serial == "" || r.At.IsZero() {
		t.Errorf("%+v", r)
	}
	r, err := login(t.Context(), at, fresh, freshCert, 0)
	if err != nil {
		t.Fatal(err)
	}
	both := append(slices.Clone(*list.Load()), entry(fresh, freshCert))
	list.Store(&both)
	close(changed)
	changed = nil
	ended := make(chan error, 1)
	go func() { _, err := r.conn.Read(make([]byte, 1)); ended <- err }()
	if err := testwait.For(t, ended, "the end of the session"); err == nil {
		t.Error("the session of a revoked certificate continues")
	}
	if _, err := login(t.Context(), at, fresh, freshCert, 0); err == nil {
		t.Error("a revoked certificate is let in")
	}
	_, another := robot(string(fresh))
	if r, err = login(t.Context(), at, fresh, another, 0); err != nil {
		t.Fatalf("another certificate of the thing: %v", err)
	}
	_ = r.conn.Close()
	if ok, bad := a.Logins(); ok != 2 || bad != 2 {
		t.Errorf("%d logins accepted, %d refused, want 2 and 2", ok, bad)
	}
}

// TestUplink: what is not taken comes again, also to another reader when the first one is gone, and what was published without any reader is kept.
func TestUplink(t *testing.T) {
	c := natsservertest.Start(t, 1)
	a := c.Admin(t)
	if err := a.Answering(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := thing.ID("vic:1")
	r, err := login(t.Context(), c.Nodes[0].MQTT, id, c.Auth.Device.Issue(t, string(id)), 0)
	if err != nil {
		t.Fatal(err)
	}
	deaf := uplink(t, c, 1)
	offered := make(chan string, 100)
	stop := natsservertest.Run(t, func(ctx context.Context) error {
		return deaf.Run(ctx, func(topic string, payload []byte) bool {
			offered <- topic + " " + string(payload)
			return false
		})
	})
	if err := deaf.Hearing(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.publish("first", testwait.Long); err != nil {
		t.Fatal(err)
	}
	want := topics.UpTopic(id, topics.DAS) + " first"
	for range 2 {
		if got := testwait.For(t, offered, "the message"); got != want {
			t.Errorf("offered %q, want %q", got, want)
		}
	}
	stop()
	if err := r.publish("second", testwait.Long); err != nil {
		t.Fatal(err)
	}
	taken := make(chan string, 100)
	u := uplink(t, c, 1)
	natsservertest.Run(t, func(ctx context.Context) error {
		return u.Run(ctx, func(_ string, payload []byte) bool { taken <- string(payload); return true })
	})
	got := []string{testwait.For(t, taken, "one"), testwait.For(t, taken, "the other")}
	slices.Sort(got)
	if !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("taken %q", got)
	}
	testwait.Until(t, testwait.Long, "an empty queue", func() error {
		if n, age, ok := u.Lag(); !ok || n != 0 || age > time.Minute {
			return fmt.Errorf("%d waiting, read %v ago, %v", n, age, ok)
		}
		return nil
	})
	if s := u.Stats(); s.Taken != 2 || s.Unreadable != 0 || s.Dead != 0 {
		t.Errorf("%+v", s)
	}
	if s := deaf.Stats(); s.Taken != 0 || s.NotTaken < 2 {
		t.Errorf("%+v", s)
	}
}

// TestMembers: a server says who it is.
func TestMembers(t *testing.T) {
	c := natsservertest.Start(t, 1)
	a := c.Admin(t)
	testwait.Until(t, testwait.Long, "ready", func() error { return a.Ready(t.Context()) })
	m, err := a.Members(t.Context())
	if err != nil || len(m) != 1 || m[0].Name != "n1" || m[0].Connections < 2 || m[0].Memory == 0 || m[0].Leader != "n1" || m[0].Version == "" {
		t.Errorf("%+v, %v", m, err)
	}
	// Without its secret, a certificate of a service is no member of the cloud in NATS' own protocol.
	stranger := c.Servers(t)
	if stranger.Keys, err = natsserver.NewKeys(strings.Repeat("another secret ", 3)); err != nil {
		t.Fatal(err)
	}
	s, err := natsserver.New(natsserver.Config{
		Servers: stranger, Trust: func() brokerauth.Trust { return brokerauth.Trust{} },
		Denied:  func(context.Context, int64) (brokerapi.Deny, int64, error) { return brokerapi.Deny{}, 0, nil },
		Changed: func() <-chan struct{} { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	natsservertest.Run(t, s.Run)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := s.Ready(ctx); errs.KindOf(err) != errs.Unavailable && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a stranger is let in: %v", err)
	}
}

func TestSettings(t *testing.T) {
	keys, err := natsserver.NewKeys("thirty-two characters of a secret")
	if err != nil {
		t.Fatal(err)
	}
	good := natsserver.Node{
		Name: "n1", MQTT: "h:1", Services: "h:2", Dir: "d", Cert: "c", Key: "k", ClientCA: "a", ServiceCA: "s", Replicas: 1,
	}
	text, err := good.Config(keys)
	if err != nil || !strings.Contains(string(text), `server_name: "n1"`) || strings.Contains(string(text), "cluster {") {
		t.Errorf("%v\n%s", err, text)
	}
	if strings.Contains(string(text), `"S`) {
		t.Errorf("a seed is in the file:\n%s", text)
	}
	for name, change := range map[string]func(*natsserver.Node){
		"no port": func(n *natsserver.Node) { n.MQTT = "h" }, "no name": func(n *natsserver.Node) { n.Name = "" },
		"more copies than servers": func(n *natsserver.Node) { n.Replicas = 3 }, "two copies": func(n *natsserver.Node) { n.Replicas = 2 },
		"route without a certificate": func(n *natsserver.Node) { n.Routes, n.Cluster = []string{"h:3"}, "h:4" },
		"route without a port": func(n *natsserver.Node) {
			n.Routes, n.Cluster, n.RouteCert, n.RouteKey = []string{"h"}, "h:4", "c", "k"
		},
	} {
		n := good
		change(&n)
		if _, err := n.Config(keys); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := natsserver.NewKeys("short"); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a short secret: %v", err)
	}
	for _, urls := range [][]string{nil, {"nats://h:1"}, {"tls://h"}, {"tls://u@h:1"}} {
		if err := (natsserver.Servers{URLs: urls}).Validate(); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: %v", urls, err)
		}
	}
	if _, err := natsserver.OpenUplink(natsserver.Servers{URLs: []string{"tls://h:1"}}, 2); errs.KindOf(err) != errs.Invalid {
		t.Errorf("two copies: %v", err)
	}
}
