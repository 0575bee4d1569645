package emqx

import (
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/infra/errs"
	"kennel/infra/mqtt/brokeradmin"
)

var update = flag.Bool("update", false, "rewrite testdata")

var (
	_ brokeradmin.Admin   = (*Admin)(nil)
	_ brokeradmin.Blocker = (*Admin)(nil)
)

var example = Broker{
	Things: "0.0.0.0:8883", Services: "0.0.0.0:8884", Cert: "/etc/kennel/server.crt", Key: "/etc/kennel/server.key", DeviceCA: "/etc/kennel/device.pem",
	ServiceCA: "/etc/kennel/service.pem", ACLFile: "/opt/emqx/etc/kennel-acl.conf",
}

func TestGolden(t *testing.T) {
	conf, err := example.Config()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := example.Rules()
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"emqx.conf": conf, "acl.conf": rules} {
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
}

func TestConfigSaysWhatIsWrong(t *testing.T) {
	for want, change := range map[string]func(*Broker){
		"listener of the things": func(b *Broker) { b.Things = "x" },
		"device ca":              func(b *Broker) { b.DeviceCA = "" },
		"cert":                   func(b *Broker) { b.Cert = "a\"\nallow" },
		"only names of things":   func(b *Broker) { b.Names = []string{"CN=x"} },
	} {
		b := example
		change(&b)
		_, err := b.Config()
		if err == nil {
			_, err = b.Rules()
		}
		if errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// fake is the part of EMQX's HTTP interface that we use, as documented for version 5.
type fake struct {
	t      *testing.T
	kicked []string
	banned map[string]ban
	status string // of its node
	broken int    // status of every answer; 0: as it should
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, body string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
	key, secret, ok := r.BasicAuth()
	switch {
	case f.broken != 0:
		answer(f.broken, "<html>")
	case !ok || key != "the-key" || secret != "the-secret":
		answer(401, `{"code":"BAD_API_KEY_OR_SECRET","message":"Check api_key/api_secret"}`)
	case r.Header.Get("Accept") != "application/json":
		f.t.Errorf("Accept %q", r.Header.Get("Accept"))
		answer(400, `{"code":"BAD_REQUEST","message":""}`)
	case r.Method == "GET" && r.URL.Path == "/api/v5/nodes":
		answer(200, `[{"node":"emqx@127.0.0.1","node_status":"`+f.status+`","version":"5.8.0","uptime":5120}]`)
	case r.Method == "DELETE" && strings.HasPrefix(r.URL.Path, "/api/v5/clients/"):
		id := strings.TrimPrefix(r.URL.Path, "/api/v5/clients/")
		if id == "vic:nobody" {
			answer(404, `{"code":"CLIENTID_NOT_FOUND","message":"Client ID not found"}`)
			return
		}
		f.kicked = append(f.kicked, id)
		w.WriteHeader(204)
	case r.Method == "POST" && r.URL.Path == "/api/v5/banned":
		var b ban
		dec := json.NewDecoder(r.Body)
		dec.DisallowUnknownFields()
		if err := dec.Decode(&b); err != nil || r.Header.Get("Content-Type") != "application/json" || b.As != "clientid" || b.Who == "" {
			f.t.Errorf("ban %+v as %q: %v", b, r.Header.Get("Content-Type"), err)
		}
		if until, err := time.Parse(time.RFC3339, b.Until); err != nil || time.Until(until) < 100*365*24*time.Hour {
			f.t.Errorf("banned until %q: %v", b.Until, err)
		}
		if _, ok := f.banned[b.Who]; ok {
			answer(400, `{"code":"ALREADY_EXISTS","message":"Banned already exist"}`)
			return
		}
		f.banned[b.Who] = b
		answer(200, `{"as":"clientid"}`)
	case r.Method == "DELETE" && strings.HasPrefix(r.URL.Path, "/api/v5/banned/clientid/"):
		id := strings.TrimPrefix(r.URL.Path, "/api/v5/banned/clientid/")
		if _, ok := f.banned[id]; !ok {
			answer(404, `{"code":"NOT_FOUND","message":"Banned not found"}`)
			return
		}
		delete(f.banned, id)
		w.WriteHeader(204)
	default:
		f.t.Errorf("%s %s is none of ours", r.Method, r.URL.Path)
		answer(404, `{"code":"NOT_FOUND","message":""}`)
	}
}

func TestAdmin(t *testing.T) {
	f := &fake{t: t, status: "running", banned: map[string]ban{}}
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
	cfg := Config{URL: srv.URL + "/", KeyFile: file("key", "the-key"), SecretFile: file("secret", "the-secret")}
	a, err := New(cfg)
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
	if f.banned["vic:00e20100"].Reason != "stolen" || len(f.kicked) != 2 {
		t.Errorf("banned %v, kicked %q", f.banned, f.kicked)
	}
	for range 2 {
		if err := a.Allow(t.Context(), "vic:00e20100"); err != nil || len(f.banned) > 0 {
			t.Errorf("%v, banned %v", err, f.banned)
		}
	}
	f.status = "stopped"
	if err := a.Ready(t.Context()); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("no node: %v", err)
	}
	for status, kind := range map[int]errs.Kind{403: errs.Denied, 429: errs.Unavailable, 503: errs.Unavailable, 400: errs.Internal} {
		f.broken = status
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
	f.broken = 200
	if err := a.Ready(t.Context()); errs.KindOf(err) != errs.Corrupt {
		t.Errorf("a page instead of JSON: %v", err)
	}
	f.broken = 0
	file("secret", "another")
	if err := a.Ready(t.Context()); errs.KindOf(err) != errs.Unauthenticated || !strings.Contains(err.Error(), "Check api_key") {
		t.Errorf("wrong secret: %v", err)
	}
	srv.Close()
	if err := a.Kick(t.Context(), "vic:1", "x"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("nobody there: %v", err)
	}
	for _, bad := range []Config{{}, {URL: "x", KeyFile: "a", SecretFile: "b"}, {URL: "https://h/path", KeyFile: "a", SecretFile: "b"},
		{URL: "https://h", KeyFile: "a"}} {
		if _, err := New(bad); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// FuzzRunning: whatever answers, we say so and live on.
func FuzzRunning(f *testing.F) {
	f.Add([]byte(`[{"node":"emqx@127.0.0.1","node_status":"running"}]`))
	f.Add([]byte(`{"code":"NOT_FOUND"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := running(b); err == nil && !strings.Contains(strings.ToLower(string(b)), "running") && !strings.Contains(string(b), `\u`) {
			t.Fatalf("%q is running", b)
		}
	})
}
