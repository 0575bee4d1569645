package devicecert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certsapi"
	"kennel/certs/certsclient"
	"kennel/infra/logging"
	"kennel/infra/op"
)

// live makes the cloud's answers name the roots of the moment, as kenneld's do.
func (c *cloud) live(t testing.TB) {
	t.Helper()
	h := func(w http.ResponseWriter, r *http.Request) bool {
		mux := http.NewServeMux()
		certsapi.Operations(c.svc, certsapi.Config{Root: c.ca.Root, MQTT: "ssl://cloud.example:8883", Log: slog.New(slog.DiscardHandler)}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
		mux.ServeHTTP(w, r)
		return true
	}
	c.before.Store(&h)
}

// A root is replaced with overlap, and the robot goes along unattended: prepared, learned at a renewal, active, the old one withdrawn; and
// one that slept through the overlap says which root it lacks.
func TestRootRotation(t *testing.T) {
	c := newCloud(t, time.Hour)
	c.live(t)
	root := c.born(t)
	installed := read(t, root, RootFile)
	i := wake(t, root, c.URL)
	ensure(t, i)
	if _, err := root.Stat(rootsFile); err == nil {
		t.Error("roots were written although none is new")
	}
	renew := func(who *Identity) error { return who.attempt(t.Context()) }

	oldName, oldFile := c.ca.RootName(), c.ca.Authorities()[0].Name
	if _, err := c.ca.Prepare(ca.Root, ""); err != nil {
		t.Fatal(err)
	}
	if err := renew(i); err != nil {
		t.Fatal(err)
	}
	if names, problem := i.Roots(); len(names) != 2 || problem != "" {
		t.Fatalf("roots after the renewal: %q, %s", names, problem)
	}
	if _, err := c.ca.Activate(ca.Root); err != nil {
		t.Fatal(err)
	}
	c.refresh(t)
	i = wake(t, root, c.URL) // a restart in between
	if err := renew(i); err != nil {
		t.Fatal(err)
	}
	if err := c.ca.Withdraw(ca.Root, oldFile); err != nil {
		t.Fatal(err)
	}
	c.refresh(t)
	if err := renew(i); err != nil {
		t.Fatalf("after the old root went: %v", err)
	}
	names, _ := i.Roots()
	if len(names) != 1 || names[0] != c.ca.RootName() || names[0] == oldName {
		t.Errorf("trusts %q in the end, want the new root %q alone", names, c.ca.RootName())
	}
	if read(t, root, RootFile) != installed {
		t.Error("the installed file was changed")
	}

	// A person moves the robot to another house by installing its root: what this house said is over; and moved back, it counts again.
	elsewhere := newCloud(t, time.Hour)
	if err := WriteRoot(root, elsewhere.ca.Root()); err != nil {
		t.Fatal(err)
	}
	if names, _ := i.Roots(); !slices.Equal(names, []string{elsewhere.ca.RootName()}) {
		t.Errorf("after another root was installed it trusts %q", names)
	}
	if err := WriteRoot(root, []byte(installed)); err != nil {
		t.Fatal(err)
	}
	if names, _ := i.Roots(); !slices.Equal(names, []string{c.ca.RootName()}) {
		t.Errorf("moved back it trusts %q", names)
	}

	// One that slept through it: its word names the root.
	if err := root.Remove(rootsFile); err != nil {
		t.Fatal(err)
	}
	asleep := wake(t, root, c.URL)
	if err := renew(asleep); err == nil || asleep.State().Code != "unknown_root" || asleep.State().LackedRoot != c.ca.RootName() {
		t.Errorf("%v, state %+v", err, asleep.State())
	}

	if seen := asleep.Seen(); len(seen) != 1 || seen[0].OK || seen[0].Code != "unknown_root" || seen[0].Name != "127.0.0.1" ||
		len(seen[0].SHA256) != 64 {
		t.Errorf("seen %+v", seen)
	}

	// A person installs another root: what was learned before is over.
	if err := WriteRoot(root, c.ca.Root()); err != nil {
		t.Fatal(err)
	}
	if err := renew(asleep); err != nil {
		t.Errorf("after installing the root: %v", err)
	}
	if seen := asleep.Seen(); len(seen) != 1 || !seen[0].OK || seen[0].Subject == "" || seen[0].Issuer == "" ||
		!slices.Contains(seen[0].Names, "127.0.0.1") {
		t.Errorf("seen %+v", seen)
	}
}

func selfSigned(t testing.TB, authority bool) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "Mallory Root"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: authority}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	x, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Roots in an answer are taken only if they are authorities and accept the connection they came over; the certificate is good all the same.
func TestRootsThatAreNotTaken(t *testing.T) {
	encode := func(xs ...*x509.Certificate) string {
		var b bytes.Buffer
		for _, x := range xs {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: x.Raw})
		}
		return b.String()
	}
	for _, tc := range []struct {
		name, roots, words string
	}{
		{"another's root alone", encode(selfSigned(t, true)), "do not verify"},
		{"no authority", encode(selfSigned(t, false)), "want an authority"},
		{"text", "hello", "no certificate"},
		{"too many", strings.Repeat(encode(selfSigned(t, true)), 17), "more than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCloud(t, time.Hour)
			root := c.born(t)
			change := func(w http.ResponseWriter, r *http.Request) bool {
				var req certsclient.Enroll
				if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
					t.Error(err)
				}
				cert, err := c.svc.Enroll(t.Context(), certs.EnrollRequest{
					Thing: req.Thing, Secret: logging.Secret(req.Secret), CSR: []byte(req.CSR), Addr: r.RemoteAddr,
				})
				if err != nil {
					t.Error(err)
				}
				_ = json.NewEncoder(w).Encode(certsclient.Answer{Certificate: string(cert.PEM()), Root: tc.roots, MQTT: "ssl://x:1"})
				return true
			}
			c.before.Store(&change)
			i := wake(t, root, c.URL)
			ensure(t, i)
			names, problem := i.Roots()
			if !slices.Equal(names, []string{c.ca.RootName()}) || !strings.Contains(problem, tc.words) {
				t.Errorf("trusts %q, problem %q; want one with %q", names, problem, tc.words)
			}
			if _, err := root.Stat(rootsFile); err == nil {
				t.Error("they are on disk")
			}
		})
	}
}

