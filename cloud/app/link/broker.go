package link

import (
	"context"
	"net/url"
	"sync"

	"kennel/certs/ca"
	"kennel/certs/certsbroker"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/wire"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/mqtt/brokeradmin"
	"kennel/infra/mqtt/brokeradmin/awsiot"
	"kennel/infra/mqtt/brokeradmin/mosquitto"
	"kennel/infra/mqtt/brokeradmin/natsserver"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/mqtt/brokerauth"
)

// The brokers that take our orders: words of mqtt.broker.
const (
	brokerEmbedded  = "embedded"
	brokerMosquitto = "mosquitto"
	brokerNATS      = "nats"
	brokerAWSIoT    = "aws-iot"
)

const defaultReplicas = 3

func (c Config) embedded() bool { return c.Broker == "" || c.Broker == brokerEmbedded }

// Validate reports settings of the broker and the uplink that cannot work.
func (c Config) Validate(uplink UplinkConfig) error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "ssl" || u.Port() == "" {
		return errs.New(errs.Invalid, "mqtt.url %q: want ssl://host:port", c.URL)
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errs.New(errs.Invalid, "mqtt.cert_file %q and mqtt.key_file %q: want both or neither", c.CertFile, c.KeyFile)
	}
	if c.PIDFile != "" && (c.Broker != brokerMosquitto || c.CRLFile == "") {
		return errs.New(errs.Invalid, "mqtt.pid_file is set: want mqtt.broker %s and mqtt.crl_file as well", brokerMosquitto)
	}
	switch c.Broker {
	case "", brokerEmbedded, brokerMosquitto:
	case brokerAWSIoT:
		if err := awsiot.Validate(c.AWSIoT); err != nil {
			return err
		}
	case brokerNATS:
		if err := (natsserver.Servers{URLs: c.NATS.Servers}).Validate(); err != nil {
			return errs.New(errs.Invalid, "mqtt.nats.servers: %w", err)
		}
		if c.NATS.SecretFile == "" {
			return errs.New(errs.Invalid, "mqtt.nats.secret_file is empty: want a file")
		}
		if r := c.NATS.Replicas; r != 0 && r != 1 && r != 3 && r != 5 {
			return errs.New(errs.Invalid, "mqtt.nats.replicas %d: want 1, 3 or 5", r)
		}
	default:
		return errs.New(errs.Invalid, "mqtt.broker %.40q: want %s, %s, %s or %s", c.Broker, brokerEmbedded, brokerMosquitto, brokerNATS, brokerAWSIoT)
	}
	if uplink.SQS.URL == "" {
		return nil
	}
	return uplink.SQS.Validate()
}

// Broker returns the one who takes orders for the broker, and what keeps the broker's own lists true. denied are the certificates and things to refuse.
func (l *Link) Broker(ctx context.Context, fleet *registry.Service, denied certsbroker.Source, crls *ca.CRLs) (brokeradmin.Admin, wire.Slice, error) {
	admin, err := l.admin(ctx, fleet, denied)
	if err != nil {
		return nil, wire.Slice{}, err
	}
	var s wire.Slice
	if l.watch.members != nil || l.watch.lag != nil {
		s.Runs = append(s.Runs, wire.Run{Name: "broker watch", Run: l.watch.run})
	}
	if a, ok := admin.(interface{ Run(context.Context) error }); ok {
		s.Runs = append(s.Runs, wire.Run{Name: "broker orders", Run: a.Run})
	}
	if a, ok := admin.(brokeradmin.Blocker); ok && !l.cfg.embedded() && l.cfg.Broker != brokerNATS { // these two read the list themselves
		s.Runs = append(s.Runs, wire.Run{Name: "broker denials", Run: func(ctx context.Context) error {
			return brokeradmin.Keep(ctx, a, denied.Blocked, denied.Changed, l.base.Log)
		}})
	}
	if l.cfg.CRLFile != "" {
		s.Runs = append(s.Runs, wire.Run{Name: "revocation list", Run: func(ctx context.Context) error {
			return crls.Keep(ctx, l.cfg.CRLFile, nil, func(err error) { l.base.Log.WarnContext(ctx, "revocation list not written", logging.Err, err) })
		}})
	}
	if l.cfg.PIDFile != "" {
		s.Runs = append(s.Runs, wire.Run{Name: "broker lists", Run: mosquitto.Reloader{List: l.cfg.CRLFile, PIDFile: l.cfg.PIDFile, Log: l.base.Log}.Run})
	}
	return admin, s, nil
}

func (l *Link) admin(ctx context.Context, fleet *registry.Service, denied certsbroker.Source) (brokeradmin.Admin, error) {
	switch l.cfg.Broker {
	case brokerMosquitto:
		return mosquitto.New(mosquitto.Config{MQTT: l.mqtt, Things: fleet.Every, Blocked: denied.Blocked, Log: l.base.Log})
	case brokerNATS:
		strangers := newStrangers()
		a, err := natsserver.New(natsserver.Config{
			Servers: l.nats, Trust: func() brokerauth.Trust {
				return brokerauth.Trust{Devices: l.authority.DevicePool(), Services: l.authority.ServicePool()}
			},
			Denied: denied.Denied, Changed: denied.Changed,
			Refused: func(ctx context.Context, r brokerapi.Refusal) { refused(ctx, r, fleet, strangers, l.base.Log) },
		})
		if err != nil {
			return nil, err
		}
		l.watch.members = a.Members
		return natsAdmin{a, l.logins}, nil
	case brokerAWSIoT:
		return awsiot.New(ctx, l.cfg.AWSIoT)
	}
	return brokeradmin.NewEmbedded(brokeradmin.EmbeddedConfig{MQTT: l.mqtt, Denied: denied.Denied, Changed: denied.Changed, Log: l.base.Log})
}

// natsAdmin lets the link dial once it answers logins.
type natsAdmin struct {
	*natsserver.Admin
	logins chan struct{}
}

// Run is the Admin's.
func (a natsAdmin) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if a.Answering(ctx) == nil {
			close(a.logins)
		}
	})
	return a.Admin.Run(ctx)
}
