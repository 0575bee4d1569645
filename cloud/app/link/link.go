// Package link wires the connection to the robots' broker: what comes in, what goes out, and the orders that the broker takes.
package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"kennel/certs/ca"
	"kennel/cloud/access"
	"kennel/cloud/bridge"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/owner"
	"kennel/cloud/wire"
	"kennel/infra/api/hints"
	"kennel/infra/api/large"
	"kennel/infra/api/topics"
	"kennel/infra/auth"
	"kennel/infra/logging"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokeradmin/awsiot"
	"kennel/infra/mqtt/brokeradmin/natsserver"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/queue"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Config says how to reach the broker as a service.
type Config struct {
	URL        string `koanf:"url"`         // ssl://host:port
	ServerName string `koanf:"server_name"` // name in the broker's certificate; "": the host
	// Files with the service's certificate and key; both empty: issued by the authority in ca.dir.
	CertFile string `koanf:"cert_file"`
	KeyFile  string `koanf:"key_file"`
	RootFile string `koanf:"root_file"` // whom to trust as broker; "": the root in ca.dir
	// Broker is who takes orders such as ending a session: embedded (also ""), mosquitto, nats, aws-iot.
	Broker string `koanf:"broker"`
	// CRLFile is written with the list of revoked certificates, PEM, for a broker that reads one (Mosquitto's crlfile); "": none. The broker
	// must be told to read it again: with PIDFile, or by what starts it. Without a list it knows from orders who has no rights any more.
	CRLFile string `koanf:"crl_file"`
	// PIDFile is the pid_file of a Mosquitto that runs beside this process, under the same account: it gets SIGHUP whenever CRLFile was
	// written. "": something else tells it (infra/compose/mosquitto/run.sh, or a path unit of systemd).
	PIDFile string        `koanf:"pid_file"`
	AWSIoT  awsiot.Config `koanf:"aws_iot"` // with broker aws-iot
	NATS    NATSConfig    `koanf:"nats"`    // with broker nats
}

// NATSConfig says how to reach a cluster of NATS servers beside MQTT, whose address is Config.URL.
type NATSConfig struct {
	Servers    []string `koanf:"servers"`     // tls://host:port of each server's listener of services
	SecretFile string   `koanf:"secret_file"` // file with a secret of at least 32 random characters, the same for every process
	Replicas   int      `koanf:"replicas"`    // servers that keep a copy of the uplink, default 3
}

// Uplink is a source of the robots' messages beside the bridge's own connection.
type Uplink interface {
	queue.Source
	Stats() queue.Stats
}

// UplinkConfig says where the fleet's messages come from.
type UplinkConfig struct {
	SQS queue.Config `koanf:"sqs"` // the fleet's messages come from this queue instead of mqtt.url; url "": they do not
}

// Link is the connection. What others send by it goes out from Run on; nothing comes in before Serve.
type Link struct {
	*bridge.Bridge
	Uplink Uplink // nil: the bridge's own connection

	base      wire.Base
	cfg       Config
	mqtt      mqtt.Config
	authority *ca.Authority
	nats      natsserver.Servers // with broker nats
	logins    chan struct{}      // with broker nats: closed once this process answers logins, its own among them
	watch     watch
}

// Open returns the link of this process. A process without the bridge's role still hints, so it has a connection that takes nothing in.
func Open(ctx context.Context, b wire.Base, cfg Config, uplink UplinkConfig, authority *ca.Authority) (*Link, error) {
	l := &Link{base: b, cfg: cfg, mqtt: mqtt.Config{URL: cfg.URL, TLS: serviceTLS(cfg, authority), Log: b.Log}, authority: authority}
	err := l.openUplink(ctx, uplink)
	if err != nil {
		return nil, err
	}
	if l.Bridge, err = bridge.New(bridge.Config{MQTT: l.mqtt, Fed: l.Uplink != nil, Log: b.Log}); err != nil {
		return nil, err
	}
	err = errors.Join(b.Meters.Bridge(l.Stats), b.Meters.Broker())
	if b.Has(wire.Bridge) {
		err = errors.Join(err, b.Meters.Uplink(l.Uplink))
	}
	return l, err
}

// openUplink opens what the bridge is fed by, if it is not fed by its own connection, and prepares the connections to a NATS server.
func (l *Link) openUplink(ctx context.Context, uplink UplinkConfig) error {
	if l.cfg.Broker == brokerNATS {
		keys, err := natsserver.ReadKeys(l.cfg.NATS.SecretFile)
		if err != nil {
			return fmt.Errorf("mqtt.nats.secret_file: %w", err)
		}
		l.nats = natsserver.Servers{URLs: l.cfg.NATS.Servers, TLS: l.mqtt.TLS, Keys: keys, Log: l.base.Log}
		l.mqtt.Dial = l.dialLater()
	}
	if !l.base.Has(wire.Bridge) {
		return nil
	}
	switch {
	case uplink.SQS.URL != "":
		q, err := queue.Open(ctx, uplink.SQS, l.base.Log)
		if err != nil {
			return err
		}
		l.Uplink = q
	case l.cfg.Broker == brokerNATS:
		u, err := natsserver.OpenUplink(l.nats, cmp.Or(l.cfg.NATS.Replicas, defaultReplicas))
		if err != nil {
			return err
		}
		l.Uplink = u
	}
	if q, ok := l.Uplink.(interface {
		Lag() (int64, time.Duration, bool)
	}); ok {
		l.watch.lag = q.Lag
	}
	return nil
}

