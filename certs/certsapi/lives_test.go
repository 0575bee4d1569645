package certsapi_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certsapi"
	"kennel/certs/devicecert"
	"kennel/infra/op"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

// pipes is a listener whose connections are made in memory, so that HTTPS and TLS are real and only time is simulated.
type pipes struct {
	conns  chan net.Conn // unbuffered: a dial waits for its accept
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8443} }

func (p *pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- addressed{far}:
		return near, nil
	case <-p.closed:
		return nil, errors.New("the cloud is off")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// addressed gives a pipe the address of a robot.
type addressed struct{ net.Conn }

func (addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 99), Port: 4711} }

// oneRobot is the store of the house: a bubble of simulated time reaches no database.
type oneRobot struct {
	certs.Store
	mu      sync.Mutex
	claim   certs.Claim
	records []certs.Record
}

// noBatches are not asked for.
type noBatches struct {
	certs.Batches
	certs.WaitingList
}

func (s *oneRobot) set(c certs.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claim = c
}

func (s *oneRobot) SetClaim(_ context.Context, id thing.ID, secret certs.Hash, _ time.Time) error {
	s.set(certs.Claim{Thing: id, Secret: secret})
	return nil
}

func (s *oneRobot) Release(_ context.Context, id thing.ID, secret certs.Hash, _ string, _ time.Time) (int, error) {
	s.set(certs.Claim{Thing: id, Secret: secret})
	return 0, nil
}

func (s *oneRobot) ClaimOf(context.Context, certs.Hash) (thing.ID, error) {
	return "", certs.ErrUnknown
}

func (s *oneRobot) Standing(context.Context, thing.ID, certs.Key) (certs.Standing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return certs.Standing{Claim: s.claim, Known: true}, nil
}

func (s *oneRobot) Issue(_ context.Context, r certs.Record, _ certs.Claim, _ time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claim.Key = r.Key
	s.records = append(s.records, r)
	return nil
}

func (s *oneRobot) Certificates(context.Context, thing.ID) ([]certs.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records, nil
}

// house is a cloud inside a bubble of simulated time: enrolment over HTTPS, and a listener that lets robots in as the broker does.
type house struct {
	svc      *certs.Service
	ca       *ca.Authority
	https    *pipes
	broker   *pipes
	verdicts chan error // one for each connection to the broker
	stop     func()
}

func newHouse(t *testing.T, dir string, ttl time.Duration) *house {
	t.Helper()
	authority, err := ca.Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{ca: authority, https: newPipes(), broker: newPipes(), verdicts: make(chan error)}
	h.svc, err = certs.New(certs.Config{Store: new(oneRobot), Batches: noBatches{}, Requests: noBatches{}, Issuer: authority,
		Recorder: new(steps), TTL: ttl,
		ByAddr: ratelimit.NewByAddr(10*time.Second, 60), ByThing: ratelimit.New(5*time.Second, 20)})
	if err != nil {
		t.Fatal(err)
	}
	own, err := ca.NewRenewing(func() (ca.Pair, error) { return authority.IssueServer([]string{"cloud.example"}, 90*24*time.Hour) })
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	certsapi.Operations(h.svc, certsapi.Config{Root: authority.Root, MQTT: "ssl://cloud.example:8883", Log: slog.New(slog.DiscardHandler)}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	server := &http.Server{Handler: mux, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(tls.NewListener(h.https, &tls.Config{GetCertificate: own.GetCertificate})) }) // ends with Close
	wg.Go(func() { h.letIn(authority, own) })
	h.stop = func() {
		_ = server.Close()
		_ = h.broker.Close()
		wg.Wait()
		time.Sleep(10 * time.Second) // simulated: two ends that say goodbye at once over a pipe give up after 5
	}
	return h
}

func (h *house) letIn(authority *ca.Authority, own *ca.Renewing) {
	l := tls.NewListener(h.broker, &tls.Config{GetCertificate: own.GetCertificate, ClientAuth: tls.RequireAnyClientCert})
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		c := conn.(*tls.Conn)
		if err = c.Handshake(); err == nil {
			_, err = certs.Trust{Devices: authority.DevicePool()}.Identify(c.ConnectionState().PeerCertificates, time.Now())
		}
		_ = c.Close()
		h.verdicts <- err
	}
}

// connect dials the broker as the robot's link does and returns the broker's answer.
func (h *house) connect(t *testing.T, i *devicecert.Identity) error {
	t.Helper()
	raw, err := h.broker.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw, i.TLSConfig("cloud.example"))
	if err := c.Handshake(); err != nil {
		t.Errorf("the robot does not trust its cloud: %v", err)
	}
	_, _ = io.Copy(io.Discard, c) // until the broker, which has judged by then, closes
	_ = c.Close()
	return <-h.verdicts
}

