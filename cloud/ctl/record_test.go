package ctl

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/sdk/recording"
	"kennel/sdk/sdktest"
)

// TestRecord: a robot is recorded by its file, or by its name: then a program is added and removed. What cannot be recorded leaves no file.
func TestRecord(t *testing.T) {
	robot := sdktest.Start(t, nil)
	robot.Stay = true
	file := robot.File(t, nil)
	var mu sync.Mutex
	var programs []client.App
	var rights []string
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("POST /v1/my/robots/vic:00e20100/programs", func(w http.ResponseWriter, r *http.Request) {
		var in client.NewProgram
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		rights = in.Rights
		programs = append(programs, client.App{ID: "7", ClientName: in.Name})
		answer(w, client.ProgramFile{Thing: "vic:00e20100", Address: robot.Addr, Name: sdktest.Name, Certificate: robot.Certificate, Token: sdktest.Token})
	})
	mux.HandleFunc("GET /v1/my/robots/vic:00e20100/programs", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		answer(w, append(programs, client.App{ID: "8", ClientName: "square"}))
	})
	mux.HandleFunc("DELETE /v1/my/robots/vic:00e20100/programs/7", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		programs = nil
		answer(w, struct{}{})
	})
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) })
	c := &cloud{Server: httptest.NewTLSServer(mux)}
	defer c.Close()
	c.ca = filepath.Join(t.TempDir(), "root.pem")
	write(t, c.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})))
	onebox := c.onebox(t)
	record := func(line ...string) (int, string) {
		code, out, errOut := run(t.Context(), nil, "", append([]string{"-onebox", onebox, "robot", "record"}, line...)...)
		return code, out + errOut
	}
	dir := t.TempDir()
	for _, name := range []string{file, "vic:00e20100"} {
		to := filepath.Join(dir, strings.ReplaceAll(filepath.Base(name), ":", "-")+".mcap")
		code, out := record(name, "fake.count", "-pictures", "15", "-for", "1s", "-o", to, "-o", "json")
		var got recording.Counts
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || got.Thing != "vic:00e20100" || got.Events != 3 || got.Pictures != 3 {
			t.Fatalf("%s: %d %s", name, code, out)
		}
		f, err := os.Open(to)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if rec, err := recording.Read(f); err != nil || rec.Cut || len(rec.Orders) != 3 {
			t.Errorf("%s: %+v, %v", name, rec, err)
		}
	}
	if len(programs) != 0 || strings.Join(rights, " ") != "look camera" {
		t.Errorf("programs %+v, the last with rights %q", programs, rights)
	}
	for _, tc := range []struct {
		code int
		line []string
	}{
		{cli.ExitUsage, []string{file, "-o", "json"}}, // no file
		{cli.ExitUsage, []string{file, "-o", "x.mcap", "-rate", "51"}},
		{cli.ExitUsage, []string{file, "-o", "x.mcap", "-pictures", "16"}},
		{cli.ExitUsage, []string{file, "-o", filepath.Join(dir, "vic-00e20100.mcap")}}, // exists
		{cli.ExitNotFound, []string{"no.json", "-o", "x.mcap"}},
		{cli.ExitDenied, []string{robot.File(t, map[string]string{"token": "another"}), "-o", filepath.Join(dir, "denied.mcap")}},
		{cli.ExitUnavailable, []string{robot.File(t, map[string]string{"address": "127.0.0.1:1"}), "-o", filepath.Join(dir, "away.mcap")}},
	} {
		if code, out := record(tc.line...); code != tc.code {
			t.Errorf("%q: %d %s, want %d", tc.line, code, out, tc.code)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.mcap"))
	if err != nil || len(left) != 2 {
		t.Errorf("%q, %v", left, err)
	}
}
