package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.opentelemetry.io/otel/trace"

	"kennel/infra/api/ack"
	"kennel/infra/api/traceparent"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/pg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/telemetry/telemetrytest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var rex = thing.MustParse("vic:00e20100")

func open(t testing.TB, traces TraceConfig) *Telemetry {
	t.Helper()
	tel, err := New(context.Background(), Config{Service: "test", Traces: traces, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := tel.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return tel
}

func scrape(t testing.TB, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func want(t testing.TB, metrics string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(metrics, "\n"+l+"\n") {
			t.Errorf("no line %q", l)
		}
	}
	if t.Failed() {
		t.Log(metrics)
	}
}

// TestHTTP: each request counts under the pattern that takes it and the kind of its answer, whatever paths strangers invent.
func TestHTTP(t *testing.T) {
	tel := open(t, TraceConfig{})
	mux := http.NewServeMux()
	release := make(chan struct{})
	var out bytes.Buffer
	log, err := logging.New(&out, "info", "json")
	if err != nil {
		t.Fatal(err)
	}
	mux.HandleFunc("GET /v1/things/{thing}", func(w http.ResponseWriter, r *http.Request) {
		log.InfoContext(r.Context(), "asked")
		if r.PathValue("thing") == "none" {
			kithttp.WriteError(w, errs.New(errs.NotFound, "no such thing"))
			return
		}
		_, _ = w.Write([]byte("here\n"))
	})
	mux.HandleFunc("GET /v1/watch", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: 1\n\n"))
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-release
	})
	s := httptest.NewServer(tel.HTTP(mux, mux))
	defer s.Close()
	get := func(path string, header ...string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+path, nil)
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
		return resp
	}
	p := traceparent.New(0)
	for _, path := range []string{"/v1/things/1", "/v1/things/2", "/v1/things/none", "/wp-admin", "/.env"} {
		resp := get(path, TraceparentHeader, p.String(), RequestIDHeader, "req-0000001")
		_ = resp.Body.Close()
		if id := resp.Header.Get(RequestIDHeader); id != "req-0000001" {
			t.Errorf("%s: request id %q", path, id)
		}
	}
	var rec map[string]string
	if err := json.NewDecoder(&out).Decode(&rec); err != nil || rec["request"] != "req-0000001" || rec["trace"] != p.TraceID() {
		t.Errorf("logged %v (%v), want request and trace", rec, err)
	}
	for _, hostile := range []string{"short", strings.Repeat("x", 65), "has spaces in it", "{\"json\":\"yes\"}"} {
		resp := get("/v1/things/1", RequestIDHeader, hostile)
		_ = resp.Body.Close()
		if id := resp.Header.Get(RequestIDHeader); id == hostile || id == "" {
			t.Errorf("request id %q taken over as %q", hostile, id)
		}
	}
	stream := get("/v1/watch")
	if _, err := io.ReadFull(stream.Body, make([]byte, 9)); err != nil {
		t.Fatal(err)
	}
	want(t, scrape(t, tel.Handler()),
		`kennel_endpoint_duration_seconds_count{kind="ok",name="GET /v1/things/{thing}",transport="http"} 6`,
		`kennel_endpoint_duration_seconds_count{kind="not_found",name="GET /v1/things/{thing}",transport="http"} 1`,
		`kennel_endpoint_duration_seconds_count{kind="not_found",name="unmatched",transport="http"} 2`,
		`kennel_endpoint_duration_seconds_count{kind="ok",name="GET /v1/watch",transport="http"} 1`,
		`kennel_endpoint_open_streams 1`, `kennel_endpoint_running_requests{transport="http"} 1`)
	close(release)
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Fatal(err)
	}
	s.Close() // waits for handlers
	want(t, scrape(t, tel.Handler()), `kennel_endpoint_open_streams 0`, `kennel_endpoint_running_requests{transport="http"} 0`)
}

// TestPanicsCount: a panic is an internal error, and continues.
func TestPanicsCount(t *testing.T) {
	tel := open(t, TraceConfig{})
	h := tel.Requests(map[string]kitmqtt.ReqHandler{"t/panic": func(context.Context, thing.ID, []byte) ([]byte, error) { panic("boom") }})
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v", p)
			}
		}()
		_, _ = h["t/panic"](t.Context(), rex, nil)
	}()
	want(t, scrape(t, tel.Handler()), `kennel_endpoint_duration_seconds_count{kind="internal",name="t/panic",transport="mqtt"} 1`,
		`kennel_endpoint_running_requests{transport="mqtt"} 0`)
}