// A damaged file of learned roots is as good as none.
func TestDamagedLearnedRoots(t *testing.T) {
	c := newCloud(t, time.Hour)
	for _, content := range []string{"", "{", `{"installed":"","roots":""}`, `{"installed":"` + digest(c.ca.Root()) + `","roots":"oops"}`} {
		root := c.born2(t)
		if err := root.MkdirAll("persist/kennel", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := root.WriteFile(rootsFile, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		i := wake(t, root, c.URL)
		if names, problem := i.Roots(); len(names) != 1 || problem != "" {
			t.Errorf("%q: %q %s", content, names, problem)
		}
	}
}

// born2 makes a robot's root with the cloud's root and nothing that proves anything.
func (c *cloud) born2(t testing.TB) *os.Root {
	t.Helper()
	root := tempRoot(t)
	if err := WriteRoot(root, c.ca.Root()); err != nil {
		t.Fatal(err)
	}
	return root
}

// A robot with a factory identity and no claim enrols with it (design, section 6).
func TestEnrolsWithFactoryIdentity(t *testing.T) {
	c := newCloud(t, time.Hour)
	batchKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Date(2117, 1, 1, 0, 0, 0, 0, time.UTC)
	batch := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Batch 36"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter:              end,
		BasicConstraintsValid: true, IsCA: true}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(tmpl *x509.Certificate, pub any) *x509.Certificate {
		der, err := x509.CreateCertificate(rand.Reader, tmpl, batch, pub, batchKey)
		if err != nil {
			t.Fatal(err)
		}
		x, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	authority := sign(batch, batchKey.Public())
	leaf := sign(&x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: end,
		Subject: pkix.Name{CommonName: string(vic), Organization: []string{"Anki Inc."}}}, key.Public())
	if err := c.svc.PutBatch(t.Context(),
		certs.Batch{Name: "2018-36", Bundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})}); err != nil {
		t.Fatal(err)
	}
	root := c.born2(t)
	if err := WriteFactory(root, leaf, key, nil); err != nil {
		t.Fatal(err)
	}
	i := wake(t, root, c.URL)
	ensure(t, i)
	if i.Thing() != vic || !i.State().OK {
		t.Errorf("state %+v", i.State())
	}

	// Damaged, it is not passed over: fault 850 (VEC-TOK-08).
	if err := errors.Join(root.Remove(CertFile), root.WriteFile(FactoryDir+"/"+factoryKeys, []byte("oops"), 0o600)); err != nil {
		t.Fatal(err)
	}
	i = wake(t, root, c.URL)
	if err := i.attempt(t.Context()); !errors.Is(err, ErrFactory) || i.State().Code != CodeFactory || !strings.Contains(i.State().Problem, factoryKeys) {
		t.Errorf("%v, %+v", err, i.State())
	}
}

// A robot that was born with nothing waits for an operator, shows the fingerprint to compare, and comes in when it is approved.
func TestWaitsForAnOperator(t *testing.T) {
	c := newCloud(t, time.Hour)
	root := c.born2(t)
	i, err := Open(Config{
		Root: root, Cloud: c.URL, Thing: vic, Log: slog.New(slog.DiscardHandler), MinPause: time.Millisecond,
		MaxPause: 5 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.attempt(t.Context()); err == nil {
		t.Fatal("a certificate without any proof")
	}
	list, err := c.svc.Waiting(t.Context())
	if err != nil || len(list) != 1 || list[0].Thing != vic {
		t.Fatalf("waiting: %+v, %v", list, err)
	}
	short := list[0].Key.Short()
	if st := i.State(); st.Code != certsclient.CodeWaiting || !strings.Contains(st.Problem, short) || st.Thing != vic {
		t.Errorf("state %+v, want fingerprint %s in it", st, short)
	}
	if err := c.svc.Approve(t.Context(), vic, short); err != nil {
		t.Fatal(err)
	}
	if err := i.attempt(t.Context()); err != nil || !i.State().OK {
		t.Errorf("after approval: %v, %+v", err, i.State())
	}
}

// A claim, or a factory identity, of another robot is named as that.
func TestProofOfAnotherThing(t *testing.T) {
	c := newCloud(t, time.Hour)
	for _, tc := range []struct {
		name string
		root *os.Root
		file string
	}{
		{"claim", c.born(t), ClaimFile},
		{"factory", func() *os.Root {
			r := c.born2(t)
			leaf, key := factoryLeaf(t, nil)
			if err := WriteFactory(r, leaf, key, nil); err != nil {
				t.Fatal(err)
			}
			return r
		}(), FactoryDir},
	} {
		i, err := Open(Config{Root: tc.root, Cloud: c.URL, Thing: "vic:00e20999", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := i.attempt(t.Context()); err == nil || !strings.Contains(i.State().Problem, tc.file) ||
			!strings.Contains(i.State().Problem, "vic:00e20999") {
			t.Errorf("%s: %v, %+v", tc.name, err, i.State())
		}
	}
}
