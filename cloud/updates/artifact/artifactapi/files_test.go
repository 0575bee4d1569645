package artifactapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"kennel/cloud/updates/artifact"
	"kennel/infra/auth"
	"kennel/infra/blob"
	"kennel/infra/testwait"
	"kennel/ota/archive/archivetest"
	"kennel/ota/manifest"
)

// channel has a channel offer a release, which must work.
func (h *house) channel(name, version string) {
	h.Helper()
	if code, body := h.ask(auth.Admin, "PUT", "/v1/channels/vic/"+name, fmt.Appendf(nil, `{"version":%q}`, version)); code != 200 {
		h.Fatalf("channel %s: %d %s", name, code, body)
	}
}

// TestChannels: a channel offers a release that has a full archive, and each change is audited.
func TestChannels(t *testing.T) {
	h := newHouse(t, plain)
	h.upload(full("2.0.1.6076"))
	h.upload(deltaArchive("2.0.1.6076", "2.0.1.6077"))
	h.upload(archivetest.Make(manifest.Manifest{Version: "2.0.1.6078d", Dev: true}, archivetest.Production(), ""))
	for _, tt := range []struct {
		role       auth.Role
		path, body string
		code       int
		want       string
	}{
		{auth.Viewer, "vic/prod", `{"version":"2.0.1.6076"}`, 403, "denied"},
		{auth.Admin, "vic/stable", `{"version":"2.0.1.6076"}`, 400, "want one of prod"},
		{auth.Admin, "cat/prod", `{"version":""}`, 400, "species"},
		{auth.Admin, "vic/prod", `{}`, 400, "no version"},
		{auth.Admin, "vic/prod", `{"version":"2.0"}`, 400, "four numbers"},
		{auth.Admin, "vic/prod", `{"version":"9.9.9.9"}`, 409, "no full archive"},
		{auth.Admin, "vic/prod", `{"version":"2.0.1.6077"}`, 409, "no full archive"},
		{auth.Admin, "vic/prod", `{"version":"2.0.1.6078d"}`, 409, "code 214"},
		{auth.ReleaseManager, "vic/dev", `{"version":"2.0.1.6078d"}`, 200, `"version":"2.0.1.6078d"`},
		{auth.Admin, "vic/prod", `{"version":"2.0.1.6076"}`, 200, `"by":"rel@example.org"`},
	} {
		if code, body := h.ask(tt.role, "PUT", "/v1/channels/"+tt.path, []byte(tt.body)); code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s as %s: %d %s, want %d and %q", tt.path, tt.body, tt.role, code, body, tt.code, tt.want)
		}
	}
	before, err := h.svc.Channels(t.Context(), "vic")
	if err != nil || len(before) != 2 || before[1].Channel != "prod" || before[1].Version != "2.0.1.6076" {
		t.Fatalf("%+v, %v", before, err)
	}
	h.channel("prod", "2.0.1.6076") // again: since when stays
	if again, err := h.svc.Channels(t.Context(), ""); err != nil || !slices.Equal(again, before) {
		t.Errorf("%+v, %v; want %+v", again, err, before)
	}
	if code, body := h.ask(auth.Viewer, "GET", "/v1/channels?species=pleo", nil); code != 200 || body != "[]\n" {
		t.Errorf("of pleo: %d %s", code, body)
	}
	if !slices.Contains(h.audit, "release.channel vic prod 2.0.1.6076") {
		t.Errorf("audit %q", h.audit)
	}
}

// robot asks for a file as the updater of an original robot does.
func (h *house) robot(method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(h.Context(), method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.files.Or(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })).ServeHTTP(w, r)
	return w
}

