package certsclient

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kennel/infra/errs"
)

func TestRefusalsKeepKindCodeAndPause(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"error":"wait","kind":"exhausted","code":"too_many_attempts"}`))
	}))
	defer srv.Close()
	c := Client{BaseURL: srv.URL + "/", HTTP: srv.Client()}
	_, err := c.Enroll(t.Context(), Enroll{})
	if errs.KindOf(err) != errs.Exhausted || errs.CodeOf(err) != "too_many_attempts" || errs.RetryOf(err) != 7*time.Second || err.Error() != "wait" {
		t.Errorf("got %v %q %v", errs.KindOf(err), errs.CodeOf(err), errs.RetryOf(err))
	}
	srv.Close()
	if _, err := c.Renew(t.Context(), Renew{}); errs.KindOf(err) != errs.Unavailable || errs.CodeOf(err) != "no_answer" {
		t.Errorf("nobody there: %v", err)
	}
}

func TestStrangersAreNotBelieved(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"portal":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"empty":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) },
		"proxy":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"very long": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Repeat("x", MaxBody+1))) },
	} {
		srv := httptest.NewServer(h)
		_, err := (&Client{BaseURL: srv.URL, HTTP: srv.Client()}).Enroll(t.Context(), Enroll{})
		if errs.KindOf(err) != errs.Unavailable {
			t.Errorf("%s: %v, want Unavailable: it is worth trying again", name, err)
		}
		srv.Close()
	}
}

func FuzzParseAnswer(f *testing.F) {
	b, err := json.Marshal(Answer{Certificate: "c", Root: "r", NotAfter: time.Unix(0, 0), MQTT: "ssl://h:1"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseAnswer(b)
		if (err == nil) != (a.Certificate != "") {
			t.Fatalf("%+v, %v", a, err)
		}
	})
}
