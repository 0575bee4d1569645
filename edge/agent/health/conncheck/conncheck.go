// Package conncheck finds out whether a robot reaches its cloud, and if not, which of four things is wrong: the network, the server, the
// robot's credentials, or the server's certificate (VEC-CLD-07).
//
// It makes the original's requests: HEAD of the "check" address with query emresn, ankiversion, victorversion, over http and then over
// https, and then a stream of sound to the speech service, which needs the robot's credentials.
package conncheck

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"kennel/certs/devicecert"
	"kennel/infra/errs"
)

// Result is the verdict. The zero value is Unknown.
type Result uint8

// The results.
const (
	Unknown Result = iota
	Available
	NoNetwork
	Unreachable
	BadCertificate
	BadCredentials
	TooSlow
)

var resultNames = [...]string{"unknown", "available", "no_network", "unreachable", "bad_certificate", "bad_credentials", "too_slow"}

func (r Result) String() string {
	if int(r) < len(resultNames) {
		return resultNames[r]
	}
	return resultNames[Unknown]
}

// MarshalText makes results words in JSON.
func (r Result) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a word; an unknown one is Unknown.
func (r *Result) UnmarshalText(b []byte) error {
	*r = Unknown
	for i, n := range resultNames {
		if n == string(b) {
			*r = Result(i)
		}
	}
	return nil
}

// ConnectionCode returns the number of the SDK's answer to "check cloud connection" (seed, table 210): there no network and no server are one.
func (r Result) ConnectionCode() int {
	switch r {
	case Available:
		return 1
	case NoNetwork, Unreachable:
		return 2
	case BadCertificate:
		return 3
	case BadCredentials:
		return 4
	case TooSlow:
		return 5
	}
	return 0
}

// Config holds the address to check and the robot's identity.
type Config struct {
	Check         string // address without a scheme, such as cloud.example:443/ok
	ESN           string // serial number
	AnkiVersion   string // release of the operating system
	VictorVersion string // of the robot's software
	TLS           func(name string) *tls.Config
	Dial          func(ctx context.Context, network, addr string) (net.Conn, error) // nil: the system's
	// Speech sends Frames pieces of sound of FrameTime in real time, and returns how many the cloud has counted when it ended. The error is ErrSlow if it
	// was not all in time; nil: that is not checked.
	Speech func(ctx context.Context) (seen int, err error)
	// HasNetwork reports whether the robot has an address outside itself; nil: the system knows.
	HasNetwork func() bool
	Timeout    time.Duration // of each step; 0: 10 s
}

// The sound of the check (VEC-CLD-07).
const (
	Frames    = 50
	FrameTime = 120 * time.Millisecond
)

// ErrSlow says that the cloud did not get all of the sound in time.
var ErrSlow = errors.New("the network is too slow for speech: the cloud did not get all of the sound in time")

// Probe is one request and its outcome.
type Probe struct {
	Name    string `json:"name"` // http, https or speech
	Peer    string `json:"peer,omitempty"`
	OK      bool   `json:"ok"`
	TookMS  int64  `json:"took_ms"`
	Status  int    `json:"status,omitempty"` // of HTTP
	Result  Result `json:"result"`
	Code    string `json:"code,omitempty"`
	Problem string `json:"problem,omitempty"`

	Seen     int `json:"seen,omitempty"` // pieces of sound that the cloud counted
	Expected int `json:"expected,omitempty"`
}

// Report is the outcome of the check. Problem says what was wrong, where, and what to do.
type Report struct {
	Result  Result    `json:"result"`
	At      time.Time `json:"at"`
	Probes  []Probe   `json:"probes"`
	Code    string    `json:"code,omitempty"`
	Problem string    `json:"problem,omitempty"`
}

const defaultTimeout = 10 * time.Second

// Run asks. It returns when it knows, at the latest three timeouts and the time of the sound later, or when ctx ends. Without a check address the sound alone
// decides.
func Run(ctx context.Context, cfg Config) Report {
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{}).DialContext
	}
	if cfg.HasNetwork == nil {
		cfg.HasNetwork = hasNetwork
	}
	r := Report{At: time.Now().UTC()}
	deciding := Probe{OK: true}
	if cfg.Check != "" || cfg.Speech == nil {
		plain := cfg.head(ctx, "http")
		deciding = cfg.head(ctx, "https") // plain http says only whether there is a network at all: a proxy or a policy may stop it
		r.Probes = []Probe{plain, deciding}
	}
	if deciding.OK && cfg.Speech != nil {
		deciding = cfg.speech(ctx)
		r.Probes = append(r.Probes, deciding)
	}
	r.Result, r.Code, r.Problem = deciding.Result, deciding.Code, deciding.Problem
	if deciding.OK {
		r.Result = Available
	}
	return r
}