// TestFiles: original robots find full archives and deltas where their updater looks for them; a delta that is missing is 404, and what no channel ever
// offered is left to the door, which notes who asked (VEC-OTA-18).
func TestFiles(t *testing.T) {
	h := newHouse(t, plain)
	old, now, step := full("2.0.1.6076"), full("2.0.1.6079"), deltaArchive("2.0.1.6076", "2.0.1.6079")
	for _, b := range [][]byte{old, now, step, full("2.0.1.6090")} {
		h.upload(b)
	}
	if w := h.robot("GET", "/vic/prod/full/latest.ota"); w.Code != http.StatusTeapot {
		t.Errorf("before the channel offers anything: %d", w.Code)
	}
	h.channel("prod", "2.0.1.6076")
	h.channel("prod", "2.0.1.6079")
	h.asked = nil
	for _, tt := range []struct {
		path  string
		code  int
		want  []byte
		count string
	}{
		{"full/latest.ota", 200, now, "prod 2.0.1.6079  sent"},
		{"full/latest.ota?victorversion=2.0.1.6076&victortarget=1", 200, now, "prod 2.0.1.6079 oskr sent"},
		{"full/2.0.1.6079.ota?victortarget=77", 200, now, "prod 2.0.1.6079 other sent"},
		{"full/2.0.1.6076.ota", 200, old, "prod 2.0.1.6076  sent"}, // it was offered: a stepping stone
		{"full/2.0.1.6090.ota", 418, nil, "   unknown"},            // it never was
		{"full/9.9.9.9.ota", 418, nil, "   unknown"},
		{"diff/2.0.1.6076.ota", 200, step, "prod 2.0.1.6079  sent"},
		{"diff/2.0.1.6079.ota", 404, nil, "prod 2.0.1.6079  no_delta"}, // it runs what is offered
		{"diff/1.8.0.6051.ota?victorversion=1.8.0.6051&victortarget=2", 404, nil, "prod 2.0.1.6079 whiskey no_delta"},
		{"diff/latest.ota", 418, nil, ""},
		{"diff/..%2fx.ota", 418, nil, ""},
		{"full/latest.zip", 418, nil, ""},
		{"../beta/full/latest.ota", 418, nil, ""},
	} {
		h.asked = nil
		w := h.robot("GET", "/vic/prod/"+tt.path)
		if w.Code != tt.code || tt.want != nil && !bytes.Equal(w.Body.Bytes(), tt.want) || strings.Join(h.asked, "|") != tt.count {
			t.Errorf("%s: %d, %d bytes, counted %q; want %d, %d and %q", tt.path, w.Code, w.Body.Len(), h.asked, tt.code, len(tt.want), tt.count)
		}
	}
	if w := h.robot("POST", "/vic/prod/full/latest.ota"); w.Code != http.StatusTeapot {
		t.Errorf("POST: %d", w.Code)
	}
	if want := 3*len(now) + len(old) + len(step); h.sent != want {
		t.Errorf("counted %d bytes, sent %d", h.sent, want)
	}
	h.channel("prod", "")
	if w := h.robot("GET", "/vic/prod/full/latest.ota"); w.Code != http.StatusTeapot {
		t.Errorf("after the channel offers nothing: %d", w.Code)
	}
}

// TestRanges: a download continues where it broke, byte for byte, and only in the same archive.
func TestRanges(t *testing.T) {
	h := newHouse(t, plain)
	b := full("2.0.1.6076")
	h.upload(b)
	h.channel("beta", "2.0.1.6076")
	const path = "/vic/beta/full/latest.ota"
	etag, n := `"`+sumOf(b)+`"`, len(b)
	head := h.robot("HEAD", path)
	if head.Code != 200 || head.Body.Len() > 0 || head.Header().Get("ETag") != etag || head.Header().Get("Content-Length") != fmt.Sprint(n) ||
		head.Header().Get("Accept-Ranges") != "bytes" || h.sent != 0 {
		t.Errorf("HEAD: %d, %d bytes, %v", head.Code, head.Body.Len(), head.Header())
	}
	for name, tt := range map[string]struct {
		header []string
		code   int
		want   []byte
	}{
		"rest":                {[]string{"Range", "bytes=1000-"}, 206, b[1000:]},
		"middle":              {[]string{"Range", "bytes=511-513"}, 206, b[511:514]},
		"last bytes":          {[]string{"Range", "bytes=-7"}, 206, b[n-7:]},
		"beyond the end":      {[]string{"Range", fmt.Sprintf("bytes=%d-", n)}, 416, nil},
		"of the same":         {[]string{"Range", "bytes=1000-", "If-Range", etag}, 206, b[1000:]},
		"of another":          {[]string{"Range", "bytes=1000-", "If-Range", `"` + sumOf(nil) + `"`}, 200, b},
		"of one like it":      {[]string{"Range", "bytes=1000-", "If-Range", "W/" + etag}, 200, b},
		"unchanged":           {[]string{"If-None-Match", etag}, 304, nil},
		"no range that is":    {[]string{"Range", "lines=1-2"}, 416, nil},
		"of what was changed": {[]string{"If-Match", `"x"`}, 412, nil},
	} {
		w := h.robot("GET", path, tt.header...)
		if w.Code != tt.code || tt.want != nil && !bytes.Equal(w.Body.Bytes(), tt.want) {
			t.Errorf("%s: %d with %d bytes, want %d with %d", name, w.Code, w.Body.Len(), tt.code, len(tt.want))
		}
	}
	// Cut at every place, and continued there.
	for at := 1; at < n; at += 1 + n/7 {
		got := slices.Clone(b[:at])
		w := h.robot("GET", path, "Range", fmt.Sprintf("bytes=%d-", at), "If-Range", etag)
		if got = append(got, w.Body.Bytes()...); w.Code != 206 || sumOf(got) != sumOf(b) {
			t.Errorf("continued at %d: %d, %d bytes", at, w.Code, len(got))
		}
	}
	w := h.robot("GET", path, "Range", "bytes=0-9,20-29") // two parts, each whole
	if body := w.Body.String(); w.Code != 206 || !strings.Contains(body, string(b[:10])) || !strings.Contains(body, string(b[20:30])) {
		t.Errorf("two ranges: %d %q", w.Code, w.Header())
	}
}

