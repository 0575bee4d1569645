package hawkbitwire_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/updates/artifact"
	"kennel/cloud/updates/artifact/artifactpg"
	"kennel/cloud/updates/hawkbit/hawkbitwire"
	"kennel/cloud/updates/rollout"
	"kennel/cloud/updates/rollout/rolloutpg"
	"kennel/cloud/updates/rollout/rolloutwire"
	"kennel/cloud/wire"
	"kennel/infra/auth"
	"kennel/infra/blob/blobtest"
	"kennel/infra/pg/pgtest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/otapg"
	"kennel/ota/swu/swutest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	arm = thing.ID("amigo:arm-7")
	old = "1.0.0.1"
)

// house is the cloud of devices with everything real below it.
type house struct {
	*testing.T
	releases  *ota.Service
	rollouts  *rollout.Service
	archives  *artifact.Service
	robots    *registry.Service
	authority *ca.Authority
	api       *httptest.Server
	root      string // file
	revoked   atomic.Bool

	mu     sync.Mutex
	cut    int      // downloads break off after so many bytes; 0: they do not
	ranges []string // of downloads
	asked  []string // requests with their bodies
}

func newHouse(t *testing.T, cfg hawkbitwire.Config) *house {
	t.Helper()
	pool, log := pgtest.New(t), slog.New(slog.DiscardHandler)
	h := &house{T: t, releases: ota.New(otapg.New(pool), nil)}
	store := registrypg.New(pool, log)
	h.robots = registry.New(store, store, registry.Sources{}, log)
	h.rollouts = rollout.New(rollout.Config{Store: rolloutpg.New(pool), Fleet: rolloutwire.Fleet(h.robots.Briefs, nil), Known: h.releases.Known, Path: h.releases.Path, Wished: h.releases.Wished, Now: time.Now})
	h.releases.Follow(h.rollouts)
	h.archives = artifact.New(artifact.Config{Store: artifactpg.New(pool), Objects: blobtest.New(t), Add: h.releases.AddRelease, Log: log})
	h.releases.Supply(h.archives)
	var err error
	if h.authority, err = ca.Init(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	slice, err := hawkbitwire.Wire(wire.Base{Pool: pool, Log: log}, cfg, hawkbitwire.Needs{Releases: h.releases, Archives: h.archives, Robots: h.robots,
		Identify: func(chain []*x509.Certificate) (thing.ID, error) {
			peer, err := certs.Trust{Devices: h.authority.DevicePool(), Check: func(*x509.Certificate) error { return nil }}.Identify(chain, time.Now())
			return peer.Thing, err
		},
		Revoked: func(context.Context, thing.ID) (bool, error) { return h.revoked.Load(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	err = wire.Slices{slice}.Mount(mux, wire.Doors{Known: h.robots.Known, Audit: func(context.Context, string, string, string) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	h.api = httptest.NewUnstartedServer(h.watch(mux))
	pair, err := h.authority.IssueServer([]string{"127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	h.api.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequestClientCert}
	h.api.StartTLS()
	t.Cleanup(h.api.Close)
	h.root = filepath.Join(t.TempDir(), "root.pem")
	swutest.Write(t, h.root, h.authority.Root())
	if err := h.robots.Register(t.Context(), arm); err != nil {
		t.Fatal(err)
	}
	return h
}

// watch notes what is asked, and breaks downloads off.
func (h *house) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing is missed below
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.mu.Lock()
		h.asked = append(h.asked, r.Method+" "+r.URL.Path+" "+string(body))
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/softwaremodules/") {
			h.ranges = append(h.ranges, r.Header.Get("Range"))
			if h.cut > 0 {
				w = &cutter{w, h.cut}
				h.cut = 0
			}
		}
		h.mu.Unlock()
		next.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Role(r.Header.Get("Role")), Addr: r.RemoteAddr})))
	})
}

// cutter breaks an answer off.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left < 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush() // so that what was written arrives
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(b)
}

// count returns how many requests contained a text.
func (h *house) count(text string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.asked {
		if strings.Contains(a, text) {
			n++
		}
	}
	return n
}

// do makes one request and returns status and body.
func (h *house) do(client *http.Client, method, path, body string, header ...string) (int, string, http.Header) {
	h.Helper()
	req, err := http.NewRequestWithContext(h.Context(), method, h.api.URL+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

// token makes a device's token.
func (h *house) token(id thing.ID) string {
	h.Helper()
	code, body, _ := h.do(h.api.Client(), "POST", "/v1/things/"+string(id)+"/device-token", "", "Role", "admin")
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(body), &made); code != 200 || err != nil || len(made.Token) < 26 {
		h.Fatalf("token: %d %s, %v", code, body, err)
	}
	return made.Token
}

// upload uploads a file that must be taken.
func (h *house) upload(version string, b []byte) artifact.Artifact {
	h.Helper()
	sum := sha256.Sum256(b)
	a, err := h.archives.Upload(h.Context(), artifact.Upload{Species: arm.Species(), Version: ota.Version(version), SHA256: hex.EncodeToString(sum[:]), Size: int64(len(b)),
		Body: bytes.NewReader(b), By: "op", Audit: func(context.Context, string, string, string) error { return nil }})
	if err != nil {
		h.Fatal(err)
	}
	return a
}

// rollout brings a version to all devices, each with so many bytes a second (0: no limit). It is in its first phase.
func (h *house) rollout(version string, bandwidth int64) string {
	h.Helper()
	r, err := h.rollouts.Create(h.Context(), "", rollout.Spec{Species: arm.Species(), Version: ota.Version(version), Channel: rollout.Beta, Phases: []rollout.Phase{{Percent: 100, BakeS: 60}}, Cap: 1, Guards: []rollout.Guard{}, Bandwidth: bandwidth}, false, "op")
	if err == nil {
		err = h.rollouts.StepOne(h.Context(), r.ID)
	}
	if err != nil {
		h.Fatal(err)
	}
	return r.ID
}

// why returns what a rollout says of the device.
func (h *house) why(id string) rollout.Why {
	h.Helper()
	list, err := h.rollouts.Explain(h.Context(), arm)
	if err != nil {
		h.Fatal(err)
	}
	for _, w := range list {
		if w.Rollout == id {
			return w.Why
		}
	}
	return rollout.Why{}
}

// awaitWhy waits until a rollout says so of the device.
func (h *house) awaitWhy(d *device, id string, code rollout.WhyCode) (w rollout.Why) {
	h.Helper()
	failed := h.Failed()
	defer func() {
		if h.Failed() && !failed {
			h.Log(d.log())
		}
	}()
	testwait.Until(h, testwait.Long, "the rollout says "+string(code), func() error {
		if w = h.why(id); w.Code != code {
			return fmt.Errorf("it says %+v", w)
		}
		return nil
	})
	return w
}
