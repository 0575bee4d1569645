package ctl

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/token/tokenapi"
	"kennel/cloud/identity/token/tokentest"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

// TestPrograms: an owner adds a program, whose answer in JSON is the file that it reads, lists it and removes it, at a real cloud.
func TestPrograms(t *testing.T) {
	const rex = thing.ID("vic:00e20100")
	h := tokentest.New(t, pgtest.New(t))
	h.Owners.Set(rex, "ann-id")
	svc := h.Start(t, tokentest.WithGateway("192.168.1.7:8443")).Service
	if err := h.Store.SetCertificate(t.Context(), rex, tokentest.GatewayCert(t, "Vector-A1B2")); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	tokenapi.Operations(svc, tokenapi.Config{Audit: func(context.Context, string, string, string) error { return nil }}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler),
		Owns: func(context.Context, string, thing.ID) (time.Time, bool, error) { return time.Time{}, true, nil }})
	c := &cloud{Server: httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Owner, Account: "ann-id", Name: "ann@example.org"})))
	}))}
	defer c.Close()
	c.ca = filepath.Join(t.TempDir(), "root.pem")
	write(t, c.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})))
	dir := c.onebox(t)
	my := func(line string) (int, string) {
		code, out, errOut := run(t.Context(), nil, "", append([]string{"-onebox", dir, "my", "programs"}, strings.Fields(line)...)...)
		return code, out + errOut
	}

	code, out := my("add vic:00e20100 wanderer -rights look,move -days 30 -o json")
	var file map[string]string
	if err := json.Unmarshal([]byte(out), &file); code != 0 || err != nil || len(file) != 5 || file["thing"] != string(rex) || file["address"] != "192.168.1.7:8443" ||
		file["name"] != "Vector-A1B2" || len(file["token"]) != 24 || !strings.HasPrefix(file["certificate"], "-----BEGIN CERTIFICATE-----\n") {
		t.Fatalf("%d %s, %v", code, out, err)
	}
	if code, out := my("add vic:00e20100 logger -rights look -days 0"); code != 0 || !strings.Contains(out, "192.168.1.7:8443") || strings.Contains(out, file["token"]) {
		t.Errorf("%d %s", code, out)
	}
	for line, want := range map[string]string{"add vic:00e20100 x": "rights", "add vic:00e20100 x -rights fly": "want look, talk, move, camera, settings, hear", "revoke vic:00e20100 0": "no app"} {
		if code, out := my(line); code == 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %d %s, want %s", line, code, out, want)
		}
	}
	apps, err := svc.Apps(t.Context(), rex)
	if err != nil || len(apps) != 2 {
		t.Fatalf("%+v, %v", apps, err)
	}
	code, out = my("list vic:00e20100")
	lines := strings.Split(out, "\n")
	if code != 0 || len(lines) < 3 || !strings.Contains(lines[1], "wanderer") || !strings.Contains(lines[1], "look, move") || strings.Contains(lines[1], "never") || !strings.Contains(lines[2], "never") {
		t.Errorf("%d %s", code, out)
	}
	t.Logf("\n%s", out)
	if code, out := my("revoke vic:00e20100 " + apps[0].ID); code != 0 || !strings.Contains(out, apps[0].ID+" may no longer talk to vic:00e20100") {
		t.Errorf("%d %s", code, out)
	}
	if code, out := my("list vic:00e20100"); code != 0 || strings.Contains(out, "wanderer") || !strings.Contains(out, "logger") {
		t.Errorf("%d %s", code, out)
	}
}
