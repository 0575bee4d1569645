// Package front is how this process serves: its listeners behind the front door, its HTTP servers, and what bounds slow clients.
package front

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"kennel/cloud/metrics"
	"kennel/infra/admission"
	"kennel/infra/auth"
	"kennel/infra/runner"
)

// names are those of the listeners, as metrics say them.
var names = []string{"api", "console", "robots", "uploads", "metrics"}

// Front is where all listeners of a process come from.
type Front struct {
	*admission.Door
	log *slog.Logger
}

// New returns the front of a process, counted by m.
func New(m *metrics.Meters, log *slog.Logger) (*Front, error) {
	d, err := m.FrontDoor(names, log)
	return &Front{d, log}, err
}

// Listen opens a port behind the front door. Those proxies say there who called them.
func (f *Front) Listen(name, addr string, proxies []string) (*admission.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	if l, err = proxied(l, proxies); err != nil {
		return nil, fmt.Errorf("api.proxies: %w", err)
	}
	return f.Door.Listen(name, l), nil
}

// Reserved opens a port that answers also when all places but the reserve are taken.
func (f *Front) Reserved(name, addr string) (*admission.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return f.Reserve().Listen(name, l), nil
}

// Proving tells the front door of connections whose callers have proved who they are: people by their session, robots by a certificate that is known.
func Proving(known func([]*x509.Certificate) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		admission.From(r.Context()).Proved(func() bool {
			return auth.CallerFrom(r.Context()).Role != "" || r.TLS != nil && len(r.TLS.PeerCertificates) > 0 && known(r.TLS.PeerCertificates)
		})
		next.ServeHTTP(w, r)
	})
}

// WithAddr puts the peer's address into the context, for endpoints that pace by it.
func WithAddr(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = r.RemoteAddr
		}
		next.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Addr: host})))
	})
}

// Serve serves h on l. Streams last as long as their clients take what is sent.
func (f *Front) Serve(name string, l net.Listener, h http.Handler) runner.Service {
	return f.ServeWith(name, l, h, "", nil, nil)
}

// ServeWith is Serve that leaves connections with another protocol to take, and tells the front door of those whose certificate is known. Such a
// connection is closed when take returns.
func (f *Front) ServeWith(name string, l net.Listener, h http.Handler, proto string, known func([]*x509.Certificate) bool, take func(*tls.Conn)) runner.Service {
	return runner.Service{Name: name, Fatal: true, Run: func(ctx context.Context) error {
		s := &http.Server{
			Handler: boundWrites(h, StreamTime), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
			// The time of a piece of an answer is the front door's; HTTP/2 has none for a stream whose window stays closed (boundWrites).
			HTTP2: &http.HTTP2Config{SendPingTimeout: time.Minute, PingTimeout: 15 * time.Second}, ConnState: admission.State, ConnContext: admission.With,
			ErrorLog: slog.NewLogLogger(f.log.Handler(), slog.LevelDebug), // handshakes that strangers break off
			// Streams end with the process, not with their client's patience.
			BaseContext: func(net.Listener) context.Context { return ctx },
		}
		if take != nil {
			s.Protocols = new(http.Protocols) // TLSNextProto turns HTTP/2 off unless it is asked for
			s.Protocols.SetHTTP1(true)
			s.Protocols.SetHTTP2(true)
			s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){proto: func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
				admission.Done(conn.NetConn())
				if chain := conn.ConnectionState().PeerCertificates; len(chain) > 0 && known(chain) {
					_ = admission.Prove(conn.NetConn(), false) // without room for it, it stays as it is
				}
				take(conn)
			}}
		}
		done := make(chan error, 1) // the one result of Serve
		go func() { done <- s.Serve(l) }()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
		}
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := s.Shutdown(stop); err != nil {
			_ = s.Close() // who has not finished by now is cut off
		}
		<-done
		return nil
	}}
}
