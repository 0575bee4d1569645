package fleet

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// rootPEM is a certificate that nothing was signed with.
const rootPEM = `-----BEGIN CERTIFICATE-----
MIIBfzCCASWgAwIBAgIUOFZjO3yhIMMg+tkv57KIaACjAKwwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJVGVzdCBSb290MCAXDTI2MTEyMTExNDEwMVoYDzIxMjYxMDI4
MTE0MTAxWjAUMRIwEAYDVQQDDAlUZXN0IFJvb3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQFSsbZNrslIJ0pqqf9USPU5rMBJVFt1Heyh18X1A37unhA93SeFwz1
oD9IRcrKawGbufhWZE/6ou9BGMADAJFWo1MwUTAdBgNVHQ4EFgQU/0JmLIv+MdP0
il1M7kwKMcUbpicwHwYDVR0jBBgwFoAU/0JmLIv+MdP0il1M7kwKMcUbpicwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiBbYkNZL6kTmHvXdu76MVnv
f50SRcAlqW5yGA/KglDfuAIhALpb+3JOhZnfMBaZeCPim49vw7824G3tQHZiAbL2
Y5Eq
-----END CERTIFICATE-----
`

func TestParseSecrets(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want Known
		err  string
	}{
		{"", Known{}, ""},
		{"# from the factory\nvic:00f00000,abc\nvic:00f00001,\"d,e\"\n", Known{"vic:00f00000": "abc", "vic:00f00001": "d,e"}, ""},
		{"vic:00f00000,abc\n\nvic:0 1,x\n", nil, "line 3"},
		{"vic:00f00000\n", nil, "wrong number of fields"},
		{"vic:00f00000,\n", nil, "line 1: vic:00f00000 has an empty secret"},
		{"vic:00f00000,a\nvic:00f00000,b\n", nil, "line 2: vic:00f00000 given twice"},
	} {
		got, err := ParseSecrets([]byte(tc.in))
		if tc.err == "" && (err != nil || !reflect.DeepEqual(got, tc.want)) {
			t.Errorf("%q: %v, %v", tc.in, got, err)
		}
		if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || errs.KindOf(err) != errs.Invalid) {
			t.Errorf("%q: %v, want %q", tc.in, err, tc.err)
		}
	}
	if _, err := (Known{}).Secret(t.Context(), vic); errs.KindOf(err) != errs.NotFound || errs.CodeOf(err) != "no_secrets" || !strings.Contains(err.Error(), "-secrets") { // 30.5: what to give
		t.Errorf("%v", err)
	}
}

func FuzzParseSecrets(f *testing.F) {
	f.Add([]byte("vic:00f00000,abc\n#x\nvic:00f00001,\"d\"\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParseSecrets(b)
		if err != nil && got != nil {
			t.Fatalf("%v and %v", got, err)
		}
		for id, secret := range got {
			if _, err := thing.Parse(string(id)); err != nil || secret == "" {
				t.Fatalf("%q: %q", id, secret)
			}
		}
	})
}

func FuzzParseRegistration(f *testing.F) {
	f.Add(200, []byte(`{"thing":"vic:00f00000","secret":"s"}`))
	f.Add(409, []byte(`{"error":"known","kind":"conflict","code":"thing_exists"}`))
	f.Fuzz(func(t *testing.T, status int, b []byte) {
		if secret, err := parseRegistration(status, b); (secret == "") == (err == nil) {
			t.Fatalf("%q, %v", secret, err)
		}
	})
}

// TestRegistrar: what it sends, and how it reads refusals.
func TestRegistrar(t *testing.T) {
	answer := func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"thing":"vic:00f00000","secret":"s3cret"}`)) }
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/things" || r.Header.Get("Authorization") != "Bearer token" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		answer(w)
	}))
	defer srv.Close()
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	r, err := NewRegistrar(srv.URL+"/", "token", root)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := r.Secret(t.Context(), vic); err != nil || s != "s3cret" {
		t.Errorf("%q, %v", s, err)
	}
	for _, tc := range []struct {
		status int
		body   string
		kind   errs.Kind
		want   string
	}{
		{409, `{"error":"vic:00f00000 is registered","kind":"conflict","code":"thing_exists"}`, errs.Conflict, "choose another first serial"},
		{401, `{"error":"no session","kind":"unauthenticated"}`, errs.Unauthenticated, "register vic:00f00000: no session"},
		{502, `<html>`, errs.Unavailable, "answered 502"},
	} {
		answer = func(w http.ResponseWriter) { w.WriteHeader(tc.status); _, _ = w.Write([]byte(tc.body)) }
		if _, err := r.Secret(t.Context(), vic); err == nil || errs.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%d: %v, want %q", tc.status, err, tc.want)
		}
	}
	srv.Close()
	if _, err := r.Secret(t.Context(), vic); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := NewRegistrar(srv.URL, "token", []byte("nothing")); errs.KindOf(err) != errs.Invalid {
		t.Errorf("no root: %v", err)
	}
}
