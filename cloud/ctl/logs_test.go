package ctl

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/cloud/sts"
	"kennel/cloud/uploads"
	"kennel/cloud/uploads/uploadsapi"
	"kennel/cloud/uploads/uploadspg"
	"kennel/infra/auth"
	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/cli"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

// TestLogs: an operator lists, reads, searches and downloads what a robot uploaded (VEC-LOG-10).
func TestLogs(t *testing.T) {
	blobs, log := blobtest.New(t), slog.New(slog.DiscardHandler)
	svc, err := uploads.New(uploads.Config{Store: uploadspg.New(pgtest.New(t)), Objects: blobs, Prefixes: []string{sts.DefaultPrefix},
		OS: func(context.Context, thing.ID) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	uploadsapi.Mount(mux, svc, uploadsapi.Config{Log: log, Known: func(context.Context, thing.ID) error { return nil },
		Owns: func(context.Context, string, thing.ID) (time.Time, bool, error) { return time.Time{}, false, nil }})
	const text = "2026-01-02T10:00:00Z Victor user.info vic-engine: Starting\n2026-01-02T10:00:01Z Victor user.err vic-cloud: no route\n"
	g := sts.Grant{Thing: "vic:00e20100", User: "1b4e28ba-2fa1-11d2-883f-0016d3cca427", Prefix: sts.DefaultPrefix}
	for _, name := range []string{"engine.log", "other.log"} {
		key := g.Stored(g.Folder() + name)
		if _, err := blobs.PutOnce(t.Context(), key, strings.NewReader(text), int64(len(text)), blob.PutOptions{}, blob.Digests{}); err != nil {
			t.Fatal(err)
		}
		if err := svc.Uploaded(t.Context(), g, key, name, int64(len(text))); err != nil {
			t.Fatal(err)
		}
	}
	c := &cloud{Server: httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+token {
			r = r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Viewer, Account: "v", Name: "v@example.org"}))
		}
		mux.ServeHTTP(w, r)
	}))}
	t.Cleanup(c.Close)
	c.ca = filepath.Join(t.TempDir(), "root.pem")
	write(t, c.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})))
	dir := c.onebox(t)
	kennelctl := func(args ...string) (int, string) {
		code, out, errOut := run(t.Context(), nil, "", append([]string{"-onebox", dir}, args...)...)
		return code, out + errOut
	}
	_, raw := kennelctl("logs", "list", "vic:00e20100", "-name", "ENGINE", "-o", "json")
	var logs []uploads.Log
	if err := json.Unmarshal([]byte(raw), &logs); err != nil || len(logs) != 1 {
		t.Fatalf("%s: %v", raw, err)
	}
	id, file := logs[0].ID, filepath.Join(t.TempDir(), "a.log")
	for _, tc := range []struct {
		line string
		exit int
		want string
	}{
		{"list vic:00e20100", 0, "engine.log"},
		{"list vic:00e20100 -day 2026-01-02", 0, "LOG  NAME"},
		{"list vic:00e20100 -day never", cli.ExitUsage, "want a date such as"},
		{"show vic:00e20100 LOG", 0, text},
		{"show vic:00e20100 LOG -level error", 0, "no route\n"},
		{"show vic:00e20100 LOG -limit 1", 0, "2 lines in all; continue with -skip 1"},
		{"show vic:00e20100 LOG -text nothing", 0, "no line"},
		{"show vic:00e20100 LOG -from nonsense", cli.ExitUsage, "want a duration such as 2h"},
		{"show vic:00e20100 LOG -level loud", cli.ExitUsage, "want one of debug, info, warning"},
		{"show vic:00e20100 x", cli.ExitNotFound, "no such log; it may have expired"},
		{"show vic:00e20100 LOG -to 2026-01-02T10:00:01Z -o json", 0, `"found": 1`},
		{"search vic:00e20100 -text ROUTE -name engine", 0, "engine.log, 1 lines:\n2026-01-02T10:00:01Z Victor user.err vic-cloud: no route\n1 logs were read"},
		{"search vic:00e20100 -limit 1", 0, "continue with -after "},
		{"get vic:00e20100 LOG -to FILE", 0, "FILE: 116 bytes"},
		{"get vic:00e20100 LOG -to FILE", cli.ExitUsage, "exists"},
		{"get vic:00e20100 LOG -to -", 0, text},
		{"get vic:00e20100 x -to -", cli.ExitNotFound, "no such log"},
	} {
		fill := strings.NewReplacer("LOG", id, "FILE", file)
		args := strings.Fields(tc.line)
		for i := range args {
			args[i] = fill.Replace(args[i])
		}
		want := tc.want
		if args[0] == "get" {
			want = fill.Replace(want)
		}
		if exit, out := kennelctl(append([]string{"logs"}, args...)...); exit != tc.exit || !strings.Contains(out, want) {
			t.Errorf("logs %s: exit %d, want %d with %q:\n%s", tc.line, exit, tc.exit, want, out)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != text {
		t.Errorf("downloaded %q, %v", b, err)
	}
	if _, out := kennelctl("__complete", "logs", "show", "vic:00e20100", ""); !strings.Contains(out, id+"\tengine.log") {
		t.Errorf("completion offers %s", out)
	}
	if _, out := kennelctl("__complete", "logs", "show", "vic:00e20100", id, "-level", ""); !strings.Contains(out, "warning") {
		t.Errorf("completion of a level offers %s", out)
	}
}
