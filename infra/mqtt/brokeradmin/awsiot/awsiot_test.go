package awsiot

import (
	"errors"
	"flag"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"kennel/infra/errs"
	"kennel/infra/mqtt/brokeradmin"
)

var update = flag.Bool("update", false, "rewrite testdata")

var (
	_ brokeradmin.Admin   = (*Admin)(nil)
	_ brokeradmin.Blocker = (*Admin)(nil)
)

var example = Account{Region: "eu-central-1", ID: "123456789012"}

func TestGolden(t *testing.T) {
	things, err := ThingPolicy(example)
	if err != nil {
		t.Fatal(err)
	}
	services, err := ServicePolicy(example)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := Rules("https://sqs.eu-central-1.amazonaws.com/123456789012/uplink", "arn:aws:iam::123456789012:role/kennel-uplink")
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"thing-policy.json": things, "service-policy.json": services, "rules.json": rules} {
		got = append(got, '\n')
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s differs from testdata (%v); look at the change, then run with -update. Now:\n%s", name, err, got)
		}
	}
	for _, bad := range []Account{{}, {Region: "x", ID: "1"}, {Region: "x", ID: "12345678901x"}, {ID: "123456789012"}} {
		_, err1 := ThingPolicy(bad)
		_, err2 := ServicePolicy(bad)
		if errs.KindOf(err1) != errs.Invalid || errs.KindOf(err2) != errs.Invalid {
			t.Errorf("%+v: %v, %v", bad, err1, err2)
		}
	}
	if _, err := Rules("x", "y"); errs.KindOf(err) != errs.Invalid {
		t.Error(err)
	}
}

var signed = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=AKIDTEST/\d{8}/eu-central-1/(?:iotdata|iot)/aws4_request, ` +
	`SignedHeaders=[a-z0-9;-]*host;[a-z0-9;-]*x-amz-date[a-z0-9;-]*, Signature=[0-9a-f]{64}$`)

// fake is the part of the data plane that we use, as documented (API version 2015-05-28).
type fake struct {
	t *testing.T

	mu     sync.Mutex
	kicked []string
	certs  map[string]string // of the thing vic:00e20100: certificate id to status, created in the order of their ids
	broken int               // status of every answer; 0: as it should
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	refuse := func(status int, kind string) {
		w.Header().Set("X-Amzn-Errortype", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"message":"planted"}`))
	}
	id, ok := strings.CutPrefix(r.URL.Path, "/connections/")
	switch {
	case f.broken != 0:
		refuse(f.broken, map[int]string{401: "UnauthorizedException", 403: "ForbiddenException", 429: "ThrottlingException"}[f.broken])
	case !signed.MatchString(r.Header.Get("Authorization")):
		f.t.Errorf("Authorization %q", r.Header.Get("Authorization"))
		refuse(403, "ForbiddenException")
	case f.control(w, r, refuse):
	case !ok:
		f.t.Errorf("%s %s is none of ours", r.Method, r.URL)
		refuse(404, "ResourceNotFoundException")
	case r.Method == "GET" && id == "kenneld-ready", r.Method == "DELETE" && id == "vic:nobody":
		refuse(404, "ResourceNotFoundException")
	case r.Method == "DELETE" && r.URL.RawQuery == "cleanSession=true":
		f.kicked = append(f.kicked, id)
	default:
		f.t.Errorf("%s %s", r.Method, r.URL)
		refuse(400, "InvalidRequestException")
	}
}

