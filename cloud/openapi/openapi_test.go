package openapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"kennel/cloud/openapi"
	"kennel/cloud/openapi/openapitest"
)

func get(t *testing.T, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux()
	if err := openapi.Mount(mux); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

// The page shows every route, needs nothing from elsewhere, and may do nothing but have its own style.
func TestPage(t *testing.T) {
	w := get(t, "/api")
	body := w.Body.String()
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Fatal(w.Code, w.Header())
	}
	var doc struct {
		Paths map[string]map[string]struct{ OperationID, Summary string }
	}
	if err := json.Unmarshal(openapi.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths {
		for method, op := range item {
			if !strings.Contains(body, `<details id="`+op.OperationID+`">`) || !strings.Contains(body, "<code>"+path+"</code>") {
				t.Errorf("%s %s is not on the page", method, path)
			}
		}
	}
	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(body)
	sum := sha256.Sum256([]byte(style[1]))
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") ||
		!strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("policy %q does not fit the page's style", policy)
	}
	for _, m := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		if m[1] != "/v1/openapi.json" && !strings.HasPrefix(m[1], "#") {
			t.Errorf("the page leads to %q", m[1])
		} else if id, ok := strings.CutPrefix(m[1], "#"); ok && !strings.Contains(body, `id="`+id+`"`) {
			t.Errorf("the page leads to %q, which is not there", m[1])
		}
	}
	if strings.Contains(body, "<script") || strings.Contains(body, " style=") {
		t.Error("a script or an inline style")
	}
}

func TestJSON(t *testing.T) {
	w := get(t, "/v1/openapi.json")
	if w.Code != 200 || w.Body.String() != string(openapi.JSON) {
		t.Fatal(w.Code)
	}
	if err := openapitest.Check("GET", "/v1/openapi.json", 200, w.Header().Get("Content-Type"), w.Body.Bytes()); err != nil {
		t.Error(err)
	}
	if w := get(t, "/v1/openapi.json", "If-None-Match", w.Header().Get("ETag")); w.Code != http.StatusNotModified {
		t.Errorf("the same again: %d", w.Code)
	}
	doc, err := openapitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

// The judge of answers must be able to say no.
func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		method, path, media, body string
		status                    int
		ok                        bool
	}{
		{"GET", "/v1/fleet", "application/json; charset=utf-8", `{"present":1,"absent":2}`, 200, true},
		{"GET", "/v1/fleet", "application/json", `{"present":1}`, 200, false},
		{"GET", "/v1/fleet", "application/json", `{"present":"1","absent":2}`, 200, false},
		{"GET", "/v1/fleet", "application/json", `{"present":1,"absent":2,"secret":"x"}`, 200, false},
		{"GET", "/v1/fleet", "text/plain", `{"present":1,"absent":2}`, 200, false},
		{"GET", "/v1/fleet", "application/json", `{"present":1,"absent":2}`, 201, false},
		{"GET", "/v1/fleet", "application/json", `{"error":"sign in first","kind":"unauthenticated"}`, 401, true},
		{"GET", "/v1/fleet", "application/json", `{"message":"no"}`, 401, false},
		{"GET", "/v1/things", "application/json", `[{"thing":"vic:1","species":"vic","serial":"1","created":"2026-01-02T03:04:05Z","presence":"absent","clock_offset_ms":0,"rev":1}]`, 200, true},
		{"GET", "/v1/things", "application/json", `[{"thing":"vic:1"}]`, 200, false},
		{"GET", "/v1/things", "application/json", `null`, 200, false},
		{"POST", "/v1/logout", "", ``, 204, true},
		{"POST", "/v1/logout", "", `x`, 204, false},
		{"GET", "/v1/nowhere", "application/json", `{}`, 200, false},
		{"GET", "/v1/account", "application/json", `{"user_id":"1"}`, 200, false},
		{"GET", "/my", "text/html", `x`, 200, true},
	} {
		if err := openapitest.Check(tc.method, tc.path, tc.status, tc.media, []byte(tc.body)); (err == nil) != tc.ok {
			t.Errorf("%s %s %d %s: %v, want ok %v", tc.method, tc.path, tc.status, tc.body, err, tc.ok)
		}
	}
}
