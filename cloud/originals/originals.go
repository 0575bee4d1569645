// Package originals brings original robots home: Guide says what their network and they need, and Check plays such a robot to find out whether
// they have it (VEC-CLD-01, VEC-CLD-07, VEC-END-01).
//
// There is one self-test at a time. Its robot is TestThing, its owner TestAccount. Admit gives a caller that an operator trusts a certificate of TestTime and a
// session that only TestThing may use; neither is stored. Dismiss erases what the robot left, as if its owner had deleted the account: the
// robot, which has the tag TestTag meanwhile, leaves the fleet.
package originals

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"kennel/certs"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/originals/intake"
	"kennel/cloud/originals/replay"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/mdns"
	"kennel/infra/secretbox"
	"kennel/infra/thing"
)

// The robot of a self-test; no factory made it.
const (
	TestThing   = registry.SelfTest // serials of engineering units begin with 00e (VEC-STOR-03)
	TestAccount = "0e5e1f7e-57ed-4000-8000-000000000000"
	TestTag     = "self-test"
	TestTime    = 15 * time.Minute
	TurnTime    = 4 * time.Minute // after which a self-test that did not end no longer holds up the next: more than all its steps may take
)

// Files of an original robot.
const (
	ConfigFile = "/anki/data/assets/cozmo_resources/config/server_config.json"
	RootFile   = "/etc/ssl/certs/local/root.crt"
	EventsFile = "/anki/data/assets/cozmo_resources/config/DASConfig.json"
	CrashFile  = "/anki/etc/vic-crashuploader.env"
)

// otherRoots are where community builds of the robot's software look for one more root.
var otherRoots = []string{"/anki/etc/wirepod-cert.crt", "/data/data/wirepod-cert.crt"}

// Guide says what the network of original robots, and the robots, need.
type Guide struct {
	Names        []Name              `json:"names"`  // to be made known where the robots are
	Hosts        string              `json:"hosts"`  // the same as lines of a hosts file
	Root         string              `json:"root"`   // certificates to install on the robots, PEM; "": the certificate is not of this cloud's authority
	Public       bool                `json:"public"` // the services have a certificate of a public authority by ACME, so that signing in needs no root; log uploads need Root
	RootFile     string              `json:"root_file"`
	OtherRoots   []string            `json:"other_roots"` // where community builds look
	ConfigFile   string              `json:"config_file"`
	ServerConfig replay.ServerConfig `json:"server_config"`
	Addresses    []Address           `json:"addresses"` // where robots send files and events by HTTP
	Troubles     []string            `json:"troubles"`  // sentences: what keeps original robots from calling, and what to do
	Uploads      string              `json:"uploads"`   // one of them: why nothing listens at port 443
}

// Address is where robots send something, and the file of theirs that says so.
type Address struct {
	Use  string `json:"use"`
	URL  string `json:"url"`
	File string `json:"file"`
	Line string `json:"line"` // of the file
}

// sends returns where robots send files and events (VEC-DAS-06, VEC-LOG-04, VEC-CRS-05).
func (d Door) sends() []Address {
	url := func(path string) string { return "https://" + d.Public + path }
	return []Address{
		{"events", url(d.Intake.Events), EventsFile, `"url": "` + url(d.Intake.Events) + `"`},
		{"crashes", url(d.Intake.Crash), CrashFile, "VIC_CRASH_UPLOAD_URL=" + url(d.Intake.Crash)},
		{"log snapshots, of software that sends no logs to S3", url(d.Intake.Logs), ConfigFile, `"logfiles": "` + url(d.Intake.Logs) + `"`},
	}
}

// Name is a host name that robots look up.
type Name struct {
	Name      string   `json:"name"`
	Port      string   `json:"port"`
	Use       string   `json:"use"`
	Addresses []string `json:"addresses"` // where it must lead, as far as this cloud can tell
}

// Door says how original robots reach this cloud.
type Door struct {
	Listen  string   // host:port of the robots' port; "": there is none
	Public  string   // host:port in the robots' configuration
	Names   []string // in the certificate of this cloud's authority; none: the certificate is another authority's
	ACME    []string // names with a certificate of a public authority
	Advice  string   // a sentence: why nothing listens at port 443, and what to do
	Bucket  string
	Prefix  string
	Intake  intake.Paths
	AppKeys string        // file
	Root    func() []byte // PEM
}

