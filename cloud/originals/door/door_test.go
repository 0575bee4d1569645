package door_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/originals/door"
	"kennel/cloud/originals/door/doorpg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const rex, bo = thing.ID("vic:00e20100"), thing.ID("vic:00e20101")

// house is a door on a real database.
type house struct {
	*door.Door
	robots *registry.Service
	pool   *pgxpool.Pool
	log    *lines

	mu     sync.Mutex
	counts map[string]int
}

type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func newHouse(t *testing.T) *house {
	h := &house{pool: pgtest.New(t), counts: map[string]int{}, log: &lines{}}
	log := slog.New(slog.NewTextHandler(h.log, nil))
	store := registrypg.New(h.pool, log)
	h.robots = registry.New(store, store, registry.Sources{}, log)
	h.Door = door.New(doorpg.New(h.pool), h.robots, func(_, code string) { h.mu.Lock(); defer h.mu.Unlock(); h.counts[code]++ }, log)
	return h
}

// flush writes what was gathered, as the end of the process does.
func (h *house) flush(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func (h *house) strangers(t *testing.T) []door.Stranger {
	t.Helper()
	out, err := h.Strangers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refusals returns what the doctor knows to have been refused to a robot.
func (h *house) refusals(t *testing.T, id thing.ID) (out []registry.Outcome) {
	t.Helper()
	steps, err := h.robots.Steps(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if !s.OK {
			out = append(out, s)
		}
	}
	return out
}

func refusal(addr string) door.Refusal {
	return door.Refusal{Addr: addr, Step: registry.StepService, Code: door.CodeService, Detail: "asked for /x.Y/Z", Version: "Victor/1"}
}

func call(id thing.ID, addr string) registry.Call {
	return registry.Call{Thing: id, What: "tokens", Peer: addr, Version: "Victor/2.0.1.6076 grpc-go/1.40.0", Name: "token.example.org"}
}

// TestFloodIsBounded: a flood from many addresses costs a bounded number of rows, lines and bytes, and every refusal is counted.
func TestFloodIsBounded(t *testing.T) {
	h := newHouse(t)
	const flood = 20_000
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range flood / 4 {
				addr := fmt.Sprintf("10.%d.%d.%d:1000", w, i>>8, i&255)
				r := refusal(addr)
				r.Detail = strings.Repeat("x", 10_000) + "\x00\xff"
				if i%2 == 0 {
					h.Door.Broken(t.Context(), addr, strings.Repeat("n", 10_000), nil, errors.New(strings.Repeat("e", 10_000)))
				} else {
					h.Refused(t.Context(), r)
				}
			}
		})
	}
	wg.Wait()
	if n := h.counts[door.CodeService] + h.counts[door.CodeTLS]; n != flood {
		t.Errorf("%d counted of %d", n, flood)
	}
	for i := range 4 { // what is stored stays bounded, too
		h.flush(t)
		for j := range 400 {
			h.Refused(t.Context(), refusal(fmt.Sprintf("10.9.%d.%d:1", i, j)))
		}
	}
	h.flush(t)
	if n := len(h.strangers(t)); n != door.MaxStrangers {
		t.Errorf("%d strangers stored, want %d", n, door.MaxStrangers)
	}
	if n, lines := h.log.b.Len(), strings.Count(h.log.b.String(), "\n"); n > 100_000 || lines > 100 || !strings.Contains(h.log.b.String(), "dropped=") {
		t.Errorf("%d bytes of log in %d lines", n, lines)
	}
	// A flood of one robot is one row.
	for range 5000 {
		r := refusal("192.0.2.7:1")
		r.Thing = rex
		h.Refused(t.Context(), r)
	}
	h.flush(t)
	if got := h.refusals(t, rex); len(got) != 1 || got[0].Times != 5000 {
		t.Errorf("refusals %+v, want one, 5000 times", got)
	}
	// As is one of calls that succeed.
	for range 1000 {
		h.Seen(t.Context(), call(bo, "192.0.2.8:1"))
	}
	if steps, err := h.robots.Steps(t.Context(), bo); err != nil || len(steps) != 1 || steps[0].Times != 1 {
		t.Errorf("steps %+v, %v; want one, written once", steps, err)
	}
}

