package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certspg"
	"kennel/certs/limit"
	"kennel/infra/bench"
	"kennel/infra/bench/house"
)

const (
	certRobots = 500 // of one turn
	certAtOnce = 32  // enough for Postgres to commit several at a time
	// certTurns are the turns of one of -count: short ones, so that what else the machine does meets both sides.
	certTurns = 4
)

// certRobot is a robot that enrols and renews.
type certRobot struct {
	certs.Registered
	csr   []byte
	chain []byte // of its last certificate
}

// nobody hears of the steps of enrolment: the doctor's rows are not the inventory's.
type nobody struct{}

func (nobody) Record(context.Context, certs.Step) {}

// certificates: device certificates issued by the rules of package certs (request, claim secret or old key, revocation, signature) with their
// inventory row in the house's Postgres, which syncs every commit, beside parse, verify and sign alone with the same authority. Both in this
// process: neither has a wire.
func certificates(ctx context.Context, env *bench.Env, h *house.House) ([]bench.Result, error) {
	authority, err := ca.Load(h.CA())
	if err != nil {
		return nil, err
	}
	pool, err := openPool(ctx, h.File("postgres_dsn"))
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	unlimited := limit.New(time.Nanosecond, 1<<30)
	store := certspg.New(pool)
	svc, err := certs.New(certs.Config{Store: store, Batches: store, Requests: store, Issuer: authority, Recorder: nobody{}, ByAddr: unlimited, ByThing: unlimited})
	if err != nil {
		return nil, err
	}
	robots, err := registerRobots(ctx, svc, bench.Part(env, certRobots))
	if err != nil {
		return nil, err
	}
	bare := func(r *certRobot) error {
		csr, err := certs.CheckRequest(r.csr, r.Thing)
		if err == nil {
			_, err = authority.IssueDevice(csr, r.Thing, certs.DefaultTTL)
		}
		return err
	}
	var issued atomic.Int64
	has := func(r *certRobot, c certs.Certificate, err error) error {
		if err == nil {
			r.chain = c.PEM()
			issued.Add(1)
		}
		return err
	}
	enroll := func(r *certRobot) error {
		c, err := svc.Enroll(ctx, certs.EnrollRequest{Thing: string(r.Thing), Secret: r.Secret, CSR: r.csr})
		return has(r, c, err)
	}
	renew := func(r *certRobot) error {
		c, err := svc.Renew(ctx, certs.RenewRequest{Certificate: r.chain, CSR: r.csr})
		return has(r, c, err)
	}
	rate := func(do func(*certRobot) error) func(context.Context) (float64, error) {
		return func(context.Context) (float64, error) {
			return many(len(robots), certAtOnce, func(i int) error {
				if err := do(&robots[i]); err != nil {
					return fmt.Errorf("%s: %w", robots[i].Thing, err)
				}
				return nil
			})
		}
	}
	var out []bench.Result
	for _, side := range []struct {
		name, note string
		do         func(*certRobot) error
	}{
		{"certificates/enroll", "certificates for a claim secret, each with its inventory row in Postgres, durable; reference: parse, verify and sign alone", enroll},
		{"certificates/renew", "the same for a certificate and its key", renew},
	} {
		if _, err := rate(side.do)(ctx); err != nil { // connections, statements, the first use of each secret
			return out, err
		}
		pairs, err := bench.Pairs(ctx, env.Count*bench.Part(env, certTurns), rate(side.do), rate(bare))
		if err != nil {
			return out, err
		}
		if err := rows(ctx, pool, int(issued.Load()), `SELECT count(*) FROM certs_certificate WHERE thing >= $1 AND thing <= $2`, robots[0].Thing, robots[len(robots)-1].Thing); err != nil {
			return out, err
		}
		out = append(out, bench.Line{Name: side.name, Unit: "certificates/s", Bound: 0.4, Note: side.note}.Result(pairs))
	}
	return out, nil
}

// registerRobots makes robots with a key, a request and a claim secret.
func registerRobots(ctx context.Context, svc *certs.Service, n int) ([]certRobot, error) {
	var csv strings.Builder
	for i := range n {
		fmt.Fprintf(&csv, "vic:%08x\n", firstSerial+i)
	}
	registered, err := svc.RegisterAll(ctx, strings.NewReader(csv.String()))
	if err != nil {
		return nil, err
	}
	out := make([]certRobot, len(registered))
	for i, r := range registered {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(r.Thing)}}, key)
		if err != nil {
			return nil, err
		}
		out[i] = certRobot{Registered: r, csr: csr}
	}
	return out, nil
}
