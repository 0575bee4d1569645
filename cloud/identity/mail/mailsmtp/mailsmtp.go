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
	"net/textproto"
	"os"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"kennel/cloud/identity/mail"
	"kennel/infra/errs"
)

// Values of Config.TLS.
const (
	STARTTLS = "starttls" // also ""; port 587 as a rule
	Implicit = "implicit" // port 465 as a rule
	Plain    = "none"     // only for a server on this machine
)

const dialTime, talkTime = 10 * time.Second, 25 * time.Second // to connect; and for the whole letter

// Config says how to reach the mail server.
type Config struct {
	Host         string `koanf:"host"` // "": none, letters go to the spool
	Port         int    `koanf:"port"` // 0: 587, or 465 with tls: implicit
	TLS          string `koanf:"tls"`  // starttls, implicit; none for a server on this machine
	User         string `koanf:"user"` // "": no login
	PasswordFile string `koanf:"password_file"`
	RootFile     string `koanf:"root_file"` // file with the authorities to trust (PEM); "": the system's
}

// Validate reports the first setting that cannot work (kind Invalid).
func (c Config) Validate() error {
	switch c.TLS {
	case "", STARTTLS, Implicit:
	case Plain:
		if ip := net.ParseIP(c.Host); c.Host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return errs.New(errs.Invalid, "mail.smtp.tls none with host %q: e-mails would cross a network unencrypted; want starttls or implicit", c.Host)
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
	password, err := t.password()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	secure := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.cfg.Host, RootCAs: t.roots}
	dial := (&net.Dialer{Timeout: dialTime}).DialContext
	policy := gomail.TLSMandatory
	switch t.cfg.TLS {
	case Implicit:
		dial, policy = (&tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTime}, Config: secure}).DialContext, gomail.NoTLS
	case Plain:
		policy = gomail.NoTLS
	}
	opts := []gomail.Option{gomail.WithPort(t.cfg.Port), gomail.WithTLSConfig(secure), gomail.WithTLSPolicy(policy), gomail.WithTimeout(talkTime), gomail.WithoutNoop(),
		gomail.WithDialContextFunc(func(dctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(dctx, network, addr)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = conn.Close() }) // also in the middle of a conversation that hangs
			}
			return conn, err
		})}
	if t.cfg.User != "" {
		opts = append(opts, gomail.WithSMTPAuth(gomail.SMTPAuthPlain), gomail.WithUsername(t.cfg.User), gomail.WithPassword(password))
	}
	c, err := gomail.NewClient(t.cfg.Host, opts...)
	if err != nil {
		return errs.New(errs.Unavailable, "mail server %s: %w", t.cfg.Host, err)
	}
	talk, err := c.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return t.trouble(err)
	}
	defer c.CloseWithSMTPClient(talk) // it has the letter, or not, whatever becomes of the goodbye
	err = c.SendWithSMTPClient(talk, m.Msg)
	if m.IsDelivered() {
		return nil
	}
	return t.trouble(err)
}

// trouble returns err without the words of the server, which often repeat the address.
func (t *Transport) trouble(err error) error {
	step, code := "sign-on", 0
	if p, ok := errors.AsType[*textproto.Error](err); ok {
		code = p.Code
	}
	s, sending := errors.AsType[*gomail.SendError](err)
	if sending {
		step, code = s.Reason.String(), s.ErrorCode()
	}
	switch {
	case sending && s.Reason == gomail.ErrSMTPRcptTo && code >= 550 && code <= 553: // no such mailbox, not here, full for good, bad name
		return errs.Coded(errs.Invalid, fmt.Sprintf("smtp %d", code), "mail server %s refuses the recipient: %d", t.cfg.Host, code)
	case code != 0:
		return errs.Coded(errs.Unavailable, fmt.Sprintf("smtp %d", code), "mail server %s, %s: answer %d", t.cfg.Host, step, code)
	case sending: // its text names the recipient
		return errs.New(errs.Unavailable, "mail server %s, %s: connection lost", t.cfg.Host, step)
	case strings.Contains(err.Error(), "does not support STARTTLS"):
		return errs.Coded(errs.Unavailable, "no_starttls", "mail server %s offers no STARTTLS; nothing was sent unencrypted", t.cfg.Host)
	}
	return errs.New(errs.Unavailable, "mail server %s: %w", t.cfg.Host, err)
}
