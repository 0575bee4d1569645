package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.yaml.in/yaml/v3"

	"kennel/certs/ca"
	"kennel/cloud/app"
	"kennel/infra/config"
	"kennel/infra/errs"
	"kennel/infra/pg/pgserver"
	"kennel/infra/telemetry"
	"kennel/infra/testwait"
)

// TestFiles: kenneld, HAProxy and Patroni take the files that are written.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	l := layout{dir, 18400}
	authority, err := ca.Init(filepath.Join(dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	apis := map[string]bool{}
	for i := range cloudProcesses {
		cfg := app.Defaults()
		if err := config.Load(&cfg, write("kenneld.yaml", l.kenneld(i)), app.EnvPrefix, nil); err != nil {
			t.Fatal(err)
		}
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
		apis[cfg.API.Listen] = true
		if len(cfg.MQTT.NATS.Servers) != brokerServers || !strings.Contains(cfg.Postgres.DSN, l.addr(portPostgres)+","+l.addr(portPostgres+1)) {
			t.Errorf("%+v, %s", cfg.MQTT.NATS, cfg.Postgres.DSN)
		}
	}
	if len(apis) != cloudProcesses {
		t.Errorf("addresses %v: want one for each", apis)
	}
	text, err := l.haproxy(write("root.crt", authority.Root()))
	if err != nil {
		t.Fatal(err)
	}
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		haproxy = "/usr/sbin/haproxy" // not in everybody's search path
	}
	if out, err := exec.Command(haproxy, "-c", "-f", write("haproxy.cfg", text)).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if _, mqtt, _ := strings.Cut(string(text), "listen mqtt"); !strings.Contains(string(text), "option redispatch 1") || !strings.Contains(mqtt, "slowstart 20s") {
		t.Errorf("robots that lost a NATS server all go to the one that starts, or wait for one that is gone:\n%s", text)
	}
	write("install/kenneld/postgres-password", []byte("word\n"))
	files, err := l.postgresFiles(pgserver.Account{}, "/bin", func(name string) (string, error) { return name + "-password", nil })
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for i, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Name       string
			Postgresql struct{ Listen string }
		}
		if err := yaml.Unmarshal(b, &c); err != nil || c.Postgresql.Listen != l.addr(portPostgres+i) || !strings.HasPrefix(c.Name, "postgres-") {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

// TestSettled: what may pass is tried again, until the start takes too long; what will not pass ends the start.
func TestSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errs.RetryLater(time.Second, "the database is not available", nil)
		for name, c := range map[string]struct {
			answers []error // the last one for ever
			calls   int
			want    error
		}{"at once": {[]error{nil}, 1, nil}, "the third time": {[]error{away, away, nil}, 3, nil}, "never": {[]error{os.ErrPermission}, 1, os.ErrPermission}, "too late": {[]error{away}, 0, away}} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			calls := 0
			err := settled(ctx, func() error { calls++; return c.answers[min(calls, len(c.answers))-1] })
			cancel()
			if !errors.Is(err, c.want) || c.calls > 0 && calls != c.calls || c.calls == 0 && calls < 10 {
				t.Errorf("%s: %v after %d calls", name, err, calls)
			}
		}
	})
}

// TestLook: each part's own words become its row.
func TestLook(t *testing.T) {
	const base = 29400
	l := layout{t.TempDir(), base}
	serve := func(port int, answers map[string]any) {
		t.Helper()
		ln, err := net.Listen("tcp", l.addr(port))
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v, ok := answers[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			_ = json.NewEncoder(w).Encode(v)
		})}
		go func() { _ = s.Serve(ln) }()
		t.Cleanup(func() { _ = s.Close() })
	}
	type m = map[string]any
	stream := m{"name": "KENNEL", "cluster": m{"leader": "nats-2"}, "consumer_detail": []m{{"num_pending": 7}}}
	answer := m{"meta_cluster": m{"leader": "nats-1"}, "account_details": []m{{"stream_detail": []m{stream}}}}
	for i := range 2 { // the third is down
		serve(portNATS+4*i+3, m{"/varz": m{"connections": 5}, "/jsz": answer})
	}
	serve(portPatroni+1, m{"/cluster": m{"members": []m{{"name": "postgres-1", "role": "sync_standby", "state": "running", "lag": 12},
		{"name": "postgres-2", "role": "leader", "state": "running"}}}})
	w := &watch{cluster: &cluster{layout: l}, http: http.DefaultClient}
	ctx := context.Background()
	for i, want := range []struct {
		waiting int64
		role    string
		up      bool
	}{{-1, "leader", true}, {7, "follower", true}, {-1, "", false}} {
		p := &Part{Name: natsName(i), Pid: 1, Up: true}
		if got := w.askNATS(ctx, p, i); got != want.waiting || p.Role != want.role || p.Up != want.up {
			t.Errorf("%d waiting, %+v, want %+v", got, p, want)
		}
	}
	hung, err := net.Listen("tcp", l.addr(portPatroni)) // its machine hangs: it takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	at := map[string]*Part{"postgres-1": {Name: "postgres-1", Up: true}, "postgres-2": {Name: "postgres-2", Up: true}}
	limited, cancel := context.WithTimeout(ctx, testwait.Long)
	defer cancel()
	if w.askPatroni(limited, at); limited.Err() != nil {
		t.Error("the Patroni that answers was not asked, or too late")
	}
	if a, b := at["postgres-1"], at["postgres-2"]; a.Role != "synchronous standby" || !a.Up || !strings.Contains(a.Note, "12 bytes") || b.Role != "primary" || !b.Up {
		t.Errorf("%+v, %+v", a, b)
	}
	serve(portMetrics+1, m{"/readyz": telemetry.Report{Ready: true, Parts: []telemetry.Part{
		{Name: "postgres", OK: true, Says: "primary 127.0.0.1:5", Reason: "no standby follows", Do: "Start it."}, {Name: "disk", OK: true, Says: "large"}, {Name: "uplink", OK: true, Says: "queue"}}}})
	serve(portMetrics+2, m{"/readyz": telemetry.Report{Parts: []telemetry.Part{{Name: "broker", Reason: "gone"}}}})
	for i, want := range []struct {
		up       bool
		note     string
		problems int
	}{{false, "not ready: ", 0}, {true, "postgres: primary 127.0.0.1:5. uplink: queue", 1}, {false, "not ready: broker: gone", 1}} {
		p := &Part{Name: kenneldName(i), Pid: 1, Up: true}
		if got := w.askKenneld(ctx, p, i); len(got) != want.problems || p.Up != want.up || !strings.HasPrefix(p.Note, want.note) {
			t.Errorf("%+v, %+v, want %+v", p, got, want)
		}
	}
	var html bytes.Buffer
	if err := page.Execute(&html, Status{Waiting: 7, Robots: 3, Problems: []Problem{{"postgres", "no standby follows", "Start it."}}, Parts: []Part{{Name: "nats-1", Pid: 9, Up: true, Role: "leader"}, {Name: "s3"}}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 robots connected", "7 messages waiting", "<td>leader</td>", `class="down"`, "no standby follows. Start it."} {
		if !strings.Contains(html.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, html.String())
		}
	}
}
