package pages

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/access"
	"kennel/cmd/e2e/housetest"
)

// walk goes through a site page by page, as people do.
type walk struct{ *housetest.Site }

// TestBrowser looks at the pages as people do (issue 5, what must hold 1 to 3).
func TestBrowser(t *testing.T) {
	if dir := housetest.ScreensDir(); dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := housetest.New(t, "-robots", "2", "-originals", "kennel.invalid")
	h.Start()
	s := &walk{housetest.NewSite(t, h)}
	things := h.AwaitPresent(2)
	planted := s.plant(t)
	t.Run("owner", func(t *testing.T) { s.owner(t, things[0]) })
	t.Run("operator", func(t *testing.T) { s.newOperator(t, things[1], planted) })
	t.Run("no page was forgotten", func(t *testing.T) {
		var missed []string
		for name, rule := range access.HTTP {
			if strings.HasPrefix(name, "GET ") && rule.Page && !s.Seen[name] && !slices.Contains(noPages, name) {
				missed = append(missed, name)
			}
		}
		slices.Sort(missed)
		if len(missed) > 0 {
			t.Errorf("nobody looked at %q", missed)
		}
	})
}

// noPages are routes among the pages that are not one themselves, need an identity provider, or have a test of their own.
var noPages = []string{"GET /assets/{file}", "GET /my/assets/{file}", "GET /live", "GET /my/live", "GET /tail/stream", "GET /audit/export", "GET /login/oidc",
	"GET /login/oidc/callback", "GET /things/{thing}/logs", "GET /things/{thing}/logs/{log}", // TestUploadedLogs
	"GET /playground", "GET /playground/{file}", // TestPlayground
	"GET /things/{thing}/motions"} // TestMotionsTab and TestMotionsPage: no robot of this house has motions

// planted are robots that are not well, and why.
type planted struct {
	root, secret, port, offline string
}

// plant makes robots that cannot get in: one does not trust this cloud, one brings another's secret, one cannot reach the broker. A fourth was
// here and left.
func (s *walk) plant(t *testing.T) planted {
	t.Helper()
	p := planted{root: "vic:00e2bad1", secret: "vic:00e2bad2", port: "vic:00e2bad3", offline: "vic:00e20ff1"}
	strip := func(url string) string { _, addr, _ := strings.Cut(url, "://"); return strings.TrimRight(addr, "/") }
	foreign := filepath.Join(t.TempDir(), "foreign.crt")
	if err := os.WriteFile(foreign, foreignRoot(t), 0o644); err != nil {
		t.Fatal(err)
	}
	var secrets []string
	for _, thing := range []string{p.root, p.secret, p.port, p.offline} {
		var reg struct{ Secret string }
		if err := s.CtlJSON(&reg, "robots", "register", thing); err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, reg.Secret)
	}
	run := func(thing, secret, ca string) *housetest.Wired {
		r := &housetest.Wired{Thing: thing, Root: filepath.Join(s.Dir, "planted-"+strings.Replace(thing, ":", "-", 1))}
		r.API, r.MQTT = housetest.NewWire(t, strip(s.Ready.Endpoints["api"])), housetest.NewWire(t, strip(s.Ready.Endpoints["mqtt"]))
		file := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := housetest.Program(t, "", nil, "robotsim", "make", "-root", r.Root, "-thing", thing, "-secret-file", file, "-api",
			"https://"+r.API.Addr, "-mqtt", "ssl://"+r.MQTT.Addr, "-ca", ca); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return r
	}
	trusted := s.Ready.Files["root_ca"]
	stops := []func(){run(p.root, secrets[0], foreign).Run(t), run(p.secret, secrets[0], trusted).Run(t)}
	blocked := run(p.port, secrets[2], trusted)
	blocked.MQTT.Cut()
	stops = append(stops, blocked.Run(t))
	stop := run(p.offline, secrets[3], trusted).Run(t)
	s.AwaitPresent(3)
	stop()
	for thing, want := range map[string]string{p.root: "not enrolled", p.secret: "refused", p.port: "has not connected to the broker"} {
		housetest.Await(t, time.Minute, "what the doctor says of "+thing, func() error {
			var r struct{ Verdict string }
			if err := s.CtlJSON(&r, "doctor", thing); r.Verdict == "" {
				return err
			}
			if !strings.Contains(r.Verdict, want) {
				return fmt.Errorf("%s", r.Verdict)
			}
			return nil
		})
	}
	s.AwaitAbsent(p.offline)
	for _, stop := range stops {
		stop() // their owners give up; what they tried is known
	}
	return p
}

// foreignRoot is a root certificate that this cloud has nothing to do with.
func foreignRoot(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Another cloud"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
