package originals

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/token/tokentest"
	"kennel/cloud/originals/intake"
	"kennel/cloud/originals/replay"
	"kennel/infra/errs"
	"kennel/infra/freeaddr"
	"kennel/infra/secretbox"
)

// TestSessions: a session of a self-test is good for one robot, for a while, and says nothing about other sessions.
func TestSessions(t *testing.T) {
	s, now := NewSessions(secretbox.New()), time.Now()
	good := s.Issue(now).Reveal()
	if account, ok, err := s.Burn(good, TestThing, now); account != TestAccount || !ok || err != nil {
		t.Errorf("its own: %q, %v, %v", account, ok, err)
	}
	if _, ok, _ := s.Burn("kus_ABC", TestThing, now); ok {
		t.Error("an app's session is taken for one of a self-test")
	}
	other := NewSessions(secretbox.New()).Issue(now).Reveal()
	for what, burn := range map[string]func() (string, bool, error){
		"another robot":     func() (string, bool, error) { return s.Burn(good, "vic:00e20100", now) },
		"later":             func() (string, bool, error) { return s.Burn(good, TestThing, now.Add(TestTime)) },
		"another cloud's":   func() (string, bool, error) { return s.Burn(other, TestThing, now) },
		"one bit flipped":   func() (string, bool, error) { return s.Burn(good[:len(good)-2]+"AA", TestThing, now) },
		"nothing behind it": func() (string, bool, error) { return s.Burn(sessionPrefix, TestThing, now) },
	} {
		if account, ok, err := burn(); account != "" || !ok || errs.KindOf(err) != errs.Unauthenticated {
			t.Errorf("%s: %q, %v, %v; want Unauthenticated", what, account, ok, err)
		}
	}
}

// TestPublicName (issue 31): with a certificate by ACME for the robots' name, nothing is missing though our own authority does not vouch for that name, and the
// self-test's robot trusts the system's roots too; by another name, it trusts only ours.
func TestPublicName(t *testing.T) {
	d := door(t)
	d.Public, d.ACME = "kennel.example:443", []string{"kennel.example"}
	root := tokentest.GatewayCert(t, "Vector-A1B2") // any certificate
	d.Root = func() []byte { return root }
	system, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	for public, want := range map[string]*x509.CertPool{"kennel.example:443": system, "kennel.lan:8444": x509.NewCertPool()} {
		d.Public = public
		g, err := d.Guide()
		if err != nil || g.Public != (want == system) || len(g.Troubles) > 0 {
			t.Errorf("%s: public %v, %q, %v", d.Public, g.Public, g.Troubles, err)
		}
		roots, err := trusted(g, nil)
		want.AppendCertsFromPEM(d.Root())
		if err != nil || !roots.Equal(want) {
			t.Errorf("%s: trusts other roots, %v", d.Public, err)
		}
	}
}

func FuzzBurn(f *testing.F) {
	s, now := NewSessions(secretbox.New()), time.Now()
	good := s.Issue(now)
	f.Add(good.Reveal())
	f.Add("kst_AAAA")
	f.Add("")
	f.Fuzz(func(t *testing.T, session string) {
		if account, ok, err := s.Burn(session, TestThing, now); (account != "") != (ok && err == nil) || account != "" && account != TestAccount {
			t.Errorf("%q: %q, %v, %v", session, account, ok, err)
		}
	})
}

