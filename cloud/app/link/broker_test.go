package link

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/certs/certsbroker"
	"kennel/cloud/wire"
	"kennel/infra/awsconfig"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokeradmin"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/queue"
)

// settings are those of the broker and of the uplink.
type settings struct {
	MQTT   Config
	Uplink UplinkConfig
}

func TestBrokerSettings(t *testing.T) {
	for want, change := range map[string]func(*settings){
		"":  func(c *settings) {},
		" ": func(c *settings) { c.MQTT.Broker = "mosquitto" },
		"  ": func(c *settings) {
			c.MQTT.Broker, c.MQTT.AWSIoT = "aws-iot", awsconfig.Config{Region: "r", Endpoint: "https://h"}
		},
		"   ":  func(c *settings) { c.Uplink.SQS = queue.Config{URL: "https://sqs.r.amazonaws.com/1/q"} },
		"    ": func(c *settings) { c.MQTT.Broker, c.MQTT.CRLFile, c.MQTT.PIDFile = "mosquitto", "l", "p" },
		"     ": func(c *settings) {
			c.MQTT.Broker, c.MQTT.NATS = "nats", NATSConfig{Servers: []string{"tls://h:1"}, SecretFile: "f"}
		},
		"mqtt.nats.servers":     func(c *settings) { c.MQTT.Broker, c.MQTT.NATS = "nats", NATSConfig{SecretFile: "f"} },
		"mqtt.nats.secret_file": func(c *settings) { c.MQTT.Broker, c.MQTT.NATS = "nats", NATSConfig{Servers: []string{"tls://h:1"}} },
		"mqtt.nats.replicas": func(c *settings) {
			c.MQTT.Broker, c.MQTT.NATS = "nats", NATSConfig{Servers: []string{"tls://h:1"}, SecretFile: "f", Replicas: 2}
		},
		"mqtt.crl_file":         func(c *settings) { c.MQTT.Broker, c.MQTT.PIDFile = "mosquitto", "p" },
		"mqtt.pid_file":         func(c *settings) { c.MQTT.CRLFile, c.MQTT.PIDFile = "l", "p" },
		"embedded, mosquitto":   func(c *settings) { c.MQTT.Broker = "rabbit" },
		"mqtt.aws_iot.endpoint": func(c *settings) { c.MQTT.Broker = "aws-iot" },
		"uplink.sqs.url":        func(c *settings) { c.Uplink.SQS.URL = "q" },
		"uplink.sqs.aws": func(c *settings) {
			c.Uplink.SQS = queue.Config{URL: "https://h/1/q", AWS: awsconfig.Config{AccessKeyFile: "x"}}
		},
		"uplink.sqs.receivers -": func(c *settings) { c.Uplink.SQS = queue.Config{URL: "https://h/1/q", Receivers: -1} },
	} {
		c := settings{MQTT: Config{URL: "ssl://localhost:8884"}}
		change(&c)
		err := c.MQTT.Validate(c.Uplink)
		if strings.TrimSpace(want) == "" && err != nil {
			t.Errorf("%+v: %v", c.MQTT, err)
		} else if strings.TrimSpace(want) != "" && (errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestBrokerAdminByName(t *testing.T) {
	l := &Link{base: wire.Base{Log: slog.New(slog.DiscardHandler)}, mqtt: mqtt.Config{URL: "ssl://localhost:8884", TLS: func() (*tls.Config, error) { return &tls.Config{}, nil }}}
	for name, told := range map[string]bool{"": false, "embedded": false, "mosquitto": true} { // told of each thing
		l.cfg.Broker = name
		a, err := l.admin(t.Context(), nil, certsbroker.Source{})
		_, provisions := a.(brokeradmin.Provisioner)
		_, ran := a.(interface{ Run(context.Context) error })
		_, blocks := a.(brokeradmin.Blocker)
		if err != nil || provisions != told || !ran || !blocks {
			t.Errorf("%q: %T, %v", name, a, err)
		}
	}
	l.cfg.Broker = "aws-iot"
	l.cfg.AWSIoT = awsconfig.Config{Region: "r", Endpoint: "https://h", AccessKeyFile: "/no/such", SecretKeyFile: "/no/such"}
	if _, err := l.admin(t.Context(), nil, certsbroker.Source{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("key files that are not there: %v", err)
	}
}

// TestStrangersAreLoggedSparsely (issue 16): strangers cut off by the broker make a few lines, and the count of the others is not lost.
func TestStrangersAreLoggedSparsely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log, sparse := slog.New(slog.NewTextHandler(&out, nil)), logging.NewSparse(10*time.Second, 20)
		cut := brokerapi.Refusal{Addr: "192.0.2.1:1", Code: brokerapi.CodeTLS, Reason: "TLS handshake: EOF"}
		for range 500 {
			refused(t.Context(), cut, nil, sparse, log)
		}
		if n := strings.Count(out.String(), "\n"); n != 20 || sparse.Held() != 480 {
			t.Errorf("%d lines, %d held back, want 20 and 480:\n%s", n, sparse.Held(), out.String())
		}
		time.Sleep(10 * time.Second)
		out.Reset()
		cut.Muted = 7 // of the broker
		refused(t.Context(), cut, nil, sparse, log)
		if !strings.Contains(out.String(), "muted=487") {
			t.Errorf("%q, want those held back", out.String())
		}
	})
}
