package originals

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/cloud/identity/consent"
	"kennel/cloud/originals/replay"
	"kennel/infra/api/jdocspb"
	"kennel/infra/mdns"
)

// Step is one step of a self-test.
type Step struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // what was found, or what failed
	Millis int64  `json:"millis"`
}

// Result is how a self-test went. It ends with the first step that fails.
type Result struct {
	OK       bool      `json:"ok"`
	Sentence string    `json:"sentence"` // which step fails, and what to do
	Steps    []Step    `json:"steps"`
	At       time.Time `json:"at"`
}

// Network is how a self-test reaches the cloud.
type Network struct {
	// To leads host:port elsewhere, as if names were known that are not known yet.
	To map[string]string
}

// Dial opens a connection.
func (n Network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	to := cmp.Or(n.To[addr], addr)
	if host, port, err := net.SplitHostPort(to); err == nil && mdns.Local(host) { // this program's own resolver asks DNS alone
		if found, err := n.lookup(ctx, to); err == nil {
			to = net.JoinHostPort(found, port)
		}
	}
	return (&net.Dialer{Timeout: dialTime}).DialContext(ctx, network, to)
}

// lookup returns where an address leads.
func (n Network) lookup(ctx context.Context, addr string) (string, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	if to := n.To[addr]; to != "" {
		return to, nil
	}
	if net.ParseIP(host) != nil {
		return host, nil
	}
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil && mdns.Local(host) {
		ctx, cancel := context.WithTimeout(ctx, dialTime)
		defer cancel()
		a, err := mdns.Lookup(ctx, host)
		return a.String(), err
	}
	return strings.Join(found, ", "), err
}

// Bounds of one step.
const (
	dialTime = 5 * time.Second
	stepTime = 20 * time.Second
)

// Applicant makes the key of a self-test's robot and the request for its certificate, PEM.
func Applicant() (key *ecdsa.PrivateKey, csr []byte, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(TestThing)}}, key)
	return key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), err
}

// Play returns the robot of a self-test. roots are those that the robot trusts, PEM; none: those of the guide, and with
// a certificate of a public authority the system's.
func Play(g Guide, a Admission, key *ecdsa.PrivateKey, roots []byte, n Network) (*replay.Robot, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair([]byte(a.Chain), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		return nil, fmt.Errorf("certificate of the self-test: %w", err)
	}
	pool, err := trusted(g, roots)
	if err != nil {
		return nil, err
	}
	r, err := replay.New(g.ServerConfig, pool, cert, false)
	if err != nil {
		return nil, err
	}
	r.Dial, r.RetryPause = n.Dial, time.Second
	return r, nil
}

// trusted returns the roots of the robot of a self-test.
func trusted(g Guide, roots []byte) (pool *x509.CertPool, err error) {
	pool = x509.NewCertPool()
	if len(roots) == 0 && (g.Public || g.Root == "") {
		if pool, err = x509.SystemCertPool(); err != nil {
			return nil, err
		}
	}
	if roots := cmp.Or(string(roots), g.Root); roots != "" && !pool.AppendCertsFromPEM([]byte(roots)) {
		return nil, errors.New("roots of the robot: want certificates in PEM")
	}
	return pool, nil
}

// tested is the document that a self-test writes.
const tested = "vic.RobotSettings"

// Check plays r through what an original robot does in its first minutes. A step that fails ends it.
func Check(ctx context.Context, g Guide, r *replay.Robot, session string, n Network) Result {
	c := checker{g, r, session, n}
	all := []struct {
		name string
		do   func(context.Context) (detail string, err error)
	}{
		{"names", c.names}, {"connection", c.connection}, {"certificate", c.certificate},
		{"check page", func(ctx context.Context) (string, error) {
			return "HEAD " + r.Servers.Check + " by http and https", r.CheckHTTP(ctx)
		}},
		{"association", func(ctx context.Context) (string, error) {
			return "the robot has an owner and a token", r.Associate(ctx, session)
		}},
		{"token refresh", func(ctx context.Context) (string, error) { return "a new token", r.Refresh(ctx) }},
		{"document", c.document}, {"log upload", c.upload}, {"files and events", c.files},
		{"connection check", func(ctx context.Context) (string, error) { return "50 pieces of audio arrived", r.CheckStream(ctx) }},
		{"voice", c.voice},
	}
	out := Result{OK: true, Sentence: "An original robot with this configuration finds all that it needs.", At: time.Now()}
	for i, step := range all {
		began := time.Now()
		within, cancel := context.WithTimeout(ctx, stepTime)
		detail, err := step.do(within)
		cancel()
		s := Step{Name: step.name, OK: err == nil, Detail: detail, Millis: time.Since(began).Milliseconds()}
		if err != nil {
			s.Detail = c.explain(err)
			out.OK, out.Sentence = false, fmt.Sprintf("Step %d of %d, %s, fails: %s.", i+1, len(all), step.name, strings.TrimSuffix(s.Detail, "."))
		}
		if out.Steps = append(out.Steps, s); err != nil {
			break
		}
	}
	return out
}

