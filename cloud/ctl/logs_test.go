package ctl

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cloud/identity/sts"
	"kennel/cloud/telemetry/uploads"
	"kennel/cloud/telemetry/uploads/uploadsapi"
	"kennel/cloud/telemetry/uploads/uploadspg"
	"kennel/infra/auth"
	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/cli"
	"kennel/infra/kit/kithttp"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

// logCloud serves mux to an operator.
func logCloud(t *testing.T, mux *http.ServeMux) *cloud {
	c := &cloud{Server: httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+token {
			r = r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Viewer, Account: "v", Name: "v@example.org"}))
		}
		mux.ServeHTTP(w, r)
	}))}
	t.Cleanup(c.Close)
	c.ca = filepath.Join(t.TempDir(), "root.pem")
	write(t, c.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})))
	return c
}

// TestLogs: an operator lists, reads, searches and downloads what a robot uploaded (VEC-LOG-10).
func TestLogs(t *testing.T) {
	blobs, log := blobtest.New(t), slog.New(slog.DiscardHandler)
	svc, err := uploads.New(uploads.Config{Store: uploadspg.New(pgtest.New(t)), Objects: blobs, Prefixes: []string{sts.DefaultPrefix},
		OS: func(context.Context, thing.ID) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	uploadsapi.Operations(svc, uploadsapi.Config{Log: log, Known: func(context.Context, thing.ID) error { return nil }}).Mount(mux, op.Doors{Log: log,
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
	c := logCloud(t, mux)
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
		{"list vic:00e20100 -day 2026-01-02", 0, "LOG  THING"},
		{"list -name engine", 0, "vic:00e20100  engine.log"},
		{"list vic:00e20100 -day never", cli.ExitUsage, "want a date such as"},
		{"show vic:00e20100 LOG", 0, text},
		{"show vic:00e20100 LOG -level error", 0, "no route\n"},
		{"show vic:00e20100 LOG -limit 1", 0, "2 lines in all; continue with -skip 1"},
		{"show vic:00e20100 LOG -text nothing", 0, "no "},
		{"show vic:00e20100 LOG -from nonsense", cli.ExitUsage, "want a duration such as 2h"},
		{"show vic:00e20100 LOG -level loud", cli.ExitUsage, "want one of debug, info, warning"},
		{"show vic:00e20100 x", cli.ExitNotFound, "no such log; it may have expired"},
		{"show vic:00e20100 LOG -to 2026-01-02T10:00:01Z -o json", 0, `"found": 1`},
		{"search vic:00e20100 -text ROUTE -name engine", 0, "engine.log, 1 line:\n2026-01-02T10:00:01Z Victor user.err vic-cloud: no route\n1 log "},
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

// TestLogsNow: an operator asks a robot for its logs, hears how far it is, and gets them; another follows what is stored.
func TestLogsNow(t *testing.T) {
	const id, name = "0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11", "diagnostics-00e20100-2026-05-06-12-00-00.tar.bz2"
	var mu sync.Mutex
	following, follows := make(chan struct{}), sync.Once{}
	var asked []string
	var states, details []string
	stored := []uploads.Log{{ID: "1", Thing: "vic:00e20100", Name: "old.log", Kind: "log", At: at(1)}}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter) {
		c := map[string]any{"id": id, "thing": "vic:00e20100", "kind": "send_logs", "args": map[string]any{}, "by": "v", "created": at(1), "expires": at(2), "state": states[0], "sends": 1}
		if details[0] != "" {
			c["result"] = map[string]any{"status": states[0], "detail": details[0], "finished_ms": 1}
		}
		if len(states) > 1 {
			states, details = states[1:], details[1:]
		} else if states[0] == "done" && len(stored) == 1 {
			stored = append([]uploads.Log{{ID: id, Thing: "vic:00e20100", Name: name, Kind: "diagnostics", Reason: "request", Size: 3, At: at(3)}}, stored...)
		}
		kithttp.WriteJSON(w, http.StatusOK, c)
	}
	mux.HandleFunc("POST /v1/things/{thing}/commands", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body) // the test looks at it
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, string(b))
		answer(w)
	})
	mux.HandleFunc("GET /v1/things/{thing}/commands/{id}", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		answer(w)
	})
	mux.HandleFunc("GET /v1/things/{thing}/logs", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		follows.Do(func() { close(following) })
		var out []uploads.Log
		for _, l := range stored {
			if strings.Contains(l.Name, r.URL.Query().Get("name")) {
				out = append(out, l)
			}
		}
		kithttp.WriteJSON(w, http.StatusOK, out)
	})
	mux.HandleFunc("GET /v1/things/{thing}/logs/{log}/content", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "BZh") })
	c := logCloud(t, mux)
	dir := c.onebox(t)

	ctx, stop := context.WithCancel(t.Context())
	out, w := io.Pipe()
	followed := make(chan int, 1)
	go func() {
		followed <- cli.Run(ctx, Command(), []string{"-onebox", dir, "logs", "follow", "vic:00e20100", "-o", "json"}, func(string) string { return "" }, w, io.Discard)
		w.Close()
	}()

	testwait.For(t, following, "the follower")
	file := filepath.Join(t.TempDir(), "d.tar.bz2")
	for _, tc := range []struct {
		line, states, detail string
		exit                 int
		want                 []string
	}{
		{"logs request vic:00e20100", "pending", "", 0, []string{"kennelctl commands show vic:00e20100 " + id}},
		{"logs request vic:00e20100 -wait", "pending failed", "the owner of this robot does not allow that logs leave it", cli.ExitFailed, []string{"waiting for vic:00e20100 to connect", "the owner of this robot"}},
		{"logs request vic:00e20100 -wait", "done", "done", 1, []string{`answered "done"`}},
		{"logs request vic:00e20100 -reason ../x", "", "", cli.ExitUsage, []string{"want a word of at most 40"}},
		{"logs request vic:00e20100 -ttl 1ms", "", "", cli.ExitUsage, []string{"-ttl 1ms: want"}},
		{"diag vic:00e20100 -to " + file, "pending sent done", name + " waits for its upload", 0,
			[]string{"waiting for vic:00e20100", "collecting", name, file + ": 3 bytes"}},
		{"logs request vic:00e20100 -wait -diagnostics", "done", name + " waits for its upload", 0, []string{id + "  vic:00e20100  " + name + "  3", "request"}},
	} {
		mu.Lock()
		states, details = strings.Fields(tc.states), nil
		for range states {
			details = append(details, "")
		}
		if len(details) > 0 {
			details[len(details)-1] = tc.detail
		}
		mu.Unlock()
		exit, out, errOut := run(t.Context(), nil, "", append([]string{"-onebox", dir}, strings.Fields(tc.line)...)...)
		for _, want := range tc.want {
			if exit != tc.exit || !strings.Contains(out+errOut, want) {
				t.Errorf("%s: exit %d, want %d with %q:\n%s", tc.line, exit, tc.exit, want, out+errOut)
			}
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "BZh" {
		t.Errorf("downloaded %q, %v", b, err)
	}
	if len(asked) != 5 || !strings.Contains(asked[0], `"kind":"send_logs"`) || !strings.Contains(asked[0], `"expires_in_ms":600000`) || !strings.Contains(asked[3], `"diagnostics":true`) {
		t.Errorf("asked %q", asked)
	}
	var got uploads.Log
	if err := json.NewDecoder(out).Decode(&got); err != nil || got.Name != name {
		t.Errorf("followed %+v, %v", got, err)
	}
	stop()
	go io.Copy(io.Discard, out)
	if code := <-followed; code != 0 {
		t.Errorf("an interrupted follow ends with %d, want 0", code)
	}
}
