// Package app wires the cloud: it builds plain values in order and hands named services to infra/runner.
package app

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kennel/cloud/app/fleet"
	"kennel/cloud/app/front"
	"kennel/cloud/app/health"
	"kennel/cloud/app/identity"
	"kennel/cloud/app/link"
	"kennel/cloud/app/orders"
	"kennel/cloud/app/people"
	"kennel/cloud/app/records"
	"kennel/cloud/identity/account/accountoidc"
	"kennel/cloud/wire"
	"kennel/infra/blob"
	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/telemetry"
)

// EnvPrefix begins the variables that override settings: KENNELD_MQTT_URL is mqtt.url.
const EnvPrefix = "KENNELD_"

// Config configures kenneld serve. Defaults are in Defaults; a file, the environment and flags change them.
type Config struct {
	Roles    []string          `koanf:"roles"`
	Log      LogConfig         `koanf:"log"`
	Postgres pg.Config         `koanf:"postgres"`
	S3       blob.Config       `koanf:"s3"`
	MQTT     link.Config       `koanf:"mqtt"`
	Uplink   link.UplinkConfig `koanf:"uplink"`
	CA       identity.CAConfig `koanf:"ca"`
	API      APIConfig         `koanf:"api"`
	Robots   RobotsConfig      `koanf:"robots"` // original robots
	Mail     people.MailConfig `koanf:"mail"`
	// OIDC lets operators sign in by way of an identity provider; an empty issuer turns that off.
	OIDC accountoidc.Config `koanf:"oidc"`
	// Operators says what operators must have.
	Operators struct {
		RequireSecond bool `koanf:"require_second_factor"` // operators must set up a passkey or an authenticator app before anything else
	} `koanf:"operators"`
	Console struct {
		Listen string `koanf:"listen"` // plain HTTP for a browser on this machine; loopback only; "": none
	} `koanf:"console"`
	Enroll  identity.EnrollConfig `koanf:"enroll"`
	Events  records.EventsConfig  `koanf:"events"`
	Uploads struct {
		KeepDays int `koanf:"keep_days"` // days after which uploaded logs are deleted
	} `koanf:"uploads"`
	// Volumes are folders, each NAME=/FOLDER, whose file systems are watched beside the one of ca.dir: of a Postgres or an object store on this machine.
	Volumes  []string              `koanf:"volumes"`
	Webhooks fleet.WebhooksConfig  `koanf:"webhooks"`
	Releases orders.ReleasesConfig `koanf:"releases"`
	Devices  orders.DevicesConfig  `koanf:"devices"` // that run SWUpdate
	Speech   health.SpeechConfig   `koanf:"speech"`
	Metrics  MetricsConfig         `koanf:"metrics"`
	Traces   telemetry.TraceConfig `koanf:"traces"`
}

// LogConfig says how to log.
type LogConfig struct {
	Level  string `koanf:"level"`  // debug, info, warn, error
	Format string `koanf:"format"` // text, json
}