// TestUps: how long a worker was busy, how long the robot waited, and how long the message lay in its lane are three things.
func TestUps(t *testing.T) {
	tel := open(t, TraceConfig{})
	var later func(ack.Ack)
	h := tel.Ups(map[string]kitmqtt.UpHandler{"das": func(_ context.Context, _ thing.ID, _ []byte, answer func(ack.Ack)) { later = answer }})
	got := make(chan ack.Ack, 1)
	h["das"](kitmqtt.WithArrival(t.Context(), time.Now().Add(-3*time.Second)), rex, nil, func(a ack.Ack) { got <- a })
	before := scrape(t, tel.Handler())
	want(t, before, `kennel_endpoint_duration_seconds_count{kind="ok",name="up/das",transport="mqtt"} 1`,
		`kennel_bridge_lag_seconds_bucket{le="2.5"} 0`, `kennel_bridge_lag_seconds_bucket{le="5"} 1`)
	if strings.Contains(before, "kennel_bridge_answer_seconds_count") {
		t.Error("an answer that was not given is counted")
	}
	later(ack.Ack{Batch: "b", Status: ack.Stored})
	if a := <-got; a.Batch != "b" {
		t.Errorf("answer %+v", a)
	}
	want(t, scrape(t, tel.Handler()), `kennel_bridge_answer_seconds_count{name="das",status="stored"} 1`)
}

