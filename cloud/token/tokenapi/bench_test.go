package tokenapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"kennel/cloud/token"
	"kennel/cloud/token/tokentest"
	"kennel/infra/api/tokenpb"
	"kennel/infra/migrations"
	"kennel/infra/pg"
	"kennel/infra/pg/pgserver"
	"kennel/infra/thing"
)

// Clients ask at once, each on a connection of its own, for one of as many robots. A side works for a slice before the other has its turn, so
// that what else the machine does meets both.
const (
	benchClients = 32
	benchSlice   = 250 * time.Millisecond
)

// BenchmarkRefresh is issue 4, "what must hold" 5: the share of a bare handler's rate that a token refresh reaches, both over gRPC with mutual
// TLS, on one Postgres that syncs every commit to disk, side by side in one run. It reports of-bare, and refreshes a second of each.
func BenchmarkRefresh(b *testing.B) {
	pool := durable(b)
	h := tokentest.New(b, pool)
	p := h.Start(b, tokentest.WithConfig(func(c *token.Config) { c.Log = slog.New(slog.DiscardHandler) }))
	ctx := b.Context()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	plain := tokentest.NewBare(pool, key)
	if err := plain.Init(ctx); err != nil {
		b.Fatal(err)
	}
	server := h.ServerCA.Leaf(b, x509.Certificate{Subject: pkix.Name{CommonName: "bare"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	g := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: h.RobotCA.Pool()})))
	tokenpb.RegisterTokenServer(g, plain)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(l) }) // ends with Stop
	b.Cleanup(func() { g.Stop(); serving.Wait() })

	type side struct {
		name    string
		clients []func() error
	}
	sides := []side{{name: "bare"}, {name: "refresh"}}
	for i := range benchClients {
		id := thing.ID(fmt.Sprintf("vic:%08x", i))
		r := p.Robot(b, id)
		if err := r.Associate(ctx, h.Sessions.Issue(anna)); err != nil {
			b.Fatal(err)
		}
		first, err := plain.First(ctx, id, anna)
		if err != nil {
			b.Fatal(err)
		}
		for n, start := range []struct{ addr, text string }{{l.Addr().String(), first}, {p.Addr, r.Token}} {
			conn, err := grpc.NewClient("passthrough:///"+start.addr, grpc.WithTransportCredentials(credentials.NewTLS(r.TLS)))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = conn.Close() }) // the benchmark is over
			c, text := tokenpb.NewTokenClient(conn), start.text
			sides[n].clients = append(sides[n].clients, func() error {
				resp, err := c.RefreshToken(metadata.AppendToOutgoingContext(ctx, "anki-access-token", text, "anki-app-key", tokentest.AppKey), &tokenpb.RefreshTokenRequest{RefreshJwtTokens: true})
				if err == nil {
					text = resp.Data.Token
				}
				return err
			})
		}
	}
	work := func(s side, d time.Duration) (perSecond float64) {
		var wg sync.WaitGroup
		var done atomic.Int64
		began := time.Now()
		for _, do := range s.clients {
			wg.Go(func() {
				for time.Since(began) < d {
					if err := do(); err != nil {
						b.Error(s.name, err)
						return
					}
					done.Add(1)
				}
			})
		}
		wg.Wait()
		return float64(done.Load()) / time.Since(began).Seconds()
	}
	for _, s := range sides {
		work(s, benchSlice) // connections, statements, pages
	}
	rates := make([][]float64, len(sides))
	for b.Loop() {
		for i, s := range sides {
			rates[i] = append(rates[i], work(s, benchSlice))
		}
	}
	var mean [2]float64
	for i, s := range sides {
		for _, r := range rates[i] {
			mean[i] += r / float64(len(rates[i]))
		}
		b.ReportMetric(mean[i], s.name+"/s")
	}
	share := make([]float64, len(rates[0]))
	for i := range share {
		share[i] = rates[1][i] / rates[0][i]
	}
	slices.Sort(share)
	b.ReportMetric(share[len(share)/2], "of-bare") // the median turn
	b.ReportMetric(mean[1]/mean[0], "of-bare-mean")
}

// durable returns a pool on a migrated Postgres of its own on disk, with the settings of production.
func durable(b *testing.B) *pgxpool.Pool {
	b.Helper()
	account, err := pgserver.FindAccount()
	if err != nil {
		b.Fatal(err)
	}
	dir, err := os.MkdirTemp("/var/tmp", "kennel-bench-") // a disk; the folder for temporary files may be memory
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) }) // what stays is in a folder for temporary files
	if err := os.Chmod(dir, 0o711); err != nil {
		b.Fatal(err)
	}
	if err := account.CheckTraversable(filepath.Join(dir, "x")); err != nil {
		b.Fatal(err)
	}
	server, err := pgserver.New(pgserver.Config{Dir: filepath.Join(dir, "pg"), SocketDir: filepath.Join(dir, "s"), Database: "kennel", LogFile: filepath.Join(dir, "log")},
		slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Keep(ctx) }()
	b.Cleanup(func() { stop(); <-ended })
	select {
	case <-server.Ready():
	case err := <-ended:
		ended <- err
		b.Fatal(err)
	}
	pool, err := pg.Open(ctx, pg.Config{DSN: server.DSN(), AppName: "bench", MaxConns: benchClients})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if _, err := pg.Migrate(ctx, pool, migrations.FS); err != nil {
		b.Fatal(err)
	}
	var settings string
	if err := pool.QueryRow(ctx, `SELECT current_setting('fsync') || ' ' || current_setting('synchronous_commit')`).Scan(&settings); err != nil || settings != "on on" {
		b.Fatalf("fsync and synchronous_commit are %q, %v: want both on", settings, err)
	}
	return pool
}