// Guide returns what is needed to reach this cloud.
func (d Door) Guide() (Guide, error) {
	if d.Listen == "" {
		return Guide{}, errs.Coded(errs.Conflict, "no_robots_port", "original robots are not served: robots.listen is empty")
	}
	key, err := firstKey(d.AppKeys)
	if err != nil {
		return Guide{}, err
	}
	host, port, err := net.SplitHostPort(d.Public)
	if err != nil {
		return Guide{}, errs.New(errs.Invalid, "robots.public %q: want host:port", d.Public)
	}
	g := Guide{RootFile: RootFile, OtherRoots: otherRoots, ConfigFile: ConfigFile, Addresses: d.sends(), Troubles: []string{}, Uploads: d.Advice, ServerConfig: replay.ServerConfig{
		Jdocs: d.Public, Tms: d.Public, Chipper: d.Public, Check: d.Public + "/ok", LogFiles: "s3://" + d.Bucket + "/" + d.Prefix, AppKey: key}}
	g.Public = slices.Contains(d.ACME, host)
	upload := replay.UploadHost(d.Bucket)
	addrs := d.addresses()
	needed := []string{host, upload} // in the certificate
	if g.Public {
		needed = needed[1:]
	}
	if net.ParseIP(host) == nil {
		g.Names = append(g.Names, Name{host, port, "tokens, documents, voice, connection check, events", addrs})
	}
	g.Names = append(g.Names, Name{upload, "443", "log uploads, to which robots find by themselves", addrs})
	first := "ADDRESS" // of this cloud as robots see it
	if len(addrs) > 0 {
		first = addrs[0]
	}
	var names []string
	for i, n := range g.Names {
		if mdns.Local(n.Name) {
			g.Names[i].Use += "; found by multicast DNS (robots.mdns), no entry is needed"
			continue
		}
		names = append(names, n.Name)
	}
	g.Hosts = first + "  " + strings.Join(names, " ") + "\n"
	if len(d.Names) > 0 {
		g.Root = string(d.Root())
		for _, n := range needed {
			if !slices.Contains(d.Names, n) {
				g.Troubles = append(g.Troubles, fmt.Sprintf("The certificate does not name %s: add the name to robots.names, or with kenneld onebox -originals %s.", n, n))
			}
		}
	} else {
		g.Troubles = append(g.Troubles, fmt.Sprintf("The certificate comes from robots.cert_file: robots must trust its issuer, and it must name %s.", strings.Join(needed, " and ")))
	}
	if ip := net.ParseIP(host); len(addrs) == 0 && (ip != nil && ip.IsLoopback() || host == "localhost" || onlyHere(d.Listen)) {
		g.Troubles = append(g.Troubles, "Only this machine can call the robots' port: start kenneld onebox with -originals NAME, the name by which robots call this machine.")
	}
	if d.Advice != "" {
		g.Troubles = append(g.Troubles, d.Advice)
	}
	return g, nil
}

// onlyHere reports whether an address to listen on is one that other machines cannot reach.
func onlyHere(listen string) bool {
	host, _, _ := net.SplitHostPort(listen)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// addresses returns where names must lead: none if only this machine can call.
func (d Door) addresses() []string {
	host, _, err := net.SplitHostPort(d.Listen)
	if err != nil || onlyHere(d.Listen) {
		return []string{}
	}
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return []string{host}
	}
	out := []string{}
	ifs, _ := net.InterfaceAddrs() // without them the guide has no address
	for _, v4 := range []bool{true, false} {
		for _, a := range ifs {
			n, ok := a.(*net.IPNet)
			if ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() && (n.IP.To4() != nil) == v4 {
				out = append(out, n.IP.String())
			}
		}
	}
	return out
}

// firstKey returns the first app key of a file.
func firstKey(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("app keys: %w", err)
	}
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		if line := strings.TrimSpace(sc.Text()); line != "" && line[0] != '#' {
			return line, nil
		}
	}
	return "", errs.New(errs.Conflict, "%s has no app key", file)
}

// Issuer makes device certificates; *ca.Authority is one.
type Issuer interface {
	IssueDevice(csr *x509.CertificateRequest, id thing.ID, ttl time.Duration) ([]*x509.Certificate, error)
}

// Turns lets one self-test run at a time, whatever process it came through.
type Turns interface {
	// Begin returns how long the present turn lasts at most; 0 if there was none and one of that length has begun.
	Begin(ctx context.Context, length time.Duration) (wait time.Duration, err error)
	// End ends the present turn, if there is one.
	End(ctx context.Context) error
}

