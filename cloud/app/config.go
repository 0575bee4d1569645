// Package app wires the cloud: it builds plain values in order and hands named services to infra/runner.
package app

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"kennel/cloud/account/accountoidc"
	"kennel/cloud/webhook"
	"kennel/infra/blob"
	"kennel/infra/errs"
	"kennel/infra/mqtt/brokeradmin/awsiot"
	"kennel/infra/mqtt/brokeradmin/emqx"
	"kennel/infra/pg"
	"kennel/infra/queue"
	"kennel/infra/telemetry"
)

// EnvPrefix begins the variables that override settings: KENNELD_MQTT_URL is mqtt.url.
const EnvPrefix = "KENNELD_"

// Role is a share of the cloud's work that one process may take. Any number of processes may have the same role.
type Role string

// The roles.
const (
	RoleBridge Role = "bridge" // MQTT in and out: events, statuses, requests of robots
	RoleAPI    Role = "api"    // enrolment, the public API and the console, over HTTPS
	RoleJobs   Role = "jobs"   // leases, partitions, hints of changes made elsewhere
)

// AllRoles lists the roles that "all" means.
var AllRoles = []Role{RoleBridge, RoleAPI, RoleJobs}

// ParseRoles reads "all" or a list such as "bridge,jobs".
func ParseRoles(words []string) ([]Role, error) {
	var out []Role
	for _, w := range words {
		switch r := Role(strings.TrimSpace(w)); {
		case r == "all":
			return AllRoles, nil
		case slices.Contains(AllRoles, r):
			out = append(out, r)
		default:
			return nil, errs.New(errs.Invalid, "role %.40q: want all, or some of %v", w, AllRoles)
		}
	}
	if len(out) == 0 {
		return nil, errs.New(errs.Invalid, "no role: want all, or some of %v", AllRoles)
	}
	return out, nil
}

// Config configures kenneld serve. Defaults are in Defaults; a file, the environment and flags change them.
type Config struct {
	Roles    []string    `koanf:"roles"`
	Log      LogConfig   `koanf:"log"`
	Postgres pg.Config   `koanf:"postgres"`
	S3       blob.Config `koanf:"s3"`
	MQTT     MQTTConfig  `koanf:"mqtt"`
	Uplink   struct {
		SQS queue.Config `koanf:"sqs"` // the fleet's messages come from this queue instead of mqtt.url; url "": they do not
	} `koanf:"uplink"`
	CA     CAConfig     `koanf:"ca"`
	API    APIConfig    `koanf:"api"`
	Robots RobotsConfig `koanf:"robots"` // original robots
	Mail   MailConfig   `koanf:"mail"`
	// OIDC lets operators sign in by way of an identity provider; an empty issuer turns that off.
	OIDC    accountoidc.Config `koanf:"oidc"`
	Console struct {
		Listen string `koanf:"listen"` // plain HTTP for a browser on this machine; loopback only; "": none
	} `koanf:"console"`
	Enroll EnrollConfig `koanf:"enroll"`
	Events struct {
		KeepDays int `koanf:"keep_days"` // events older than this are dropped, by whole days of receipt
	} `koanf:"events"`
	Webhooks WebhooksConfig        `koanf:"webhooks"`
	Metrics  MetricsConfig         `koanf:"metrics"`
	Traces   telemetry.TraceConfig `koanf:"traces"`
}

// LogConfig says how to log.
type LogConfig struct {
	Level  string `koanf:"level"`  // debug, info, warn, error
	Format string `koanf:"format"` // text, json
}

// MQTTConfig says how to reach the broker as a service.
type MQTTConfig struct {
	URL        string `koanf:"url"`         // ssl://host:port
	ServerName string `koanf:"server_name"` // name in the broker's certificate; "": the host
	// Files with the service's certificate and key; both empty: issued by the authority in ca.dir.
	CertFile string `koanf:"cert_file"`
	KeyFile  string `koanf:"key_file"`
	RootFile string `koanf:"root_file"` // whom to trust as broker; "": the root in ca.dir
	// Broker is who takes orders such as ending a session: embedded (also ""), mosquitto, emqx, aws-iot.
	Broker string `koanf:"broker"`
	// CRLFile is written with the list of revoked certificates, PEM, for a broker that reads one (Mosquitto's crlfile); "": none. The broker
	// must be told to read it again: with PIDFile, or by what starts it. Without a list it knows from orders who has no rights any more.
	CRLFile string `koanf:"crl_file"`
	// PIDFile is the pid_file of a Mosquitto that runs beside this process, under the same account: it gets SIGHUP whenever CRLFile was
	// written. "": something else tells it (infra/compose/mosquitto/run.sh, or a path unit of systemd).
	PIDFile string        `koanf:"pid_file"`
	EMQX    emqx.Config   `koanf:"emqx"`    // with broker emqx
	AWSIoT  awsiot.Config `koanf:"aws_iot"` // with broker aws-iot
}

// CAConfig says where the authorities live.
type CAConfig struct {
	Dir       string        `koanf:"dir"`
	DeviceTTL time.Duration `koanf:"device_ttl"` // life of a device certificate; 0: the default of package certs
	// SealFile is the sealing key, the same for all processes of a cloud; "": seal.key in Dir. kenneld install and kenneld ca init make it.
	SealFile string `koanf:"seal_file"`
	// Files that are kept as the trusted authorities change (kenneld ca): the roots, for robots and people; those of devices and of services,
	// for a broker that reads them. "": none.
	RootFile      string `koanf:"root_file"`
	DeviceBundle  string `koanf:"device_bundle"`
	ServiceBundle string `koanf:"service_bundle"`
}

