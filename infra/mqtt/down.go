package mqtt

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"kennel/infra/errs"
)

// Reason is why there is no connection, in one word for programs.
type Reason string

// The reasons, in the order of the steps they belong to.
const (
	Credentials       Reason = "credentials"        // our own certificate or key cannot be loaded
	NameLookup        Reason = "name_lookup"        // the broker's name is unknown here
	Unreachable       Reason = "unreachable"        // nothing answers at that address
	Clock             Reason = "clock"              // by this clock the server's certificate is not valid yet
	ServerCertificate Reason = "server_certificate" // we do not trust the broker
	OwnCertificate    Reason = "own_certificate"    // the broker's TLS refused our certificate
	NotAuthorised     Reason = "not_authorised"     // the broker knows why; see its log or the robot's doctor page
	ClientID          Reason = "client_id"          // the certificate is for another thing
	Busy              Reason = "busy"               // the broker is full
	Protocol          Reason = "protocol"           // the peer does not speak MQTT 3.1.1
	SubscribeRefused  Reason = "subscribe_refused"  // topics that are not ours
	Lost              Reason = "lost"               // it was up and ended
)

// DownError says why a connection could not be made, or ended: the step, the peer, the reason, and what to do.
type DownError struct {
	Step   string // credentials, dial, tls, login, subscribe, session
	Addr   string // host:port
	Reason Reason
	Advice string // may be empty
	Err    error
}

func (e *DownError) Error() string {
	s := fmt.Sprintf("broker %s: %s: %v", e.Addr, e.Step, e.Err)
	if e.Advice != "" {
		s += " (" + e.Advice + ")"
	}
	return s
}

func (e *DownError) Unwrap() error { return e.Err }

// down wraps err, classified.
func (c *Client) down(step string, err error) error {
	reason, advice := classify(step, err, time.Now())
	return &DownError{Step: step, Addr: c.host, Reason: reason, Advice: advice, Err: err}
}

func classify(step string, err error, now time.Time) (Reason, string) {
	var (
		dns     *net.DNSError
		invalid x509.CertificateInvalidError
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		remote  *net.OpError
		record  tls.RecordHeaderError
	)
	switch {
	case step == "credentials":
		return Credentials, "enrol again if the certificate files are damaged"
	case errors.As(err, &dns):
		return NameLookup, "check the name, the network and its DNS server"
	case step == "dial":
		return Unreachable, "check address, port and firewall; 8883 is often closed where 443 is open"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && now.Before(invalid.Cert.NotBefore):
		return Clock, fmt.Sprintf("this clock says %s, the server's certificate begins %s: set the clock", day(now), day(invalid.Cert.NotBefore))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return ServerCertificate, fmt.Sprintf("the server's certificate ended %s; this clock says %s", day(invalid.Cert.NotAfter), day(now))
	case errors.As(err, &unknown):
		issuer := "unknown"
		if unknown.Cert != nil {
			issuer = unknown.Cert.Issuer.String()
		}
		return ServerCertificate, fmt.Sprintf("install the root that issued %q, or point to the right cloud", issuer)
	case errors.As(err, &name), errors.As(err, &invalid):
		return ServerCertificate, "the server's certificate is not for this name or use"
	case errors.As(err, &record):
		return Protocol, "the peer does not speak TLS: wrong port?"
	// A TLS alert of the peer; its type is crypto/tls's own, its text is the standard's name for it.
	case errors.As(err, &remote) && remote.Op == "remote error" && strings.Contains(remote.Error(), "certificate"):
		return OwnCertificate, "the broker's TLS refused our certificate, or we have none that it accepts: enrol again"
	case errors.Is(err, packets.ErrorRefusedIDRejected):
		return ClientID, "client id and certificate must name the same thing"
	case errors.Is(err, packets.ErrorRefusedNotAuthorised), errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword):
		return NotAuthorised, "the broker noted the reason: see kennelctl doctor"
	case errors.Is(err, packets.ErrorRefusedServerUnavailable):
		return Busy, ""
	case errs.KindOf(err) == errs.Denied:
		return SubscribeRefused, ""
	case step == "login" && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)): // a reset can overtake a TLS alert
		return Lost, "the broker broke the connection before it answered: it is stopping, or its TLS refuses our certificate"
	case step == "session", step == "subscribe":
		return Lost, ""
	}
	return Protocol, ""
}

// explainLogin adds facts about our own certificate, because a refused CONNECT carries one byte and no text.
func explainLogin(err error, creds *tls.Config) error {
	if len(creds.Certificates) == 0 {
		return err
	}
	leaf := creds.Certificates[0].Leaf
	if leaf == nil {
		return err
	}
	return fmt.Errorf("%w (our certificate: %s, issued by %s, valid %s to %s)", err, leaf.Subject.CommonName, leaf.Issuer.CommonName,
		day(leaf.NotBefore), day(leaf.NotAfter))
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }
