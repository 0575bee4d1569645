// Package webcert keeps the certificates of web listeners: from files, which are read again when they change, or from an ACME authority such as
// Let's Encrypt, which issues and renews them. No listener is opened again for a new certificate, and no connection ends.
package webcert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/telemetry"
)

// Get is a tls.Config.GetCertificate.
type Get = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

const (
	lookEvery = time.Second // at the files, at most
	endsSoon  = 7 * 24 * time.Hour
)

// Files is a certificate chain and its key in two files. Safe for concurrent use.
type Files struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	looked  time.Time
	stamp   [2]stamp
	current *tls.Certificate
	bad     error // why the files as they are now are not used
}

type stamp struct {
	size     int64
	modified time.Time
}

// Open reads the files.
func Open(cert, key string, log *slog.Logger) (*Files, error) {
	f := &Files{cert: cert, key: key, log: log}
	f.Get(nil)
	return f, f.bad
}

// Get returns the certificate that the files hold. Files that cannot be used, such as a new certificate whose key is still to come, are tried again with
// each look; until then the last good ones serve.
func (f *Files) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) >= lookEvery {
		f.looked = now
		f.look()
	}
	if f.current == nil {
		return nil, f.bad
	}
	return f.current, nil
}

func (f *Files) look() {
	var stamps [2]stamp
	for i, name := range []string{f.cert, f.key} {
		info, err := os.Stat(name)
		if err != nil {
			f.failed(err)
			return
		}
		stamps[i] = stamp{info.Size(), info.ModTime()}
	}
	if stamps == f.stamp && f.bad == nil {
		return
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		f.failed(fmt.Errorf("%s, %s: %w", f.cert, f.key, err))
		return
	}
	if f.current != nil {
		f.log.Info("certificate reloaded", "file", f.cert, "not_after", pair.Leaf.NotAfter)
	}
	f.current, f.stamp, f.bad = &pair, stamps, nil
}

func (f *Files) failed(err error) {
	if f.current != nil && f.bad == nil {
		f.log.Warn("certificate files unusable; keeping the loaded ones", "file", f.cert, logging.Err, err)
	}
	f.bad = err
}

// Check is a check of readiness: a warning if the files cannot be used, or hold a certificate that ends soon.
func (f *Files) Check(context.Context) error {
	cert, err := f.Get(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		return telemetry.Warning(err.Error())
	case f.bad != nil:
		return telemetry.Warning(fmt.Sprintf("new files unusable; keeping the loaded ones: %v", f.bad))
	}
	return ending(f.cert, cert.Leaf)
}

// Ending returns a check of readiness: a warning if there is no certificate from get, or one that ends soon. what says whose it is.
func Ending(what string, get Get) func(context.Context) error {
	return func(context.Context) error {
		cert, err := get(nil)
		if err != nil {
			return telemetry.Warning(err.Error())
		}
		return ending(what, cert.Leaf)
	}
}

func ending(what string, leaf *x509.Certificate) error {
	if left := time.Until(leaf.NotAfter); left < endsSoon && left < leaf.NotAfter.Sub(leaf.NotBefore)/3 {
		return telemetry.Warning(fmt.Sprintf("certificate %s ends at %s", what, leaf.NotAfter.UTC().Format("2006-01-02 15:04 UTC")))
	}
	return nil
}

// ACMEConfig says which authority issues certificates for public names, by the ACME protocol (RFC 8555). The authority calls back: at port 443 of each
// name (TLS-ALPN-01), or with HTTPListen at port 80 (HTTP-01).
type ACMEConfig struct {
	// Directory is the authority's address, such as https://acme-v02.api.letsencrypt.org/directory; setting it accepts the authority's terms. "": no ACME.
	Directory string   `koanf:"directory"`
	Names     []string `koanf:"names"`   // public DNS names to get certificates for
	Contact   string   `koanf:"contact"` // e-mail address for messages from the authority; "": none
	// Dir keeps the account's key and the certificates. Several kenneld behind one name share it.
	Dir        string `koanf:"dir"`
	RootFile   string `koanf:"root_file"`   // file with the authorities (PEM) that may issue the directory's own certificate; "": the system's
	HTTPListen string `koanf:"http_listen"` // host:port to which port 80 of the names leads; it answers the authority and redirects others to HTTPS. "": none
}

