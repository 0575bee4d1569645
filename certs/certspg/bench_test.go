package certspg_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certspg"
	"kennel/certs/limit"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/migrations"
	"kennel/infra/pg"
	"kennel/infra/pg/pgserver"
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

// BenchmarkOfBare reports what share of bare parse-verify-sign an enrolment and a renewal reach, side by side in one run: of-bare/enroll and
// of-bare/renew, and certificates a second of each.
func BenchmarkOfBare(b *testing.B) {
	svc, robots := benchFleet(b)
	authority, err := ca.Init(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	chains := make([][]byte, fleet)
	var mu sync.Mutex
	sides := []struct {
		name string
		do   func(i int) error
	}{
		{"bare", func(i int) error {
			csr, err := certs.CheckRequest(robots[i].csr, robots[i].id)
			if err == nil {
				_, err = authority.IssueDevice(csr, robots[i].id, time.Hour)
			}
			return err
		}},
		{"enroll", func(i int) error {
			r := robots[i]
			cert, err := svc.Enroll(b.Context(), certs.EnrollRequest{Thing: string(r.id), Secret: r.secret, CSR: r.csr})
			if err == nil {
				mu.Lock()
				chains[i] = cert.PEM()
				mu.Unlock()
			}
			return err
		}},
		{"renew", func(i int) error {
			mu.Lock()
			chain := chains[i]
			mu.Unlock()
			_, err := svc.Renew(b.Context(), certs.RenewRequest{Certificate: chain, CSR: robots[i].csr})
			return err
		}},
	}
	var next atomic.Int64
	work := func(do func(i int) error, d time.Duration) (perSecond float64) {
		var wg sync.WaitGroup
		var done atomic.Int64
		began := time.Now()
		for range clients {
			wg.Go(func() {
				for time.Since(began) < d {
					if err := do(int(next.Add(1) % fleet)); err != nil {
						b.Error(errs.CodeOf(err), err)
						return
					}
					done.Add(1)
				}
			})
		}
		wg.Wait()
		return float64(done.Load()) / time.Since(began).Seconds()
	}
	for i := range fleet { // every robot has a key bound and a certificate to renew
		if err := sides[1].do(i); err != nil {
			b.Fatal(err)
		}
	}
	sum, turns := make([]float64, len(sides)), 0.0
	for b.Loop() {
		for i, side := range sides {
			sum[i] += work(side.do, slice)
		}
		turns++
	}
	for i, side := range sides {
		b.ReportMetric(sum[i]/turns, side.name+"/s")
		if i > 0 {
			b.ReportMetric(sum[i]/sum[0], "of-bare/"+side.name)
		}
	}
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

func benchFleet(b *testing.B) (*certs.Service, []robot) {
	b.Helper()
	authority, err := ca.Init(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	store := certspg.New(durable(b))
	svc, err := certs.New(certs.Config{Store: store, Batches: store, Requests: store, Issuer: authority, Recorder: nobody{},
		ByAddr: limit.New(time.Nanosecond, 1<<30), ByThing: limit.New(time.Nanosecond, 1<<30)})
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
	return svc, robots
}

// durable returns a pool on a migrated Postgres of its own on disk, with the settings of production: what it acknowledged is synced.
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
	b.Cleanup(func() { _ = os.RemoveAll(dir) }) // what stays is in the folder for temporary files
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
	pool, err := pg.Open(ctx, pg.Config{DSN: server.DSN(), AppName: "bench", MaxConns: clients})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if _, err := pg.Migrate(ctx, pool, migrations.FS); err != nil {
		b.Fatal(err)
	}
	var sync string
	if err := pool.QueryRow(ctx, `SELECT current_setting('fsync') || ' ' || current_setting('synchronous_commit')`).Scan(&sync); err != nil || sync != "on on" {
		b.Fatalf("fsync and synchronous_commit are %q, %v: want both on", sync, err)
	}
	return pool
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
