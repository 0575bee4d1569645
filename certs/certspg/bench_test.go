package certspg_test

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
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certspg"
	"kennel/infra/bench"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

type nobody struct{}

func (nobody) Record(context.Context, certs.Step) {}

// fleet is how many robots the benchmarks enrol, and clients how many ask at once: enough for Postgres to commit several at a time.
const fleet, clients = 1000, 32

// BenchmarkEnroll is one whole enrolment (request, claim secret, revocation, signature) with its inventory row in a Postgres that syncs every
// commit to disk. BenchmarkRenew is the same with the key as proof, BenchmarkBare is parse, verify and sign alone.
func BenchmarkEnroll(b *testing.B) {
	svc, robots := benchFleet(b)
	parallel(b, func(i int) error {
		r := robots[i%fleet]
		_, err := svc.Enroll(b.Context(), certs.EnrollRequest{Thing: string(r.id), Secret: r.secret, CSR: r.csr})
		return err
	})
}

func BenchmarkRenew(b *testing.B) {
	svc, robots := benchFleet(b)
	chains := make([][]byte, fleet)
	for i, r := range robots {
		cert, err := svc.Enroll(b.Context(), certs.EnrollRequest{Thing: string(r.id), Secret: r.secret, CSR: r.csr})
		if err != nil {
			b.Fatal(err)
		}
		chains[i] = cert.PEM()
	}
	parallel(b, func(i int) error {
		_, err := svc.Renew(b.Context(), certs.RenewRequest{Certificate: chains[i%fleet], CSR: robots[i%fleet].csr})
		return err
	})
}

func BenchmarkBare(b *testing.B) {
	authority, err := ca.Init(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	id := thing.MustParse("vic:00e20100")
	der := request(b, id)
	parallel(b, func(int) error {
		csr, err := certs.CheckRequest(der, id)
		if err == nil {
			_, err = authority.IssueDevice(csr, id, time.Hour)
		}
		return err
	})
}

// slice is how long each side works before the other has its turn, so that what else the machine does meets both.
const slice = 250 * time.Millisecond

// BenchmarkCertificatesBesideBare issues device certificates with their inventory row in a Postgres that syncs every commit, for a claim secret
// and for a certificate and its key, beside parse, verify and sign alone.
func BenchmarkCertificatesBesideBare(b *testing.B) { certificatesBesideBare(b) }

func TestCertificatesBesideBare(t *testing.T) {
	bench.Soak(t)
	certificatesBesideBare(t)
}

func certificatesBesideBare(tb testing.TB) {
	svc, robots := benchFleet(tb)
	authority, err := ca.Init(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	chains := make([]atomic.Pointer[[]byte], fleet)
	var next, issued atomic.Int64
	keep := func(i int, cert certs.Certificate, err error) error {
		if err == nil {
			chain := cert.PEM()
			chains[i].Store(&chain)
			issued.Add(1)
		}
		return err
	}
	enroll := func(ctx context.Context, i int) error {
		cert, err := svc.Enroll(ctx, certs.EnrollRequest{Thing: string(robots[i].id), Secret: robots[i].secret, CSR: robots[i].csr})
		return keep(i, cert, err)
	}
	renew := func(ctx context.Context, i int) error {
		cert, err := svc.Renew(ctx, certs.RenewRequest{Certificate: *chains[i].Load(), CSR: robots[i].csr})
		return keep(i, cert, err)
	}
	bare := func(_ context.Context, i int) error {
		csr, err := certs.CheckRequest(robots[i].csr, robots[i].id)
		if err == nil {
			_, err = authority.IssueDevice(csr, robots[i].id, time.Hour)
		}
		return err
	}
	rate := func(do func(context.Context, int) error) float64 {
		perSecond, err := bench.During(tb.Context(), slice, clients, func(context.Context, int) error { // a certificate that was begun is finished
			return do(tb.Context(), int(next.Add(1)%fleet))
		})
		if err != nil {
			tb.Fatal(errs.CodeOf(err), err)
		}
		return perSecond
	}
	for i := range fleet { // every robot has a key bound and a certificate to renew
		if err := enroll(tb.Context(), i); err != nil {
			tb.Fatal(err)
		}
	}
	var enrolled, renewed []bench.Pair
	bench.Turns(tb, func() error {
		for range bench.Part(tb, 4) {
			reference := rate(bare)
			enrolled, renewed = append(enrolled, bench.Pair{Value: rate(enroll), Reference: reference}), append(renewed,
				bench.Pair{Value: rate(renew), Reference: reference})
		}
		return nil
	})
	var rows int64
	if err := svc.pool.QueryRow(tb.Context(), `SELECT count(*) FROM certs_certificate`).Scan(&rows); err != nil || rows != issued.Load() {
		tb.Fatalf("%d rows, %v: want one for each of %d certificates", rows, err, issued.Load())
	}
	line := bench.Line{Name: "certificates/enroll", Unit: "certificates/s", Bound: 0.4,
		Note: "certificates for a claim secret, each with its inventory row in Postgres, durable; reference: parse, verify and sign alone"}
	bench.Report(tb, line, enrolled)
	line.Name, line.Note = "certificates/renew", "the same for a certificate and its key"
	bench.Report(tb, line, renewed)
}

func parallel(b *testing.B, do func(i int) error) {
	b.Helper()
	var n atomic.Int64
	b.SetParallelism(clients)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if err := do(int(n.Add(1))); err != nil {
				b.Error(errs.CodeOf(err), err)
				return
			}
		}
	})
}

type robot struct {
	id     thing.ID
	secret logging.Secret
	csr    []byte
}

// service is the rules of certificates over a durable database.
type service struct {
	*certs.Service
	pool *pgxpool.Pool
}

func benchFleet(b testing.TB) (service, []robot) {
	b.Helper()
	authority, err := ca.Init(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	pool := pgtest.Durable(b, clients)
	store := certspg.New(pool)
	svc, err := certs.New(certs.Config{Store: store, Batches: store, Requests: store, Issuer: authority, Recorder: nobody{},
		ByAddr: ratelimit.New(time.Nanosecond, 1<<30), ByThing: ratelimit.New(time.Nanosecond, 1<<30)})
	if err != nil {
		b.Fatal(err)
	}
	var csv strings.Builder
	for i := range fleet {
		fmt.Fprintf(&csv, "vic:%08x\n", i)
	}
	registered, err := svc.RegisterAll(b.Context(), strings.NewReader(csv.String()))
	if err != nil {
		b.Fatal(err)
	}
	robots := make([]robot, fleet)
	for i, r := range registered {
		robots[i] = robot{r.Thing, r.Secret, request(b, r.Thing)}
	}
	return service{svc, pool}, robots
}

func request(t testing.TB, id thing.ID) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(id)}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
