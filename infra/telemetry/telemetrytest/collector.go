// Package telemetrytest is an OpenTelemetry collector for tests: it takes spans over OTLP/HTTP as a real one does and keeps them.
package telemetrytest

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlptrace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span holds the parts of a span that the collector keeps.
type Span struct {
	Trace, ID, Parent string // hexadecimal; Parent is "" for a root
	Name              string
	Start, End        time.Time
	Failed            bool
	Attributes        map[string]string // texts only
}

// Collector is safe for concurrent use.
type Collector struct {
	URL string

	mu    sync.Mutex
	spans []Span
	more  chan struct{} // closed and replaced when spans arrive
}

// Start starts a collector that stops with the test.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{more: make(chan struct{})}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.take(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			t.Errorf("collector: %v", err)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf") // an empty answer: all taken
	}))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

func (c *Collector) take(r *http.Request) error {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("%s %s, %s: want POST /v1/traces, application/x-protobuf", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}
	var body io.Reader = http.MaxBytesReader(nil, r.Body, 8<<20)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var req coltrace.ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &req); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range req.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				c.spans = append(c.spans, spanOf(s))
			}
		}
	}
	close(c.more)
	c.more = make(chan struct{})
	return nil
}

func spanOf(s *otlptrace.Span) Span {
	out := Span{
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId), Name: s.Name,
		Start: time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)),
		Failed: s.Status.GetCode() == otlptrace.Status_STATUS_CODE_ERROR, Attributes: map[string]string{},
	}
	for _, a := range s.Attributes {
		out.Attributes[a.Key] = a.Value.GetStringValue()
	}
	return out
}

// Spans returns the spans of one trace received so far, "" for all traces.
func (c *Collector) Spans(trace string) []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Span
	for _, s := range c.spans {
		if trace == "" || s.Trace == trace {
			out = append(out, s)
		}
	}
	return out
}

// Await returns the spans of a trace once enough says so; the test fails after 15 s.
func (c *Collector) Await(t testing.TB, trace string, enough func([]Span) bool) []Span {
	t.Helper()
	late := time.After(15 * time.Second)
	for {
		c.mu.Lock()
		more := c.more
		c.mu.Unlock()
		spans := c.Spans(trace)
		if enough(spans) {
			return spans
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("not enough spans of trace %q:\n%s", trace, Tree(c.Spans(""), ""))
		}
	}
}

// Tree draws the spans below parent, one a line, indented, in the order in which they ended.
func Tree(spans []Span, parent string) string {
	var b strings.Builder
	var draw func(parent, indent string)
	draw = func(parent, indent string) {
		for _, s := range spans {
			if s.Parent == parent {
				b.WriteString(indent + s.Name + "\n")
				draw(s.ID, indent+"  ")
			}
		}
	}
	draw(parent, "")
	return b.String()
}