// gated is an object store that keeps readers waiting.
type gated struct {
	*blob.Store
	began, open chan struct{}
}

func (g *gated) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blob.Info, error) {
	g.began <- struct{}{}
	<-g.open
	return g.Store.Get(ctx, key, offset, length)
}

// TestDownloadsAreBounded: more downloads than there are places are turned away, and told when to come back; questions are still answered.
func TestDownloadsAreBounded(t *testing.T) {
	g := &gated{began: make(chan struct{}, 2), open: make(chan struct{})}
	h := newHouse(t, func(s *blob.Store) artifact.Objects { g.Store = s; return g })
	b := full("2.0.1.6076")
	h.upload(b)
	h.channel("prod", "2.0.1.6076")
	const path = "/vic/prod/full/latest.ota"
	var wg sync.WaitGroup
	for range 2 { // as many as newHouse allows
		wg.Go(func() {
			if w := h.robot("GET", path); w.Code != 200 || !bytes.Equal(w.Body.Bytes(), b) {
				t.Errorf("%d with %d bytes", w.Code, w.Body.Len())
			}
		})
	}
	testwait.For(t, g.began, "the first download")
	testwait.For(t, g.began, "the second download")
	if w := h.robot("GET", path); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("a third download: %d %v", w.Code, w.Header())
	}
	if w := h.robot("HEAD", path); w.Code != 200 {
		t.Errorf("HEAD meanwhile: %d", w.Code)
	}
	close(g.open)
	wg.Wait()
	if w := h.robot("GET", path); w.Code != 200 {
		t.Errorf("afterwards: %d", w.Code)
	}
}

// TestOriginalsOnTheirWay: an original robot whose version the release cannot be installed on gets what it needs first, if its address says what it runs.
func TestOriginalsOnTheirWay(t *testing.T) {
	h := newHouse(t, plain)
	h.upload(full("1.8.0.6051"))
	small, last := deltaArchive("1.7.0.3412", "1.8.0.6051"), full("2.0.1.6076")
	h.upload(small)
	h.upload(last)
	h.upload(deltaArchive("1.6.0.3331", "2.0.1.6076"))
	h.channel("prod", "2.0.1.6076")
	if err := h.releases.SetLowest(t.Context(), "vic", "2.0.1.6076", "1.8.0.6051"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]byte{
		"/vic/prod/diff/1.7.0.3412.ota":                          small,
		"/vic/prod/diff/1.6.0.3331.ota":                          nil, // the release cannot be installed on it, and there is no delta to what it needs
		"/vic/prod/full/latest.ota?victorversion=1.6.0.3331":     full("1.8.0.6051"),
		"/vic/prod/full/latest.ota?victorversion=1.8.0.6051":     last,
		"/vic/prod/full/latest.ota":                              last,
		"/vic/prod/full/2.0.1.6076.ota?victorversion=1.6.0.3331": last, // by name
	} {
		rec := h.robot("GET", path)
		if want == nil && rec.Code != 404 || want != nil && (rec.Code != 200 || !bytes.Equal(rec.Body.Bytes(), want)) {
			t.Errorf("%s: %d, %d bytes; want %d", path, rec.Code, rec.Body.Len(), len(want))
		}
	}
}
