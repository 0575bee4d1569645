package devicecert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certsapi"
	"kennel/certs/certsclient"
	"kennel/certs/certspg"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/freeaddr"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

const vic = thing.ID("vic:00e20100")

// cloud is the real rules and HTTP endpoints over TLS.
type cloud struct {
	*httptest.Server
	ca       *ca.Authority
	svc      *certs.Service
	requests atomic.Int64
	cert     atomic.Pointer[tls.Certificate]                                   // that the listener shows
	before   atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool] // may answer in place of the cloud
}

type nobody struct{}

func (nobody) Record(context.Context, certs.Step) {}

func newCloud(t testing.TB, ttl time.Duration) *cloud {
	t.Helper()
	authority, err := ca.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{ca: authority}
	store := certspg.New(pgtest.New(t))
	c.svc, err = certs.New(certs.Config{Store: store, Batches: store, Requests: store, Issuer: authority, Recorder: nobody{}, TTL: ttl,
		ByAddr: ratelimit.NewByAddr(time.Millisecond, 1000), ByThing: ratelimit.New(time.Millisecond, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	certsapi.Operations(c.svc, certsapi.Config{Root: authority.Root, MQTT: "ssl://cloud.example:8883", Log: slog.New(slog.DiscardHandler)}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		if f := c.before.Load(); f != nil && (*f)(w, r) {
			return
		}
		mux.ServeHTTP(w, r)
	}))
	c.refresh(t)
	c.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*c.cert.Load()}}, nil
	}}
	c.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	c.StartTLS()
	t.Cleanup(c.Close)
	return c
}