// TestWhoseRefusal: a refusal belongs to the robot that proved itself, or to the only one that called from its address lately.
func TestWhoseRefusal(t *testing.T) {
	h := newHouse(t)
	h.Refused(t.Context(), refusal("192.0.2.7:40000")) // stored before the robot calls
	h.flush(t)
	if got := h.strangers(t); len(got) != 1 || got[0].Addr != "192.0.2.7" || got[0].Times != 1 || got[0].Do == "" {
		t.Fatalf("strangers %+v", got)
	}
	root := refusal("192.0.2.7:40001")
	root.Step, root.Code = registry.StepTLS, door.CodeRoot
	h.Refused(t.Context(), root)                       // gathered before it calls
	h.Refused(t.Context(), refusal("192.0.2.9:40000")) // another address
	other := refusal("192.0.2.7:40000")
	other.Claim, other.Step = bo, registry.StepAssociate // who says that it is another robot is not this one
	h.Refused(t.Context(), other)

	h.Seen(t.Context(), call(rex, "192.0.2.7:40002"))
	path := refusal("192.0.2.7:40003")
	path.Code = door.CodePath
	h.Refused(t.Context(), path) // after it called
	h.flush(t)
	codes := map[string]bool{}
	for _, o := range h.refusals(t, rex) {
		codes[o.Code] = true
		if !strings.HasSuffix(o.Detail, "asked for /x.Y/Z (told by its address alone)") {
			t.Errorf("%q does not say that the address alone tells", o.Detail)
		}
	}
	if len(codes) != 3 || !codes[door.CodeService] || !codes[door.CodeRoot] || !codes[door.CodePath] {
		t.Errorf("its refusals: %v, want all three", codes)
	}
	if got := h.strangers(t); len(got) != 2 {
		t.Errorf("strangers %+v, want the one of another address and the one that claims to be %s", got, bo)
	}

	// With two robots behind one address, the address tells nothing.
	h.Seen(t.Context(), call(bo, "192.0.2.7:50000"))
	last := refusal("192.0.2.7:50001")
	last.Code = door.CodeSpeech
	h.Refused(t.Context(), last)
	h.flush(t)
	for _, id := range []thing.ID{rex, bo} {
		for _, o := range h.refusals(t, id) {
			if o.Code == door.CodeSpeech {
				t.Errorf("%s: %+v", id, o)
			}
		}
	}
	// A claim to be a robot of the fleet is on that robot's page; the list has the others.
	if got := h.strangers(t); len(got) != 2 || got[0].Code != door.CodeSpeech || got[0].Claim != "" {
		t.Errorf("strangers %+v", got)
	}
}

// TestArrival: the first call makes the row, with the version; later ones keep the last call honest.
func TestArrival(t *testing.T) {
	h := newHouse(t)
	h.Seen(t.Context(), call(rex, "192.0.2.7:40000"))
	th, err := h.robots.Thing(t.Context(), rex)
	if err != nil || th.Presence != registry.Calls || !th.Since.IsZero() || th.LastSeen.IsZero() || th.Facets.Version != "2.0.1.6076" {
		t.Fatalf("%+v, %v", th, err)
	}
	n, err := h.robots.Count(t.Context())
	if err != nil || n != (registry.Count{Calls: 1}) {
		t.Errorf("%+v, %v", n, err)
	}
	for presence, want := range map[registry.Presence]int{registry.Calls: 1, registry.Absent: 0, registry.Present: 0} {
		if got, err := h.robots.Things(t.Context(), registry.Query{Presence: presence}); err != nil || len(got) != want {
			t.Errorf("%s: %d, %v; want %d", presence, len(got), err, want)
		}
	}
	if !strings.Contains(h.log.b.String(), "called for the first time") {
		t.Error("the log does not say that a robot arrived")
	}
}

// openSSL marks a client of OpenSSL 3.0 over TLS 1.3.
const openSSL = 0xffff

