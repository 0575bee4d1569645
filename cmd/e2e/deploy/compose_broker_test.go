package deploy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/cloud/app"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/api/topics"
	"kennel/infra/config"
	"kennel/infra/errs"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokeradmin/mosquitto"
	"kennel/infra/thing"
)

// TestComposeMosquitto holds Mosquitto's folder to what its adapter writes, and what starts it: no file less, none more.
func TestComposeMosquitto(t *testing.T) {
	want, err := housetest.ComposeMosquitto.Config()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(housetest.ComposeDir, "mosquitto")
	if *update {
		if err := os.WriteFile(filepath.Join(dir, "mosquitto.conf"), want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 || files[1].Name() != "run.sh" {
		t.Errorf("%s holds %v (%v), want mosquitto.conf and run.sh", dir, files, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "mosquitto.conf")); err != nil || string(got) != string(want) {
		t.Errorf("%s/mosquitto.conf is not what infra/mqtt/brokeradmin/mosquitto writes (%v); go test ./cmd/e2e/deploy -run TestComposeMosquitto "+
			"-update makes it so", dir, err)
	}
}

// TestComposeSettings: kenneld gives its orders to the broker that is there.
func TestComposeSettings(t *testing.T) {
	for _, name := range []string{"kenneld-a", "kenneld-b"} {
		environ := []string{"KENNELD_POSTGRES_DSN=postgres://kennel@postgres/kennel"} // the root that its own names is in the container
		for k, v := range housetest.LoadCompose(t, "compose.yaml", housetest.ComposeEnv).Services[name].Environment {
			environ = append(environ, k+"="+v)
		}
		c := app.Defaults()
		if err := errors.Join(config.Load(&c, filepath.Join(housetest.ComposeDir, "kenneld.yaml"), app.EnvPrefix, environ), c.Validate()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.MQTT.Broker != "mosquitto" {
			t.Errorf("%s: mqtt.broker is %q, want mosquitto", name, c.MQTT.Broker)
		}
	}
}

// caller is a client with a certificate.
type caller struct {
	name string
	cert tls.Certificate
}

// people of the broker test, by the authorities of the installation.
type identities struct {
	t  *testing.T
	ca *ca.Authority
	d  *deployment
}

// thing has what the cloud gives a robot.
func (p identities) thing(id thing.ID) caller {
	p.t.Helper()
	return caller{string(id), housetest.DeviceCert(p.t, p.ca, id)}
}

// service has what kenneld gives itself.
func (p identities) service(name string) caller {
	p.t.Helper()
	pair, err := p.ca.IssueService(name, time.Hour)
	if err != nil {
		p.t.Fatal(err)
	}
	c, err := pair.TLS()
	if err != nil {
		p.t.Fatal(err)
	}
	return caller{name, c}
}

// forged has a certificate of the device authority with a name that it never gives.
func (p identities) forged(cn string) caller {
	p.t.Helper()
	file := filepath.Join(p.d.dir, "state/ca/device")
	device, err := tls.LoadX509KeyPair(file+".crt", file+".key")
	if err != nil {
		p.t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: cn},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, device.Leaf, &key.PublicKey, device.PrivateKey)
	if err != nil {
		p.t.Fatal(err)
	}
	return caller{cn, tls.Certificate{Certificate: append([][]byte{der}, device.Certificate...), PrivateKey: key}}
}

// config says how c calls one of the broker's listeners; it does not come back after a refusal while the test lasts.
func (p identities) config(listener string, c caller) mqtt.Config {
	return mqtt.Config{URL: "ssl://" + p.d.addr[listener], ClientID: c.name + "-" + rand.Text(), MinBackoff: time.Hour, MaxBackoff: time.Hour,
		TLS: func() (*tls.Config, error) {
			return &tls.Config{RootCAs: p.ca.RootPool(), Certificates: []tls.Certificate{c.cert}}, nil
		}}
}

// run keeps a part of the test going until its end.
func (p identities) run(f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.t.Context()))
	done := make(chan error, 1) // the one result
	go func() { done <- f(ctx) }()
	p.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			p.t.Error(err)
		}
	})
}

