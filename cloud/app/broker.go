package app

import (
	"context"
	"errors"
	"time"

	"kennel/certs"
	"kennel/cloud/registry"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokeradmin"
	"kennel/infra/mqtt/brokeradmin/awsiot"
	"kennel/infra/mqtt/brokeradmin/emqx"
	"kennel/infra/mqtt/brokeradmin/mosquitto"
	"kennel/infra/thing"
)

// The brokers that take our orders: words of mqtt.broker.
const (
	brokerEmbedded  = "embedded"
	brokerMosquitto = "mosquitto"
	brokerEMQX      = "emqx"
	brokerAWSIoT    = "aws-iot"
)

func (m MQTTConfig) embedded() bool { return m.Broker == "" || m.Broker == brokerEmbedded }

// validateBroker reports settings of the broker and the uplink that cannot work.
func (c Config) validateBroker() error {
	if c.MQTT.PIDFile != "" && (c.MQTT.Broker != brokerMosquitto || c.MQTT.CRLFile == "") {
		return errs.New(errs.Invalid, "mqtt.pid_file is set: want mqtt.broker %s and mqtt.crl_file, the list that it is told to read", brokerMosquitto)
	}
	switch m := c.MQTT; m.Broker {
	case "", brokerEmbedded, brokerMosquitto:
	case brokerEMQX:
		if err := m.EMQX.Validate(); err != nil {
			return err
		}
	case brokerAWSIoT:
		if err := awsiot.Validate(m.AWSIoT); err != nil {
			return err
		}
	default:
		return errs.New(errs.Invalid, "mqtt.broker %.40q: want %s, %s, %s or %s", m.Broker, brokerEmbedded, brokerMosquitto, brokerEMQX, brokerAWSIoT)
	}
	if c.Uplink.SQS.URL == "" {
		return nil
	}
	return c.Uplink.SQS.Validate()
}

// brokerAdmin returns who takes orders for the broker.
func (c *Cloud) brokerAdmin(ctx context.Context) (brokeradmin.Admin, error) {
	switch c.cfg.MQTT.Broker {
	case brokerMosquitto:
		return mosquitto.New(mosquitto.Config{MQTT: mqtt.Config{URL: c.cfg.MQTT.URL, TLS: c.serviceTLS(), Log: c.log}, Things: c.everyThing, Blocked: c.denied.Blocked, Log: c.log})
	case brokerEMQX:
		return emqx.New(c.cfg.MQTT.EMQX)
	case brokerAWSIoT:
		return awsiot.New(ctx, c.cfg.MQTT.AWSIoT)
	}
	return brokeradmin.NewEmbedded(brokeradmin.EmbeddedConfig{
		MQTT: mqtt.Config{URL: c.cfg.MQTT.URL, TLS: c.serviceTLS(), Log: c.log}, Denied: c.denied.Denied, Changed: c.denied.Changed, Log: c.log,
	})
}

// everyThing lists the fleet.
func (c *Cloud) everyThing(ctx context.Context) ([]thing.ID, error) {
	var out []thing.ID
	for q := (registry.Query{Limit: registry.MaxLimit}); ; {
		page, err := c.Registry.Things(ctx, q)
		if err != nil || len(page) == 0 {
			return out, err
		}
		for _, t := range page {
			out = append(out, t.ID)
		}
		q.After = out[len(out)-1]
	}
}

// orderTime bounds an order to the broker that a caller waits for.
const orderTime = 5 * time.Second

// tellBroker passes steps of activation on, and tells the broker of those that concern it: who is new, whose session must end.
func (c *Cloud) tellBroker(next certs.Recorder) certs.Recorder { return brokerTold{c, next} }

type brokerTold struct {
	c    *Cloud
	next certs.Recorder
}

// RecordAll implements certs.BatchRecorder: a delivery is one order. What of it fails is made up for by the next look at the whole fleet.
func (b brokerTold) RecordAll(ctx context.Context, all []certs.Step) {
	if next, ok := b.next.(certs.BatchRecorder); ok {
		next.RecordAll(ctx, all)
	} else {
		for _, s := range all {
			b.next.Record(ctx, s)
		}
	}
	p, ok := b.c.Broker.(brokeradmin.Provisioner)
	var ids []thing.ID
	for _, s := range all {
		if s.OK && s.Step == certs.StepRegister && s.Thing != "" {
			ids = append(ids, s.Thing)
		}
	}
	if !ok || len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), orderTime)
	defer cancel()
	if err := p.Provision(ctx, ids...); err != nil {
		b.c.log.WarnContext(ctx, "new things not announced to the broker", "things", len(ids), logging.Err, err)
	}
}

func (b brokerTold) Record(ctx context.Context, s certs.Step) {
	b.next.Record(ctx, s)
	if !s.OK || s.Thing == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), orderTime)
	defer cancel()
	var err error
	switch s.Step {
	case certs.StepRegister, certs.StepEnroll:
		if p, ok := b.c.Broker.(brokeradmin.Provisioner); ok {
			err = p.Provision(ctx, s.Thing) // before the robot has its certificate; what fails is made up for
		}
		if blocker, ok := b.c.Broker.(brokeradmin.Blocker); ok && s.Step == certs.StepEnroll {
			err = errors.Join(err, blocker.Allow(ctx, s.Thing)) // it is let in again, with another key
		}
	case certs.StepRelease:
		err = b.c.Broker.Kick(ctx, s.Thing, "its key was given up: "+s.Reason)
	case certs.StepRevoke:
		if blocker, ok := b.c.Broker.(brokeradmin.Blocker); ok {
			err = blocker.Block(ctx, s.Thing, s.Reason)
			break
		}
		err = b.c.Broker.Kick(ctx, s.Thing, "its certificates were revoked: "+s.Reason)
	}
	if err != nil {
		b.c.log.WarnContext(ctx, "identity step not applied at the broker", logging.Thing, s.Thing, "step", s.Step, logging.Err, err)
	}
}