// plainAlert is a connection of a TLS 1.3 client which sends its alert "unknown certificate authority" in clear, as OpenSSL does.
type plainAlert struct {
	net.Conn
	hello bool
}

func (c *plainAlert) Write(b []byte) (int, error) {
	if c.hello {
		_, err := c.Conn.Write([]byte{21, 3, 3, 0, 2, 2, 48})
		return len(b), err
	}
	c.hello = true
	return c.Conn.Write(b)
}

// TestDistrust: what a client that does not accept our certificate says, over TLS 1.2 as original robots speak it, and over TLS 1.3.
func TestDistrust(t *testing.T) {
	h := newHouse(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Root of the house"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"token.example.org"}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // at the end
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13, openSSL} {
		for _, tc := range []struct {
			name, code, says string
			roots            *x509.CertPool
			years            int // by which its clock is off
		}{
			{"token.example.org", door.CodeRoot, "or it lacks the root Root of the house", x509.NewCertPool(), 0},
			{"token.example.org", door.CodeRoot, "its clock is not between " + leaf.NotBefore.Format(time.DateOnly) + " and ", pool, -7},
			{"jdocs.example.org", door.CodeName, "it called jdocs.example.org, which the certificate", pool, 0},
			{"192.0.2.1", door.CodeNoName, "by no name", pool, 0}, // an address is no name that is sent
		} {
			var wg sync.WaitGroup
			wg.Go(func() {
				conn, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				config := &tls.Config{ServerName: tc.name, RootCAs: tc.roots, MaxVersion: version, Time: func() time.Time { return time.Now().AddDate(tc.years, 0, 0) }}
				if version == openSSL {
					conn, config.MaxVersion = &plainAlert{Conn: conn}, tls.VersionTLS13
				}
				if tls.Client(conn, config).Handshake() == nil {
					t.Errorf("%s: it accepts the certificate", tc.name)
				}
			})
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			s := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
			err = s.Handshake()
			wg.Wait()
			h.Door.Broken(t.Context(), "192.0.2.7:1", s.ConnectionState().ServerName, []*x509.Certificate{leaf}, err)
			h.flush(t)
			got := h.strangers(t)
			if len(got) == 0 || got[0].Code != tc.code || !strings.Contains(got[0].Detail, tc.says) {
				t.Errorf("%s, TLS %x: %v is %+v; want %s, %q", tc.name, version, err, got, tc.code, tc.says)
			}
			_ = conn.Close() // as broken as it can be
		}
	}
	// OpenSSL tells a certificate that is over from one of a stranger.
	h.Door.Broken(t.Context(), "192.0.2.8:1", "token.example.org", []*x509.Certificate{leaf}, &net.OpError{Op: "remote error", Err: errors.New("tls: expired certificate")})
	h.flush(t)
	if got := h.strangers(t); len(got) == 0 || got[0].Code != door.CodeClock || got[0].Do == "" || !strings.Contains(got[0].Detail, "its clock is ahead") {
		t.Errorf("a clock that is ahead: %+v", got)
	}
}

func TestBrokenHandshakes(t *testing.T) {
	h := newHouse(t)
	for name, tc := range map[string]struct {
		err  error
		says string
	}{
		"hung up":                  {io.EOF, "after it called token.example.org: it hung up without a word"},
		"slow":                     {os.ErrDeadlineExceeded, "did not finish in time"},
		"old":                      {errors.New("tls: client offered only unsupported versions: [301]"), "unsupported versions"},
		"no certificate was shown": {&net.OpError{Op: "remote error", Err: errors.New("tls: expired certificate")}, "tls: expired certificate"},
		"another word":             {&net.OpError{Op: "remote error", Err: errors.New("tls: protocol version not supported")}, "protocol version"},
	} {
		h.Door.Broken(t.Context(), "192.0.2.7:1", "token.example.org", nil, tc.err)
		h.flush(t)
		if got := h.strangers(t); len(got) != 1 || got[0].Code != door.CodeTLS || !strings.Contains(got[0].Detail, tc.says) {
			t.Errorf("%s: %+v, want %q", name, got, tc.says)
		}
	}
}