type checker struct {
	guide   Guide
	robot   *replay.Robot
	session string
	net     Network
}

// advised is an error whose text says what to do.
type advised struct{ text string }

func (a advised) Error() string { return a.text }

func advise(format string, args ...any) error { return advised{fmt.Sprintf(format, args...)} }

// where returns the address to which a name should lead, for people.
func (c checker) where(host string) string {
	for _, n := range c.guide.Names {
		if n.Name == host && len(n.Addresses) > 0 {
			return n.Addresses[0]
		}
	}
	return "the address of this cloud"
}

func (c checker) names(ctx context.Context) (string, error) {
	var found []string
	for _, addr := range c.robot.Servers.Names() {
		host, _, _ := net.SplitHostPort(addr)
		to, err := c.net.lookup(ctx, addr)
		if err != nil {
			reason := err.Error()
			if dns, ok := errors.AsType[*net.DNSError](err); ok {
				reason = dns.Err
			}
			what := "add it to the DNS or the hosts file of the robot's network, leading to " + c.where(host)
			if mdns.Local(host) {
				what = "let kenneld answer for it (robots.mdns: " + host + "), and let the firewall pass UDP port 5353"
			}
			return "", advise("the name %s is not known here (%s); %s", host, reason, what)
		}
		found = append(found, host+" is "+to)
	}
	return strings.Join(found, "; "), nil
}

func (c checker) connection(ctx context.Context) (string, error) {
	addrs := c.robot.Servers.Names()
	for _, addr := range addrs {
		conn, err := c.net.Dial(ctx, "tcp", addr)
		if err == nil {
			_ = conn.Close() // it was opened to be closed
			continue
		}
		host, port, _ := net.SplitHostPort(addr)
		reason := err.Error()
		if errors.Is(err, syscall.ECONNREFUSED) {
			reason = "connection refused"
		} else if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			reason = "no answer"
		}
		what := "let kenneld listen there (-listen robots=0.0.0.0:" + port + ") and let the firewall pass it"
		if port == "443" && strings.HasSuffix(host, ".amazonaws.com") {
			what = "let kenneld listen at port 443, to which log uploads come, or forward that port to the robots' port"
			if u := c.guide.Uploads; u != "" {
				what = strings.ToLower(u[:1]) + u[1:]
			}
		}
		return "", advise("nothing takes connections at %s (%s); %s", addr, reason, strings.TrimSuffix(what, "."))
	}
	return "taken at " + strings.Join(addrs, ", "), nil
}

func (c checker) certificate(ctx context.Context) (string, error) {
	var detail string
	for _, addr := range c.robot.Servers.Names() {
		host, _, _ := net.SplitHostPort(addr)
		raw, err := c.net.Dial(ctx, "tcp", addr)
		if err != nil {
			return "", err
		}
		conn := tls.Client(raw, &tls.Config{RootCAs: c.robot.Roots, ServerName: host, MinVersion: tls.VersionTLS12})
		err = conn.HandshakeContext(ctx)
		if err == nil {
			leaf := conn.ConnectionState().PeerCertificates[0]
			detail = fmt.Sprintf("issued by %s, until %s", leaf.Issuer.CommonName, leaf.NotAfter.Format(time.DateOnly))
		}
		_ = conn.Close() // nothing was said
		if err != nil {
			return "", certificateAdvice(addr, host, err)
		}
	}
	return detail, nil
}

// certificateAdvice says what is wrong with the certificate at addr.
func certificateAdvice(addr, host string, err error) error {
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return advise("the certificate at %s does not name %s; add the name to robots.names, or start kenneld onebox with -originals %s", addr, host, host)
	}
	if e, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		issuer := "an authority that it does not name"
		if e.Cert != nil && e.Cert.Issuer.CommonName != "" {
			issuer = e.Cert.Issuer.CommonName
		}
		return advise("the robot does not trust the certificate at %s, issued by %s; install this cloud's root at %s, and see that the name leads to this cloud", addr, issuer, RootFile)
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return advise("the certificate at %s is not valid now (until %s); set the clocks right, or renew robots.cert_file", addr, e.Cert.NotAfter.Format(time.DateOnly))
	}
	return advise("no TLS at %s (%v); let the port lead to the robots' port of kenneld, passed through and not ended on the way", addr, err)
}

