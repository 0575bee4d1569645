package artifactapi_test

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cloud/updates/artifact"
	"kennel/cloud/updates/artifact/artifactapi"
	"kennel/cloud/updates/artifact/artifactpg"
	"kennel/infra/auth"
	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/archive/archivetest"
	"kennel/ota/delta"
	"kennel/ota/manifest"
	"kennel/ota/otaapi"
	"kennel/ota/otapg"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// house is a cloud's releases with everything real below them.
type house struct {
	*testing.T
	svc      *artifact.Service
	releases *ota.Service
	objects  *blob.Store
	api      *httptest.Server // with the role in the header Role
	files    *artifactapi.Files

	mu    sync.Mutex
	audit []string
	asked []string
	sent  int
}

func newHouse(t *testing.T, objects func(*blob.Store) artifact.Objects) *house {
	pool := pgtest.New(t)
	h := &house{T: t, releases: ota.New(otapg.New(pool), nil), objects: blobtest.New(t)}
	h.svc = artifact.New(artifact.Config{Store: artifactpg.New(pool), Objects: objects(h.objects), Add: h.releases.AddRelease, Next: h.releases.Next,
		Keys: []*rsa.PublicKey{&otherKey().PublicKey, &archivetest.Key().PublicKey}, Log: slog.New(slog.DiscardHandler)})
	h.releases.Supply(h.svc)
	mux := http.NewServeMux()
	artifactapi.Operations(h.svc, func(_ context.Context, action, object, detail string) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.audit = append(h.audit, action+" "+object+" "+detail)
		return nil
	}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	h.api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Role(r.Header.Get("Role")), Name: "rel@example.org"})))
	}))
	t.Cleanup(h.api.Close)
	h.files = artifactapi.NewFiles(h.svc, 2, func(channel, version, target, answer string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asked = append(h.asked, strings.Join([]string{channel, version, target, answer}, " "))
	}, func(_, _ string, n int) { h.mu.Lock(); defer h.mu.Unlock(); h.sent += n }, slog.New(slog.DiscardHandler))
	return h
}

func plain(s *blob.Store) artifact.Objects { return s }

var otherKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(nil, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func sumOf(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }

// ask makes one request of the API and returns status and body.
func (h *house) ask(role auth.Role, method, path string, body []byte) (int, string) {
	h.Helper()
	r, err := http.NewRequestWithContext(h.Context(), method, h.api.URL+path, bytes.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	r.Header.Set("Role", string(role))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// upload uploads an archive that must be taken.
func (h *house) upload(b []byte) (a artifact.Artifact) {
	h.Helper()
	code, body := h.ask(auth.ReleaseManager, "PUT", "/v1/releases/vic/archives/"+sumOf(b)+"?notes=calm", b)
	if err := json.Unmarshal([]byte(body), &a); code != 200 || err != nil {
		h.Fatalf("upload: %d %s, %v", code, body, err)
	}
	return a
}

// keys returns the keys of the objects that are kept.
func (h *house) keys() (out []string) {
	h.Helper()
	for o, err := range h.objects.List(h.Context(), "") {
		if err != nil {
			h.Fatal(err)
		}
		out = append(out, o.Key)
	}
	return out
}

func full(v ota.Version) []byte {
	return archivetest.Make(manifest.Manifest{Version: v}, archivetest.Production(), "")
}

func deltaArchive(base, v ota.Version) []byte {
	var b bytes.Buffer
	if err := delta.Make(&b, delta.Part{Name: "SYSTEM", Base: bytes.NewReader(archivetest.Image(8, 4000)), New: bytes.NewReader(archivetest.Image(9, 4000))}); err != nil {
		panic(err)
	}
	return changes(base, v, b.Bytes())
}

func changes(base, v ota.Version, b []byte) []byte {
	return archivetest.Make(manifest.Manifest{Version: v, Images: []manifest.Image{{Base: base}}}, map[manifest.Part][]byte{manifest.Changes: b}, "")
}

// TestUpload: an archive makes its release known and is kept as it came; the same one again changes nothing (VEC-OTA-23).
func TestUpload(t *testing.T) {
	h := newHouse(t, plain)
	b := full("2.0.1.6076")
	a := h.upload(b)
	key := "ota/vic/2.0.1.6076/production-" + sumOf(b)[:16] + ".ota"
	if a.Version != "2.0.1.6076" || a.Kind != manifest.Production || a.Size != int64(len(b)) || a.SHA256 != sumOf(b) || a.By != "rel@example.org" || a.Created.IsZero() || a.Key() != key {
		t.Errorf("%+v", a)
	}
	if again := h.upload(b); !again.Created.Equal(a.Created) {
		t.Errorf("again: %+v, want %+v", again, a)
	}
	if got := h.keys(); !slices.Equal(got, []string{key}) {
		t.Errorf("objects %q", got)
	}
	r, _, err := h.objects.Get(t.Context(), key, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if kept, err := io.ReadAll(r); err != nil || !bytes.Equal(kept, b) {
		t.Errorf("the object has %d bytes that differ, %v", len(kept), err)
	}
	if list, err := h.releases.Releases(t.Context(), "vic"); err != nil || len(list) != 1 || list[0].Notes != "calm" {
		t.Errorf("releases %+v, %v", list, err)
	}
	// Another archive of the same kind is another release; of other kinds there may be several.
	other := archivetest.Make(manifest.Manifest{Version: "2.0.1.6076", Reboot: true}, archivetest.Production(), "")
	if code, body := h.ask(auth.Admin, "PUT", "/v1/releases/vic/archives/"+sumOf(other), other); code != 409 || !strings.Contains(body, "archive_exists") {
		t.Errorf("another full archive: %d %s", code, body)
	}
	h.upload(deltaArchive("1.8.0.6051", "2.0.1.6076"))
	h.upload(deltaArchive("1.7.0.3412", "2.0.1.6076"))
	h.upload(archivetest.Make(manifest.Manifest{Version: "2.0.1.6076", QSN: "00e20100"}, archivetest.Factory(), ""))
	if got, err := h.svc.List(t.Context(), "vic", "2.0.1.6076"); err != nil || len(got) != 4 || len(h.keys()) != 4 {
		t.Errorf("%+v, %v; objects %q", got, err, h.keys())
	}
	if want := "release.upload vic 2.0.1.6076 production " + sumOf(b)[:16]; h.audit[0] != want || len(h.audit) != 4 {
		t.Errorf("audit %q, want %q first and 4 lines", h.audit, want)
	}
}

// TestRefusedArchives: what a robot would refuse is not kept, and the error has the robot's code and the reason (VEC-OTA-16).
func TestRefusedArchives(t *testing.T) {
	h := newHouse(t, plain)
	n := 0
	for _, f := range archivetest.Faults() {
		if f.Sound || f.Password != "" || len(f.Archive) == 0 {
			continue
		}
		n++
		code, body := h.ask(auth.ReleaseManager, "PUT", "/v1/releases/vic/archives/"+sumOf(f.Archive), f.Archive)
		if code != 400 || !strings.Contains(body, fmt.Sprintf(`"archive_%d"`, f.Code)) || !strings.Contains(body, f.Code.Words()) {
			t.Errorf("%s: %d %s, want code %d", f.Name, code, body, f.Code)
		}
	}
	whole := deltaArchive("1.8.0.6051", "2.0.1.6076")
	var payload bytes.Buffer
	if err := delta.Make(&payload, delta.Part{Name: "SYSTEM", Base: bytes.NewReader(nil), New: bytes.NewReader(archivetest.Image(9, 4000))}); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"no delta": archivetest.Image(9, 4000), "half a delta": payload.Bytes()[:payload.Len()/2], "more behind it": append(payload.Bytes(), 0)} {
		if b = changes("1.8.0.6051", "2.0.1.6076", b); bytes.Equal(b, whole) {
			t.Fatal("not broken")
		}
		if code, body := h.ask(auth.Admin, "PUT", "/v1/releases/vic/archives/"+sumOf(b), b); code != 400 || !strings.Contains(body, `"archive_207"`) {
			t.Errorf("%s: %d %s, want code 207", name, code, body)
		}
	}
	good := full("2.0.1.6076")
	for name, tt := range map[string]struct {
		role auth.Role
		path string
		body []byte
		code int
		want string
	}{
		"another hash":    {auth.Admin, "/v1/releases/vic/archives/" + sumOf([]byte("x")), good, 400, "the archive has SHA-256 " + sumOf(good)},
		"no hash":         {auth.Admin, "/v1/releases/vic/archives/latest", good, 400, "want the SHA-256"},
		"no species":      {auth.Admin, "/v1/releases/cat/archives/" + sumOf(good), good, 400, "species"},
		"nothing":         {auth.Admin, "/v1/releases/vic/archives/" + sumOf(nil), nil, 400, "Content-Length"},
		"viewer":          {auth.Viewer, "/v1/releases/vic/archives/" + sumOf(good), good, 403, "denied"},
		"nobody":          {"", "/v1/releases/vic/archives/" + sumOf(good), good, 401, "sign in"},
		"notes too large": {auth.Admin, "/v1/releases/vic/archives/" + sumOf(good) + "?notes=" + strings.Repeat("x", ota.MaxNotes+1), good, 400, "notes"},
	} {
		if code, body := h.ask(tt.role, "PUT", tt.path, tt.body); code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s, want %d and %q", name, code, body, tt.code, tt.want)
		}
	}
	if got := h.keys(); len(got) > 0 {
		t.Errorf("%d refused archives left %q", n, got)
	}
	if list, err := h.svc.List(t.Context(), "", ""); err != nil || len(list) > 0 {
		t.Errorf("kept %+v, %v", list, err)
	}
	if n < 50 {
		t.Errorf("%d faulty archives tried", n)
	}
	h.svc.Keys = nil
	if code, body := h.ask(auth.Admin, "PUT", "/v1/releases/vic/archives/"+sumOf(good), good); code != 503 || !strings.Contains(body, "releases.keys") {
		t.Errorf("without keys: %d %s", code, body)
	}
}

// TestDesiredSaysWhereTheArchiveIs: a robot that asks is given the delta from what it runs, else the full archive, at an address where it can be read.
func TestDesiredSaysWhereTheArchiveIs(t *testing.T) {
	h := newHouse(t, plain)
	whole, small := full("2.0.1.6076"), deltaArchive("1.8.0.6051", "2.0.1.6076")
	if _, err := h.releases.SetSpeciesDesired(t.Context(), "vic", "2.0.1.6076", "op"); err == nil {
		t.Fatal("an unknown release is wanted")
	}
	if err := h.releases.AddRelease(t.Context(), ota.Release{Species: "vic", Version: "2.0.1.6076"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.releases.SetSpeciesDesired(t.Context(), "vic", "2.0.1.6076", "op"); err != nil {
		t.Fatal(err)
	}
	desired := otaapi.NewMQTT(h.releases, slog.New(slog.DiscardHandler)).Desired()
	ask := func(running string) ota.Desired {
		t.Helper()
		b, err := desired(t.Context(), thing.ID("vic:00e20100"), fmt.Appendf(nil, `{"v":1,"running":%q}`, running))
		if err != nil {
			t.Fatal(err)
		}
		d, err := ota.ParseDesired(b)
		if err != nil || d.Release != "2.0.1.6076" {
			t.Fatalf("%s, %v", b, err)
		}
		return d
	}
	if d := ask("1.8.0.6051"); d.Artifact != (ota.Artifact{}) {
		t.Errorf("a release without archives: %+v", d)
	}
	h.upload(small)
	if d := ask("1.7.0.3412"); d.Artifact != (ota.Artifact{}) {
		t.Errorf("only a delta for others: %+v", d)
	}
	h.upload(whole)
	h.upload(archivetest.Make(manifest.Manifest{Version: "2.0.1.6076", QSN: "00e20199"}, archivetest.Production(), "")) // one robot's own
	for running, want := range map[string][]byte{"1.8.0.6051": small, "1.7.0.3412": whole, "": whole, "v1.2.3 (abcdef)": whole, "2.0.1.6076": nil} {
		d := ask(running)
		if want == nil {
			if d.Artifact != (ota.Artifact{}) {
				t.Errorf("a robot that runs it already: %+v", d)
			}
			continue
		}
		if d.SHA256 != sumOf(want) || d.Size != int64(len(want)) {
			t.Fatalf("from %q: %+v", running, d)
		}
		resp, err := http.Get(d.URL)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("from %q: %s has %d bytes that differ, %v", running, d.URL, len(got), err)
		}
	}
}

// TestTwoUploadsAtOnce: both get the same answer, and one archive is kept.
func TestTwoUploadsAtOnce(t *testing.T) {
	h := newHouse(t, plain)
	b := full("2.0.1.6076")
	var wg sync.WaitGroup
	got := make([]artifact.Artifact, 4)
	for i := range got {
		wg.Go(func() { got[i] = h.upload(b) })
	}
	wg.Wait()
	for _, a := range got {
		if a != got[0] {
			t.Errorf("%+v, want %+v", a, got[0])
		}
	}
	if len(h.keys()) != 1 {
		t.Errorf("objects %q", h.keys())
	}
}

// broken is an object store at which a process ends.
type broken struct {
	*blob.Store
	at string
}

func (b *broken) PutOnce(ctx context.Context, key string, body io.Reader, size int64, o blob.PutOptions, d blob.Digests) (string, error) {
	if b.at == "before" {
		return "", fmt.Errorf("the end")
	}
	return b.Store.PutOnce(ctx, key, body, size, o, d)
}

func (b *broken) Head(ctx context.Context, key string) (blob.Info, error) {
	if b.at == "after" {
		return blob.Info{}, fmt.Errorf("the end")
	}
	i, err := b.Store.Head(ctx, key)
	if b.at == "old" {
		i.Modified = i.Modified.Add(-25 * time.Hour)
	}
	return i, err
}

func (b *broken) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		for o, err := range b.Store.List(ctx, prefix) {
			if b.at == "old" || b.at == "new" {
				o.Modified = o.Modified.Add(-25 * time.Hour)
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

// TestSweep: what an upload leaves that ended between object and row is swept once it is old; what has a row, or is just uploaded again, stays.
func TestSweep(t *testing.T) {
	b := &broken{}
	h := newHouse(t, func(s *blob.Store) artifact.Objects { b.Store = s; return b })
	kept, lost := full("2.0.1.6076"), full("2.0.1.6077")
	h.upload(kept)
	for _, at := range []string{"before", "after"} {
		b.at = at
		if code, body := h.ask(auth.Admin, "PUT", "/v1/releases/vic/archives/"+sumOf(lost), lost); code != 500 {
			t.Fatalf("%s the object is stored: %d %s", at, code, body)
		}
	}
	for _, tt := range []struct {
		at         string
		swept, all int
	}{{"", 0, 2}, {"new", 0, 2}, {"old", 1, 1}, {"old", 0, 1}} {
		b.at = tt.at
		if n, err := h.svc.Sweep(t.Context()); n != tt.swept || err != nil || len(h.keys()) != tt.all {
			t.Errorf("%q: swept %d, %v, objects %q; want %d and %d", tt.at, n, err, h.keys(), tt.swept, tt.all)
		}
	}
	b.at = ""
	if h.upload(lost); len(h.keys()) != 2 {
		t.Errorf("uploaded again: objects %q", h.keys())
	}
}

// TestDelete: an archive and its object can be deleted, once nothing uses its release; each deletion is in the audit log.
func TestDelete(t *testing.T) {
	h := newHouse(t, plain)
	h.svc.Users = append(h.svc.Users, h.releases.Used)
	stone, last := h.upload(full("2.0.1.6076")), h.upload(full("2.0.1.6079"))
	small := h.upload(deltaArchive("2.0.1.6076", "2.0.1.6079"))
	del := func(a artifact.Artifact, code int, want string) {
		t.Helper()
		if got, body := h.ask(auth.ReleaseManager, "DELETE", "/v1/archives/vic/"+a.SHA256, nil); got != code || !strings.Contains(body, want) {
			t.Errorf("%d %s, want %d and %q", got, body, code, want)
		}
	}
	set := func(v ota.Version) {
		t.Helper()
		if _, err := h.svc.SetChannel(t.Context(), artifact.Channel{Species: "vic", Channel: "beta", Version: v}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(scope thing.ID, v ota.Version) {
		t.Helper()
		if _, err := h.releases.SetDesired(t.Context(), scope, v, "op"); err != nil {
			t.Fatal(err)
		}
	}
	set("2.0.1.6079")
	del(small, 409, "the channel beta")
	set("")
	want("vic:1", "2.0.1.6079")
	del(last, 409, "the wish for vic:1")
	want("vic:1", "")
	if err := h.releases.SetLowest(t.Context(), "vic", "2.0.1.6079", "2.0.1.6076"); err != nil {
		t.Fatal(err)
	}
	del(stone, 409, "release 2.0.1.6079, which robots get after it")
	h.audit = nil
	del(small, 200, `"base_version":"2.0.1.6076"`)
	del(last, 200, last.SHA256)
	del(last, 404, "no_archive")
	if code, _ := h.ask(auth.Viewer, "DELETE", "/v1/archives/vic/"+stone.SHA256, nil); code != 403 {
		t.Errorf("a viewer: %d", code)
	}
	if got := h.keys(); len(got) != 1 || got[0] != stone.Key() || len(h.audit) != 2 || h.audit[0] != "release.delete vic 2.0.1.6079 delta from 2.0.1.6076 "+small.SHA256[:16] {
		t.Errorf("objects %q, audit %q", got, h.audit)
	}
	if again := h.upload(full("2.0.1.6079")); again.SHA256 != last.SHA256 || len(h.keys()) != 2 {
		t.Errorf("uploaded again: %+v", again)
	}
}