// Validate reports the first setting that cannot work (kind Invalid).
func (c ACMEConfig) Validate() error {
	if c.Directory == "" {
		return nil
	}
	if u, err := url.Parse(c.Directory); err != nil || u.Scheme != "https" || u.Host == "" {
		return errs.New(errs.Invalid, "acme.directory %q: want https://HOST/PATH", c.Directory)
	}
	if len(c.Names) == 0 {
		return errs.New(errs.Invalid, "acme.names is empty: want the public names for which certificates are requested")
	}
	for _, n := range c.Names {
		if net.ParseIP(n) != nil || !strings.Contains(strings.Trim(n, "."), ".") || strings.ContainsAny(n, "*:/ ") {
			return errs.New(errs.Invalid, "acme.names %q: want a public DNS name such as kennel.example.org", n)
		}
	}
	if c.Dir == "" {
		return errs.New(errs.Invalid, "acme.dir is empty: want a folder for the account's key and the certificates")
	}
	if _, _, err := net.SplitHostPort(c.HTTPListen); c.HTTPListen != "" && err != nil {
		return errs.New(errs.Invalid, "acme.http_listen %q: want host:port", c.HTTPListen)
	}
	return nil
}

// ACME gets and renews certificates. Safe for concurrent use.
type ACME struct {
	cfg     ACMEConfig
	manager *autocert.Manager
	log     *slog.Logger
	current map[string]*atomic.Pointer[tls.Certificate] // by name; filled by Run
	failed  atomic.Pointer[string]
}

// NewACME returns an ACME that asks for nothing until Run.
func NewACME(c ACMEConfig, log *slog.Logger) (*ACME, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	client := &acme.Client{DirectoryURL: c.Directory, UserAgent: "kennel"}
	if c.RootFile != "" {
		pem, err := os.ReadFile(c.RootFile)
		if err != nil {
			return nil, fmt.Errorf("acme.root_file: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, errs.New(errs.Invalid, "acme.root_file %s: want certificates in PEM", c.RootFile)
		}
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
		client.HTTPClient = &http.Client{Transport: t}
	}
	a := &ACME{cfg: c, log: log, current: map[string]*atomic.Pointer[tls.Certificate]{}, manager: &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(c.Dir), HostPolicy: autocert.HostWhitelist(c.Names...), Client: client, Email: c.Contact,
	}}
	for _, n := range c.Names {
		a.current[strings.ToLower(n)] = &atomic.Pointer[tls.Certificate]{}
	}
	return a, nil
}

// Protocol returns the name that a listener's NextProtos need beside their own, for TLS-ALPN-01.
func (*ACME) Protocol() string { return acme.ALPNProto }

// Get returns a tls.Config.GetCertificate: ACME's certificate for its names, other's for everything else and until the first one was issued. A handshake
// never waits for the authority.
func (a *ACME) Get(other Get) Get {
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
			return a.manager.GetCertificate(hello) // the authority calls back
		}
		if p := a.current[strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))]; p != nil {
			if cert := p.Load(); cert != nil {
				return cert, nil
			}
		}
		return other(hello)
	}
}

// Plain answers the authority over plain HTTP and leads everybody else to HTTPS.
func (a *ACME) Plain() http.Handler {
	next := a.manager.HTTPHandler(nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.Host); err == nil { // the library compares with the name alone
			r.Host = host
		}
		next.ServeHTTP(w, r)
	})
}

// lookAgain is how often Run takes over what the library has renewed.
const lookAgain = 10 * time.Minute

// Run gets the certificates and keeps them fresh until ctx ends.
func (a *ACME) Run(ctx context.Context) error {
	pause := backoff.Pause{Min: time.Minute, Max: time.Hour} // authorities count failures
	for {
		err := a.look()
		wait := lookAgain
		if err != nil {
			wait = pause.Next(nil)
			a.log.WarnContext(ctx, "certificate not issued", "directory", a.cfg.Directory, logging.Err, err, "retry_in", wait.Round(time.Second))
			text := err.Error()
			a.failed.Store(&text)
		} else {
			pause.Reset()
			a.failed.Store(nil)
		}
		if backoff.Sleep(ctx, wait) != nil {
			return nil
		}
	}
}

func (a *ACME) look() error {
	var all []error
	for name, p := range a.current {
		// Every browser of today takes ECDSA: one certificate for each name is enough.
		cert, err := a.manager.GetCertificate(&tls.ClientHelloInfo{ServerName: name, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}})
		if err != nil {
			all = append(all, fmt.Errorf("%s: %w", name, err))
			continue
		}
		if was := p.Swap(cert); was == nil || !was.Leaf.Equal(cert.Leaf) {
			a.log.Info("certificate issued by ACME", "name", name, "issuer", cert.Leaf.Issuer.CommonName, "not_after", cert.Leaf.NotAfter)
		}
	}
	return errors.Join(all...)
}

// Check is a check of readiness: a warning while a certificate is missing or ends soon.
func (a *ACME) Check(context.Context) error {
	var all []string
	for name, p := range a.current {
		cert := p.Load()
		if cert == nil {
			all = append(all, "no certificate for "+name+" yet")
		} else if err := ending("of "+name, cert.Leaf); err != nil {
			all = append(all, err.Error())
		}
	}
	if why := a.failed.Load(); why != nil {
		all = append(all, *why)
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	return telemetry.Warning(strings.Join(all, "; "))
}