// document reads what is there, writes on top of it, and reads it again.
func (c checker) document(ctx context.Context) (string, error) {
	items, err := c.robot.Read(ctx, &jdocspb.ReadDocsReq_Item{DocName: tested})
	if err != nil {
		return "", err
	}
	const text = `{"clock_24_hour":true}`
	wrote, err := c.robot.Write(ctx, tested, &jdocspb.Jdoc{DocVersion: items[0].Doc.DocVersion, FmtVersion: 2, JsonDoc: text})
	if err != nil {
		return "", err
	}
	if wrote.Status != jdocspb.WriteDocResp_ACCEPTED {
		return "", advise("the document was answered with %v; run the self-test again, alone", wrote.Status)
	}
	if items, err = c.robot.Read(ctx, &jdocspb.ReadDocsReq_Item{DocName: tested}); err != nil {
		return "", err
	}
	if d := items[0].Doc; d.DocVersion != wrote.LatestDocVersion || !strings.Contains(d.JsonDoc, "clock_24_hour") {
		return "", advise("the document that was read (version %d) is not the one that was written (version %d); run the self-test again, alone", d.DocVersion, wrote.LatestDocVersion)
	}
	return "written and read", c.robot.Delete(ctx, tested)
}

func (c checker) upload(ctx context.Context) (string, error) {
	key, err := c.robot.Upload(ctx, "self-test.log", time.Now(), []byte("a log of the self-test\n"))
	if err != nil && strings.Contains(err.Error(), consent.CodeOptedOut) {
		return "taken where the owner allows it", nil
	}
	return "stored as " + key, err
}

// files sends an event, a log and a crash. The owner of the self-test allows no data collection, so that the refusal in those words shows as well that they come
// where they belong.
func (c checker) files(ctx context.Context) (string, error) {
	address := map[string]string{}
	for _, a := range c.guide.Addresses {
		address[a.File] = a.URL
	}
	for what, send := range map[string]func() (replay.Answer, error){
		"events": func() (replay.Answer, error) {
			return c.robot.SendEvents(ctx, address[EventsFile], "["+c.robot.Event("self-test", 1, "robot.self_test")+"]")
		},
		"a log": func() (replay.Answer, error) {
			return c.robot.PutLog(ctx, address[ConfigFile], "self-test.log", "a log\n")
		},
		"a crash": func() (replay.Answer, error) {
			return c.robot.PostCrash(ctx, address[CrashFile], "self-test.dmp", "none\n")
		},
	} {
		a, err := send()
		if err != nil {
			return "", err
		}
		if a.Status != http.StatusOK && !strings.Contains(a.Text, consent.CodeOptedOut) {
			return "", advise("%s got the answer %d %.300s", what, a.Status, strings.TrimSpace(a.Text))
		}
	}
	return "events, a log and a crash are taken where the owner allows them", nil
}

// voice says a sentence, and says it again while the cloud is busy or its recogniser is still starting, as a person would. A cloud that has no recogniser
// is told, and is no failure.
func (c checker) voice(ctx context.Context) (string, error) {
	for failed := error(nil); ; {
		err := c.robot.Voice(ctx)
		switch {
		case status.Code(err) == codes.Unimplemented:
			return "not tried: this cloud has no speech recognition (speech.recognizers)", nil
		case err == nil && failed != nil:
			return "a spoken sentence got an answer when it was repeated; before: " + status.Convert(failed).Message(), nil
		case ctx.Err() != nil && failed != nil:
			return "", failed // which says more than that the time is up
		case status.Code(err) != codes.Unavailable:
			return "a spoken sentence got an answer", err
		}
		failed = err
		select {
		case <-time.After(c.robot.RetryPause):
		case <-ctx.Done():
			return "", failed
		}
	}
}

// explain makes a part of a sentence of an error: what failed and what to do.
func (c checker) explain(err error) string {
	doctor := "; what this cloud noted: kennelctl doctor " + string(TestThing)
	if a, ok := errors.AsType[advised](err); ok {
		return a.text
	}
	if a, ok := errors.AsType[replay.Refused](err); ok {
		return fmt.Sprintf("the upload was refused with %s (%s)%s", a.Code, a.Message, doctor)
	}
	s, ok := status.FromError(err)
	if !ok || s.Code() == codes.Unknown {
		return err.Error() + doctor
	}
	switch s.Code() {
	case codes.Unimplemented:
		return fmt.Sprintf("this kenneld does not serve it (%s); upgrade kenneld", s.Message())
	case codes.Unavailable, codes.DeadlineExceeded:
		return fmt.Sprintf("the call got no answer (%s); see kenneld's log", s.Message())
	}
	return fmt.Sprintf("answered %v (%s)%s", s.Code(), s.Message(), doctor)
}