// call connects c and subscribes it; err is why it was not let in, or not allowed to. heard gets topics of what it receives.
func (p identities) call(listener string, c caller, heard chan<- string, filters ...string) (client *mqtt.Client, err error) {
	p.t.Helper()
	verdict := make(chan error, 2) // of OnConnect and then of OnDown
	cfg := p.config(listener, c)
	cfg.OnConnect = func(ctx context.Context, c *mqtt.Client) error {
		var err error
		if len(filters) > 0 {
			err = c.Subscribe(ctx, 1, filters...)
		}
		verdict <- err
		return err
	}
	cfg.OnDown = func(err error) {
		select {
		case verdict <- err:
		default: // known
		}
	}
	cfg.OnMessage = func(topic string, payload []byte, ack func()) {
		ack()
		heard <- topic + " " + string(payload)
	}
	if client, err = mqtt.New(cfg); err != nil {
		p.t.Fatal(err)
	}
	p.run(client.Run)
	select {
	case err := <-verdict:
		return client, err
	case <-time.After(30 * time.Second):
		p.t.Fatalf("%s is neither let in nor refused at %s", c.name, listener)
		return nil, nil
	}
}

// TestComposeBroker is VEC-FLE-01 behind compose.yaml's own broker: Debian's Mosquitto with the very configuration lets a robot do what is
// its own and nothing else, whatever its program asks for, and accepts only clients with a certificate of the service authority as the
// cloud.
func TestComposeBroker(t *testing.T) {
	const victim, thief, stranger thing.ID = "vic:00e20100", "vic:00e20101", "vic:00e20102"
	const things, services = "localhost:8883", "broker:8884"
	d := newDeployment(t)
	d.bringUp("install")
	d.bringUp("broker")
	d.addr[things] = d.addr["broker:8883"] // there is no proxy between
	authority, err := ca.Load(filepath.Join(d.dir, "state/kenneld/ca"))
	if err != nil {
		t.Fatal(err)
	}
	p := identities{t, authority, d}
	cloud := p.service("kenneld")

	// The cloud, as kenneld is it.
	orders := p.config(services, cloud)
	orders.MinBackoff, orders.MaxBackoff = 10*time.Millisecond, 100*time.Millisecond
	admin, err := mosquitto.New(mosquitto.Config{MQTT: orders,
		Things: func(context.Context) ([]thing.ID, error) { return []thing.ID{victim, thief}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	p.run(admin.Run)
	housetest.Await(t, time.Minute, "the broker takes orders", func() error { return admin.Ready(t.Context()) })
	if err := admin.Provision(t.Context(), victim, thief); err != nil {
		t.Fatal(err)
	}
	uplink, seen := make(chan string, 1000), make(chan string, 1000) // more than this test sends
	if _, err := p.call(services, cloud, uplink, topics.CloudFilters()...); err != nil {
		t.Fatal(err)
	}
	if _, err := p.call(services, cloud, seen, "kennel/#"); err != nil {
		t.Fatal(err)
	}

	// Topics forbidden to each caller, at the robots' listener.
	steals := slices.Concat(topics.CloudFilters(), topics.ThingFilters(victim), []string{"$share/mine/kennel/" + string(victim) + "/down/+",
		"$share/kennel/#",
		topics.UpTopic(victim, "+"), topics.ReqTopic(victim, "+", "+"), "kennel/+/down/+", "kennel/+/res/+", "kennel/#", "#", "+/+/+/+", "$SYS/#",
		"$CONTROL/#", "$kennel/#"})
	const command = `{"commands":[{"command":"addClientRole","username":"CN=%s","rolename":"kennel-service"}]}`
	forges := []string{topics.UpTopic(victim, topics.DAS), topics.UpTopic(victim, topics.Status), topics.ReqTopic(victim, "jdocs", "write"),
		topics.DownTopic(victim, topics.Cmd), topics.DownTopic(victim, topics.Ack), topics.ResTopic(victim, "1"),
		topics.UpTopic("vic:00e20199", topics.DAS)}
	own := make(chan string, 100)
	robot, err := p.call(things, p.thing(victim), own, topics.ThingFilters(victim)...)
	if err != nil {
		t.Fatal(err)
	}
	loot := make(chan string, 1000)
	for _, x := range []struct {
		who    caller
		robber bool // has rights of its own
	}{{p.thing(thief), true}, {p.thing(stranger), false}, {p.forged("kenneld"), false}, {p.forged("CN=kenneld"), false},
		{p.forged("kenneld,CN=" + string(victim)), false}} {
		c, err := p.call(things, x.who, loot)
		if err != nil {
			t.Fatalf("%s: %v", x.who.name, err)
		}
		filters := steals
		if !x.robber {
			filters = append(slices.Clone(steals), topics.ThingFilters(thing.ID(x.who.name))...)
		}
		for _, f := range filters {
			if err := c.Subscribe(t.Context(), 1, f); errs.KindOf(err) != errs.Denied {
				t.Errorf("%s subscribes %s: %v, want it denied", x.who.name, f, err)
			}
		}
		for _, topic := range forges { // taken and dropped
			if err := c.Publish(t.Context(), topic, 1, false, []byte("forged by "+x.who.name)); err != nil {
				t.Errorf("%s publishes on %s: %v", x.who.name, topic, err)
			}
		}
		if err := c.Publish(t.Context(), "$CONTROL/dynamic-security/v1", 1, false, fmt.Appendf(nil, command, x.who.name)); err != nil {
			t.Errorf("%s gives orders: %v", x.who.name, err)
		}
		if err := c.Subscribe(t.Context(), 1, topics.CloudFilters()[0]); errs.KindOf(err) != errs.Denied {
			t.Errorf("%s, after it gave itself the cloud's role: %v, want it denied", x.who.name, err)
		}
		if x.robber {
			if err := errors.Join(c.Subscribe(t.Context(), 1, topics.ThingFilters(thief)...),
				c.Publish(t.Context(), topics.UpTopic(thief, topics.DAS), 1, false, []byte("mine"))); err != nil {
				t.Errorf("%s: %v", thief, err)
			}
		}
	}

	// Every message of the victim reaches the cloud while they are all there, and nothing forged has.
	var want []string
	for i := range 50 {
		payload := fmt.Sprint(i)
		if err := robot.Publish(t.Context(), topics.UpTopic(victim, topics.DAS), 1, false, []byte(payload)); err != nil {
			t.Fatal(err)
		}
		want = append(want, topics.UpTopic(victim, topics.DAS)+" "+payload)
	}
	want = append([]string{topics.UpTopic(thief, topics.DAS) + " mine"}, want...)
	for name, heard := range map[string]chan string{"the cloud's share": uplink, "all topics": seen} {
		for _, w := range want {
			select {
			case got := <-heard:
				if got != w {
					t.Fatalf("%s: heard %q, want %q", name, got, w)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("%s: %q did not arrive", name, w)
			}
		}
	}
	if len(own) > 0 || len(loot) > 0 {
		t.Errorf("robots heard %d messages that nobody may send them, thieves %d", len(own), len(loot))
	}

	// Each listener believes its own authority alone.
	for name, x := range map[string]struct {
		listener string
		who      caller
	}{
		"a device certificate called kenneld": {services, p.forged("kenneld")}, "a robot at the cloud's door": {services, p.thing(thief)},
		"the cloud at the robots' door": {things, cloud}, "a service called as a robot": {things, p.service("vic-00e20100")},
	} {
		_, err := p.call(x.listener, x.who, loot)
		if down, ok := errors.AsType[*mqtt.DownError](err); !ok || down.Step != "login" {
			t.Errorf("%s: %v, want it refused by TLS", name, err)
		}
	}

	// Whose certificate was revoked is refused by TLS as soon as the list of it is written, while others come and go.
	list := filepath.Join(d.dir, "state/lists/device.crl")
	stolen, honest := p.thing(stranger), p.thing(stranger)
	write := func(number int64, gone ...certs.Revocation) {
		t.Helper()
		lists, err := authority.DeviceCRLs(gone, number, time.Now())
		if err != nil || len(lists) != 1 {
			t.Fatalf("%d lists, %v", len(lists), err)
		}
		whole := list + ".new"
		if err := os.WriteFile(whole, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: lists[0].DER}), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(whole, list); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(c caller) error {
		_, err := p.call(things, c, loot)
		if down, ok := errors.AsType[*mqtt.DownError](err); !ok || down.Step != "login" {
			return fmt.Errorf("%v, want it refused by TLS", err)
		}
		return nil
	}
	if err := refused(stolen); err == nil {
		t.Errorf("%s is refused before it was revoked", stranger)
	}
	leaf, err := x509.ParseCertificate(stolen.cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(d.dir, "broker.log")
	reloads := func() int {
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "Reloading config")
	}
	first := reloads()
	write(1, certs.Revocation{Serial: leaf.SerialNumber.Text(16), NotAfter: leaf.NotAfter, At: time.Now()})
	took := housetest.Await(t, 30*time.Second, "the revoked certificate is refused", func() error { return refused(stolen) })
	t.Logf("from the list to the refusal %v", took.Round(time.Millisecond))
	if err := refused(honest); err == nil {
		t.Errorf("another certificate of %s is refused", stranger)
	}

	// A signal that a person sends to the container reaches Mosquitto; it does not count as the second notice of the list.
	housetest.Await(t, 30*time.Second, "Mosquitto is told of the list twice", func() error {
		if n := reloads() - first; n < 2 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	d.mu.Lock()
	pid := d.pids["broker"]
	d.mu.Unlock()
	before := reloads()
	// A signal that comes while Mosquitto reads its files is lost. It is one thread: when it answers a connection, it has read them.
	if err := refused(honest); err == nil {
		t.Errorf("another certificate of %s is refused after the second telling", stranger)
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	housetest.Await(t, 20*time.Second, "Mosquitto reads its files again", func() error {
		if now := reloads(); now < before+2 { // it is sent twice
			return fmt.Errorf("it did %d times, and %d before", now, before)
		}
		return nil
	})

	// Another `up` keeps the file that the broker wrote. If the file is lost, no client may do anything until another `up` starts the broker
	// again and the robots are provisioned again.
	file := filepath.Join(d.dir, "state/broker/security/security.json")
	knows := func() error {
		b, err := os.ReadFile(file)
		if err == nil && !strings.Contains(string(b), "CN="+string(victim)) {
			err = fmt.Errorf("%s does not name %s", file, victim)
		}
		return err
	}
	d.bringUp("install")
	if err := knows(); err != nil {
		t.Errorf("after another install: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	d.killBroker()
	if _, err := p.call(things, p.thing(victim), own, topics.ThingFilters(victim)...); err == nil {
		t.Errorf("%s subscribes at a broker that lost its file", victim)
	}
	if _, err := p.call(services, cloud, uplink, topics.CloudFilters()...); err == nil {
		t.Error("the cloud subscribes at a broker that lost its file")
	}
	if err := refused(stolen); err != nil { // a restarted broker that knows no robot by name has the list
		t.Errorf("revoked, at a broker that lost its file: %v", err)
	}
	d.bringUp("install")
	d.killBroker()
	housetest.Await(t, time.Minute, "the broker is told again", knows)
	if _, err := p.call(things, p.thing(victim), own, topics.ThingFilters(victim)...); err != nil {
		t.Errorf("%s, after the broker was told again: %v", victim, err)
	}
}

// killBroker kills Mosquitto, which ends what started it, and waits until another one listens.
func (d *deployment) killBroker() {
	d.t.Helper()
	pid := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.pids["broker"]
	}
	old := pid()
	killed := 0
	for _, pid := range housetest.Descendants(old) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err != nil || strings.TrimSpace(string(name)) != "mosquitto" {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			d.t.Fatal(err)
		}
		killed++
	}
	if killed != 1 {
		d.t.Fatalf("%d mosquittos below process %d, want one", killed, old)
	}
	housetest.Await(d.t, time.Minute, "another broker listens", func() error {
		if now := pid(); now == old || now == 0 {
			return errors.New("it does not run")
		}
		for _, listener := range []string{"broker:8883", "broker:8884"} {
			c, err := net.Dial("tcp", d.addr[listener])
			if err != nil {
				return err
			}
			_ = c.Close() // nothing was said
		}
		return nil
	})
}