// APIConfig is the public HTTPS side.
type APIConfig struct {
	Listen string `koanf:"listen"`
	// Names in the certificate that the authority in ca.dir issues; not used with CertFile.
	Names    []string `koanf:"names"`
	CertFile string   `koanf:"cert_file"` // certificate chain and key, for instance of a public authority
	KeyFile  string   `koanf:"key_file"`
	// ACME gets the certificates of public names; other names keep the one above.
	ACME identity.ACMEConfig `koanf:"acme"`
	// Proxies are networks, such as 10.0.0.0/24, of proxies that pass TLS through and send the client's address (PROXY protocol); empty: none.
	Proxies []string `koanf:"proxies"`
	// PublicURL is where people reach this API and its pages, for links in e-mails: https://kennel.example. "": https:// and the first of Names
	// with the port of Listen.
	PublicURL string `koanf:"public_url"`
	// AppKeys are the app keys that the original app and SDK tools may use; ["*"] allows any. Empty: they are not served.
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

// publicName returns the host name of PublicURL if its certificate is one that browsers trust without help of ours; else "".
func (c APIConfig) publicName() string {
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Scheme != "https" || net.ParseIP(u.Hostname()) != nil || c.CertFile == "" && !slices.Contains(c.ACME.Names, u.Hostname()) {
		return ""
	}
	return u.Hostname()
}

func (c Config) people() people.Config {
	return people.Config{Mail: c.Mail, OIDC: c.OIDC, RequireSecond: c.Operators.RequireSecond, PublicURL: c.API.publicURL(), Local: c.Console.Listen, AppKeys: c.API.AppKeys,
		SpoolDir: filepath.Join(filepath.Dir(filepath.Clean(c.CA.Dir)), "mail")}
}

func (c Config) identity() identity.Config {
	return identity.Config{CA: c.CA, Enroll: c.Enroll, AppKeysFile: c.Robots.AppKeysFile, MQTT: cmp.Or(c.API.PublicMQTT, c.MQTT.URL)}
}

// Recognizers returns those that work on this machine without being configured.
func Recognizers() []string { return health.Recognizers() }

// maxKeepDays is a hundred years, which a duration can hold.
const maxKeepDays = 36500

// Defaults returns the settings that need no saying.
func Defaults() Config {
	var c Config
	c.Roles = []string{"all"}
	c.Log = LogConfig{Level: "info", Format: "text"}
	c.S3.Bucket = "kennel"
	c.API.Listen = "127.0.0.1:8443"
	c.API.Names = []string{"localhost", "127.0.0.1", "::1"}
	c.Console.Listen = ""
	c.Events.KeepDays, c.Events.RawKeepDays, c.Uploads.KeepDays = 30, 30, 30
	c.Enroll = identity.EnrollConfig{PerAddressBurst: 120, PerAddressEvery: time.Second} // a household, and a robot that is switched off and on
	c.Traces.Permille = 10
	return c
}

// Validate reports the first setting that cannot work, by its name.
func (c Config) Validate() error {
	roles, err := wire.ParseRoles(c.Roles)
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
	if err := c.MQTT.Validate(c.Uplink); err != nil {
		return err
	}
	if (c.API.CertFile == "") != (c.API.KeyFile == "") {
		return errs.New(errs.Invalid, "api.cert_file %q and api.key_file %q: want both or neither", c.API.CertFile, c.API.KeyFile)
	}
	if err := c.API.ACME.Validate(); err != nil {
		return errs.New(errs.Invalid, "api.%w", err)
	}
	if slices.Contains(roles, wire.API) {
		if _, _, err := net.SplitHostPort(c.API.Listen); err != nil {
			return errs.New(errs.Invalid, "api.listen %q: want host:port", c.API.Listen)
		}
	}
	if _, err := front.ParseProxies(c.API.Proxies); err != nil {
		return err
	}
	if err := c.Robots.validate(); err != nil {
		return err
	}
	if err := c.Mail.Validate(); err != nil {
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
	if err := c.Webhooks.Validate(); err != nil {
		return err
	}
	if err := c.Speech.Validate(); err != nil {
		return err
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
	if c.Events.RawKeepDays < 1 || c.Events.RawKeepDays > maxKeepDays {
		return errs.New(errs.Invalid, "events.raw_keep_days %d: want 1 to %d", c.Events.RawKeepDays, maxKeepDays)
	}
	if c.Events.ParquetDays < 0 || c.Events.ParquetDays > c.Events.KeepDays {
		return errs.New(errs.Invalid, "events.parquet_days %d: want 0, which turns the files off, to events.keep_days, %d: files of expired events could not be rewritten without an erased person's",
			c.Events.ParquetDays, c.Events.KeepDays)
	}
	if c.Uploads.KeepDays < 1 || c.Uploads.KeepDays > maxKeepDays {
		return errs.New(errs.Invalid, "uploads.keep_days %d: want 1 to %d", c.Uploads.KeepDays, maxKeepDays)
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