// head asks one way.
func (c Config) head(ctx context.Context, scheme string) Probe {
	p := Probe{Name: scheme}
	u, err := Address(c.Check)
	if err != nil {
		p.Code, p.Problem = "check_address", err.Error()
		return p
	}
	u.Scheme = scheme
	u.RawQuery = url.Values{"emresn": {c.ESN}, "ankiversion": {c.AnkiVersion}, "victorversion": {c.VictorVersion}}.Encode()
	p.Peer = u.Host
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	start := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
	if err != nil {
		p.Code, p.Problem = "check_address", err.Error()
		return p
	}
	req.Header.Set("User-Agent", "Victor-CCHECK/"+c.VictorVersion)
	tr := &http.Transport{DisableKeepAlives: true, DialContext: c.Dial}
	if c.TLS != nil {
		tr.TLSClientConfig = c.TLS(u.Hostname())
	}
	client := http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	p.TookMS = time.Since(start).Milliseconds()
	if err != nil {
		c.explain(&p, err)
		return p
	}
	_ = resp.Body.Close() // a HEAD has none
	p.Status = resp.StatusCode
	switch s := resp.StatusCode; {
	case s >= 200 && s < 300:
		p.OK, p.Result = true, Available
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		p.Result, p.Code = BadCredentials, "refused"
		p.Problem = fmt.Sprintf("%s answered %s to the connection check: it does not accept this robot", u.Host, resp.Status)
	case s >= 300 && s < 400:
		p.Result, p.Code = Unreachable, "captive_portal"
		p.Problem = fmt.Sprintf("what answers as %s sends on to %.100q: the network wants a sign-in first, as in a hotel", u.Host,
			resp.Header.Get("Location"))
	default:
		p.Result, p.Code = Unreachable, "not_ready"
		p.Problem = fmt.Sprintf("%s answered %s to the connection check: the cloud, or a proxy before it, is not ready", u.Host, resp.Status)
	}
	return p
}

func (c Config) speech(ctx context.Context) Probe {
	p := Probe{Name: "speech", Expected: Frames}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout+Frames*FrameTime)
	defer cancel()
	start := time.Now()
	var err error
	p.Seen, err = c.Speech(ctx)
	p.TookMS = time.Since(start).Milliseconds()
	switch {
	case err == nil:
		p.OK, p.Result = true, Available
	case errors.Is(err, ErrSlow), errors.Is(err, context.DeadlineExceeded):
		p.Result, p.Code, p.Problem = TooSlow, TooSlow.String(), ErrSlow.Error()
	default:
		c.explain(&p, err)
	}
	return p
}

// explain says which of the four it is.
func (c Config) explain(p *Probe, err error) {
	e := devicecert.Explain(err)
	p.Code, p.Problem = e.Code, e.Words
	p.Result = Classify(err)
	if p.Result == Unreachable && !loopback(p.Peer) && !c.HasNetwork() {
		p.Result = NoNetwork
	}
	if p.Result == NoNetwork {
		p.Code = NoNetwork.String()
		p.Problem = "the robot has no network: connect it to a Wi-Fi (" + p.Problem + ")"
	}
}

// Classify says which of the four a failed connection or request is. It does not look whether there is a network at all.
func Classify(err error) Result {
	if _, ok := errors.AsType[*devicecert.TrustError](err); ok {
		return BadCertificate
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return BadCertificate
	}
	if errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.ENETDOWN) {
		return NoNetwork
	}
	if devicecert.Explain(err).Code == "peer_refused" {
		return BadCredentials
	}
	if e, ok := errors.AsType[*errs.Error](err); ok && (e.Kind == errs.Unauthenticated || e.Kind == errs.Denied) {
		return BadCredentials
	}
	return Unreachable
}

// Address reads a check address: host, port if it differs from the scheme's default, path. A leading scheme is dropped.
func Address(check string) (*url.URL, error) {
	rest := check
	for _, s := range []string{"http://", "https://"} {
		rest = strings.TrimPrefix(rest, s)
	}
	u, err := url.Parse("//" + rest)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(rest, " \\") {
		return nil, fmt.Errorf("check address %.100q: want host/path, such as cloud.example/ok", check)
	}
	return u, nil
}

func loopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// hasNetwork reports whether any interface has an address outside this machine. If that cannot be found out it returns true: the report
// then says that the server is unreachable, which is also true.
func hasNetwork() bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return true
		}
	}
	return false
}
