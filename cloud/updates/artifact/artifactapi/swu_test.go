package artifactapi_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"kennel/cloud/updates/artifact"
	"kennel/cloud/updates/artifact/artifactapi"
	"kennel/infra/auth"
	"kennel/ota/swu/swutest"
)

// TestSWU (issue 17, build 6): a file for SWUpdate is kept with its sums, beside the archive for other robots, which are not given it; what SWUpdate would refuse
// is not kept.
func TestSWU(t *testing.T) {
	h := newHouse(t, plain)
	h.upload(full("2.0.1.6076"))
	good := swutest.Pack("sw-description", "software = {}", "a.sh", strings.Repeat("x", 100_000))
	put := func(b []byte, version string) (int, string) {
		return h.ask(auth.ReleaseManager, "PUT", "/v1/releases/vic/archives/"+sumOf(b)+"?notes=calm&version="+version, b)
	}
	for _, tt := range []struct {
		file    []byte
		version string
		code    int
		want    string
	}{
		{good, "", 400, "four numbers"},
		{good, "1.0", 400, "four numbers"},
		{full("2.0.1.6077"), "2.0.1.6077", 400, "2.0.1.6077"},
		{swutest.Pack("a", "b"), "2.0.1.6076", 400, "archive_200"},
		{good[:len(good)-2000], "2.0.1.6076", 400, "archive_204"},
		{append(slices.Clone(good), "more"...), "2.0.1.6076", 400, "archive_204"},
		{good, "2.0.1.6076", 200, `"kind":"swu"`},
		{good, "2.0.1.6076", 200, `"kind":"swu"`}, // it is kept
		{swutest.Pack("sw-description", "another"), "2.0.1.6076", 409, "archive_exists"},
	} {
		if code, body := put(tt.file, tt.version); code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%d bytes as %q: %d %s, want %d and %q", len(tt.file), tt.version, code, body, tt.code, tt.want)
		}
	}
	list, err := h.svc.List(t.Context(), "vic", "2.0.1.6076")
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	i := slices.IndexFunc(list, func(a artifact.Artifact) bool { return a.Kind == artifact.SWU })
	if a := list[i]; a.Size != int64(len(good)) || len(a.SHA1) != 40 || len(a.MD5) != 32 || !strings.HasSuffix(a.Key(), ".swu") {
		t.Errorf("%+v", a)
	}
	if _, _, sum, err := artifact.ParseKey(list[i].Key()); err != nil || sum != list[i].SHA256[:16] {
		t.Errorf("%s, %v", sum, err)
	}
	if a, err := h.svc.Artifact(t.Context(), "vic", "1.8.0.6051", "2.0.1.6076"); err != nil || a.SHA256 != list[1-i].SHA256 {
		t.Errorf("other robots get %+v, %v", a, err)
	}
	send := artifactapi.NewSender(h.svc, 0, slog.New(slog.DiscardHandler)) // all places are taken
	for method, code := range map[string]int{"GET": 503, "HEAD": 200} {
		w := httptest.NewRecorder()
		send(w, httptest.NewRequestWithContext(t.Context(), method, "/", nil), list[i])
		if w.Code != code || code == 503 && w.Header().Get("Retry-After") == "" || code == 200 && w.Header().Get("Content-Length") != fmt.Sprint(len(good)) {
			t.Errorf("%s: %d %v", method, w.Code, w.Header())
		}
	}
	if b, err := json.Marshal(list[1-i]); err != nil || strings.Contains(string(b), "sha1") {
		t.Errorf("%s, %v", b, err)
	}
}
