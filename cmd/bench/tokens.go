package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"kennel/certs/ca"
	"kennel/cloud/token"
	"kennel/cloud/token/tokenpg"
	"kennel/cloud/token/tokentest"
	"kennel/infra/api/tokenpb"
	"kennel/infra/bench"
	"kennel/infra/bench/house"
	"kennel/infra/seal"
)

const (
	tokenRobots = 600 // each refreshes once in a turn
	tokenAtOnce = 32
	tokenTurns  = 5 // of one of -count: short ones, so that what else the machine does meets both sides
	// A robot may refresh so often at once, and once more each tokenEvery (cloud/app).
	tokenBurst  = 30
	tokenEvery  = 2 * time.Second
	signingTurn = 200 * time.Millisecond
)

// tokens: robots that refresh their access token at kenneld's port for original robots, over gRPC with mutual TLS, beside the same robots at a
// bare handler in a process of its own, which verifies the token, reads one row, inserts one and signs, over the same gRPC and TLS and in the
// same Postgres, which syncs every commit. Robots keep their connections: a handshake would hide what is measured.
func tokens(ctx context.Context, env *bench.Env, h *house.House) (_ []bench.Result, err error) {
	tmp, err := os.MkdirTemp("", "kennel-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp) // the temporary folder is cleaned by others too
	key, keyFile, err := signingKey(tmp)
	if err != nil {
		return nil, err
	}
	pool, err := openPool(ctx, h.File("postgres_dsn"))
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	bare := tokentest.NewBare(pool, key)
	if err := bare.Init(ctx); err != nil {
		return nil, err
	}
	part, bareAddr, err := startServer(ctx, "refresh", "-ca", h.CA(), "-dsn", h.File("postgres_dsn"), "-key", keyFile)
	if err != nil {
		return nil, err
	}
	defer part.Stop()

	// What a robot has after it was associated, made with the house's own keys: the sessions of people have nothing to do with a refresh.
	sealed, err := seal.Load(filepath.Join(h.CA(), "seal.key"))
	if err != nil {
		return nil, err
	}
	store := tokenpg.New(pool)
	ring, err := token.NewKeyring(ctx, store, sealed.For("token/key"), token.Rotation{}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil, err
	}
	appKeys, err := os.ReadFile(h.File("app_key"))
	if err != nil {
		return nil, err
	}
	appKey := strings.TrimSpace(string(appKeys))
	is, err := openIssuer(h.CA())
	if err != nil {
		return nil, err
	}
	peers, err := is.things(0, bench.Part(env, tokenRobots))
	if err != nil {
		return nil, err
	}
	ours, theirs := make([]*refresher, len(peers)), make([]*refresher, len(peers))
	defer func() {
		for _, r := range append(ours, theirs...) {
			if r != nil {
				err = errors.Join(err, r.conn.Close())
			}
		}
	}()
	if _, err := many(len(peers), tokenAtOnce, func(i int) error {
		user, now := uuid.NewString(), time.Now().UTC().Truncate(time.Second)
		first := token.Token{ID: uuid.NewString(), Issued: now, Expires: now.Add(token.DefaultTTL), How: token.StepAssociate}
		text, err := ring.Sign(token.Access{ID: first.ID, Thing: peers[i].id, User: user, Issued: first.Issued, Expires: first.Expires})
		if err != nil {
			return err
		}
		if err := store.Associate(ctx, token.Association{Thing: peers[i].id, User: user, First: first}); err != nil {
			return err
		}
		if ours[i], err = newRefresher(peers[i], h.Addr("robots"), text, appKey); err != nil {
			return err
		}
		if text, err = bare.First(ctx, peers[i].id, user); err != nil {
			return err
		}
		theirs[i], err = newRefresher(peers[i], bareAddr, text, appKey)
		return err
	}); err != nil {
		return nil, err
	}

	began, rounds := time.Now(), 0
	refresh := func(robots []*refresher) (float64, error) {
		return many(len(robots), tokenAtOnce, func(i int) error { return robots[i].refresh(ctx) })
	}
	atHouse := func(ctx context.Context) (float64, error) {
		if wait := time.Duration(rounds+1-tokenBurst)*tokenEvery - time.Since(began); wait > 0 { // a long run is held back as any robot is
			if err := pass(ctx, wait); err != nil {
				return 0, err
			}
		}
		rounds++
		return refresh(ours)
	}
	atBare := func(context.Context) (float64, error) { return refresh(theirs) }
	if _, err := bench.Pairs(ctx, 1, atHouse, atBare); err != nil { // connections, statements, the step that each robot's first refresh records
		return nil, err
	}
	pairs, err := bench.Pairs(ctx, env.Count*bench.Part(env, tokenTurns), atHouse, atBare)
	if err != nil {
		return nil, err
	}
	made := rounds * len(peers)
	if err := errors.Join(rows(ctx, pool, made, `SELECT count(*) FROM token_token WHERE how = $1`, token.StepRefresh), rows(ctx, pool, made, `SELECT count(*) FROM bare_token`)); err != nil {
		return nil, err
	}
	out := []bench.Result{bench.Line{Name: "tokens", Unit: "refreshes/s", Bound: 0.6,
		Note: fmt.Sprintf("%d robots, %d at once, at kenneld over gRPC with mutual TLS (ES256); reference: a bare handler in a process of its own that verifies, reads one row, "+
			"inserts one durably and signs, over the same gRPC, TLS and Postgres", len(peers), tokenAtOnce)}.Result(pairs)}
	line, err := signing(ctx, env, key)
	if err != nil {
		return out, err
	}
	return append(out, line), nil
}

// signing is what the choice of ES256 is worth: signatures a second on one core, beside RS256.
func signing(ctx context.Context, env *bench.Env, es *ecdsa.PrivateKey) (bench.Result, error) {
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return bench.Result{}, err
	}
	digest := sha256.Sum256([]byte("header.claims"))
	rate := func(k crypto.Signer) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			return during(ctx, bench.Part(env, signingTurn), 1, func(context.Context) error {
				_, err := k.Sign(rand.Reader, digest[:], crypto.SHA256)
				return err
			})
		}
	}
	pairs, err := bench.Pairs(ctx, env.Count, rate(es), rate(rs))
	return bench.Line{Name: "tokens/signing", Unit: "signatures/s", Note: "ES256 on one core; reference: RS256 with a key of 2048 bits"}.Result(pairs), err
}