// dialLater returns a dialler of the broker that waits until this process answers logins: it may be the first of the cloud, and has a login of its own.
func (l *Link) dialLater() func(ctx context.Context, network, addr string) (net.Conn, error) {
	l.logins = make(chan struct{})
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case <-l.logins:
		case <-ctx.Done():
			return nil, fmt.Errorf("this process does not answer logins yet: %w", ctx.Err())
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
}

// Hearing blocks until what robots publish reaches this process, or is kept for it.
func (l *Link) Hearing(ctx context.Context) error {
	if err := l.Bridge.Hearing(ctx); err != nil {
		return err
	}
	if u, ok := l.Uplink.(interface{ Hearing(context.Context) error }); ok {
		return u.Hearing(ctx)
	}
	return nil
}

// Hint tells a robot that something changed; it may be called before Run.
func (l *Link) Hint(ctx context.Context, id thing.ID, name string, payload []byte) {
	l.base.Meters.Hinted(name)
	l.Bridge.Hint(ctx, id, name, payload)
}

// Ended has a robot whose ownership ended ask whose it is: the apps that may talk to it change with its owner. One that is away asks at its next connection.
func (l *Link) Ended(ctx context.Context, t owner.Tenure) error {
	payload, err := hints.Jdocs{Docs: map[string]uint64{string(jdocs.AppTokens): 0}}.Encode()
	if err == nil {
		l.Hint(ctx, t.Thing, topics.Jdocs, payload)
	}
	return err
}

// Serve gives what comes in to the slices, and returns what the link itself adds to the process. thingOf returns which robot a request over HTTPS is of:
// what is too large for MQTT comes that way.
func (l *Link) Serve(all wire.Slices, fleet *registry.Service, thingOf func(*http.Request) (thing.ID, error)) (wire.Slice, error) {
	requests, ups, err := all.Handlers()
	if err != nil {
		return wire.Slice{}, err
	}
	for name := range requests {
		if err := access.Requests.Check(name, auth.Thing); err != nil {
			return wire.Slice{}, fmt.Errorf("requests of robots: %w", err)
		}
	}
	s := wire.Slice{Runs: []wire.Run{{Name: "bridge", Run: l.Run}}, Routes: wire.Routes(func(mux *http.ServeMux, _ wire.Doors) {
		mux.Handle("POST "+large.Path("{service}", "{method}"), bridge.Large(requests, thingOf, l.base.Log))
	})}
	if l.Uplink != nil {
		s.Runs = append(s.Runs, wire.Run{Name: "uplink queue", Run: func(ctx context.Context) error { return l.Uplink.Run(ctx, l.Take) }})
	}
	if !l.base.Has(wire.Bridge) {
		return s, nil
	}
	h := bridge.Handlers{Up: l.base.Meters.Ups(ups), Req: l.base.Meters.Requests(requests)}
	if l.cfg.embedded() {
		strangers := newStrangers()
		h.OnRefused = func(ctx context.Context, r brokerapi.Refusal) { refused(ctx, r, fleet, strangers, l.base.Log) }
		h.OnStats = l.base.Meters.BrokerSays
	}
	l.Handle(h)
	return s, nil
}

// serviceTLS returns this process's credentials at the broker.
func serviceTLS(m Config, authority *ca.Authority) func() (*tls.Config, error) {
	var issued *ca.Renewing // made at the first use
	return func() (*tls.Config, error) {
		t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: m.ServerName, RootCAs: authority.RootPool()}
		if m.RootFile != "" {
			b, err := os.ReadFile(m.RootFile)
			if err != nil {
				return nil, fmt.Errorf("mqtt.root_file: %w", err)
			}
			t.RootCAs = x509.NewCertPool()
			if !t.RootCAs.AppendCertsFromPEM(b) {
				return nil, fmt.Errorf("mqtt.root_file %s holds no certificate", m.RootFile)
			}
		}
		if m.CertFile != "" {
			pair, err := tls.LoadX509KeyPair(m.CertFile, m.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("mqtt.cert_file: %w", err)
			}
			t.Certificates = []tls.Certificate{pair}
			return t, nil
		}
		if issued == nil {
			var err error
			if issued, err = ca.NewRenewing(func() (ca.Pair, error) { return authority.IssueService("kenneld", serviceTTL) }); err != nil {
				return nil, err
			}
		}
		t.GetClientCertificate = issued.GetClientCertificate
		return t, nil
	}
}

// newStrangers limits what is logged of clients that name no robot.
func newStrangers() *logging.Sparse { return logging.NewSparse(10*time.Second, 20) }

const serviceTTL = 30 * 24 * time.Hour

// refused keeps why the broker turned a robot away, for its doctor. Who names no robot is logged, within limits.
func refused(ctx context.Context, r brokerapi.Refusal, fleet *registry.Service, strangers *logging.Sparse, log *slog.Logger) {
	name := r.CN
	if name == "" {
		name = r.ClientID
	}
	id, err := thing.Parse(name)
	if err != nil {
		if held, ok := strangers.Allow(); ok {
			log.InfoContext(ctx, "client refused by the broker", logging.Addr, r.Addr, "client_id", r.ClientID,
				"cn", r.CN, "code", r.Code, "reason", r.Reason, "muted", held+r.Muted)
		}
		return
	}
	step := registry.Step{Thing: id, At: r.At, Name: registry.StepBroker, Code: r.Code, Peer: r.Addr, Detail: r.Reason}
	if r.Serial != "" {
		step.Shown = &registry.ShownCertificate{CN: r.CN, Issuer: r.Issuer, Serial: r.Serial, NotAfter: r.NotAfter}
	}
	if err := fleet.Record(ctx, step); err != nil {
		log.WarnContext(ctx, "refusal not recorded", logging.Thing, id, logging.Err, err)
	}
}
