package ctl

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certsapi"
	"kennel/certs/certspg"
	"kennel/infra/auth"
	"kennel/infra/cli"
	"kennel/infra/logging"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"
)

type nobody struct{}

func (nobody) Record(context.Context, certs.Step) {}

// newIdentity is the real rules and endpoints of identity behind HTTPS; a request with the token is one of an admin.
func newIdentity(t *testing.T) (svc *certs.Service, dir string) {
	t.Helper()
	authority, err := ca.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store := certspg.New(pgtest.New(t))
	svc, err = certs.New(certs.Config{Store: store, Batches: store, Requests: store, Issuer: authority, Recorder: nobody{}, ByAddr: ratelimit.New(time.Millisecond, 1000), ByThing: ratelimit.New(time.Millisecond, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	cfg := certsapi.Config{Root: authority.Root, Log: slog.New(slog.DiscardHandler), Audit: func(context.Context, string, string, string) error { return nil }}
	certsapi.Operations(svc, cfg).Mount(mux, op.Doors{Log: cfg.Log})
	c := &cloud{Server: httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+token {
			r = r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Admin, Name: "op@example.org"}))
		}
		mux.ServeHTTP(w, r)
	}))}
	t.Cleanup(c.Close)
	c.ca = filepath.Join(t.TempDir(), "root.pem")
	write(t, c.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})))
	return svc, c.onebox(t)
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func request(t *testing.T, key *ecdsa.PrivateKey, id string) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: id}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// want runs one command and compares its exit code and a pattern of what it printed.
func want(t *testing.T, dir, stdin string, code int, pattern string, args ...string) string {
	t.Helper()
	got, out, errOut := run(t.Context(), nil, stdin, append([]string{"-onebox", dir}, args...)...)
	if got != code || !regexp.MustCompile(pattern).MatchString(out+errOut) {
		t.Errorf("%v: exit %d, want %d and %s:\n%s%s", args, got, code, pattern, out, errOut)
	}
	return out
}

func TestRegisterAFile(t *testing.T) {
	svc, dir := newIdentity(t)
	file, secrets := filepath.Join(t.TempDir(), "delivery.csv"), filepath.Join(t.TempDir(), "secrets.csv")
	write(t, file, "thing,lot\nvic:00000001,7\nvic:00000002,7\n")
	want(t, dir, "", 0, `2 robots .*secrets.csv`, "robots", "register", "-csv", file, "-out", secrets)
	b, err := os.ReadFile(secrets)
	fi, statErr := os.Stat(secrets)
	if err != nil || statErr != nil || fi.Mode().Perm() != 0o600 || !regexp.MustCompile(`^thing,secret\nvic:00000001,[A-Z2-7]{26}\nvic:00000002,[A-Z2-7]{26}\n$`).Match(b) {
		t.Fatalf("%s, %v, %v, %v", b, err, fi.Mode(), statErr)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(strings.Split(string(b), ",")[2]), "\n")
	if _, err := svc.Enroll(t.Context(), certs.EnrollRequest{Thing: "vic:00000001", Secret: logging.Secret(first), CSR: request(t, newKey(t), "vic:00000001")}); err != nil {
		t.Errorf("with the secret from the file: %v", err)
	}
	want(t, dir, "", cli.ExitUsage, `file exists`, "robots", "register", "-csv", file, "-out", secrets)
	refused := filepath.Join(t.TempDir(), "none.csv")
	want(t, dir, "", cli.ExitUsage, `nothing was registered\s+line 2: .*released first`, "robots", "register", "-csv", file, "-out", refused)
	if _, err := os.Stat(refused); !os.IsNotExist(err) {
		t.Errorf("a refused delivery left %s: %v", refused, err)
	}
	want(t, dir, "vic:1\ncat:2\n", cli.ExitUsage, `line 2: .*want species:serial`, "robots", "register", "-csv", "-")
	want(t, dir, "pleo:1\n", 0, `^thing,secret\npleo:1,[A-Z2-7]{26}\n$`, "robots", "register", "-csv", "-")
	var rows []certsapi.Registration
	if err := json.Unmarshal([]byte(want(t, dir, "pleo:2\n", 0, "", "robots", "register", "-csv", "-", "-o", "json")), &rows); err != nil || len(rows) != 1 || rows[0].Thing != "pleo:2" || rows[0].Secret == "" {
		t.Errorf("as JSON: %+v, %v", rows, err)
	}
	want(t, dir, "", cli.ExitUsage, `THING or -csv`, "robots", "register")
	want(t, dir, "", cli.ExitUsage, `THING or -csv`, "robots", "register", "vic:1", "-csv", file)
	want(t, dir, "", cli.ExitUsage, `-csv`, "robots", "register", "vic:1", "-out", "x")
	want(t, dir, "", cli.ExitUsage, `no such file`, "robots", "register", "-csv", file+"x")
}

