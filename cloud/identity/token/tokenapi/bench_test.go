package tokenapi_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"kennel/cloud/identity/token"
	"kennel/cloud/identity/token/tokentest"
	"kennel/infra/api/tokenpb"
	"kennel/infra/bench"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

// Clients ask at once, each on a connection of its own, for one of as many robots. A side works for a slice before the other has its turn, so
// that what else the machine does meets both.
const (
	benchClients = 32
	benchSlice   = 250 * time.Millisecond
)

// BenchmarkTokensBesideBare refreshes robots' tokens beside a bare handler that verifies, reads a row, inserts one durably and signs: both over
// gRPC with mutual TLS, on one Postgres that syncs every commit to disk (issue 4, "what must hold" 5).
func BenchmarkTokensBesideBare(b *testing.B) { tokensBesideBare(b) }

func TestTokensBesideBare(t *testing.T) {
	bench.Soak(t)
	tokensBesideBare(t)
}

func tokensBesideBare(b testing.TB) {
	pool := pgtest.Durable(b, benchClients)
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
	var made [2]atomic.Int64
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
					made[n].Add(1)
				}
				return err
			})
		}
	}
	rate := func(n int) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			perSecond, err := bench.During(ctx, benchSlice, benchClients, func(_ context.Context, i int) error { return sides[n].clients[i]() })
			if err != nil {
				return 0, fmt.Errorf("%s: %w", sides[n].name, err)
			}
			return perSecond, nil
		}
	}
	var pairs []bench.Pair
	turn := func() error {
		reference, err := rate(0)(ctx)
		if err != nil {
			return err
		}
		value, err := rate(1)(ctx)
		pairs = append(pairs, bench.Pair{Value: value, Reference: reference})
		return err
	}
	if err := turn(); err != nil { // connections, statements, the step that each robot's first refresh records
		b.Fatal(err)
	}
	pairs = nil
	bench.Turns(b, func() (err error) {
		for range bench.Part(b, 5) { // short ones, so that what else the machine does meets both sides
			err = errors.Join(err, turn())
		}
		return err
	})
	var stored, bareStored int
	if err := pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM token_token WHERE how = $1), (SELECT count(*) FROM bare_token)`, token.StepRefresh).Scan(&stored, &bareStored); err != nil {
		b.Fatal(err)
	}
	if int64(stored) != made[1].Load() || int64(bareStored) != made[0].Load() { // an answer without its row is no work done
		b.Errorf("%d and %d rows: want one for each of %d and %d refreshes", bareStored, stored, made[0].Load(), made[1].Load())
	}
	bench.Report(b, bench.Line{Name: "tokens", Unit: "refreshes/s", Bound: 0.6,
		Note: fmt.Sprintf("%d robots at once, over gRPC with mutual TLS (ES256); reference: a bare handler that verifies, reads one row, inserts one durably and signs, "+
			"over the same gRPC, TLS and Postgres", benchClients)}, pairs)
}

// BenchmarkSigningBesideRSA signs with ES256 on one core, beside RS256: it shows the worth of that choice.
func BenchmarkSigningBesideRSA(b *testing.B) { signingBesideRSA(b) }

func TestSigningBesideRSA(t *testing.T) { signingBesideRSA(t) }

func signingBesideRSA(tb testing.TB) {
	es, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	rs, err2 := rsa.GenerateKey(rand.Reader, 2048)
	if err := errors.Join(err1, err2); err != nil {
		tb.Fatal(err)
	}
	digest := sha256.Sum256([]byte("header.claims"))
	rate := func(k crypto.Signer) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			return bench.During(ctx, bench.Part(tb, 200*time.Millisecond), 1, func(context.Context, int) error {
				_, err := k.Sign(rand.Reader, digest[:], crypto.SHA256)
				return err
			})
		}
	}
	bench.Beside(tb, bench.Line{Name: "tokens/signing", Unit: "signatures/s", Note: "ES256 on one core; reference: RS256 with a key of 2048 bits"}, rate(es), rate(rs))
}
