package telemetry

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"

	"kennel/infra/cli/version"
)

// Config says where metrics and traces are exposed. The zero value records metrics and no traces.
type Config struct {
	Service string      // this program's name in traces, such as kenneld
	Traces  TraceConfig // where spans go
	Log     *slog.Logger
}

// Telemetry is one process's registry and tracer. It is safe for concurrent use.
type Telemetry struct {
	log      *slog.Logger
	registry *prometheus.Registry
	tracer   trace.Tracer // nil: no traces
	stop     func(context.Context) error

	endpoints  *prometheus.HistogramVec // transport, name, kind
	running    *prometheus.GaugeVec     // transport
	streams    prometheus.Gauge
	lag        prometheus.Histogram
	answers    *prometheus.HistogramVec // name, status
	statements *prometheus.HistogramVec // operation, result
	exports    *prometheus.CounterVec   // result
}

// buckets, in seconds: from a cached answer to the longest that a handler may take (30 s).
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// New returns a Telemetry that measures this process: the Go runtime, the operating system's view, the build. Close ends it.
func New(ctx context.Context, cfg Config) (*Telemetry, error) {
	if err := cfg.Traces.Validate(); err != nil {
		return nil, err
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	t := &Telemetry{
		log: cfg.Log, registry: prometheus.NewRegistry(), stop: func(context.Context) error { return nil },
		endpoints: histogram("kennel_endpoint_duration_seconds",
			"Time from request to answer; of a stream, to its first byte. kind is ok or the kind of error.", "transport", "name", "kind"),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kennel_endpoint_running_requests",
			Help: "Requests being answered now, streams included."}, []string{"transport"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kennel_endpoint_open_streams",
			Help: "Event streams to browsers and programs, open now."}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "kennel_bridge_lag_seconds", Buckets: buckets,
			Help: "Time a message of a robot waited between its arrival from the broker and a free worker."}),
		answers: histogram("kennel_bridge_answer_seconds",
			"Time from an uplink message to its acknowledgement, the commit included.", "name", "status"),
		statements: histogram("kennel_postgres_statement_seconds",
			"Time of one statement, batch or copy, reading its rows included.", "operation", "result"),
		exports: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kennel_traces_exported_spans_total",
			Help: "Spans handed to the collector, by result: sent, or failed and lost."}, []string{"result"}),
	}
	for _, transport := range []string{TransportHTTP, TransportMQTT} {
		t.running.WithLabelValues(transport) // 0 is news too
	}
	for _, result := range []string{"sent", "failed"} {
		t.exports.WithLabelValues(result)
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "kennel_build_info", Help: "1, labelled with the version that runs.",
		ConstLabels: prometheus.Labels{"version": version.String()}})
	build.Set(1)
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build,
		t.endpoints, t.running, t.streams, t.lag, t.answers, t.statements, t.exports,
	} {
		if err := t.registry.Register(c); err != nil {
			return nil, err
		}
	}
	if err := t.openTraces(ctx, cfg); err != nil {
		return nil, err
	}
	return t, nil
}

// Close sends the spans that wait, at most until ctx ends.
func (t *Telemetry) Close(ctx context.Context) error { return t.stop(ctx) }

// Gatherer returns the metrics for reading without HTTP.
func (t *Telemetry) Gatherer() prometheus.Gatherer { return t.registry }

// Handler serves /metrics. If one source fails its metrics are left out; the rest is served.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4,
		ErrorLog: scrapeLog{t.log}})
}

type scrapeLog struct{ log *slog.Logger }

func (s scrapeLog) Println(v ...any) { s.log.Warn("metrics incomplete", "err", v) }

// Metric names one metric whose values another package keeps.
type Metric struct {
	Name   string // kennel_<area>_<what>_<unit>, a counter's ends in _total
	Help   string // one sentence
	Labels map[string]string
}

// Gauge exposes the result of read at each scrape. read is called from any goroutine and must not block.
func (t *Telemetry) Gauge(m Metric, read func() float64) error {
	return t.registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: m.Name, Help: m.Help, ConstLabels: m.Labels}, read))
}

// Counter shows a number that only grows while the process lives. read is called from any goroutine and must not block.
func (t *Telemetry) Counter(m Metric, read func() float64) error {
	return t.registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: m.Name, Help: m.Help, ConstLabels: m.Labels}, read))
}

// Duration returns a histogram of seconds with one label, whose values must come from a fixed list.
func (t *Telemetry) Duration(m Metric, labels ...string) (*prometheus.HistogramVec, error) {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, ConstLabels: m.Labels, Buckets: buckets}, labels)
	return h, t.registry.Register(h)
}

// Count returns a counter with labels, whose values must come from a fixed list.
func (t *Telemetry) Count(m Metric, labels ...string) (*prometheus.CounterVec, error) {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help, ConstLabels: m.Labels}, labels)
	return c, t.registry.Register(c)
}
