package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"kennel/infra/api/traceparent"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// TraceConfig says where spans go and of which requests.
type TraceConfig struct {
	// Endpoint is an OTLP/HTTP collector, such as http://127.0.0.1:4318; "": no traces. Headers and the like come from the variables
	// that OpenTelemetry defines for it (OTEL_EXPORTER_OTLP_HEADERS).
	Endpoint string `koanf:"endpoint"`
	// Permille is how many of 1,000 traces that begin here are kept. A robot or program that sends a traceparent has decided
	// for its own, up to a limit for all of them.
	Permille int `koanf:"permille"`
}

// maxAsked is how many traces a second are kept at callers' request; it bounds a flood. Own default (the source gives none).
const maxAsked = 100

// Validate reports the first setting that cannot work (kind Invalid).
func (c TraceConfig) Validate() error {
	if c.Permille < 0 || c.Permille > 1000 {
		return errs.New(errs.Invalid, "traces.permille %d: want 0 to 1000", c.Permille)
	}
	if c.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errs.New(errs.Invalid, "traces.endpoint %.200q: want http://host:port or https://host:port of an OTLP collector, or nothing", c.Endpoint)
	}
	return nil
}

// openTraces makes the tracer. Its one goroutine sends spans in batches; Close ends it.
func (t *Telemetry) openTraces(ctx context.Context, cfg Config) error {
	if cfg.Traces.Endpoint == "" {
		return nil
	}
	endpoint := strings.TrimRight(cfg.Traces.Endpoint, "/")
	if u, err := url.Parse(endpoint); err == nil && u.Path == "" {
		endpoint += "/v1/traces"
	}
	exp, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint), otlptracehttp.WithTimeout(5*time.Second),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
	if err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	host, _ := os.Hostname() // an instance without a name is still one
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&counted{SpanExporter: exp, t: t}, sdktrace.WithBatchTimeout(2*time.Second), sdktrace.WithMaxQueueSize(4096)),
		sdktrace.WithSampler(sampler(cfg.Traces.Permille, rate.NewLimiter(maxAsked, 2*maxAsked))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", cfg.Service), attribute.String("service.version", version.String()),
			attribute.String("service.instance.id", host+":"+strconv.Itoa(os.Getpid())))),
	)
	t.tracer = provider.Tracer("kennel")
	t.stop = provider.Shutdown
	return nil
}

// sampler follows the caller's decision, as far as asked allows, and keeps permille of the traces that begin here.
func sampler(permille int, asked *rate.Limiter) sdktrace.Sampler {
	return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(float64(permille)/1000), sdktrace.WithRemoteParentSampled(limited{asked}))
}

type limited struct{ asked *rate.Limiter }

func (l limited) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if l.asked.Allow() {
		return sdktrace.AlwaysSample().ShouldSample(p)
	}
	return sdktrace.NeverSample().ShouldSample(p)
}

func (limited) Description() string { return "AsCallersAskButNotAFlood" }

// counted counts the spans that the collector took. An unreachable collector costs its spans and one line in the log.
type counted struct {
	sdktrace.SpanExporter
	t       *Telemetry
	failing bool // the batcher exports from one goroutine
}

func (c *counted) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	result := "sent"
	if err != nil {
		result = "failed"
		if !c.failing {
			c.t.log.WarnContext(ctx, "spans lost; collector not accepting", logging.Err, err)
		}
	}
	c.failing = err != nil
	c.t.exports.WithLabelValues(result).Add(float64(len(spans)))
	return nil // logged already: the library would also write to standard error
}

// start begins a span under what ctx carries: a span of this process, else the caller's traceparent, else nothing. A zero at is now. With
// traces off it returns ctx and nil.
func (t *Telemetry) start(ctx context.Context, name string, kind trace.SpanKind, at time.Time) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, nil
	}
	if p := traceparent.From(ctx); p.Valid() && !trace.SpanContextFromContext(ctx).IsValid() {
		flags := trace.TraceFlags(0).WithSampled(p.Sampled)
		ctx = trace.ContextWithRemoteSpanContext(ctx,
			trace.NewSpanContext(trace.SpanContextConfig{TraceID: p.Trace, SpanID: p.Span, TraceFlags: flags, Remote: true}))
	}
	opts := []trace.SpanStartOption{trace.WithSpanKind(kind)}
	if !at.IsZero() {
		opts = append(opts, trace.WithTimestamp(at))
	}
	ctx, span := t.tracer.Start(ctx, name, opts...)
	if span.IsRecording() {
		for _, a := range logging.Attrs(ctx) {
			if a.Key != logging.Trace {
				span.SetAttributes(attribute.String("kennel."+a.Key, a.Value.String()))
			}
		}
	}
	if id := span.SpanContext().TraceID(); id.IsValid() {
		ctx = logging.With(ctx, slog.String(logging.Trace, id.String()))
	}
	return ctx, span
}