// signingKey makes a key and a file with it.
func signingKey(dir string) (*ecdsa.PrivateKey, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, "", err
	}
	file := filepath.Join(dir, "key")
	return key, file, os.WriteFile(file, der, 0o600)
}

// bareRefresh serves tokentest.Bare until ctx ends.
func bareRefresh(ctx context.Context, dir, dsnFile, keyFile string, out io.Writer) error {
	a, err := ca.Load(dir)
	if err != nil {
		return err
	}
	conf, err := bareTLS(a)
	if err != nil {
		return err
	}
	der, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return fmt.Errorf("-key %s: want a key as PKCS#8", keyFile) // the parser's words might repeat it
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return fmt.Errorf("-key %s: %T, want an elliptic one", keyFile, parsed)
	}
	pool, err := openPool(ctx, dsnFile)
	if err != nil {
		return err
	}
	defer pool.Close()
	addr, err := house.FreeAddr()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	g := grpc.NewServer(grpc.Creds(credentials.NewTLS(conf)))
	tokenpb.RegisterTokenServer(g, tokentest.NewBare(pool, key))
	context.AfterFunc(ctx, g.Stop)
	fmt.Fprintln(out, "listening on "+l.Addr().String())
	if err := g.Serve(l); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// refresher is a robot with a connection and a token. Not safe for concurrent use.
type refresher struct {
	peer
	conn   *grpc.ClientConn
	token  string
	appKey string
}

func newRefresher(p peer, addr, first, appKey string) (*refresher, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(credentials.NewTLS(p.tls)))
	return &refresher{p, conn, first, appKey}, err
}

// refresh asks for the next token with the last one, as original robots do.
func (r *refresher) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "anki-access-token", r.token, "anki-app-key", r.appKey)
	resp, err := tokenpb.NewTokenClient(r.conn).RefreshToken(ctx, &tokenpb.RefreshTokenRequest{RefreshJwtTokens: true})
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", r.id, err)
	case resp.GetData().GetToken() == "" || resp.GetData().GetToken() == r.token:
		return fmt.Errorf("%s: the answer has no new token", r.id)
	}
	r.token = resp.GetData().GetToken()
	return nil
}