// EnrollConfig paces attempts to enrol and to renew from one address: a burst for those behind it, then a slow drip.
type EnrollConfig struct {
	PerAddressBurst int           `koanf:"per_address_burst"`
	PerAddressEvery time.Duration `koanf:"per_address_every"`
	NoApproval      bool          `koanf:"no_approval"` // robots that can prove nothing are refused, not put on the list that operators approve from
}

// APIConfig is the public HTTPS side.
type APIConfig struct {
	Listen string `koanf:"listen"`
	// Names in the certificate that the authority in ca.dir issues; not used with CertFile.
	Names    []string `koanf:"names"`
	CertFile string   `koanf:"cert_file"` // certificate chain and key, for instance of a public authority
	KeyFile  string   `koanf:"key_file"`
	// Proxies are the networks, such as 10.0.0.0/24, of proxies that pass TLS through and say who called them (PROXY protocol); empty: none.
	Proxies []string `koanf:"proxies"`
	// PublicURL is where people reach this API and its pages, as letters say it: https://kennel.example. "": https:// and the first of Names
	// with the port of Listen.
	PublicURL string `koanf:"public_url"`
	// AppKeys are the app keys that the original app and SDK tools may show; ["*"] takes any. Empty: they are not served.
	AppKeys []string `koanf:"app_keys"`
	// PublicMQTT is the broker's address as robots see it; "": mqtt.url.
	PublicMQTT string `koanf:"public_mqtt"`
}

// publicURL is PublicURL, or what can be known of it.
func (c APIConfig) publicURL() string {
	if c.PublicURL != "" {
		return strings.TrimSuffix(c.PublicURL, "/")
	}
	_, port, err := net.SplitHostPort(c.Listen)
	name := "localhost"
	if len(c.Names) > 0 {
		name = c.Names[0]
	}
	if err != nil || port == "443" {
		return "https://" + name
	}
	return "https://" + net.JoinHostPort(name, port)
}

// Defaults returns the settings that need no saying.
func Defaults() Config {
	var c Config
	c.Roles = []string{"all"}
	c.Log = LogConfig{Level: "info", Format: "text"}
	c.S3.Bucket = "kennel"
	c.API.Listen = "127.0.0.1:8443"
	c.API.Names = []string{"localhost", "127.0.0.1", "::1"}
	c.Console.Listen = ""
	c.Events.KeepDays = 30
	c.Enroll = EnrollConfig{PerAddressBurst: 120, PerAddressEvery: time.Second} // a household, and a robot that is switched off and on
	c.Traces.Permille = 10
	return c
}

// Validate reports the first setting that cannot work, by its name.
func (c Config) Validate() error {
	roles, err := ParseRoles(c.Roles)
	if err != nil {
		return err
	}
	if err := c.Postgres.Validate(); err != nil {
		return err
	}
	if err := c.S3.Validate(); err != nil {
		return err
	}
	if c.CA.Dir == "" {
		return errs.New(errs.Invalid, "ca.dir is empty: want the folder with the certificate authorities")
	}
	u, err := url.Parse(c.MQTT.URL)
	if err != nil || u.Scheme != "ssl" || u.Port() == "" {
		return errs.New(errs.Invalid, "mqtt.url %q: want ssl://host:port", c.MQTT.URL)
	}
	if err := c.validateBroker(); err != nil {
		return err
	}
	for name, pair := range map[string][2]string{"mqtt": {c.MQTT.CertFile, c.MQTT.KeyFile}, "api": {c.API.CertFile, c.API.KeyFile}} {
		if (pair[0] == "") != (pair[1] == "") {
			return errs.New(errs.Invalid, "%s.cert_file %q and %s.key_file %q: want both or neither", name, pair[0], name, pair[1])
		}
	}
	if slices.Contains(roles, RoleAPI) {
		if _, _, err := net.SplitHostPort(c.API.Listen); err != nil {
			return errs.New(errs.Invalid, "api.listen %q: want host:port", c.API.Listen)
		}
	}
	if _, err := parseProxies(c.API.Proxies); err != nil {
		return err
	}
	if err := c.Robots.validate(); err != nil {
		return err
	}
	if err := c.Mail.validate(); err != nil {
		return err
	}
	if c.OIDC.Issuer != "" {
		if err := c.OIDC.Validate(); err != nil {
			return fmt.Errorf("oidc: %w", err)
		}
	}
	if c.Console.Listen != "" {
		if err := Loopback(c.Console.Listen); err != nil {
			return errs.New(errs.Invalid, "console.listen: %w", err)
		}
	}
	if _, err := webhook.NewGuard(c.Webhooks.Allow); err != nil {
		return fmt.Errorf("webhooks.allow: %w", err)
	}
	if err := c.Metrics.Validate(); err != nil {
		return err
	}
	if err := c.Traces.Validate(); err != nil {
		return err
	}
	if c.Enroll.PerAddressBurst < 1 {
		return errs.New(errs.Invalid, "enroll.per_address_burst %d: want at least 1", c.Enroll.PerAddressBurst)
	}
	if c.Enroll.PerAddressEvery <= 0 {
		return errs.New(errs.Invalid, "enroll.per_address_every %v: want more than 0", c.Enroll.PerAddressEvery)
	}
	if c.Events.KeepDays < 1 {
		return errs.New(errs.Invalid, "events.keep_days %d: want at least 1", c.Events.KeepDays)
	}
	return nil
}

// Loopback refuses addresses that other machines can reach: what is served there is not encrypted.
func Loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q: want host:port", addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("address %q: plain HTTP is for this machine only; want 127.0.0.1:port, and use api.listen for others", addr)
	}
	return nil
}
