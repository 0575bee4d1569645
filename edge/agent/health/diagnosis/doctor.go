package diagnosis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/agent/health/conncheck"
	"kennel/edge/env"
	"kennel/edge/env/platform"
	"kennel/edge/faultcode"
)

// Doctor tries the way to the cloud itself, beside a running agent or without one.
type Doctor struct {
	Root     *os.Root
	Version  string // of agentd
	Hardware env.Hardware
	Dial     func(ctx context.Context, network, addr string) (net.Conn, error) // below TLS; nil: the system's
	Lookup   func(ctx context.Context, host string) ([]string, error)          // nil: the system's
	Now      func() time.Time                                                  // the system's clock; nil: time.Now
	Timeout  time.Duration                                                     // of each step; 0: 10 s
	// Offline shows the agent's last report and tries nothing.
	Offline bool
}

// Run returns the report: the running agent's last one, with the steps tried now replaced, and the connection check. It changes nothing on the robot.
func (d Doctor) Run(ctx context.Context) Report {
	if d.Dial == nil {
		d.Dial = (&net.Dialer{}).DialContext
	}
	if d.Lookup == nil {
		d.Lookup = net.DefaultResolver.LookupHost
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Timeout == 0 {
		d.Timeout = 10 * time.Second
	}
	f := Facts{Agent: d.Version, OS: platform.OSVersion(d.Root), System: d.Now()}
	id, err := platform.ID(d.Root, d.Hardware)
	f.Thing = id
	d.faulty(&f, err)
	if err == nil {
		_, _, err = platform.Factory(d.Root, id)
		d.faulty(&f, err)
	}
	left, leftErr := Read(d.Root)
	e, err := platform.LoadEndpoints(d.Root, d.Hardware)
	f.ConfigErr = err
	var identity *devicecert.Identity
	if err == nil {
		f.API = e.Kennel.API
		identity, f.ConfigErr = devicecert.Open(devicecert.Config{
			Root: d.Root, Thing: id, Cloud: e.Kennel.API, Log: slog.New(slog.DiscardHandler), Now: d.Now, Dial: d.Dial, Observe: true,
		})
	}
	if identity != nil {
		f.Believed = identity.Now()
		f.Roots, f.RootsErr = identity.Roots()
	}
	r := f.Report(d.Now())
	r.Boot, r.Name, r.Code, r.Start = left.Boot, left.Name, left.Code, left.Start
	if leftErr == nil { // facts that only the agent knows
		for i := range r.Steps {
			if r.Steps[i].State == NotReached {
				r.replace(left.step(r.Steps[i].Name))
			}
		}
	} else {
		why := "the agent has left no report: it does not run, or not for long enough"
		if !errors.Is(leftErr, fs.ErrNotExist) {
			why = "the agent's report cannot be read: " + leftErr.Error()
		}
		r.replace(Step{Name: MQTT, State: Failed, At: r.At, Code: "no_agent", Problem: why, Do: "start agentd"})
	}
	if identity == nil || d.Offline {
		return r
	}
	for _, s := range d.try(ctx, e.Kennel.API, identity) {
		r.replace(s)
	}
	if e.Check != "" {
		c := conncheck.Run(ctx, conncheck.Config{
			Check: e.Check, ESN: id.Serial(), AnkiVersion: f.OS, VictorVersion: d.Version, TLS: identity.TLSConfig, Dial: d.Dial,
			Timeout: d.Timeout,
		})
		r.Check = &c
	}
	r.Shown = identity.Seen()
	return r
}

func (d Doctor) faulty(f *Facts, err error) {
	if code := faultcode.Of(err); code != 0 {
		f.Faults = append(f.Faults, fmt.Sprintf("%v (%s)", err, code.Text()))
	}
}

// try looks up, connects and shakes hands, and says where it ended.
func (d Doctor) try(ctx context.Context, api string, id *devicecert.Identity) []Step {
	u, err := url.Parse(api)
	if err != nil {
		return nil // LoadEndpoints took it
	}
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = "443"
	}
	peer := net.JoinHostPort(host, port)
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	step := func(name string, err error, seen string) Step {
		s := Step{Name: name, State: OK, At: d.Now().UTC(), Peer: peer, Seen: seen}
		if err != nil {
			p := devicecert.Explain(err)
			s.State, s.Code, s.Problem, s.Do = Failed, p.Code, p.Words, advice[p.Code]
		}
		return s
	}
	addrs, err := d.Lookup(ctx, host)
	out := []Step{step(Lookup, err, fmt.Sprintf("%s is %v", host, addrs))}
	if err != nil {
		return append(out, Step{Name: TCP, State: NotReached}, Step{Name: TLS, State: NotReached})
	}
	start := time.Now()
	conn, err := d.Dial(ctx, "tcp", peer)
	took := time.Since(start).Round(time.Millisecond)
	out = append(out, step(TCP, err, took.String()))
	if err != nil {
		return append(out, Step{Name: TLS, State: NotReached})
	}
	out[1].Seen = fmt.Sprintf("%v in %v", conn.RemoteAddr(), took)
	defer conn.Close() // nothing is said on it
	tc := tls.Client(conn, id.TLSConfig(host))
	err = tc.HandshakeContext(ctx)
	s := step(TLS, err, "")
	for _, shown := range id.Seen() {
		if shown.Name == host {
			s.Seen = fmt.Sprintf("certificate %q of %q for %v, %s to %s, sha256 %.16s", shown.Subject, shown.Issuer, shown.Names,
				day(shown.NotBefore), day(shown.NotAfter), shown.SHA256)
		}
	}
	return append(out, s)
}

func (r *Report) replace(s Step) {
	for i := range r.Steps {
		if r.Steps[i].Name == s.Name {
			r.Steps[i] = s
		}
	}
}

func (r Report) step(name string) Step {
	for _, s := range r.Steps {
		if s.Name == name {
			return s
		}
	}
	return Step{Name: name, State: NotReached}
}