func door(t *testing.T) Door {
	t.Helper()
	keys := filepath.Join(t.TempDir(), "app-keys")
	if err := os.WriteFile(keys, []byte("# of robots\n\nthe-key\nanother\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Door{Listen: "192.168.1.5:8444", Public: "kennel.lan:8444", Bucket: "kennel", Prefix: "logs", AppKeys: keys, Intake: intake.DefaultPaths,
		Names: []string{"kennel.lan", "kennel.s3.us-west-2.amazonaws.com"}, Root: func() []byte { return []byte("PEM\n") }}
}

// TestGuide: names, hosts file and server_config.json (VEC-CLD-01), and the sentences about what is missing.
func TestGuide(t *testing.T) {
	g, err := door(t).Guide()
	if err != nil {
		t.Fatal(err)
	}
	const config = `{"jdocs":"kennel.lan:8444","tms":"kennel.lan:8444","chipper":"kennel.lan:8444","check":"kennel.lan:8444/ok","logfiles":"s3://kennel/logs","appkey":"the-key"}`
	if b, _ := json.Marshal(g.ServerConfig); string(b) != config {
		t.Errorf("server_config.json\n%s, want\n%s", b, config)
	}
	for i, line := range []string{`"url": "https://kennel.lan:8444/das"`, "VIC_CRASH_UPLOAD_URL=https://kennel.lan:8444/crash", `"logfiles": "https://kennel.lan:8444/logs/"`} {
		if g.Addresses[i].Line != line {
			t.Errorf("%s has %s, want %s", g.Addresses[i].File, g.Addresses[i].Line, line)
		}
	}
	if want := "192.168.1.5  kennel.lan kennel.s3.us-west-2.amazonaws.com\n"; g.Hosts != want || len(g.Troubles) != 0 || g.Root != "PEM\n" {
		t.Errorf("hosts %q, want %q; root %q, troubles %q", g.Hosts, want, g.Root, g.Troubles)
	}
	if got := strings.Join(g.ServerConfig.Names(), " "); got != "kennel.lan:8444 kennel.s3.us-west-2.amazonaws.com:443" {
		t.Errorf("a robot dials %s", got)
	}
	for name, tc := range map[string]struct {
		change func(*Door)
		want   string
	}{
		"a name that the certificate lacks": {func(d *Door) { d.Public = "robots.lan:8444" }, "The certificate does not name robots.lan: add the name to robots.names, or with kenneld onebox -originals robots.lan."},
		"only this machine":                 {func(d *Door) { d.Listen = "127.0.0.1:8444" }, "Only this machine can call the robots' port"},
		"no port 443":                       {func(d *Door) { d.Advice = "Port 443 cannot be opened." }, "Port 443 cannot be opened."},
		"another authority's certificate":   {func(d *Door) { d.Names = nil }, "must name kennel.lan and kennel.s3.us-west-2.amazonaws.com"},
	} {
		d := door(t)
		tc.change(&d)
		g, err := d.Guide()
		if err != nil || len(g.Troubles) != 1 || !strings.Contains(g.Troubles[0], tc.want) {
			t.Errorf("%s: %q, %v; want %q", name, g.Troubles, err, tc.want)
		}
	}
	d := door(t)
	d.Public = "192.168.1.5:8444"
	d.Names = append(d.Names, "192.168.1.5")
	if g, err := d.Guide(); err != nil || len(g.Names) != 1 || len(g.Troubles) != 0 {
		t.Errorf("an address needs no name: %+v, %q, %v", g.Names, g.Troubles, err)
	}
	d = door(t)
	d.Public, d.Names = "escapepod.local:443", nil
	if g, err := d.Guide(); err != nil || g.Hosts != "192.168.1.5  kennel.s3.us-west-2.amazonaws.com\n" || !strings.Contains(g.Names[0].Use, "robots.mdns") {
		t.Errorf("a name by multicast DNS: %+v, %v", g, err)
	}
	if _, err := (Door{}).Guide(); errs.CodeOf(err) != "no_robots_port" {
		t.Errorf("no port: %v", err)
	}
}

// listener serves TLS with a certificate, or closes what comes where there is none.
func listener(t *testing.T, cert *tls.Certificate) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // the test is over
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if cert == nil {
				_, _ = conn.Write([]byte("HTTP/1.0 400 Bad Request\r\n\r\n")) // as one that speaks no TLS
				_ = conn.Close()                                              // the test is over
				continue
			}
			go func() {
				_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*cert}}).HandshakeContext(t.Context()) // the client judges
				_ = conn.Close()                                                                                        // the test is over
			}()
		}
	}()
	return l.Addr().String()
}

// TestCheckSaysWhatIsMissing: each step before the first call has a sentence that names the step, the place and what to do.
func TestCheckSaysWhatIsMissing(t *testing.T) {
	ours, foreign := tokentest.NewAuthority(t, "Our Root"), tokentest.NewAuthority(t, "Foreign Root")
	leaf := func(a *tokentest.Authority, name string, end time.Duration) *tls.Certificate {
		c := a.Leaf(t, x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name, "kennel.s3.us-west-2.amazonaws.com"}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(end)})
		return &c
	}
	closed := freeaddr.For(t) // nothing listens there, and no listener of any test gets it
	const here, upload = "kennel.lan:8444", "kennel.s3.us-west-2.amazonaws.com:443"
	good := listener(t, leaf(ours, "kennel.lan", time.Hour))
	for name, tc := range map[string]struct {
		to             map[string]string
		step, sentence string
	}{
		"an unknown name":    {map[string]string{here: good}, "names", "Step 1 of 11, names, fails: the name kennel.s3.us-west-2.amazonaws.com is not known here"},
		"nothing listens":    {map[string]string{here: closed, upload: good}, "connection", "Step 2 of 11, connection, fails: nothing takes connections at kennel.lan:8444 (connection refused); let kenneld listen there (-listen robots=0.0.0.0:8444)"},
		"nothing at 443":     {map[string]string{here: good, upload: closed}, "connection", "Step 2 of 11, connection, fails: nothing takes connections at kennel.s3.us-west-2.amazonaws.com:443 (connection refused); port 443 cannot be opened, so do this."},
		"a foreign root":     {map[string]string{here: listener(t, leaf(foreign, "kennel.lan", time.Hour)), upload: good}, "certificate", "the robot does not trust the certificate at kennel.lan:8444, issued by Foreign Root; install this cloud's root at /etc/ssl/certs/local/root.crt"},
		"another name":       {map[string]string{here: listener(t, leaf(ours, "elsewhere.lan", time.Hour)), upload: good}, "certificate", "the certificate at kennel.lan:8444 does not name kennel.lan; add the name to robots.names"},
		"a certificate over": {map[string]string{here: good, upload: listener(t, leaf(ours, "kennel.lan", -time.Hour))}, "certificate", "the certificate at kennel.s3.us-west-2.amazonaws.com:443 is not valid now"},
		"no TLS":             {map[string]string{here: listener(t, nil), upload: good}, "certificate", "no TLS at kennel.lan:8444"},
	} {
		t.Run(name, func(t *testing.T) {
			d := door(t)
			d.Advice = "Port 443 cannot be opened, so do this."
			g, err := d.Guide()
			if err != nil {
				t.Fatal(err)
			}
			n := Network{To: tc.to}
			r, err := replay.New(g.ServerConfig, ours.Pool(), ours.Factory(t, TestThing), false)
			if err != nil {
				t.Fatal(err)
			}
			r.Dial = n.Dial
			got := Check(context.Background(), g, r, "", n)
			last := got.Steps[len(got.Steps)-1]
			if got.OK || last.OK || last.Name != tc.step || !strings.Contains(got.Sentence, tc.sentence) || strings.Count(got.Sentence, "\n") != 0 {
				t.Errorf("%+v\nwant step %s and %q", got, tc.step, tc.sentence)
			}
		})
	}
}
