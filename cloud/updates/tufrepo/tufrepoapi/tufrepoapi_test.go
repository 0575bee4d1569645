package tufrepoapi_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cloud/updates/artifact"
	"kennel/cloud/updates/tufrepo"
	"kennel/cloud/updates/tufrepo/tufrepoapi"
	"kennel/cloud/updates/tufrepo/tufrepopg"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/manifest"
	"kennel/ota/trust"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type archives []artifact.Artifact

func (a *archives) List(context.Context, thing.Species, ota.Version) ([]artifact.Artifact, error) {
	return *a, nil
}

func (a *archives) add(v ota.Version) {
	sum := sha256.Sum256([]byte(v))
	*a = append(*a, artifact.Artifact{Species: thing.Vector, Version: v, Kind: manifest.Production, Size: 9, SHA256: hex.EncodeToString(sum[:])})
}

func newKey(t *testing.T) crypto.Signer {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestMetadata: two processes of a cloud that sign dev, and people who sign prod. Both renew at once, and what is published changes once; robots get it from
// either; what they would refuse is not taken; what expires is told in time.
func TestMetadata(t *testing.T) {
	pool, ctx := pgtest.New(t), t.Context()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	online, people, stranger := newKey(t), newKey(t), newKey(t)
	role := func(k crypto.Signer) trust.Role {
		return trust.Role{Keys: []crypto.PublicKey{k.Public()}, Threshold: 1}
	}
	sign := func(b []byte, err error, keys ...crypto.Signer) string {
		t.Helper()
		for _, k := range keys {
			if err == nil {
				b, err = trust.Sign(b, k)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var list archives
	process := func() *tufrepo.Service {
		return tufrepo.New(tufrepo.Config{Store: tufrepopg.New(pool), Archives: &list, Keys: trust.Publisher{Keys: []crypto.Signer{online}}, Now: func() time.Time { return now }})
	}
	a, b := process(), process()
	if _, err := a.Answer(ctx, "vic:00e20100", trust.Question{Root: 1}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("before anything is published: %v", err)
	}
	if err := a.Renew(ctx); err != nil {
		t.Errorf("renew nothing: %v", err)
	}

	var audited []string
	mux := http.NewServeMux()
	tufrepoapi.Operations(a, func(_ context.Context, action, object, detail string) error {
		audited = append(audited, action+" "+object+" "+detail)
		return nil
	}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	post := func(as auth.Role, files map[string]string) (states []ota.RoleState, code int, text string) {
		t.Helper()
		body, err := json.Marshal(tufrepoapi.Metadata{Metadata: files})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/releases/metadata", bytes.NewReader(body)).WithContext(auth.WithCaller(ctx, auth.Caller{Role: as, Name: "rel@example.org"})))
		_ = json.Unmarshal(w.Body.Bytes(), &states) // refusals are none
		return states, w.Code, w.Body.String()
	}
	root := sign(trust.EditRoot(nil, map[string]trust.Role{"root": role(people), "targets": role(people), "snapshot": role(online), "timestamp": role(online)}, now.AddDate(1, 0, 0)))
	root = sign([]byte(root), nil, people)
	top, err := trust.EditTargets(1, nil, map[string]trust.Role{"prod": role(people), "dev": role(online)}, now.AddDate(1, 0, 0))
	targets := sign(top, err, people)
	channel := func(version int64, by crypto.Signer, paths ...string) string {
		named := map[string]trust.Target{}
		for _, p := range paths {
			named[p] = trust.Target{Length: 1, SHA256: sha256.Sum256([]byte(p))}
		}
		b, err := trust.EditChannel(version, named, now.AddDate(0, 3, 0))
		return sign(b, err, by)
	}
	if _, code, text := post(auth.Support, map[string]string{"1.root": root}); code != http.StatusForbidden {
		t.Errorf("support may publish: %d %s", code, text)
	}
	if _, code, text := post(auth.ReleaseManager, map[string]string{"1.root": root}); code != http.StatusBadRequest || !strings.Contains(text, "upload 1.root and targets together") {
		t.Errorf("root alone: %d %s", code, text)
	}
	states, code, text := post(auth.ReleaseManager, map[string]string{"1.root": root, "targets": targets, "prod": channel(1, people, "vic/1.0.0.1/production")})
	if code != http.StatusOK || len(states) != 6 || !slices.Contains(audited, "release.metadata metadata 1.root version 1, prod version 1, targets version 1") {
		t.Fatalf("%d %s; audit %q", code, text, audited)
	}
	for _, s := range states {
		if s.Here != (s.Role == "timestamp" || s.Role == "snapshot" || s.Role == "dev") || s.Problem != "" || len(s.Keys) != 1 || s.Threshold != 1 {
			t.Errorf("%+v", s)
		}
	}
	if _, code, text := post(auth.ReleaseManager, map[string]string{"prod": channel(2, stranger)}); code != http.StatusBadRequest || !strings.Contains(text, "metadata_refused") || !strings.Contains(text, "role prod") {
		t.Errorf("prod signed by a stranger: %d %s", code, text)
	}

	robot := &trust.Known{Root: []byte(root)}
	named := func(svc *tufrepo.Service, path string, channels ...string) error {
		v, err := robot.Refresh(func(q trust.Question) (trust.Answer, error) { return svc.Answer(ctx, "vic:00e20100", q) }, now, channels...)
		if err == nil {
			_, err = v.Target(path, channels...)
		}
		return err
	}
	if err := named(b, "vic/1.0.0.1/production", "prod"); err != nil {
		t.Error(err)
	}

	// an archive is uploaded; all processes sign at once
	list.add("1.0.0.2")
	now = now.Add(time.Minute)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := []*tufrepo.Service{a, b}[i%2].Renew(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var versions int
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM vouch_metadata WHERE role = 'timestamp'`).Scan(&versions); err != nil || versions != 2 {
		t.Errorf("%d versions of timestamp, %v; want 2", versions, err)
	}
	if err := named(a, "vic/1.0.0.2/production", "prod", "dev"); err != nil {
		t.Error(err)
	}
	if err := named(a, "vic/1.0.0.2/production", "prod"); err == nil || !strings.Contains(err.Error(), "in no channel") {
		t.Errorf("prod has what people did not sign: %v", err)
	}

	// many versions of root while the robot is off; each is kept, of the others the last ten
	last := []byte(root)
	for n := 2; n <= 20; n++ {
		now = now.Add(25 * time.Hour)
		next, err := trust.EditRoot(last, nil, now.AddDate(1, 0, 0))
		last = []byte(sign(next, err, people))
		if _, code, text := post(auth.Admin, map[string]string{fmt.Sprintf("%d.root", n): string(last)}); code != http.StatusOK {
			t.Fatalf("root %d: %d %s", n, code, text)
		}
	}
	if err := named(b, "vic/1.0.0.2/production", "dev"); err != nil || trust.Version(robot.Root) != 20 {
		t.Errorf("root %d, %v", trust.Version(robot.Root), err)
	}
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM vouch_metadata WHERE role = 'timestamp'`).Scan(&versions); err != nil || versions != 10 {
		t.Errorf("%d versions of timestamp are kept, %v; want 10", versions, err)
	}

	// what people have to sign is told a month before it expires
	if err := a.Check(ctx); err != nil {
		t.Errorf("warning %v", err)
	}
	now = time.Date(2026, 7, 10, 0, 0, 0, 0, time.UTC)
	if err := b.Renew(ctx); err != nil {
		t.Error(err)
	}
	if err := a.Check(ctx); err == nil || !strings.Contains(err.Error(), "role prod expire at 2026-08-01") || strings.Contains(err.Error(), "timestamp") {
		t.Errorf("warning %v", err)
	}
}
