package app

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"kennel/certs/ca"
	"kennel/cloud/app/link"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/api/topics"
	"kennel/infra/api/traceparent"
	"kennel/infra/blob/blobtest"
	"kennel/infra/dashboards"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/pg/pgtest"
	"kennel/infra/runner"
	"kennel/infra/secretbox"
	"kennel/infra/telemetry"
	"kennel/infra/telemetry/telemetrytest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var rex = thing.MustParse("vic:00e20100")

// syncBuffer is a log buffer that several goroutines write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// wired is a cloud with every role against real parts, and one robot's connection to it.
type wired struct {
	*Cloud
	api    string // of the public side, without TLS
	log    *syncBuffer
	robot  *kitmqtt.Client
	acks   chan ack.Ack
	client *mqtt.Client
	sent   uint64 // events
	people int
}

// settings returns those of a process with every role against parts of its own.
func settings(t *testing.T, b *mqtttest.Broker) Config {
	t.Helper()
	dir := t.TempDir()
	if _, err := ca.Init(filepath.Join(dir, "ca")); err != nil {
		t.Fatal(err)
	}
	if _, err := secretbox.Init(filepath.Join(dir, "ca", "seal.key")); err != nil {
		t.Fatal(err)
	}
	leaf := b.Service.Issue(t, "kenneld")
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, data []byte) string {
		f := filepath.Join(dir, name)
		if err := os.WriteFile(f, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	cfg := Defaults()
	cfg.Postgres.DSN = pgtest.DSN(t)
	cfg.S3 = blobtest.Config(t)
	cfg.CA.Dir = filepath.Join(dir, "ca")
	cfg.MQTT = link.Config{URL: b.URL, ServerName: "localhost", CertFile: file("kenneld.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]})),
		KeyFile: file("kenneld.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})), RootFile: file("root.crt", b.Server.PEM())}
	return cfg
}

func start(t *testing.T, change func(*Config)) *wired {
	t.Helper()
	w := &wired{log: &syncBuffer{}, acks: make(chan ack.Ack, 16)}
	b := mqtttest.Start(t)
	cfg := settings(t, b)
	if change != nil {
		change(&cfg)
	}
	log, err := logging.New(io.MultiWriter(w.log, t.Output()), "debug", "json")
	if err != nil {
		t.Fatal(err)
	}
	if w.Cloud, err = Build(t.Context(), cfg, log); err != nil {
		t.Fatal(err)
	}
	if err := w.base.Blobs.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	h, err := w.Handler()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	w.api = s.URL
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 2) // one each
	go func() { done <- runner.Run(ctx, log, runner.Config{}, w.Services()...) }()

	up := make(chan struct{}, 1)
	if w.client, err = mqtt.New(mqtt.Config{URL: b.URL, ClientID: string(rex), TLS: b.Thing(t, rex), Log: slog.New(slog.DiscardHandler),
		OnConnect: func(ctx context.Context, c *mqtt.Client) error {
			err := c.Subscribe(ctx, 1, topics.ThingFilters(rex)...)
			up <- struct{}{}
			return err
		},
		OnMessage: func(topic string, payload []byte, taken func()) {
			defer taken()
			if topic == topics.DownTopic(rex, topics.Ack) {
				if a, err := ack.Parse(payload); err == nil {
					w.acks <- a
				}
				return
			}
			_ = w.robot.Deliver(topic, payload) // hints are not answers
		}}); err != nil {
		t.Fatal(err)
	}
	w.robot = kitmqtt.NewClient(rex, func(ctx context.Context, topic string, payload []byte) error {
		return w.client.Publish(ctx, topic, 1, false, payload)
	})
	go func() { done <- w.client.Run(ctx) }()
	t.Cleanup(func() {
		s.Close()
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		w.Close()
	})
	select {
	case <-up:
	case <-time.After(15 * time.Second):
		t.Fatal("the robot does not reach the broker")
	}
	testwait.Until(t, testwait.Long, "the cloud is ready", func() error {
		if r := w.ready.Now(t.Context()); !r.Ready {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	return w
}

func (w *wired) get(t *testing.T, method, path, body string, header ...string) (int, string) {
	t.Helper()
	resp, said := w.answer(t, method, path, body, header...)
	return resp.StatusCode, said
}

// answer is get with the answer's headers; its body is read.
func (w *wired) answer(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.api+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// writeSettings is the robot's one settings request.
func (w *wired) writeSettings(t *testing.T, ctx context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	res, err := jdocswire.NewClient(w.robot).Write(ctx, jdocs.RobotSettings, jdocs.Doc{FmtVersion: 1, JSON: `{"master_volume":3}`})
	if err != nil || res.Status != jdocs.Accepted {
		t.Fatalf("%+v %v", res, err)
	}
}

// TestOneTraceFromRobotToStatement: a settings request of a robot is one tree at the collector, under the robot's trace id, and the log
// lines of the cloud name that id too. A person's request over HTTPS likewise.
func TestOneTraceFromRobotToStatement(t *testing.T) {
	col := telemetrytest.Start(t)
	w := start(t, func(c *Config) { c.Traces = telemetry.TraceConfig{Endpoint: col.URL} })

	robot := traceparent.New(1000)
	w.writeSettings(t, traceparent.With(t.Context(), robot))
	whole := func(root, below string) func([]telemetrytest.Span) bool {
		return func(s []telemetrytest.Span) bool {
			return slices.ContainsFunc(s, func(s telemetrytest.Span) bool { return s.Name == root }) &&
				slices.ContainsFunc(s, func(s telemetrytest.Span) bool { return strings.HasPrefix(s.Name, below) })
		}
	}
	spans := col.Await(t, robot.TraceID(), whole("bridge jdocs/write", "postgres "))
	tree := telemetrytest.Tree(spans, robot.String()[36:52])
	if !strings.HasPrefix(tree, "bridge jdocs/write\n  jdocs/write\n    postgres ") || strings.Count(tree, "\n") != len(spans) {
		t.Errorf("not one tree of %d spans:\n%s", len(spans), tree)
	}
	for _, s := range spans {
		if text := s.Attributes["db.query.text"]; strings.Contains(text, "master_volume") || strings.Contains(fmt.Sprint(s.Attributes), "master_volume") {
			t.Errorf("a span shows the owner's settings: %+v", s)
		}
	}
	found := false
	for line := range strings.Lines(w.log.String()) {
		var rec map[string]any
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if rec["msg"] == "document written" {
			found = rec[logging.Trace] == robot.TraceID() && rec[logging.Caller] == string(rex) && rec[logging.Request] != nil
		}
	}
	if !found {
		t.Errorf("no log line of the write with request, caller and trace:\n%s", w.log)
	}

	person := traceparent.New(1000)
	const password = "correct horse battery staple"
	if code, body := w.get(t, "POST", "/v1/login", `{"email":"nobody@example.org","password":"`+password+`"}`, "Content-Type", "application/json", "Traceparent", person.String()); code != 401 {
		t.Fatalf("%d %s", code, body)
	}
	spans = col.Await(t, person.TraceID(), whole("POST /v1/login", "postgres "))
	if tree := telemetrytest.Tree(spans, person.String()[36:52]); !strings.HasPrefix(tree, "POST /v1/login\n  postgres ") || strings.Count(tree, "\n") != len(spans) {
		t.Errorf("not one tree of %d spans:\n%s", len(spans), tree)
	}
	if all := fmt.Sprint(col.Spans("")) + w.log.String(); strings.Contains(all, password) {
		t.Error("a password reached the log or the traces")
	}

	// A request that its robot did not sample leaves no span, and its trace id in the log all the same.
	quiet := traceparent.New(0)
	if _, err := jdocswire.NewClient(w.robot).Read(traceparent.With(t.Context(), quiet), []jdocs.Item{{Name: jdocs.RobotSettings}}); err != nil {
		t.Fatal(err)
	}
	if err := w.base.Meters.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := col.Spans(quiet.TraceID()); len(s) > 0 {
		t.Errorf("%d spans of a trace that nobody asked to keep", len(s))
	}
}

// name finds metrics in a query.
var name = regexp.MustCompile(`\b(?:kennel|go|process)_[a-z0-9_]+\b`)

// shown returns the metrics that dashboards and alerts ask for, each with one place.
func shown(t *testing.T) map[string]string {
	t.Helper()
	files, err := fs.Glob(dashboards.FS, "*")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		b, err := dashboards.FS.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, `"title":`) || strings.Contains(line, `"description":`) || strings.Contains(line, "summary:") || strings.Contains(line, "action:") {
				continue // words
			}
			for _, m := range name.FindAllString(line, -1) {
				out[m] = f
			}
		}
	}
	return out
}

// family returns the name under which a series is exported: a histogram has three series for one name.
func family(exported map[string]*dto.MetricFamily, series string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, cut := strings.CutSuffix(series, suffix); cut && exported[base].GetType() == dto.MetricType_HISTOGRAM {
			return base
		}
	}
	return series
}

// TestDashboardsShowWhatIsExported: every metric that a dashboard or an alert names is exported by a process that works, every metric of
// ours has words, passes the linter, is shown somewhere, and carries no label that a peer chooses.
func TestDashboardsShowWhatIsExported(t *testing.T) {
	w := start(t, nil)
	w.writeSettings(t, t.Context())
	if code, body := w.get(t, "GET", "/ok", ""); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	batch, err := events.EncodeBatch("b1", []events.Event{{Seq: 1, Level: events.Info, RobotID: rex.Serial(), BootID: "boot", Name: "robot.boot_info"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.client.Publish(t.Context(), topics.UpTopic(rex, "das"), 1, false, batch); err != nil {
		t.Fatal(err)
	}
	select {
	case a := <-w.acks:
		if a.Status != ack.Stored {
			t.Fatalf("%+v", a)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("events are not acknowledged")
	}

	want := shown(t)
	var exported map[string]*dto.MetricFamily
	testwait.Until(t, testwait.Long, "everything shown is exported (the broker speaks every 10 s, jobs run at the start)", func() error {
		all, err := w.base.Meters.Gatherer().Gather()
		if err != nil {
			return err
		}
		exported = map[string]*dto.MetricFamily{}
		for _, f := range all {
			exported[f.GetName()] = f
		}
		for series, file := range want {
			if exported[family(exported, series)] == nil {
				return fmt.Errorf("%s: %s is not exported", file, series)
			}
		}
		return nil
	})
	used := map[string]bool{}
	for series := range want {
		used[family(exported, series)] = true
	}
	for n, f := range exported {
		if !strings.HasPrefix(n, "kennel_") {
			continue
		}
		if !used[n] {
			t.Errorf("%s is exported and shown nowhere", n)
		}
		if len(strings.Fields(f.GetHelp())) < 3 {
			t.Errorf("%s: help %q", n, f.GetHelp())
		}
		if len(f.Metric) > 300 {
			t.Errorf("%s has %d series", n, len(f.Metric))
		}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if strings.Contains(l.GetValue(), rex.Serial()) || strings.Contains(l.GetValue(), "127.0.0.1") {
					t.Errorf("%s: label %s=%q is a peer's", n, l.GetName(), l.GetValue())
				}
			}
		}
	}
	srv := httptest.NewServer(w.base.Meters.Listener(w.ready))
	defer srv.Close()
	resp, err := http.Get(srv.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	problems, err := promlint.New(resp.Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestReadyzSaysWhy: the public side says whether, the operators' side why; metrics are not on the public side.
func TestReadyzSaysWhy(t *testing.T) {
	w := start(t, nil)
	if code, body := w.get(t, "GET", "/readyz", ""); code != 200 || body != "ready\n" {
		t.Errorf("%d %q", code, body)
	}
	for _, path := range []string{"/metrics", "/livez"} {
		if code, _ := w.get(t, "GET", path, ""); code == 200 {
			t.Errorf("%s is public", path)
		}
	}
	// An older backup is restored under a running process.
	if _, err := w.base.Pool.Exec(t.Context(), "DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)"); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(w.base.Meters.Listener(w.ready))
	defer srv.Close()
	var rep telemetry.Report
	testwait.Until(t, testwait.Long, "not ready", func() error {
		resp, err := http.Get(srv.URL + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable {
			return fmt.Errorf("%s", resp.Status)
		}
		return json.NewDecoder(resp.Body).Decode(&rep)
	})
	i := slices.IndexFunc(rep.Parts, func(p telemetry.Part) bool { return p.Name == "migrations" })
	if rep.Ready || i < 0 || !strings.Contains(rep.Parts[i].Reason, "lacks 1 migrations") {
		t.Errorf("%+v", rep)
	}
	if code, body := w.get(t, "GET", "/readyz", ""); code != 503 || body != "not ready\n" {
		t.Errorf("%d %q", code, body)
	}
}

// TestServeTellsItsSupervisor: a supervisor hears when the process is up, in one line how it goes, that it lives, and its end; and
// children would hear nothing of the supervisor.
func TestServeTellsItsSupervisor(t *testing.T) {
	addr := filepath.Join(t.TempDir(), "notify")
	sock, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: addr, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	hear := func() string {
		t.Helper()
		b := make([]byte, 4096)
		_ = sock.SetReadDeadline(time.Now().Add(30 * time.Second))
		n, err := sock.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	t.Setenv("NOTIFY_SOCKET", addr)
	t.Setenv("WATCHDOG_USEC", "200000")
	t.Setenv("WATCHDOG_PID", "")

	b := mqtttest.Start(t)
	cfg := settings(t, b)
	cfg.Roles = []string{"bridge"}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Metrics.Listen = l.Addr().String()
	if err := Serve(t.Context(), cfg, slog.New(slog.DiscardHandler), nil); err == nil || !strings.Contains(err.Error(), "metrics.listen") {
		t.Fatalf("a port in use: %v", err)
	}
	if os.Getenv("NOTIFY_SOCKET") != "" {
		t.Error("children would speak in our name")
	}
	t.Setenv("NOTIFY_SOCKET", addr)
	t.Setenv("WATCHDOG_USEC", "200000")
	_ = l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, cfg, slog.New(slog.NewTextHandler(t.Output(), nil)), nil) }()
	heard := map[string]bool{}
	for !heard["READY=1"] || !heard["WATCHDOG=1"] || !heard["STATUS=ready"] {
		said, _, _ := strings.Cut(hear(), "; ") // this machine's own disk may be low, which is added
		heard[said] = true
	}
	for _, path := range []string{"/livez", "/readyz", "/metrics"} {
		resp, err := http.Get("http://" + cfg.Metrics.Listen + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	b.Stop()
	for !strings.HasPrefix(hear(), "STATUS=not ready: broker: no connection to ssl://") {
	}
	cancel()
	for hear() != "STOPPING=1" {
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
