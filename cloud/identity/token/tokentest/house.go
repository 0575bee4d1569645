// Package tokentest has the original robot as a client of the token service (Robot), the ports of package token in memory, and a House that
// runs the service over real TLS, gRPC and Postgres.
package tokentest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/token"
	"kennel/cloud/identity/token/tokenapi"
	"kennel/cloud/identity/token/tokenpg"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/secretbox"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
)

// AppKey is the one app key that a House takes.
const AppKey = "an-app-key-of-tokentest"

// House holds the parts that all processes of a cloud share, and the surroundings of the token service.
type House struct {
	Pool     *pgxpool.Pool
	Seal     secretbox.Key
	Store    *tokenpg.Store
	Docs     jdocs.Service
	Sessions *Sessions
	Owners   *Owners
	STS      *STS
	Recorder *Recorder
	ByThing  *Limiter
	ByAddr   *Limiter
	Factory  Factory
	Log      *Log

	RobotCA, ServiceCA, ServerCA *Authority
}

// New returns a house on a migrated database.
func New(t testing.TB, pool *pgxpool.Pool) *House {
	t.Helper()
	return &House{Pool: pool, Seal: secretbox.New(), Store: tokenpg.New(pool), Docs: jdocs.New(jdocspg.New(pool)), Sessions: &Sessions{}, Owners: &Owners{}, STS: &STS{},
		Recorder: &Recorder{}, ByThing: &Limiter{}, ByAddr: &Limiter{}, Factory: Factory{}, Log: &Log{},
		RobotCA: NewAuthority(t, "robots"), ServiceCA: NewAuthority(t, "services"), ServerCA: NewAuthority(t, "servers")}
}

// Process is one process of the cloud: the service, its verifier and a gRPC listener.
type Process struct {
	House    *House
	Keys     *token.Keyring
	Revoked  *token.Revocations
	Verifier *token.Verifier
	Service  *token.Service
	Addr     string
}

// Option changes a process.
type Option func(*token.Config, *token.Rotation, *func() time.Time)

// WithClock has a process live by another clock.
func WithClock(now func() time.Time) Option {
	return func(_ *token.Config, _ *token.Rotation, n *func() time.Time) { *n = now }
}

// WithRotation changes how keys come and go.
func WithRotation(r token.Rotation) Option {
	return func(_ *token.Config, rot *token.Rotation, _ *func() time.Time) { *rot = r }
}

// WithConfig changes the service.
func WithConfig(f func(*token.Config)) Option {
	return func(c *token.Config, _ *token.Rotation, _ *func() time.Time) { f(c) }
}

// WithGateway has every robot serve programs at an address.
func WithGateway(addr string) Option {
	return WithConfig(func(c *token.Config) {
		c.Gateway = func(context.Context, thing.ID) (string, error) { return addr, nil }
	})
}

// Start runs one process until the test ends.
func (h *House) Start(t testing.TB, opts ...Option) *Process {
	t.Helper()
	log := h.Log.Logger()
	trust := Trust{h.RobotCA.Pool(), h.ServiceCA.Pool()}
	keys, err := token.ParseAppKeys("# of tests\n" + AppKey + "\n")
	if err != nil {
		t.Fatal(err)
	}
	cfg := token.Config{Store: h.Store, Inventory: h.Store, Robots: trust, Services: trust, Sessions: h.Sessions, Owners: h.Owners, Docs: h.Docs, STS: h.STS, Certificates: h.Factory,
		Recorder: h.Recorder, ByThing: h.ByThing, ByAddr: h.ByAddr, AppKeys: keys, Log: log}
	var rot token.Rotation
	now := time.Now
	for _, o := range opts {
		o(&cfg, &rot, &now)
	}
	p := &Process{House: h}
	if p.Keys, err = token.NewKeyring(t.Context(), h.Store, h.Seal.For("token/key"), rot, log, now); err != nil {
		t.Fatal(err)
	}
	if p.Revoked, err = token.NewRevocations(t.Context(), h.Store, log, now); err != nil {
		t.Fatal(err)
	}
	p.Verifier = token.NewVerifier(p.Keys, p.Revoked)
	cfg.Keys, cfg.Verifier, cfg.Now = p.Keys, p.Verifier, now
	if p.Service, err = token.New(cfg); err != nil {
		t.Fatal(err)
	}
	server := h.ServerCA.Leaf(t, x509.Certificate{Subject: pkix.Name{CommonName: "cloud"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	g := kitgrpc.NewServer(&tls.Config{Certificates: []tls.Certificate{server}}, log)
	tokenapi.Register(g, p.Service, log)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.Addr = l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{p.Keys.Run, p.Revoked.Run, func(ctx context.Context) error { return kitgrpc.Run(ctx, g, l, time.Second) }} {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("process: %v", err)
			}
		})
	}
	t.Cleanup(func() { stop(); wg.Wait() })
	return p
}

// Robot is an original robot that knows this process, with the certificate of its factory.
func (p *Process) Robot(t testing.TB, id thing.ID) *Robot {
	t.Helper()
	return p.RobotWith(t, p.House.RobotCA.Factory(t, id))
}

// RobotWith is Robot with a certificate of the test's own.
func (p *Process) RobotWith(t testing.TB, certs ...tls.Certificate) *Robot {
	t.Helper()
	return &Robot{Addr: p.Addr, AppKey: AppKey, TLS: &tls.Config{RootCAs: p.House.ServerCA.Pool(), Certificates: certs, ServerName: "127.0.0.1"}}
}

// Log keeps all that is logged. The zero value is ready.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// String returns what was logged.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Logger writes here, also what is for debugging.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
