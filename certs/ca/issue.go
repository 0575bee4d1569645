package ca

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"go.step.sm/crypto/x509util"

	"kennel/certs/internal/pemfile"
	"kennel/infra/thing"
)

// backdate is how much earlier than now a leaf becomes valid, for peers whose clock is a little behind; at most a sixtieth of its life, so
// that two thirds of a life stay two thirds.
const backdate = time.Hour

// Profiles of leaves, in the library's template form. Parsed once: the form is checked at start, and issuing needs no template engine.
var (
	deviceLeaf  = profile(`{"keyUsage":["digitalSignature"],"extKeyUsage":["clientAuth"]}`)
	serverLeaf  = profile(`{"keyUsage":["digitalSignature"],"extKeyUsage":["serverAuth"]}`)
	serviceLeaf = profile(`{"keyUsage":["digitalSignature"],"extKeyUsage":["clientAuth"]}`)
)

// profile parses a constant; it panics on a malformed one.
func profile(text string) x509util.Certificate {
	var c x509util.Certificate
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(fmt.Sprintf("ca: profile %s: %v", text, err))
	}
	return c
}

func issuing(usage string) x509util.Certificate {
	return profile(`{"keyUsage":["certSign","crlSign"],"extKeyUsage":["` + usage + `"],"basicConstraints":{"isCA":true,"maxPathLen":0}}`)
}

// sign makes a leaf of profile c for pub and returns it with the authority's own certificates behind it, one for each root.
func (g *generation) sign(c x509util.Certificate, pub crypto.PublicKey, ttl time.Duration) ([]*x509.Certificate, error) {
	now := time.Now()
	if ttl <= 0 {
		return nil, fmt.Errorf("certificate life of %v: want more than 0", ttl)
	}
	c.NotBefore = now.Add(-min(backdate, ttl/60))
	c.NotAfter = now.Add(ttl)
	for _, is := range g.certs {
		if now.After(is.NotAfter) {
			return nil, fmt.Errorf("%s has expired on %s", is.Subject.CommonName, is.NotAfter.Format(time.DateOnly))
		}
		if c.NotAfter.After(is.NotAfter) { // no verifier accepts a leaf beyond its issuer
			c.NotAfter = is.NotAfter
		}
	}
	leaf, err := x509util.CreateCertificate(c.GetCertificate(), g.cert(), pub, g.key)
	if err != nil {
		return nil, err
	}
	return append([]*x509.Certificate{leaf}, g.certs...), nil
}

// IssueDevice returns a device certificate for the request's key and the device authority behind it. CN = id and client authentication are
// all it says; only the key is taken from the request, and the caller has checked the request's signature (certs.CheckRequest).
func (a *Authority) IssueDevice(csr *x509.CertificateRequest, id thing.ID, ttl time.Duration) ([]*x509.Certificate, error) {
	if _, err := thing.Parse(string(id)); err != nil {
		return nil, err
	}
	c := deviceLeaf
	c.Subject = x509util.Subject{CommonName: string(id)}
	return a.now().device.current().sign(c, csr.PublicKey, ttl)
}

// VerifyDevice returns nil if leaf was signed by a device authority that is still trusted, whether or not it has expired.
func (a *Authority) VerifyDevice(leaf *x509.Certificate) error {
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: a.DevicePool(), CurrentTime: leaf.NotAfter, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}

// Pair is a certificate with its key.
type Pair struct {
	Chain []byte // PEM, leaf first, up to but without the root
	Key   []byte // PEM, PKCS#8; for the holder's eyes alone
}

// TLS returns the pair for crypto/tls.
func (p Pair) TLS() (tls.Certificate, error) { return tls.X509KeyPair(p.Chain, p.Key) }

// IssueServer makes a key and a certificate for a listener with these host names and IP addresses, at least one.
func (a *Authority) IssueServer(names []string, ttl time.Duration) (Pair, error) {
	dns, ips, emails, uris := x509util.SplitSANs(names)
	if len(names) == 0 || len(emails)+len(uris) > 0 {
		return Pair{}, fmt.Errorf("server names %q: want host names and IP addresses, at least one", names)
	}
	c := serverLeaf
	if len(names[0]) <= 64 { // the most a common name holds
		c.Subject = x509util.Subject{CommonName: names[0]}
	}
	c.DNSNames, c.IPAddresses = dns, ips
	return a.now().server.current().pair(c, ttl)
}

var serviceName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// IssueService makes a key and a client certificate for one of the cloud's own programs. The name can never be a thing id.
func (a *Authority) IssueService(name string, ttl time.Duration) (Pair, error) {
	if !serviceName.MatchString(name) {
		return Pair{}, fmt.Errorf("service name %.80q: want a-z, then a-z 0-9 -, at most 63 characters", name)
	}
	c := serviceLeaf
	c.Subject = x509util.Subject{CommonName: name}
	return a.now().service.current().pair(c, ttl)
}

func (g *generation) pair(c x509util.Certificate, ttl time.Duration) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	chain, err := g.sign(c, key.Public(), ttl)
	if err != nil {
		return Pair{}, err
	}
	b, err := pemfile.EncodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Chain: pemfile.EncodeChain(chain...), Key: b}, nil
}

// Renewing is a certificate of ours that is renewed at two thirds of its life, when a handshake asks for it: a listener that runs for a
// year needs no restart. Safe for concurrent use.
type Renewing struct {
	issue func() (Pair, error)

	mu      sync.Mutex
	current *tls.Certificate
	renew   time.Time
}

// NewRenewing issues the first certificate. issue is a call of IssueServer or IssueService.
func NewRenewing(issue func() (Pair, error)) (*Renewing, error) {
	r := &Renewing{issue: issue}
	if _, err := r.get(time.Now()); err != nil {
		return nil, err
	}
	return r, nil
}

// GetCertificate serves tls.Config.GetCertificate.
func (r *Renewing) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return r.get(time.Now())
}

// GetClientCertificate serves tls.Config.GetClientCertificate.
func (r *Renewing) GetClientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return r.get(time.Now())
}

func (r *Renewing) get(now time.Time) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current != nil && now.Before(r.renew) {
		return r.current, nil
	}
	next, err := r.make()
	if err != nil {
		if r.current != nil && now.Before(r.current.Leaf.NotAfter) {
			return r.current, nil // still good: the next handshake tries again
		}
		return nil, err
	}
	life := next.Leaf.NotAfter.Sub(next.Leaf.NotBefore)
	r.current, r.renew = next, next.Leaf.NotBefore.Add(life*2/3)
	return next, nil
}

func (r *Renewing) make() (*tls.Certificate, error) {
	p, err := r.issue()
	if err != nil {
		return nil, err
	}
	c, err := p.TLS()
	if err != nil {
		return nil, err
	}
	if c.Leaf == nil {
		return nil, errors.New("certificate without a leaf")
	}
	return &c, nil
}
