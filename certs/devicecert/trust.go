package devicecert

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// TrustError says why a server's certificate was not accepted.
type TrustError struct {
	Name       string   // the name or address asked for
	Shown      string   // common name of the certificate shown
	LackedRoot string   // the authority that signed the top of the chain shown, if none of ours did
	Roots      []string // the roots trusted here
	Now        time.Time
	Err        error // of crypto/x509, or of reading RootFile
}

func (e *TrustError) Error() string {
	return fmt.Sprintf("certificate %q of %s is not accepted: %v", e.Shown, e.Name, e.Err)
}

func (e *TrustError) Unwrap() error { return e.Err }

// TLSConfig returns a configuration for connections to name (a host name or IP address without port): it trusts RootFile alone, checks at
// the time to believe, and shows the device certificate, if there is one, whenever a server asks. It stays good across renewals.
func (i *Identity) TLSConfig(name string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		ServerName: name,
		// The check is ours, below: the time to check at depends on the certificate, and the refusal must name the root that was lacking.
		InsecureSkipVerify: true,
		VerifyConnection:   func(cs tls.ConnectionState) error { return i.verify(name, cs.PeerCertificates) },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if c, err := i.TLSCertificate(); err == nil {
				return c, nil
			}
			return new(tls.Certificate), nil // none: the server decides
		},
	}
}

// verify checks a server's chain for name. A certificate signed below our root proves that its first day has come, so that a robot whose
// clock is in the past can connect, and learns the time.
func (i *Identity) verify(name string, chain []*x509.Certificate) error {
	err := i.check(name, chain)
	i.note(name, chain, err)
	return err
}

func (i *Identity) check(name string, chain []*x509.Certificate) error {
	e := &TrustError{Name: name, Now: i.clock.now()}
	fail := func(err error) error { e.Err = err; return e }
	if name == "" || len(chain) == 0 {
		return fail(errors.New("no name to check, or no certificate presented"))
	}
	leaf, top := chain[0], chain[len(chain)-1]
	e.Shown = leaf.Subject.CommonName
	trusted, err := i.trusted()
	if errors.Is(err, fs.ErrNotExist) {
		e.LackedRoot = top.Issuer.CommonName
		return fail(fmt.Errorf("no trusted root: %w", err))
	}
	if err != nil {
		return fail(err)
	}
	e.Roots = commonNames(trusted)
	if err := verifyChain(name, chain, trusted, e.Now); err != nil {
		if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
			e.LackedRoot = top.Issuer.CommonName
		}
		return fail(err)
	}
	if i.clock.prove(leaf.NotBefore) && !i.cfg.Observe {
		if err := i.writeState(); err != nil { // the connection is good all the same
			i.cfg.Log.Warn("proven time not saved", "err", err)
		}
	}
	return nil
}

// Seen is the last certificate that a server showed for a name, and the verdict on it.
type Seen struct {
	Name      string    `json:"name"` // that was asked for
	Subject   string    `json:"subject"`
	Issuer    string    `json:"issuer"`
	Names     []string  `json:"names,omitempty"` // that it is good for
	NotBefore time.Time `json:"not_before,omitzero"`
	NotAfter  time.Time `json:"not_after,omitzero"`
	SHA256    string    `json:"sha256"` // of the certificate, hex
	OK        bool      `json:"ok"`
	Code      string    `json:"code,omitempty"`
	Problem   string    `json:"problem,omitempty"`
	At        time.Time `json:"at"`
}

// maxSeen bounds the names that are remembered: a robot talks to a few.
const maxSeen = 16

func (i *Identity) note(name string, chain []*x509.Certificate, err error) {
	s := Seen{Name: name, OK: err == nil, At: i.clock.now()}
	if len(chain) > 0 {
		leaf := chain[0]
		sum := sha256.Sum256(leaf.Raw)
		s.Subject, s.Issuer, s.NotBefore, s.NotAfter = leaf.Subject.CommonName, leaf.Issuer.CommonName, leaf.NotBefore.UTC(), leaf.NotAfter.UTC()
		s.Names, s.SHA256 = namesOf(leaf), hex.EncodeToString(sum[:])
	}
	if err != nil {
		p := Explain(err)
		s.Code, s.Problem = p.Code, p.Words
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.seen[name]; known || len(i.seen) < maxSeen {
		i.seen[name] = s
	}
}

// Seen returns the certificates that servers showed, by name.
func (i *Identity) Seen() []Seen {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.SortedFunc(maps.Values(i.seen), func(a, b Seen) int { return strings.Compare(a.Name, b.Name) })
}

// verifyChain checks a chain, leaf first, for name below roots. It is checked at the leaf's first day if now is before that.
func verifyChain(name string, chain, roots []*x509.Certificate, now time.Time) error {
	opts := x509.VerifyOptions{DNSName: name, Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now}
	for _, c := range roots {
		opts.Roots.AddCert(c)
	}
	for _, c := range chain[1:] {
		opts.Intermediates.AddCert(c)
	}
	if first := chain[0].NotBefore; first.After(now) {
		opts.CurrentTime = first
	}
	_, err := chain[0].Verify(opts)
	return err
}

// dialTime bounds one connection below TLS; the client's own limit bounds the rest.
const dialTime = 10 * time.Second

// httpClient returns the client for enrolment: each request on a connection of its own, because there is one in weeks.
func (i *Identity) httpClient() *http.Client {
	return &http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				host, _, err := net.SplitHostPort(addr)
				if err != nil {
					return nil, err
				}
				raw, err := i.cfg.Dial(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				conn := tls.Client(raw, i.TLSConfig(host))
				if err := conn.HandshakeContext(ctx); err != nil {
					_ = raw.Close() // the first error is reported
					return nil, err
				}
				i.mu.Lock()
				i.shown = conn.ConnectionState().PeerCertificates
				i.mu.Unlock()
				return conn, nil
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("redirected: want no redirect of an enrolment")
		},
	}
}

func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(strings.Trim(u.Host, "[]"), "443")
}