// Config holds what the service needs.
type Config struct {
	Door     Door
	Issuer   Issuer
	Sessions Sessions
	Turns    Turns
	Mark     func(ctx context.Context) error                 // registers TestThing and tags it
	Forget   func(ctx context.Context) error                 // removes it from the fleet
	Erase    func(ctx context.Context, account string) error // what any slice holds about an account
	Now      func() time.Time                                // nil: time.Now
}

// Service answers operators. Safe for concurrent use.
type Service struct{ cfg Config }

// New returns the service.
func New(cfg Config) *Service {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Service{cfg}
}

// Guide returns what original robots need.
func (s *Service) Guide() (Guide, error) { return s.cfg.Door.Guide() }

// Admission holds what a self-test needs beside the Guide.
type Admission struct {
	Chain   string `json:"chain"`   // device certificate of TestThing for the request's key, PEM
	Session string `json:"session"` // that TestThing may hand over when it associates
}

// Admit makes the identity of a self-test for the key of a certificate request, whose CN is TestThing, in PEM.
func (s *Service) Admit(ctx context.Context, csr []byte) (Admission, error) {
	req, err := certs.CheckRequest(csr, TestThing)
	if err != nil {
		return Admission{}, err
	}
	if err := s.cfg.Mark(ctx); err != nil {
		return Admission{}, fmt.Errorf("register %s: %w", TestThing, err)
	}
	chain, err := s.cfg.Issuer.IssueDevice(req, TestThing, TestTime)
	if err != nil {
		return Admission{}, fmt.Errorf("certificate of %s: %w", TestThing, err)
	}
	wait, err := s.cfg.Turns.Begin(ctx, TurnTime)
	if err != nil {
		return Admission{}, err
	}
	if wait > 0 {
		return Admission{}, errs.Coded(errs.Conflict, "self_test_running", "another self-test is running: try again in %d s", int(wait.Seconds())+1)
	}
	var out bytes.Buffer
	for _, c := range chain {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a buffer takes everything
	}
	return Admission{out.String(), s.cfg.Sessions.Issue(s.cfg.Now()).Reveal()}, nil
}

// SelfTest plays a robot from here. framePause is the time between two pieces of audio of its connection check.
func (s *Service) SelfTest(ctx context.Context, framePause time.Duration) (Result, error) {
	g, err := s.Guide()
	if err != nil {
		return Result{}, err
	}
	key, csr, err := Applicant()
	if err != nil {
		return Result{}, err
	}
	a, err := s.Admit(ctx, csr)
	if err != nil {
		return Result{}, err
	}
	var out Result
	r, err := Play(g, a, key, nil, Network{})
	if err == nil {
		r.FramePause = framePause
		out = Check(ctx, g, r, a.Session, Network{})
	}
	return out, errors.Join(err, s.Dismiss(context.WithoutCancel(ctx)))
}

// Dismiss erases what self-tests left, and lets the next one begin.
func (s *Service) Dismiss(ctx context.Context) error {
	if err := errors.Join(s.cfg.Erase(ctx, TestAccount), s.cfg.Forget(ctx)); err != nil {
		return err
	}
	return s.cfg.Turns.End(ctx)
}

// sessionPrefix marks the sessions of self-tests.
const sessionPrefix = "kst_"

// Sessions makes and opens the sessions of self-tests. They are sealed, so that every process with the sealing key honours them.
type Sessions struct{ seal secretbox.Sealer }

// NewSessions returns Sessions.
func NewSessions(key secretbox.Key) Sessions { return Sessions{key.For("originals/session")} }

// Issue makes a session that is good for TestTime.
func (s Sessions) Issue(now time.Time) logging.Secret {
	until, _ := now.Add(TestTime).UTC().MarshalBinary() // fails for no time zone of this century
	return logging.Secret(sessionPrefix + base64.RawURLEncoding.EncodeToString(s.seal.Seal(until, []byte(TestThing))))
}

// Burn returns whose a session of a self-test is. ok is false for a session of any other kind.
func (s Sessions) Burn(session string, by thing.ID, now time.Time) (account string, ok bool, err error) {
	text, ok := strings.CutPrefix(session, sessionPrefix)
	if !ok {
		return "", false, nil
	}
	bad := errs.Coded(errs.Unauthenticated, "session_unknown", "this session is not accepted: sign in again")
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || by != TestThing {
		return "", true, bad
	}
	plain, err := s.seal.Open(sealed, []byte(by))
	var until time.Time
	if err != nil || until.UnmarshalBinary(plain) != nil || !now.Before(until) {
		return "", true, bad
	}
	return TestAccount, true, nil
}