// refresh has the listener show a certificate of the authority of the moment.
func (c *cloud) refresh(t testing.TB) {
	t.Helper()
	pair, err := c.ca.IssueServer([]string{"127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	c.cert.Store(&cert)
}

// born makes a robot's root with a claim and the cloud's root certificate.
func (c *cloud) born(t testing.TB) *os.Root {
	t.Helper()
	secret, err := c.svc.Register(t.Context(), vic)
	if err != nil {
		t.Fatal(err)
	}
	root := tempRoot(t)
	if err := errors.Join(WriteClaim(root, Claim{vic, secret}), WriteRoot(root, c.ca.Root())); err != nil {
		t.Fatal(err)
	}
	return root
}

func wake(t testing.TB, root *os.Root, url string) *Identity {
	t.Helper()
	i, err := Open(Config{Root: root, Cloud: url, Log: slog.New(slog.DiscardHandler), MinPause: time.Millisecond, MaxPause: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func ensure(t testing.TB, i *Identity) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := i.Ensure(ctx); err != nil {
		t.Fatalf("%v; state %+v", err, i.State())
	}
}

func read(t testing.TB, root *os.Root, name string) string {
	t.Helper()
	b, err := root.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFirstBoot(t *testing.T) {
	c := newCloud(t, time.Hour)
	root := c.born(t)
	// The key must be on disk when its first request arrives.
	keyOnDisk := false
	look := func(http.ResponseWriter, *http.Request) bool {
		fi, err := root.Stat(KeyFile)
		keyOnDisk = err == nil && fi.Mode().Perm() == 0o600
		return false
	}
	c.before.Store(&look)
	i := wake(t, root, c.URL)
	if _, err := i.TLSCertificate(); err == nil {
		t.Error("a certificate before enrolment")
	}
	changed := i.Changed()
	ensure(t, i)
	<-changed
	if !keyOnDisk {
		t.Error("the request arrived before the key was on disk with mode 0600")
	}
	st := i.State()
	if !st.OK || st.Step != StepReady || st.Thing != vic || i.Thing() != vic || i.MQTT() != "ssl://cloud.example:8883" {
		t.Errorf("state %+v, broker %q", st, i.MQTT())
	}
	if d := st.NotAfter.Sub(st.Renew); d > 21*time.Minute || d < 14*time.Minute {
		t.Errorf("due %v before the end of an hour's life, want a third less at most a twelfth", d)
	}
	mutual(t, c, i)

	// The next start needs no cloud.
	n := c.requests.Load()
	again := wake(t, root, c.URL)
	ensure(t, again)
	if c.requests.Load() != n || again.MQTT() != i.MQTT() {
		t.Errorf("a second start made %d requests", c.requests.Load()-n)
	}
}

// mutual connects to a listener that wants a device certificate, as the broker does.
func mutual(t *testing.T, c *cloud, i *Identity) {
	t.Helper()
	pair, err := c.ca.IssueServer([]string{"127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	got := make(chan []*x509.Certificate, 1)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			got <- nil
			return
		}
		tc := conn.(*tls.Conn)
		_ = tc.Handshake() // judged by what was shown
		got <- tc.ConnectionState().PeerCertificates
		_ = conn.Close()
	}()
	conn, err := tls.Dial("tcp", ln.Addr().String(), i.TLSConfig("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	chain := <-got
	peer, err := certs.Trust{Devices: c.ca.DevicePool()}.Identify(chain, time.Now())
	if err != nil || peer.Thing != vic {
		t.Errorf("the broker saw %+v, %v", peer, err)
	}
}

// A kill after any write of the first boot is mended by the next start, with the same key.
func TestKilledFirstBoot(t *testing.T) {
	for _, c := range []struct {
		name string
		lose []string
	}{
		{"after the key", []string{CertFile, stateFile}},
		{"after the certificate", []string{stateFile}},
		{"certificate half written", nil},
	} {
		cl := newCloud(t, time.Hour)
		root := cl.born(t)
		ensure(t, wake(t, root, cl.URL))
		key := read(t, root, KeyFile)
		for _, f := range c.lose {
			if err := root.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
		if c.lose == nil {
			if err := root.WriteFile(CertFile, []byte(read(t, root, CertFile)[:200]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		i := wake(t, root, cl.URL)
		ensure(t, i)
		if read(t, root, KeyFile) != key || i.MQTT() == "" || !i.State().OK {
			t.Errorf("%s: key changed or no broker: %+v", c.name, i.State())
		}
	}
}

// A certificate of 3 s is renewed again and again, unattended; the key stays.
func TestRunRenewsAtTwoThirds(t *testing.T) {
	c := newCloud(t, 3*time.Second)
	root := c.born(t)
	i := wake(t, root, c.URL)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	changed := i.Changed()
	go func() { done <- i.Run(ctx) }()
	serials := map[string]bool{}
	for range 3 {
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Fatalf("no new certificate; state %+v", i.State())
		}
		changed = i.Changed()
		cert, err := i.TLSCertificate()
		if err != nil {
			t.Fatal(err)
		}
		serials[cert.Leaf.SerialNumber.String()] = true
		if !time.Now().Before(cert.Leaf.NotAfter) {
			t.Error("expired before it was renewed")
		}
	}
	cancel()
	if err := <-done; err != nil || len(serials) != 3 {
		t.Errorf("%v, %d certificates", err, len(serials))
	}
}

// The cloud is reinstalled: it does not know the old certificate, but was told of the claim.
func TestEnrolsAgainWithAnotherCloud(t *testing.T) {
	old := newCloud(t, time.Hour)
	root := old.born(t)
	ensure(t, wake(t, root, old.URL))
	anew := newCloud(t, time.Hour)
	secret, err := anew.svc.Register(t.Context(), vic)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(WriteClaim(root, Claim{vic, secret}), WriteRoot(root, anew.ca.Root())); err != nil {
		t.Fatal(err)
	}
	i := wake(t, root, anew.URL)
	if err := i.attempt(t.Context()); err != nil {
		t.Fatal(err)
	}
	cert, err := i.TLSCertificate()
	if err != nil {
		t.Fatal(err)
	}
	if err := anew.ca.VerifyDevice(cert.Leaf); err != nil {
		t.Error(err)
	}
}

func TestRetriesUntilTheCloudAnswers(t *testing.T) {
	c := newCloud(t, time.Hour)
	root := c.born(t)
	var n atomic.Int64
	flaky := func(w http.ResponseWriter, r *http.Request) bool {
		switch n.Add(1) {
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		case 3:
			_, _ = io.WriteString(w, "<html>hotel wifi</html>")
		case 4:
			_ = json.NewEncoder(w).Encode(certsclient.Answer{Certificate: string(c.ca.Root())})
		case 5:
			_, _ = w.Write(make([]byte, certsclient.MaxBody+1))
		default:
			return false
		}
		return true
	}
	c.before.Store(&flaky)
	i := wake(t, root, c.URL)
	ensure(t, i)
	if got := n.Load(); got != 6 {
		t.Errorf("%d attempts, want 6", got)
	}
}

func TestRefusalsSayWhy(t *testing.T) {
	c, other := newCloud(t, time.Hour), newCloud(t, time.Hour)
	nobodyThere := freeaddr.For(t)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	_, port, err := net.SplitHostPort(c.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	root := c.born(t)
	write := func(name, content string) func() error {
		return func() error { return root.WriteFile(name, []byte(content), 0o600) }
	}
	claim, trust := read(t, root, ClaimFile), read(t, root, RootFile)
	for _, x := range []struct {
		name   string
		change func() error
		url    string
		step   string
		code   string
		words  string
		lacked string
	}{
		{"nobody there", nil, "https://" + nobodyThere, StepEnroll, "no_connection", nobodyThere, ""},
		{"not TLS", nil, strings.Replace(plain.URL, "http:", "https:", 1), StepEnroll, "not_tls", "does not speak TLS", ""},
		{"a name its certificate lacks", nil, "https://localhost:" + port, StepEnroll, "wrong_name", "127.0.0.1", ""},
		{"root of another cloud", write(RootFile, string(other.ca.Root())), c.URL, StepEnroll, "unknown_root", other.ca.RootName(), "Kennel Root CA"},
		{"no root", func() error { return root.Remove(RootFile) }, c.URL, StepEnroll, "unknown_root", "does not exist", "Kennel Root CA"},
		{"damaged root", write(RootFile, "oops"), c.URL, StepEnroll, "certificate", RootFile, ""},
		{"wrong secret", write(ClaimFile, `{"thing":"vic:00e20100","secret":"nope"}`), c.URL, StepEnroll, "claim_refused", "wrong claim secret", ""},
		{"no claim", func() error { return root.Remove(ClaimFile) }, c.URL, StepClaim, "internal", "claim.json", ""},
		{"damaged claim", write(ClaimFile, "{"), c.URL, StepClaim, "internal", ClaimFile, ""},
		{"damaged key", write(KeyFile, "oops"), c.URL, StepKey, "internal", "restore it", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			if err := errors.Join(write(ClaimFile, claim)(), write(RootFile, trust)()); err != nil {
				t.Fatal(err)
			}
			if x.change != nil {
				if err := x.change(); err != nil {
					t.Fatal(err)
				}
			}
			i := wake(t, root, x.url)
			if err := i.attempt(t.Context()); err == nil {
				t.Fatal("no error")
			}
			st := i.State()
			if st.OK || st.Step != x.step || st.Code != x.code || !strings.Contains(st.Problem, x.words) || st.Peer != strings.TrimPrefix(x.url, "https://") {
				t.Errorf("state %+v", st)
			}
			if (x.lacked != "") != (st.LackedRoot != "") || !strings.HasPrefix(st.LackedRoot, x.lacked) {
				t.Errorf("lacked root %q", st.LackedRoot)
			}
			if strings.Contains(fmt.Sprintf("%+v", st), "nope") {
				t.Error("the secret is in the state")
			}
		})
	}
}

// A robot whose clock was reset believes the build, then what signatures prove; a certificate that has expired since stays refused. The bubble's
// clock starts in the year 2000, the certificates are of today.
func TestClockThatWasReset(t *testing.T) {
	c := newCloud(t, time.Hour)
	root := c.born(t)
	pair, err := c.ca.IssueServer([]string{"cloud.example"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	chain := []*x509.Certificate{server.Leaf}
	for _, der := range server.Certificate[1:] {
		x, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, x)
	}
	foreign := newCloud(t, time.Hour)
	built := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	synctest.Test(t, func(t *testing.T) {
		i, err := Open(Config{Root: root, Cloud: c.URL, Build: built, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if got := i.Now(); !got.Equal(built) {
			t.Errorf("believes %v, want the build's time", got)
		}
		if err := i.verify("cloud.example", []*x509.Certificate{foreign.cert.Load().Leaf}); err == nil {
			t.Error("a foreign certificate accepted")
		}
		if got := i.Now(); !got.Equal(built) {
			t.Errorf("a foreign certificate moved the clock to %v", got)
		}
		if err := i.verify("cloud.example", chain); err != nil {
			t.Fatalf("clock in the past: %v", err)
		}
		if got := i.Now(); !got.Equal(server.Leaf.NotBefore) {
			t.Errorf("believes %v, want what the certificate proves, %v", got, server.Leaf.NotBefore)
		}
		time.Sleep(30 * time.Minute) // simulated
		if got, want := i.Now(), server.Leaf.NotBefore.Add(30*time.Minute); !got.Equal(want) {
			t.Errorf("30 minutes later believes %v, want %v", got, want)
		}
		// A reboot keeps what was proven, not what has passed since.
		i, err = Open(Config{Root: root, Cloud: c.URL, Build: built, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if got := i.Now(); !got.Equal(server.Leaf.NotBefore) {
			t.Errorf("after a reboot believes %v, want %v", got, server.Leaf.NotBefore)
		}
		ahead := func() time.Time { return server.Leaf.NotBefore.Add(10 * time.Minute) }
		own, err := Open(Config{Root: root, Cloud: c.URL, Build: built, Log: slog.New(slog.DiscardHandler), Now: ahead})
		if err != nil {
			t.Fatal(err)
		}
		if got := own.Now(); !got.Equal(ahead()) {
			t.Errorf("a clock of its own: believes %v, want %v", got, ahead())
		}
		time.Sleep(2 * time.Hour) // simulated
		err = i.verify("cloud.example", chain)
		if p := Explain(err); p.Code != "expired" || !strings.Contains(p.Words, "set the robot's clock") {
			t.Errorf("expired certificate: %+v", p)
		}
		if err := i.verify("", chain); err == nil {
			t.Error("no name to check, and accepted")
		}
	})
}

func TestOpenWantsHTTPS(t *testing.T) {
	for _, url := range []string{"", "http://cloud.example", "cloud.example:443", "https://", "://"} {
		if _, err := Open(Config{Root: tempRoot(t), Cloud: url, Log: slog.New(slog.DiscardHandler)}); err == nil {
			t.Errorf("%q accepted", url)
		}
	}
}

func TestKindsOfPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			err      error
			min, max time.Duration
		}{
			{errs.New(errs.Unavailable, "away"), 500 * time.Millisecond, 1500 * time.Millisecond},
			{errs.New(errs.Denied, "no"), 2500 * time.Millisecond, 7500 * time.Millisecond},
			{&errs.Error{Kind: errs.Exhausted, Retry: time.Hour}, time.Hour, time.Hour},
		} {
			p, before := backoff.Pause{Min: time.Second, Max: time.Minute}, time.Now()
			if err := pause(t.Context(), &p, c.err); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(before); got < c.min || got > c.max {
				t.Errorf("%v: waited %v, want %v to %v", c.err, got, c.min, c.max)
			}
		}
	})
}

func FuzzParseClaim(f *testing.F) {
	f.Add([]byte(`{"thing":"vic:00e20100","secret":"JBSWY3DPEHPK3PXP"}`))
	f.Add([]byte(`{"thing":"../../etc","secret":""}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseClaim(b)
		if err != nil {
			return
		}
		root := tempRoot(t)
		if err := WriteClaim(root, c); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadClaim(root); err != nil || again != c {
			t.Fatalf("%+v came back as %+v, %v", c.Thing, again.Thing, err)
		}
	})
}