// control is the part of the control plane that we use, as documented (API version 2015-05-28). It reports whether r was for it.
func (f *fake) control(w http.ResponseWriter, r *http.Request, refuse func(int, string)) bool {
	const account = "arn:aws:iot:eu-central-1:123456789012:cert/"
	if name, ok := strings.CutPrefix(r.URL.Path, "/things/"); ok {
		name, ok = strings.CutSuffix(name, "/principals")
		switch {
		case !ok || r.Method != "GET":
			f.t.Errorf("%s %s", r.Method, r.URL)
			refuse(400, "InvalidRequestException")
		case name != "vic:00e20100":
			refuse(404, "ResourceNotFoundException")
		case r.URL.Query().Get("nextToken") == "": // in two pages
			_, _ = w.Write([]byte(`{"principals":["` + account + `c1","eu-central-1:cognito"],"nextToken":"more"}`))
		default:
			_, _ = w.Write([]byte(`{"principals":["` + account + `c2","` + account + `c3"]}`))
		}
		return true
	}
	id, ok := strings.CutPrefix(r.URL.Path, "/certificates/")
	if !ok {
		return false
	}
	status, known := f.certs[id]
	switch {
	case !known:
		refuse(404, "ResourceNotFoundException")
	case r.Method == "GET":
		_, _ = w.Write([]byte(`{"certificateDescription":{"certificateId":"` + id + `","status":"` + status + `","creationDate":170000000` + id[1:] + `}}`))
	case r.Method == "PUT" && len(r.URL.Query()["newStatus"]) == 1:
		f.certs[id] = r.URL.Query().Get("newStatus")
	default:
		f.t.Errorf("%s %s", r.Method, r.URL)
		refuse(400, "InvalidRequestException")
	}
	return true
}

func TestAdmin(t *testing.T) {
	f := &fake{t: t, certs: map[string]string{"c1": "ACTIVE", "c2": "REVOKED", "c3": "ACTIVE"}}
	srv := httptest.NewServer(f)
	defer srv.Close()
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	a, err := open(t.Context(), Config{
		Region: "eu-central-1", Endpoint: srv.URL, AccessKeyFile: file("access", "AKIDTEST"),
		SecretKeyFile: file("secret", "not so secret"),
	}, srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if err := a.Kick(t.Context(), "vic:00e20100", "revoked"); err != nil || len(f.kicked) != 1 || f.kicked[0] != "vic:00e20100" {
		t.Errorf("%v, kicked %q", err, f.kicked)
	}
	if err := a.Kick(t.Context(), "vic:nobody", "revoked"); err != nil {
		t.Error(err)
	}
	f.kicked = nil
	for range 2 { // repeating it changes nothing
		if err := a.Block(t.Context(), "vic:00e20100", "stolen"); err != nil {
			t.Error(err)
		}
	}
	if want := map[string]string{"c1": "INACTIVE", "c2": "REVOKED", "c3": "INACTIVE"}; !maps.Equal(f.certs, want) || len(f.kicked) != 2 {
		t.Errorf("certificates %v, kicked %q", f.certs, f.kicked)
	}
	for range 2 {
		if err := a.Allow(t.Context(), "vic:00e20100"); err != nil {
			t.Error(err)
		}
	}
	if want := map[string]string{"c1": "INACTIVE", "c2": "REVOKED", "c3": "ACTIVE"}; !maps.Equal(f.certs, want) {
		t.Errorf("certificates %v, want the newest active alone", f.certs)
	}
	if err := errors.Join(a.Block(t.Context(), "vic:nobody", "x"), a.Allow(t.Context(), "vic:nobody")); err != nil {
		t.Error(err)
	}
	for status, kind := range map[int]errs.Kind{
		401: errs.Unauthenticated, 403: errs.Denied, 429: errs.Unavailable, 503: errs.Unavailable, 400: errs.Internal,
	} {
		f.mu.Lock()
		f.broken = status
		f.mu.Unlock()
		if err := a.Ready(t.Context()); errs.KindOf(err) != kind {
			t.Errorf("status %d: %v", status, err)
		}
		if err := a.Kick(t.Context(), "vic:1", "x"); errs.KindOf(err) != kind {
			t.Errorf("status %d: %v", status, err)
		}
		if err := a.Block(t.Context(), "vic:1", "x"); errs.KindOf(err) != kind {
			t.Errorf("block, status %d: %v", status, err)
		}
		if err := a.Allow(t.Context(), "vic:1"); errs.KindOf(err) != kind {
			t.Errorf("allow, status %d: %v", status, err)
		}
	}
	srv.Close()
	if err := a.Kick(t.Context(), "vic:1", "x"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("nobody there: %v", err)
	}
	for _, bad := range []Config{{}, {Region: "x"}, {Region: "x", Endpoint: "h"}, {Region: "x", Endpoint: "https://h", AccessKeyFile: "x"}} {
		if _, err := New(t.Context(), bad); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
