package certspg_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"testing"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certspg"
	"kennel/certs/certstest"
	"kennel/certs/limit"
	"kennel/certs/thing"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestStore(t *testing.T) {
	certstest.RunStore(t, func(t *testing.T) certs.Store { return certspg.New(pgtest.New(t)) })
}

func TestDatabaseAwayIsUnavailable(t *testing.T) {
	pool := pgtest.New(t)
	s := certspg.New(pool)
	pool.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := s.Standing(ctx, "vic:1", certs.Key{}); err == nil || errors.Is(err, certs.ErrUnknown) {
		t.Errorf("a database that is away looks like an unknown thing: %v", err)
	}
}

type nobody struct{}

func (nobody) Record(context.Context, certs.Step) {}

// BenchmarkEnroll is one whole enrolment with its inventory row in Postgres; BenchmarkBare is parse, verify and sign alone.
func BenchmarkEnroll(b *testing.B) {
	authority, err := ca.Init(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	svc, err := certs.New(certs.Config{Store: certspg.New(pgtest.New(b)), Issuer: authority, Recorder: nobody{},
		ByAddr: limit.New(time.Nanosecond, 1<<30), ByThing: limit.New(time.Nanosecond, 1<<30)})
	if err != nil {
		b.Fatal(err)
	}
	id := thing.MustParse("vic:00e20100")
	secret, err := svc.Register(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	csr := request(b, id)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := svc.Enroll(b.Context(), certs.EnrollRequest{Thing: string(id), Secret: secret, CSR: csr}); err != nil {
				b.Error(errs.CodeOf(err), err)
				return
			}
		}
	})
}

func BenchmarkBare(b *testing.B) {
	authority, err := ca.Init(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	id := thing.MustParse("vic:00e20100")
	der := request(b, id)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			csr, err := certs.CheckRequest(der, id)
			if err == nil {
				_, err = authority.IssueDevice(csr, id, time.Hour)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
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