// pool returns a database whose statements tel hears.
func pool(t *testing.T, tel *Telemetry) *pgxpool.Pool {
	t.Helper()
	p, err := pg.Open(t.Context(), pg.Config{DSN: pgtest.DSN(t), Tracer: tel.PGTracer()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestOneTree: what one request of a robot does in the cloud is one tree under the robot's trace id: bridge, handler, statements.
func TestOneTree(t *testing.T) {
	col := telemetrytest.Start(t)
	tel := open(t, TraceConfig{Endpoint: col.URL})
	db := pool(t, tel)
	h := tel.Requests(map[string]kitmqtt.ReqHandler{"jdocs/read": func(ctx context.Context, _ thing.ID, _ []byte) ([]byte, error) {
		var n int
		if err := db.QueryRow(ctx, "SELECT $1::int", 42).Scan(&n); err != nil {
			return nil, err
		}
		_, err := db.Exec(ctx, "SELECT 1/0")
		return nil, err
	}})
	robot := traceparent.New(1000)
	arrived := time.Now().Add(-50 * time.Millisecond)
	ctx := logging.With(traceparent.With(kitmqtt.WithArrival(t.Context(), arrived), robot), slog.String(logging.Request, "r1"))
	if _, err := h["jdocs/read"](ctx, rex, nil); err == nil {
		t.Fatal("1/0 went well")
	}
	quiet := traceparent.New(0)
	_, _ = h["jdocs/read"](traceparent.With(t.Context(), quiet), rex, nil)
	if _, err := db.Exec(t.Context(), "SELECT 2"); err != nil { // in the background: no trace
		t.Fatal(err)
	}

	spans := col.Await(t, robot.TraceID(), func(s []telemetrytest.Span) bool { return len(s) >= 4 })
	const tree = "bridge jdocs/read\n  jdocs/read\n    postgres select\n    postgres select\n"
	if got := telemetrytest.Tree(spans, robot.String()[36:52]); got != tree {
		t.Errorf("tree:\n%s\nwant:\n%s", got, tree)
	}
	failed := 0
	for _, s := range spans {
		if s.Failed {
			failed++
		}
		switch s.Name {
		case "bridge jdocs/read":
			if !s.Start.Equal(arrived.Truncate(0)) || s.Attributes["kennel.request"] != "r1" || s.Attributes["kennel.kind"] != "internal" {
				t.Errorf("%+v, want it to begin at %v", s, arrived)
			}
		case "postgres select":
			if text := s.Attributes["db.query.text"]; text != "SELECT $1::int" && text != "SELECT 1/0" {
				t.Errorf("statement %q", text)
			}
		}
	}
	if failed != 3 { // the statement, the handler, the bridge
		t.Errorf("%d spans failed, want 3", failed)
	}
	if err := tel.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(col.Spans("")); n != 4 {
		t.Errorf("%d spans, want 4: neither a trace that the robot did not sample nor a statement without one", n)
	}
	want(t, scrape(t, tel.Handler()), `kennel_traces_exported_spans_total{result="sent"} 4`,
		`kennel_postgres_statement_seconds_count{operation="select",result="error"} 2`)
}

// TestCollectorAway: spans that the collector does not take are counted, and cost nothing else.
func TestCollectorAway(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	tel := open(t, TraceConfig{Endpoint: s.URL, Permille: 1000})
	s.Close()
	_, span := tel.start(t.Context(), "alone", trace.SpanKindServer, time.Time{})
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_ = tel.stop(ctx) // gives up at the deadline
	want(t, scrape(t, tel.Handler()), `kennel_traces_exported_spans_total{result="failed"} 1`)
}

// TestFloodOfSampledRequests: strangers may ask for their traces to be kept, up to a limit.
func TestFloodOfSampledRequests(t *testing.T) {
	col := telemetrytest.Start(t)
	tel := open(t, TraceConfig{Endpoint: col.URL})
	kept := 0
	start := time.Now()
	for range 20 * maxAsked {
		_, span := tel.start(traceparent.With(t.Context(), traceparent.New(1000)), "x", trace.SpanKindServer, time.Time{})
		if span.IsRecording() {
			kept++
		}
		span.End()
	}
	if most := 2*maxAsked + int(time.Since(start).Seconds()*maxAsked) + 1; kept > most || kept < 2*maxAsked {
		t.Errorf("%d of %d kept, want %d to %d", kept, 20*maxAsked, 2*maxAsked, most)
	}
}

func TestReadiness(t *testing.T) {
	tel := open(t, TraceConfig{})
	var broken error
	asked := 0
	r, err := tel.NewReadiness(Check{Name: "postgres", Ask: func(context.Context) error { asked++; return Advise(broken, "Start it.") }},
		Check{Name: "broker", Look: func(context.Context) (string, error) { return "one server", nil }},
		Check{Name: "rude", Ask: func(context.Context) error {
			if broken != nil {
				panic("at the disco")
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(h http.Handler) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		return w.Code, w.Body.String()
	}
	for range 50 {
		if code, body := ask(r.Brief()); code != 200 || body != "ready\n" {
			t.Fatalf("%d %q", code, body)
		}
	}
	if asked > 2 { // the answer is reused for a second
		t.Errorf("50 questions cost %d checks", asked)
	}
	broken = errors.New("dial tcp 127.0.0.1:5432: connection refused")
	r.last = Report{}
	code, body := ask(r.Detail())
	var rep Report
	if err := json.Unmarshal([]byte(body), &rep); err != nil || code != 503 || rep.Ready || rep.Parts[0] != (Part{Name: "postgres", Reason: broken.Error(), Do: "Start it.", Since: rep.At}) ||
		rep.Parts[1] != (Part{Name: "broker", OK: true, Says: "one server"}) || rep.Parts[2].Reason != "the check panicked: at the disco" {
		t.Errorf("%d %s (%v)", code, body, err)
	}
	if code, body := ask(r.Brief()); code != 503 || body != "not ready\n" {
		t.Errorf("%d %q: strangers learn no more than that", code, body)
	}
	if got, want := rep.String(), "not ready: postgres: dial tcp 127.0.0.1:5432: connection refused; rude: the check panicked: at the disco"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	want(t, scrape(t, tel.Listener(r)), `kennel_ready{part="postgres"} 0`, `kennel_ready{part="broker"} 1`)
	if code, _ := func() (int, string) {
		w := httptest.NewRecorder()
		tel.Listener(r).ServeHTTP(w, httptest.NewRequest("GET", "/livez", nil))
		return w.Code, ""
	}(); code != 200 {
		t.Errorf("livez: %d; a process that waits for its database is alive", code)
	}
}

// TestAskedFails: while one source fails its metric has no values and the rest is served.
func TestAskedFails(t *testing.T) {
	tel := open(t, TraceConfig{})
	fail := true
	if err := tel.Asked(Metric{Name: "kennel_test_things", Help: "Things."}, []string{"species"}, 0, func(context.Context) ([]Sample, error) {
		if fail {
			return nil, errors.New("away")
		}
		return []Sample{{[]string{"vic"}, 3}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if m := scrape(t, tel.Handler()); strings.Contains(m, "kennel_test_things") || !strings.Contains(m, "go_goroutines") {
		t.Errorf("values from nowhere, or no others:\n%s", m)
	}
	fail = false
	want(t, scrape(t, tel.Handler()), `kennel_test_things{species="vic"} 3`)
}

func TestNamesPassLint(t *testing.T) {
	tel := open(t, TraceConfig{})
	if err := tel.Pool(pool(t, tel)); err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.New(strings.NewReader(scrape(t, tel.Handler()))).Lint()
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestOperation(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT 1": "select", "\n\tWITH put AS (": "with", "begin": "begin", "LISTEN \"x\"": "listen", "": "other", "SELECTED": "other", "MERGE INTO x": "other",
		"update": "update", "(SELECT 1)": "select",
	} {
		if got := operation(sql); got != want {
			t.Errorf("%q is %q, want %q", sql, got, want)
		}
	}
}

func TestConfigMistakes(t *testing.T) {
	for name, c := range map[string]TraceConfig{
		"permille": {Permille: 1001}, "negative": {Permille: -1}, "no scheme": {Endpoint: "collector:4318"}, "grpc": {Endpoint: "grpc://c:4317"}, "no host": {Endpoint: "http://"},
	} {
		if err := c.Validate(); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (TraceConfig{Endpoint: "https://c/prefix/v1/traces", Permille: 5}).Validate(); err != nil {
		t.Error(err)
	}
}

// BenchmarkRequest measures the cost of a measured request, without traces and with one that is not kept.
func BenchmarkRequest(b *testing.B) {
	col := telemetrytest.Start(b)
	plain := func(context.Context, thing.ID, []byte) ([]byte, error) { return nil, nil }
	for name, tc := range map[string]struct {
		traces TraceConfig
		wrap   bool
	}{"bare": {}, "metrics": {wrap: true}, "unsampled": {TraceConfig{Endpoint: col.URL}, true}} {
		b.Run(name, func(b *testing.B) {
			h := plain
			if tc.wrap {
				h = open(b, tc.traces).Requests(map[string]kitmqtt.ReqHandler{"t": plain})["t"]
			}
			ctx := traceparent.With(kitmqtt.WithArrival(b.Context(), time.Now()), traceparent.New(0))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = h(ctx, rex, nil)
			}
		})
	}
}
