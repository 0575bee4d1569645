package telemetry

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Sample is one value of a metric that is asked for, with the values of its labels in order.
type Sample struct {
	Labels []string
	Value  float64
}

// askTime bounds one question, so that a scrape is answered while a database is away.
const askTime = 2 * time.Second

// Asked shows gauges that cost a question, for instance to the database: ask is called at a scrape, at most once in every, one call at a
// time. While it fails the metric has no values. A name that ends in _total is a counter's: its values only grow.
func (t *Telemetry) Asked(m Metric, labels []string, every time.Duration, ask func(ctx context.Context) ([]Sample, error)) error {
	kind := prometheus.GaugeValue
	if strings.HasSuffix(m.Name, "_total") {
		kind = prometheus.CounterValue
	}
	return t.registry.Register(&asked{t: t, kind: kind, desc: prometheus.NewDesc(m.Name, m.Help, labels, m.Labels), every: every, ask: ask})
}

type asked struct {
	t     *Telemetry
	kind  prometheus.ValueType
	desc  *prometheus.Desc
	every time.Duration
	ask   func(ctx context.Context) ([]Sample, error)

	mu      sync.Mutex
	at      time.Time
	samples []Sample
	failing bool
}

func (a *asked) Describe(ch chan<- *prometheus.Desc) { ch <- a.desc }

func (a *asked) Collect(ch chan<- prometheus.Metric) {
	for _, s := range a.now() {
		ch <- prometheus.MustNewConstMetric(a.desc, a.kind, s.Value, s.Labels...)
	}
}

func (a *asked) now() []Sample {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.at.IsZero() && time.Since(a.at) < a.every {
		return a.samples
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime) // a scrape's context is not handed to collectors
	defer cancel()
	samples, err := a.ask(ctx)
	if err != nil {
		if !a.failing {
			a.t.log.Warn("metric source failed; no values reported", "metric", a.desc.String(), "err", err)
		}
		samples = nil
	}
	a.failing = err != nil
	a.samples, a.at = samples, time.Now()
	return samples
}