func TestApproveReleaseRevoke(t *testing.T) {
	svc, dir := newIdentity(t)
	key := newKey(t)
	ask := func(id string, key *ecdsa.PrivateKey) error {
		_, err := svc.Enroll(t.Context(), certs.EnrollRequest{Thing: id, CSR: request(t, key, id), Addr: "192.0.2.1:5"})
		return err
	}
	if err := ask("vic:00000001", key); err == nil {
		t.Fatal("let in without approval")
	}
	_ = ask("vic:00000002", key)
	out := want(t, dir, "", 0, `vic:00000001 +[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4} +192.0.2.1:5`, "robots", "waiting")
	shown := regexp.MustCompile(`[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}`).FindString(out)
	want(t, dir, "", cli.ExitNotFound, `0000-0000-0000`, "robots", "approve", "vic:00000001", "0000-0000-0000")
	want(t, dir, "", 0, `vic:00000001`, "robots", "approve", "vic:00000001", shown)
	if err := ask("vic:00000001", key); err != nil {
		t.Errorf("approved: %v", err)
	}
	want(t, dir, "", cli.ExitUsage, `reason`, "robots", "refuse", "vic:00000002", shown)
	want(t, dir, "", 0, `vic:00000002`, "robots", "refuse", "vic:00000002", shown, "-reason", "not ours")
	want(t, dir, "", 0, `refused: not ours`, "robots", "waiting")
	want(t, dir, "", 0, `vic:00000001 .*1 certificate\b`, "robots", "revoke", "vic:00000001", "-reason", "stolen")
	want(t, dir, "", 0, `vic:00000001 .* stolen`, "robots", "revocations", "-limit", "5")
	want(t, dir, "", 0, `secret +[A-Z2-7]{26}`, "robots", "release", "vic:00000001", "-reason", "found")
	want(t, dir, "", cli.ExitNotFound, `never registered`, "robots", "release", "vic:00000009", "-reason", "x")
}

func TestBatches(t *testing.T) {
	_, dir := newIdentity(t)
	key := newKey(t)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Factory"}, NotAfter: time.Now().AddDate(9, 0, 0), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(t.TempDir(), "factory.pem")
	write(t, bundle, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	want(t, dir, "", 0, `lot-2018`, "batches", "put", "lot-2018", "-bundle", bundle, "-serial-to", "00e2ffff")
	want(t, dir, "", 0, `pleos`, "batches", "put", "pleos", "-bundle", bundle, "-species", "pleo", "-organization", "Ugobe", "-valid-after", "2020-01-01")
	want(t, dir, "", cli.ExitUsage, `want a date`, "batches", "put", "x", "-bundle", bundle, "-valid-after", "soon")
	want(t, dir, "", cli.ExitUsage, `no PEM block`, "batches", "put", "x", "-bundle", filepath.Join(dir, "secrets", "operator.token"))
	want(t, dir, "", 0, `lot-2018 +vic +Anki Inc. +2100-01-01 +first to 00e2ffff`, "batches", "list")
	want(t, dir, "", 0, `lot-2018`, "batches", "disable", "lot-2018", "-reason", "leaked")
	want(t, dir, "", 0, `lot-2018 .*: leaked`, "batches", "list")
	want(t, dir, "", 0, `lot-2018`, "batches", "enable", "lot-2018")
	want(t, dir, "", cli.ExitNotFound, `no batch`, "batches", "enable", "none")
	want(t, dir, "", 0, `3F:A9`, "batches", "revoke-certificate", "3F:A9", "-reason", "cloned")
	want(t, dir, "", 0, `3fa9 .*cloned`, "batches", "revoked")
	var rows []certsapi.Batch
	if err := json.Unmarshal([]byte(want(t, dir, "", 0, "", "batches", "list", "-o", "json")), &rows); err != nil || len(rows) != 2 || rows[1].Organization != "Ugobe" {
		t.Errorf("as JSON: %s, %v", fmt.Sprint(rows), err)
	}
}