// robot is born with a claim, and opened with a clock of its own.
func (h *house) robot(t *testing.T, root *os.Root, born bool, clock func() time.Time) *devicecert.Identity {
	t.Helper()
	if born {
		secret, err := h.svc.Register(t.Context(), vic)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(devicecert.WriteClaim(root, devicecert.Claim{Thing: vic, Secret: secret}),
			devicecert.WriteRoot(root, h.ca.Root())); err != nil {
			t.Fatal(err)
		}
	}
	i, err := devicecert.Open(devicecert.Config{Root: root, Cloud: "https://cloud.example:8443", Log: slog.New(slog.DiscardHandler),
		Now: clock, Dial: h.https.Dial,
		Build: time.Date(1999, 12, 1, 0, 0, 0, 0, time.UTC)}) // the bubble's clock starts in 2000
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// runs starts the identity's service and returns what stops it.
func runs(t *testing.T, i *devicecert.Identity) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func ensure(t *testing.T, i *devicecert.Identity) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // simulated
	defer cancel()
	if err := i.Ensure(ctx); err != nil {
		t.Fatalf("%v; %+v", err, i.State())
	}
}

func tempRoot(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// TestTenLives: a robot whose certificates last 6 seconds can connect at any moment of ten lifetimes, unattended.
func TestTenLives(t *testing.T) {
	root, dir := tempRoot(t), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, dir, 6*time.Second)
		defer h.stop()
		i := h.robot(t, root, true, time.Now)
		ensure(t, i)
		stop := sync.OnceFunc(runs(t, i))
		defer stop()
		serials := map[string]bool{}
		see := func() {
			c, err := i.TLSCertificate()
			if err != nil {
				t.Fatal(err)
			}
			serials[c.Leaf.SerialNumber.String()] = true
		}
		for began := time.Now(); time.Since(began) < 61*time.Second; time.Sleep(250 * time.Millisecond) { // simulated
			if err := h.connect(t, i); err != nil {
				t.Fatalf("turned away %v after its first certificate: %v; %+v", time.Since(began), err, i.State())
			}
			see()
		}
		stop()
		see() // what came after the last look
		// 61 s at two thirds of 6 s, at most a twelfth later.
		if n := len(serials); n < 13 || n > 17 {
			t.Errorf("%d certificates in 61 s, want one every 4 to 4.5 s", n)
		}
		rows, err := h.svc.Certificates(t.Context(), vic)
		if err != nil || len(rows) != len(serials) {
			t.Errorf("%d rows in the inventory for %d certificates, %v", len(rows), len(serials), err)
		}
	})
}

// A robot that lay in a drawer for 400 days, whose battery died and whose clock says 1970, is back within minutes, unattended.
func TestBackAfter400Days(t *testing.T) {
	for name, clock := range map[string]func() time.Time{
		"reset to 1970": func() time.Time { return time.Now().AddDate(-31, 0, 0) },
		"right":         time.Now,
	} {
		t.Run(name, func(t *testing.T) {
			root, dir := tempRoot(t), t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, dir, certs.DefaultTTL)
				defer h.stop()
				ensure(t, h.robot(t, root, true, time.Now))
				time.Sleep(400 * 24 * time.Hour) // simulated
				off := time.Now()                // its battery died: what passed since is not counted either
				first := clock()
				i := h.robot(t, root, false, func() time.Time { return first.Add(time.Since(off)) })
				defer runs(t, i)()
				refused := 0
				for h.connect(t, i) != nil {
					if refused++; time.Since(off) > 5*time.Minute {
						t.Fatalf("not let in after %v; %+v", time.Since(off), i.State())
					}
					time.Sleep(5 * time.Second) // simulated: the link tries again
				}
				t.Logf("let in %v after it was switched on, refused %d times before", time.Since(off), refused)
				if d := time.Until(i.Now()).Abs(); d > 91*24*time.Hour {
					t.Errorf("believes it is %v, which is %v off", i.Now(), d)
				}
				// And it stays: two lives later it is still let in.
				time.Sleep(2 * certs.DefaultTTL)
				if err := h.connect(t, i); err != nil {
					t.Errorf("two lives later: %v", err)
				}
			})
		})
	}
}

// A robot with a claim that was replaced keeps asking, says why, and comes in by itself once it carries the new one.
func TestReplacedClaim(t *testing.T) {
	root, dir := tempRoot(t), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, dir, certs.DefaultTTL)
		defer h.stop()
		i := h.robot(t, root, true, time.Now)
		secret, err := h.svc.Release(t.Context(), vic, "wiped")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // simulated
		defer cancel()
		if err := i.Ensure(ctx); err == nil {
			t.Fatal("enrolled with a secret that was replaced")
		}
		if st := i.State(); st.Code != "claim_refused" || st.OK {
			t.Errorf("state %+v", st)
		}
		if err := devicecert.WriteClaim(root, devicecert.Claim{Thing: vic, Secret: secret}); err != nil {
			t.Fatal(err)
		}
		ensure(t, i)
		if err := h.connect(t, i); err != nil {
			t.Error(err)
		}
	})
}
