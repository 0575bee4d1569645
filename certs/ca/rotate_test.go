package ca

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/certs/internal/pemfile"
	"kennel/infra/errs"
)

// robot is a key with what the cloud gave it.
type robot struct {
	key   *ecdsa.PrivateKey
	chain []*x509.Certificate
	roots []byte // what its trust file holds
}

func newRobot(t *testing.T, a *Authority) *robot {
	t.Helper()
	_, key := deviceRequest(t, "x")
	r := &robot{key: key}
	r.renew(t, a)
	return r
}

// renew returns the result of a renewal: a certificate of the authority that signs now, and the roots to trust.
func (r *robot) renew(t *testing.T, a *Authority) {
	t.Helper()
	chain, err := a.IssueDevice(&x509.CertificateRequest{PublicKey: r.key.Public()}, "vic:00e20100", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r.chain, r.roots = chain, a.Root()
}

// meets has the robot connect to a listener of a's cloud.
func (r *robot) meets(t *testing.T, a *Authority) error {
	t.Helper()
	pair, err := a.IssueServer([]string{"cloud.example"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.roots)
	mine := tls.Certificate{PrivateKey: r.key}
	for _, c := range r.chain {
		mine.Certificate = append(mine.Certificate, c.Raw)
	}
	_, err = handshake(t,
		&tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.DevicePool()},
		&tls.Config{Certificates: []tls.Certificate{mine}, RootCAs: roots, ServerName: "cloud.example"})
	return err
}

func reopen(t *testing.T, a *Authority) *Authority {
	t.Helper()
	b, err := Load(a.dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRotateDevice is the rehearsal (issue 4, "CA rotation with overlap"): robots of the old authority stay in, renew onto the new one, and
// the old one is withdrawn and refused. A second process follows.
func TestRotateDevice(t *testing.T) {
	a := newAuthority(t)
	second := reopen(t, a) // another kenneld
	old, late := newRobot(t, a), newRobot(t, a)
	follow := func() {
		t.Helper()
		if changed, err := second.Reload(); err != nil || !changed {
			t.Fatalf("the other process: changed %v, %v", changed, err)
		}
		if changed, err := second.Reload(); err != nil || changed {
			t.Fatalf("without a change: changed %v, %v", changed, err)
		}
	}
	name, err := a.Prepare(Device, "")
	if err != nil || name != "device-1" {
		t.Fatalf("%q, %v", name, err)
	}
	if _, err := a.Prepare(Device, ""); errs.CodeOf(err) != "prepared" {
		t.Errorf("prepared twice: %v", err)
	}
	follow()
	if n := strings.Count(string(second.DeviceBundle()), "BEGIN"); n != 2 {
		t.Errorf("%d authorities in the bundle, want 2", n)
	}
	if during := newRobot(t, a); during.chain[1].Subject.String() != old.chain[1].Subject.String() {
		t.Error("the new authority signs before it was activated")
	}
	if _, err := a.Activate(Device); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Activate(Device); errs.CodeOf(err) != "not_prepared" {
		t.Errorf("activated twice: %v", err)
	}
	fresh := newRobot(t, a)
	if fresh.chain[1].Subject.String() == old.chain[1].Subject.String() {
		t.Fatal("the old authority still signs")
	}
	// The other process has not looked yet: it trusts the new authority all the same, because it was prepared.
	for _, house := range []*Authority{a, second} {
		for i, r := range []*robot{old, late, fresh} {
			if err := r.meets(t, house); err != nil {
				t.Errorf("robot %d: %v", i, err)
			}
			if err := house.VerifyDevice(r.chain[0]); err != nil {
				t.Errorf("robot %d cannot renew: %v", i, err)
			}
		}
	}
	follow()
	old.renew(t, second)
	if old.chain[1].Subject.String() != fresh.chain[1].Subject.String() {
		t.Error("renewed onto the old authority")
	}

	if err := a.Withdraw(Device, "device-1"); errs.CodeOf(err) != "signs" {
		t.Errorf("withdrew the one that signs: %v", err)
	}
	if err := a.Withdraw(Device, "device-9"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("withdrew what is not there: %v", err)
	}
	if err := a.Withdraw(Device, "device"); err != nil {
		t.Fatal(err)
	}
	follow()
	for _, house := range []*Authority{a, second, reopen(t, a)} {
		if err := old.meets(t, house); err != nil {
			t.Errorf("renewed in time, and refused: %v", err)
		}
		if err := late.meets(t, house); err == nil {
			t.Error("a certificate of the withdrawn authority is accepted")
		}
		if err := house.VerifyDevice(late.chain[0]); err == nil {
			t.Error("and may renew")
		}
	}
	if _, err := os.Stat(filepath.Join(a.dir, "device.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the withdrawn key is still there: %v", err)
	}
	again, err := Init(a.dir) // makes nothing again
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.DeviceBundle(), a.DeviceBundle()) || strings.Count(string(again.DeviceBundle()), "BEGIN") != 1 {
		t.Error("Init brought the withdrawn authority back")
	}
	if name, err := again.RotateDevice(); err != nil || name != "device-2" {
		t.Errorf("the next is %q, %v", name, err)
	}
}

// TestRotateServerAndService: robots notice nothing; brokers trust both service authorities meanwhile.
func TestRotateServerAndService(t *testing.T) {
	a := newAuthority(t)
	r := newRobot(t, a)
	before, err := a.IssueService("kenneld", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []Kind{Server, Service} {
		if _, err := a.Rotate(k, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.meets(t, a); err != nil {
		t.Error(err)
	}
	tc, err := before.TLS()
	if err != nil {
		t.Fatal(err)
	}
	verify := func() error {
		_, err := tc.Leaf.Verify(x509.VerifyOptions{Roots: a.ServicePool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		return err
	}
	if err := verify(); err != nil {
		t.Errorf("a running kenneld is refused: %v", err)
	}
	if err := a.Withdraw(Service, "service"); err != nil {
		t.Fatal(err)
	}
	if err := verify(); err == nil {
		t.Error("accepted after its authority was withdrawn")
	}
}

// TestRotateRoot: robots that know the old root stay, learn the new one when they renew, and then the old one goes. Robots made in between
// know both.
func TestRotateRoot(t *testing.T) {
	a := newAuthority(t)
	old, late := newRobot(t, a), newRobot(t, a)
	issuers := string(a.DeviceBundle())
	if err := os.Remove(filepath.Join(a.dir, "root.key")); err != nil { // it is in a safe, and is not needed
		t.Fatal(err)
	}
	a = reopen(t, a)
	if _, err := a.Rotate(Device, ""); errs.CodeOf(err) != "no_root_key" {
		t.Errorf("an issuing authority without the root's key: %v", err)
	}
	if _, err := a.Prepare(Root, ""); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(a.Root()), "BEGIN"); n != 2 {
		t.Fatalf("%d roots are handed to robots, want 2", n)
	}
	onlyNew := &robot{key: old.key, chain: old.chain, roots: pemfile.EncodeChain(a.now().root.gens[1].cert())}
	onlyOld := &robot{key: old.key, chain: old.chain, roots: old.roots}
	for _, stage := range []string{"prepared", "active"} {
		for name, r := range map[string]*robot{"knows the old root": onlyOld, "knows the new root": onlyNew, "just enrolled": newRobot(t, a)} {
			if err := r.meets(t, a); err != nil {
				t.Errorf("%s, %s: %v", stage, name, err)
			}
		}
		if stage == "prepared" {
			if _, err := a.Activate(Root); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !strings.HasPrefix(string(a.Root()), string(onlyNew.roots)) {
		t.Error("the root that signs does not come first")
	}
	// Issuing authorities are the same keys below another root, so that certificates and anchors of brokers stay good.
	was, err := pemfile.ParseChain([]byte(issuers))
	if err != nil {
		t.Fatal(err)
	}
	if now := a.now().device.current().cert(); !bytes.Equal(now.RawSubjectPublicKeyInfo, was[0].RawSubjectPublicKeyInfo) ||
		!bytes.Equal(now.RawSubject, was[0].RawSubject) {
		t.Error("the device authority is another one")
	}
	old.renew(t, a)
	if err := a.Withdraw(Root, "root"); err != nil {
		t.Fatal(err)
	}
	a = reopen(t, a)
	if err := old.meets(t, a); err != nil {
		t.Errorf("renewed in time: %v", err)
	}
	if err := late.meets(t, a); err == nil {
		t.Error("a robot that knows only the withdrawn root accepts the cloud")
	}
	if _, err := a.Rotate(Device, ""); err != nil { // the new root's key is here
		t.Error(err)
	}
	if err := newRobot(t, a).meets(t, a); err != nil {
		t.Error(err)
	}
}

// TestRotationSurvivesAKill: after a kill between any two files of a step, the folder loads as it was or as it will be, and repeating the
// step completes it. What was signed before is good throughout.
func TestRotationSurvivesAKill(t *testing.T) {
	steps := map[string]func(a *Authority) error{
		"prepare device":  func(a *Authority) error { _, err := a.Prepare(Device, ""); return done(err, "prepared") },
		"activate device": func(a *Authority) error { _, err := a.Activate(Device); return done(err, "not_prepared") },
		"withdraw device": func(a *Authority) error { return gone(a.Withdraw(Device, "device")) },
		"prepare root":    func(a *Authority) error { _, err := a.Prepare(Root, ""); return done(err, "prepared") },
		"activate root":   func(a *Authority) error { _, err := a.Activate(Root); return done(err, "not_prepared") },
		"withdraw root":   func(a *Authority) error { return gone(a.Withdraw(Root, "root")) },
	}
	house := newAuthority(t)
	for _, name := range []string{"prepare device", "activate device", "withdraw device", "prepare root", "activate root", "withdraw root"} {
		before := files2(t, house.dir)
		if err := steps[name](house); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		after := files2(t, house.dir)
		changes := order(before, after)
		for n := range len(changes) + 1 {
			dir := t.TempDir()
			for f, b := range before {
				write2(t, dir, f, b)
			}
			for _, f := range changes[:n] {
				if b, ok := after[f]; ok {
					write2(t, dir, f, b)
				} else if err := os.Remove(filepath.Join(dir, f)); err != nil {
					t.Fatal(err)
				}
				if base, ok := strings.CutSuffix(f, withdrawnEnd); ok { // a renaming is one step
					if err := os.Remove(filepath.Join(dir, base+crtEnd)); err != nil {
						t.Fatal(err)
					}
				}
			}
			what := fmt.Sprintf("%s, killed after %d of %v", name, n, changes)
			a, err := Load(dir)
			if err != nil {
				t.Errorf("%s: %v", what, err)
				continue
			}
			if err := newRobot(t, a).meets(t, a); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if err := steps[name](a); err != nil {
				t.Errorf("%s, repeated: %v", what, err)
			}
			if _, err := Init(dir); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			for f := range files2(t, dir) {
				if _, ok := after[f]; !ok {
					t.Errorf("%s: %s is there", what, f)
				}
			}
		}
	}
}

// done and gone: what a step says that was completed already.
func done(err error, code string) error {
	if errs.CodeOf(err) == code {
		return nil
	}
	return err
}

func gone(err error) error {
	if errs.KindOf(err) == errs.NotFound {
		return nil
	}
	return err
}

func files2(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, e := range entries {
		if e.Name() == "ca.lock" {
			continue
		}
		if out[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func write2(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// order lists what differs, in the order in which a step changes it: keys, a new authority's certificate, those of others, what names the
// one that signs, what is withdrawn, and keys deleted last.
func order(before, after map[string][]byte) []string {
	var rank [6][]string
	for f, b := range after {
		old, was := before[f]
		if was && bytes.Equal(old, b) {
			continue
		}
		switch {
		case strings.HasSuffix(f, keyEnd):
			rank[0] = append(rank[0], f)
		case strings.HasSuffix(f, crtEnd) && !was:
			rank[1] = append(rank[1], f)
		case strings.HasSuffix(f, crtEnd):
			rank[2] = append(rank[2], f)
		case strings.HasSuffix(f, currentEnd):
			rank[3] = append(rank[3], f)
		default:
			rank[4] = append(rank[4], f)
		}
	}
	for f := range before {
		if _, ok := after[f]; !ok && strings.HasSuffix(f, keyEnd) {
			rank[5] = append(rank[5], f)
		}
	}
	var out []string
	for _, r := range rank {
		out = append(out, r...)
	}
	return out
}

func TestWhoIsTrusted(t *testing.T) {
	a := newAuthority(t)
	if _, err := a.RotateDevice(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Prepare(Device, ""); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range a.Authorities() {
		got = append(got, fmt.Sprint(i.Name, " ", i.Stage, " ", i.Key))
	}
	if want := "[root signs file device earlier file device-1 signs file device-2 prepared file server signs file service signs file]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
	var anchored []string
	b, err := a.Anchors(Device, func(c *x509.Certificate, key crypto.Signer) ([]byte, error) {
		if !pemfile.SameKey(key, c.PublicKey) {
			t.Error("another's key")
		}
		anchored = append(anchored, c.Subject.CommonName)
		return []byte("x"), nil
	})
	if err != nil || string(b) != "xxx" || len(anchored) != 3 || anchored[0] != a.Authorities()[2].CommonName {
		t.Errorf("%q %v, %v", b, anchored, err)
	}
	if _, err := a.Anchors("other", nil); err == nil {
		t.Error("an authority of no kind")
	}
	// A folder that breaks leaves the last state in force.
	if err := os.WriteFile(filepath.Join(a.dir, "device.current"), []byte("device-7"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Reload(); err == nil || !strings.Contains(err.Error(), "device-7") {
		t.Errorf("%v", err)
	}
	if err := newRobot(t, a).meets(t, a); err != nil {
		t.Error(err)
	}
}

func TestKeyInAManagementService(t *testing.T) {
	a := newAuthority(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b, err := pemfile.EncodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "device.pem") // not in the folder
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Rotate(Device, "softkms:path="+file); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(a.dir, "device-1.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key lies in the folder: %v", err)
	}
	again := reopen(t, a)
	r := newRobot(t, again)
	if err := r.meets(t, again); err != nil {
		t.Error(err)
	}
	if !pemfile.SameKey(key, r.chain[1].PublicKey) || r.chain[0].CheckSignatureFrom(r.chain[1]) != nil {
		t.Error("not signed by the key of the service")
	}
	if i := again.Authorities()[2]; i.Name != "device-1" || i.Key != "kms" {
		t.Errorf("%+v", i)
	}
	if lists, err := again.DeviceCRLs(nil, 1, time.Now()); err != nil || len(lists) != 2 {
		t.Errorf("%d lists, %v", len(lists), err)
	}
	// A new house whose device authority has its key elsewhere from the first day.
	dir := t.TempDir()
	write2(t, dir, "device.kms", []byte("softkms:path="+file+"\n"))
	house, err := Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := newRobot(t, house).meets(t, house); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]struct{ uri, want string }{
		"nobody there":   {"softkms:path=/nonexistent/secret", "key management service"},
		"no such kind":   {"tpmkms:name=secret", "awskms or softkms"},
		"not an address": {"secret", "one line"},
		"key of another": {"softkms:path=" + filepath.Join(a.dir, "device.key"), "device.kms does not belong to device.crt"},
	} {
		write2(t, dir, "device.kms", []byte(bad.uri))
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	write2(t, dir, "device.kms", []byte("softkms:path="+file))
	write2(t, dir, "device.key", b)
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "both ") {
		t.Errorf("two keys: %v", err)
	}
}

// FuzzMarker: what names an authority names exactly one file.
func FuzzMarker(f *testing.F) {
	for _, s := range []string{"device", "device-1\n", "device-01", "device--1", "server", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := parseMarker(Device, b)
		if err != nil {
			return
		}
		if got := nameOf(Device, n); got != strings.TrimSpace(string(b)) || strings.ContainsAny(got, "/\\. ") {
			t.Fatalf("%q names %q", b, got)
		}
	})
}

// FuzzKMSAddress: an address is one line of a kind we know, and comes back as it was.
func FuzzKMSAddress(f *testing.F) {
	for _, s := range []string{"softkms:path=/x", "awskms:key-id=alias/a?region=b\n", "pkcs11:token=a?pin-value=1234", "x", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		uri, err := parseKMS(s)
		if err != nil {
			return
		}
		again, err := parseKMS(uri)
		if err != nil || again != uri || strings.ContainsAny(uri, "\r\n") {
			t.Fatalf("%q -> %q -> %q, %v", s, uri, again, err)
		}
	})
}
