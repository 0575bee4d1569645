// Package mailsmtp hands letters to a mail server (RFC 5321), encrypted: STARTTLS, or TLS from the first byte.
//
// Its errors hold the server's codes and not its words, which often repeat the address.
package mailsmtp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"net/textproto"
	"os"
	"strings"
	"time"

	"kennel/cloud/mail"
	"kennel/infra/errs"
)

// Values of Config.TLS.
const (
	STARTTLS = "starttls" // also ""; port 587 as a rule
	Implicit = "implicit" // port 465 as a rule
	Plain    = "none"     // only for a server on this machine
)

const dialTime = 10 * time.Second

// Config says how to reach the mail server.
type Config struct {
	Host         string `koanf:"host"` // "": none, letters go to the spool
	Port         int    `koanf:"port"` // 0: 587, or 465 with tls: implicit
	TLS          string `koanf:"tls"`  // starttls, implicit; none for a server on this machine
	User         string `koanf:"user"` // "": no login
	PasswordFile string `koanf:"password_file"`
	RootFile     string `koanf:"root_file"` // whom to trust, PEM; "": the system's authorities
}

// Validate reports the first setting that cannot work (kind Invalid).
func (c Config) Validate() error {
	switch c.TLS {
	case "", STARTTLS, Implicit:
	case Plain:
		if ip := net.ParseIP(c.Host); c.Host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return errs.New(errs.Invalid, "mail.smtp.tls none with host %q: letters would cross a network in the clear; want starttls or implicit", c.Host)
		}
	default:
		return errs.New(errs.Invalid, "mail.smtp.tls %.40q: want starttls, implicit or none", c.TLS)
	}
	if c.Host == "" || strings.ContainsAny(c.Host, " /@") || c.Port < 0 || c.Port > 65535 {
		return errs.New(errs.Invalid, "mail.smtp.host %.80q, port %d: want the name of a mail server and its port", c.Host, c.Port)
	}
	if (c.User == "") != (c.PasswordFile == "") {
		return errs.New(errs.Invalid, "mail.smtp.user %q and mail.smtp.password_file %q: want both or neither", c.User, c.PasswordFile)
	}
	return nil
}

// Transport is a mail.Transport. Safe for concurrent use. The password file is read for every connection, so a new password needs no restart.
type Transport struct {
	cfg   Config
	roots *x509.CertPool
}

// New checks cfg and the files it names; it does not connect.
func New(cfg Config) (*Transport, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Port == 0 {
		cfg.Port = 587
		if cfg.TLS == Implicit {
			cfg.Port = 465
		}
	}
	t := &Transport{cfg: cfg}
	if _, err := t.password(); err != nil {
		return nil, err
	}
	if cfg.RootFile != "" {
		b, err := os.ReadFile(cfg.RootFile)
		if err != nil {
			return nil, fmt.Errorf("mail.smtp.root_file: %w", err)
		}
		t.roots = x509.NewCertPool()
		if !t.roots.AppendCertsFromPEM(b) {
			return nil, errs.New(errs.Invalid, "mail.smtp.root_file %s: want PEM blocks of type CERTIFICATE", cfg.RootFile)
		}
	}
	return t, nil
}

func (t *Transport) password() (string, error) {
	if t.cfg.PasswordFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(t.cfg.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("mail.smtp.password_file: %w", err)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// Send implements mail.Transport. Invalid with code "smtp 5xx" if the server refuses the recipient for good; everything else may be tried again.
func (t *Transport) Send(ctx context.Context, m mail.Message) error {
	conn, err := t.dial(ctx)
	if err != nil {
		return errs.New(errs.Unavailable, "mail server %s: %w", t.cfg.Host, err)
	}
	defer conn.Close() // after Quit it is closed already
	// The context ends a conversation that hangs.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	return t.talk(conn, m)
}

func (t *Transport) tls() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.cfg.Host, RootCAs: t.roots}
}

func (t *Transport) dial(ctx context.Context) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTime}
	addr := net.JoinHostPort(t.cfg.Host, fmt.Sprint(t.cfg.Port))
	if t.cfg.TLS == Implicit {
		return (&tls.Dialer{NetDialer: d, Config: t.tls()}).DialContext(ctx, "tcp", addr)
	}
	return d.DialContext(ctx, "tcp", addr)
}

func (t *Transport) talk(conn net.Conn, m mail.Message) error {
	c, err := smtp.NewClient(conn, t.cfg.Host)
	if err != nil {
		return t.trouble("greeting", err)
	}
	defer c.Close() // after Quit it is closed already
	if t.cfg.TLS == "" || t.cfg.TLS == STARTTLS {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return errs.Coded(errs.Unavailable, "no_starttls", "mail server %s offers no STARTTLS; nothing was sent in the clear", t.cfg.Host)
		}
		if err := c.StartTLS(t.tls()); err != nil {
			return t.trouble("STARTTLS", err)
		}
	}
	if t.cfg.User != "" {
		password, err := t.password()
		if err != nil {
			return err
		}
		if err := c.Auth(smtp.PlainAuth("", t.cfg.User, password, t.cfg.Host)); err != nil {
			return t.trouble("login", err)
		}
	}
	if err := c.Mail(m.From); err != nil {
		return t.trouble("sender", err)
	}
	if err := c.Rcpt(m.To); err != nil {
		if p, ok := errors.AsType[*textproto.Error](err); ok && p.Code >= 550 && p.Code <= 553 { // no such mailbox, not here, full for good, bad name
			return errs.Coded(errs.Invalid, fmt.Sprintf("smtp %d", p.Code), "mail server %s refuses the recipient: %d", t.cfg.Host, p.Code)
		}
		return t.trouble("recipient", err)
	}
	w, err := c.Data()
	if err != nil {
		return t.trouble("data", err)
	}
	if _, err := w.Write(m.Raw); err != nil {
		return t.trouble("data", err)
	}
	if err := w.Close(); err != nil {
		return t.trouble("data", err)
	}
	_ = c.Quit() // it has the letter
	return nil
}

// trouble is an error of one step, with the server's code if it gave one.
func (t *Transport) trouble(step string, err error) error {
	if p, ok := errors.AsType[*textproto.Error](err); ok {
		return errs.Coded(errs.Unavailable, fmt.Sprintf("smtp %d", p.Code), "mail server %s, %s: answer %d", t.cfg.Host, step, p.Code)
	}
	return errs.New(errs.Unavailable, "mail server %s, %s: %w", t.cfg.Host, step, err)
}
