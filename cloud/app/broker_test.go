package app

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"kennel/certs"
	"kennel/infra/awsconfig"
	"kennel/infra/errs"
	"kennel/infra/mqtt/brokeradmin"
	"kennel/infra/mqtt/brokeradmin/emqx"
	"kennel/infra/queue"
	"kennel/infra/thing"
)

func TestBrokerSettings(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"":  func(c *Config) {},
		" ": func(c *Config) { c.MQTT.Broker = "mosquitto" },
		"  ": func(c *Config) {
			c.MQTT.Broker, c.MQTT.EMQX = "emqx", emqx.Config{URL: "https://h:18083", KeyFile: "k", SecretFile: "s"}
		},
		"   ": func(c *Config) {
			c.MQTT.Broker, c.MQTT.AWSIoT = "aws-iot", awsconfig.Config{Region: "r", Endpoint: "https://h"}
		},
		"    ":                  func(c *Config) { c.Uplink.SQS = queue.Config{URL: "https://sqs.r.amazonaws.com/1/q"} },
		"     ":                 func(c *Config) { c.MQTT.Broker, c.MQTT.CRLFile, c.MQTT.PIDFile = "mosquitto", "l", "p" },
		"mqtt.crl_file":         func(c *Config) { c.MQTT.Broker, c.MQTT.PIDFile = "mosquitto", "p" },
		"mqtt.pid_file":         func(c *Config) { c.MQTT.CRLFile, c.MQTT.PIDFile = "l", "p" },
		"embedded, mosquitto":   func(c *Config) { c.MQTT.Broker = "rabbit" },
		"mqtt.emqx.url":         func(c *Config) { c.MQTT.Broker = "emqx" },
		"mqtt.aws_iot.endpoint": func(c *Config) { c.MQTT.Broker = "aws-iot" },
		"uplink.sqs.url":        func(c *Config) { c.Uplink.SQS.URL = "q" },
		"uplink.sqs.aws": func(c *Config) {
			c.Uplink.SQS = queue.Config{URL: "https://h/1/q", AWS: awsconfig.Config{AccessKeyFile: "x"}}
		},
		"uplink.sqs.receivers -": func(c *Config) { c.Uplink.SQS = queue.Config{URL: "https://h/1/q", Receivers: -1} },
	} {
		c := Defaults()
		change(&c)
		err := c.validateBroker()
		if strings.TrimSpace(want) == "" && err != nil {
			t.Errorf("%+v: %v", c.MQTT, err)
		} else if strings.TrimSpace(want) != "" && (errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// orders is a broker that remembers what it was told.
type orders struct {
	said  []string
	calls int // of Provision
	err   error
}

func (o *orders) Kick(_ context.Context, id thing.ID, reason string) error {
	o.said = append(o.said, "kick "+string(id)+" "+reason)
	return o.err
}
func (o *orders) Ready(context.Context) error { return nil }
func (o *orders) Provision(_ context.Context, ids ...thing.ID) error {
	o.calls++
	for _, id := range ids {
		o.said = append(o.said, "provision "+string(id))
	}
	return o.err
}

type recorded []certs.Step

// batches is a recorder of whole deliveries.
type batches struct {
	recorded
	sizes []int
}

func (b *batches) RecordAll(_ context.Context, all []certs.Step) { b.sizes = append(b.sizes, len(all)) }

// TestBrokerToldOfADelivery: a delivery is one order to the broker and one to the record.
func TestBrokerToldOfADelivery(t *testing.T) {
	all := []certs.Step{{Thing: "vic:1", Step: certs.StepRegister, OK: true}, {Thing: "vic:2", Step: certs.StepRegister, OK: true}}
	for _, err := range []error{nil, errors.New("no broker")} {
		o := &orders{err: err}
		r := &batches{}
		told, ok := (&Cloud{Broker: o, log: slog.New(slog.DiscardHandler)}).tellBroker(r).(certs.BatchRecorder)
		if !ok {
			t.Fatal("what tells the broker takes no deliveries")
		}
		told.RecordAll(t.Context(), all)
		if want := []string{"provision vic:1", "provision vic:2"}; !reflect.DeepEqual(o.said, want) || o.calls != 1 {
			t.Errorf("told %q in %d orders, want %q in one", o.said, o.calls, want)
		}
		if !reflect.DeepEqual(r.sizes, []int{2}) || len(r.recorded) > 0 {
			t.Errorf("recorded %v and %v, want one delivery of two", r.sizes, r.recorded)
		}
	}
}

func (r *recorded) Record(_ context.Context, s certs.Step) { *r = append(*r, s) }

// TestBrokerTold: the broker hears of who is new before the robot has its certificate, and of who is revoked; steps are recorded whatever
// the broker says.
func TestBrokerTold(t *testing.T) {
	steps := []certs.Step{
		{Thing: "vic:1", Step: certs.StepRegister, OK: true}, {Thing: "vic:1", Step: certs.StepEnroll, OK: true}, {Thing: "vic:2", Step: certs.StepEnroll},
		{Thing: "vic:1", Step: certs.StepRenew, OK: true}, {Step: certs.StepEnroll, OK: true}, {Thing: "vic:1", Step: certs.StepRevoke, OK: true, Reason: "lost"},
	}
	for _, err := range []error{nil, errors.New("no broker")} {
		o := &orders{err: err}
		var r recorded
		told := (&Cloud{Broker: o, log: slog.New(slog.DiscardHandler)}).tellBroker(&r)
		for _, s := range steps {
			told.Record(t.Context(), s)
		}
		if want := []string{"provision vic:1", "provision vic:1", "kick vic:1 its certificates were revoked: lost"}; !reflect.DeepEqual(o.said, want) {
			t.Errorf("told %q, want %q", o.said, want)
		}
		if !reflect.DeepEqual([]certs.Step(r), steps) {
			t.Errorf("recorded %+v", r)
		}
	}
}

func TestBrokerAdminByName(t *testing.T) {
	c := &Cloud{log: slog.New(slog.DiscardHandler)}
	c.cfg.MQTT.URL = "ssl://localhost:8884"
	for name, told := range map[string]bool{"": false, "embedded": false, "mosquitto": true} { // told of each thing
		c.cfg.MQTT.Broker = name
		a, err := c.brokerAdmin(t.Context())
		_, provisions := a.(brokeradmin.Provisioner)
		_, ran := a.(interface{ Run(context.Context) error })
		_, blocks := a.(brokeradmin.Blocker)
		if err != nil || provisions != told || !ran || !blocks {
			t.Errorf("%q: %T, %v", name, a, err)
		}
	}
	c.cfg.MQTT.Broker = "aws-iot"
	c.cfg.MQTT.AWSIoT = awsconfig.Config{Region: "r", Endpoint: "https://h", AccessKeyFile: "/no/such", SecretKeyFile: "/no/such"}
	if _, err := c.brokerAdmin(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("key files that are not there: %v", err)
	}
}
