package natsserver

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Our own limits (the source gives none).
const (
	dialTime      = 5 * time.Second
	reconnectWait = 250 * time.Millisecond // to the next server; the last of them answers after as many waits
	pingEvery     = 2 * time.Second        // so that a frozen server is left within three of them
	pingsOut      = 2
)

// Servers says how a process of the cloud reaches the servers in NATS' own protocol.
type Servers struct {
	URLs []string // tls://host:port of every server's listener of services
	// TLS returns the credentials of a service. It is called once for each connection object; a certificate that renews itself by
	// GetClientCertificate is used at each reconnection.
	TLS  func() (*tls.Config, error)
	Keys Keys
	Log  *slog.Logger // nil: discarded
}

// Validate reports addresses that cannot work (kind Invalid).
func (s Servers) Validate() error {
	if len(s.URLs) == 0 {
		return errs.New(errs.Invalid, "nats: no servers: want tls://host:port of each")
	}
	for _, u := range s.URLs {
		if p, err := url.Parse(u); err != nil || p.Scheme != "tls" || p.Hostname() == "" || p.Port() == "" || p.User != nil {
			return errs.New(errs.Invalid, "nats: server %q: want tls://host:port", u)
		}
	}
	return nil
}

// connect returns a connection that keeps trying, also before its first success, until it is closed.
func (s Servers) connect(name string, key nkeys.KeyPair) (*nats.Conn, error) {
	creds, err := s.TLS()
	if err != nil {
		return nil, err
	}
	pub, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	return nats.Connect(strings.Join(s.URLs, ","),
		nats.Name(name), nats.Secure(creds), nats.Nkey(pub, key.Sign), nats.Timeout(dialTime),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsOut), nats.ReconnectBufSize(-1), nats.IgnoreDiscoveredServers(), nats.NoEcho(),
		nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				s.Log.Warn("broker connection down", "conn", name, logging.Err, err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			s.Log.Info("broker connection restored", "conn", name, logging.Addr, c.ConnectedAddr())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			s.Log.Warn("broker error", "conn", name, "subject", subject, logging.Err, err)
		}))
}

// classify gives an error of the library a kind: all that is no answer of a server is Unavailable.
func classify(err error) error {
	if err == nil || errs.KindOf(err) != errs.Internal {
		return err
	}
	if e := (&nats.APIError{}); errors.As(err, &e) {
		return err
	}
	return &errs.Error{Kind: errs.Unavailable, Code: "disconnected", Msg: "no answer of the broker", Err: err}
}
