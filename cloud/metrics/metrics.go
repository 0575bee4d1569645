// Package metrics are the metrics of the cloud: those that slices write while they work, and those that are read from the slices' own counters.
package metrics

import (
	"context"
	"errors"
	"log/slog"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"kennel/cloud/bridge"
	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/command/commandpg"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/storage"
	"kennel/cloud/voice/intents"
	"kennel/infra/admission"
	"kennel/infra/api/topics"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/pg"
	"kennel/infra/queue"
	"kennel/infra/telemetry"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// AskEvery is how often numbers that cost a query are asked for, at most; staleAfter is when the broker's word no longer counts (it
// speaks every 10 s).
const (
	AskEvery   = 15 * time.Second
	staleAfter = 45 * time.Second
)

// Meters are the metrics of one process. Safe for concurrent use.
type Meters struct {
	*telemetry.Telemetry
	commits *prometheus.HistogramVec
	docs    *prometheus.HistogramVec
	runs    *prometheus.HistogramVec
	hints   *prometheus.CounterVec
	calls   *prometheus.HistogramVec
	broker  atomic.Pointer[brokerStats]
}

type brokerStats struct {
	brokerapi.Stats
	at time.Time
}

// New registers the metrics that slices write while they work.
func New(tel *telemetry.Telemetry) (*Meters, error) {
	m := &Meters{Telemetry: tel}
	var e1, e2, e3, e4, e5 error
	m.commits, e1 = tel.Duration(telemetry.Metric{Name: "kennel_das_commit_seconds", Help: "Time of one transaction that stores events of many robots."}, "result")
	m.docs, e2 = tel.Duration(telemetry.Metric{Name: "kennel_jdocs_call_seconds",
		Help: "Time of one call of the documents' service; the outcome of a write is its status."}, "method", "outcome")
	m.runs, e3 = tel.Duration(telemetry.Metric{Name: "kennel_jobs_run_seconds", Help: "Time of one run of a periodic job."}, "name", "result")
	m.hints, e4 = tel.Count(telemetry.Metric{Name: "kennel_bridge_hints_total", Help: "Changes that robots were to be told of, before those of one second are merged."}, "name")
	m.calls, e5 = tel.Duration(telemetry.Metric{Name: "kennel_robot_call_seconds", Help: "Time of one gRPC call of an original robot; the code is the status it got."}, "method", "code")
	if err := errors.Join(e1, e2, e3, e4, e5); err != nil {
		return nil, err
	}
	// A rate begins at 0, not at the first event.
	m.commits.WithLabelValues("ok")
	for _, name := range []string{topics.Jdocs, topics.OTA} {
		m.hints.WithLabelValues(name)
	}
	return m, nil
}

func result(err error) string {
	if err == nil {
		return "ok"
	}
	return errs.KindOf(err).String()
}

// Call times the gRPC calls of robots.
func (m *Meters) Call(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	start := time.Now()
	resp, err := next(ctx, req)
	m.calls.WithLabelValues(path.Base(info.FullMethod), status.Code(kitgrpc.Status(err)).String()).Observe(time.Since(start).Seconds())
	return resp, err
}

// Stream times those that are streams.
func (m *Meters) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	start := time.Now()
	err := next(srv, ss)
	method := path.Base(info.FullMethod)
	if srv == nil {
		method = "unknown" // the client's words make no series
	}
	m.calls.WithLabelValues(method, status.Code(kitgrpc.Status(err)).String()).Observe(time.Since(start).Seconds())
	return err
}

// Writer times commits.
func (m *Meters) Writer(next das.Writer) das.Writer { return timedWriter{next, m} }

type timedWriter struct {
	das.Writer
	m *Meters
}

func (w timedWriter) Commit(ctx context.Context, g das.Group, raw das.Raw) (das.Outcome, error) {
	start := time.Now()
	out, err := w.Writer.Commit(ctx, g, raw)
	w.m.commits.WithLabelValues(result(err)).Observe(time.Since(start).Seconds())
	return out, err
}

// Documents times the calls of svc.
func (m *Meters) Documents(svc jdocs.Service) jdocs.Service {
	return jdocs.Instrumented(svc, func(method, outcome string, took time.Duration) {
		m.docs.WithLabelValues(method, strings.ToLower(outcome)).Observe(took.Seconds())
	})
}

// Periodic times the runs of jobs.
func (m *Meters) Periodic(list []jobs.Job) []jobs.Job {
	out := make([]jobs.Job, len(list))
	for i, j := range list {
		run := j.Run
		j.Run = func(ctx context.Context) error {
			start := time.Now()
			err := run(ctx)
			m.runs.WithLabelValues(j.Name, result(err)).Observe(time.Since(start).Seconds())
			return err
		}
		out[i] = j
	}
	return out
}

// BrokerSays keeps what the embedded broker tells of itself.
func (m *Meters) BrokerSays(_ context.Context, s brokerapi.Stats) {
	m.broker.Store(&brokerStats{s, time.Now()})
}

// BrokerNews returns what the embedded broker tells operators; "": nothing, or it has not said anything for a while.
func (m *Meters) BrokerNews() string {
	s := m.broker.Load()
	if s == nil || s.News == "" || time.Since(s.at) > staleAfter {
		return ""
	}
	return "The broker: " + s.News
}

// FrontDoor returns the door of this process's listeners, which have these names.
func (m *Meters) FrontDoor(listeners []string, log *slog.Logger) (*admission.Door, error) {
	away, err := m.Count(telemetry.Metric{Name: "kennel_frontdoor_refused_total",
		Help: "Connections turned away, by listener and reason. share: their address had the most when places were short."}, "listener", "reason")
	if err != nil {
		return nil, err
	}
	for _, l := range listeners { // a rate begins at 0
		for _, r := range admission.Reasons {
			away.WithLabelValues(l, string(r))
		}
	}
	d, err := admission.New(admission.Config{Log: log, Refused: func(l string, r admission.Reason) { away.WithLabelValues(l, string(r)).Inc() }})
	if err != nil {
		return nil, err
	}
	return d, m.Asked(telemetry.Metric{Name: "kennel_frontdoor_connections",
		Help: "Connections now. unfinished: handshake not complete; proven: showed a certificate or a session that we know."}, []string{"state"}, 0,
		func(context.Context) ([]telemetry.Sample, error) {
			unfinished, open, proven := d.Counts()
			return []telemetry.Sample{{Labels: []string{"unfinished"}, Value: float64(unfinished)}, {Labels: []string{"open"}, Value: float64(open)},
				{Labels: []string{"proven"}, Value: float64(proven)}}, nil
		})
}

// Hinted counts a change that a robot is told of.
func (m *Meters) Hinted(name string) { m.hints.WithLabelValues(name).Inc() }

type number struct {
	name, help string
	labels     map[string]string
	read       func() float64
}

// show registers numbers; those whose name ends in _total are counters.
func (m *Meters) show(numbers ...number) error {
	var all error
	for _, n := range numbers {
		metric, to := telemetry.Metric{Name: n.name, Help: n.help, Labels: n.labels}, m.Gauge
		if strings.HasSuffix(n.name, "_total") {
			to = m.Counter
		}
		all = errors.Join(all, to(metric, n.read))
	}
	return all
}

func label(key, value string) map[string]string { return map[string]string{key: value} }

// Bridge shows the counters of the robots' bridge.
func (m *Meters) Bridge(stats func() bridge.Stats) error {
	of := func(f func(bridge.Stats) int64) func() float64 {
		return func() float64 { return float64(f(stats())) }
	}
	const (
		dropped = "Messages of robots that no handler got; robots send again. full: no room in their lane."
		answers = "Acknowledgements and answers to robots. unsent: no connection or no room; robots ask again."
		odd     = "Requests of robots that did not simply run: answered before, too late, unknown, unreadable or failed."
	)
	return m.show(
		number{"kennel_bridge_connected", "1 while this process has its connection to the broker, else 0.", nil, of(func(s bridge.Stats) int64 {
			if s.Connected {
				return 1
			}
			return 0
		})},
		number{"kennel_bridge_waiting_messages", "Messages of robots waiting for a worker or being handled.", nil, of(func(s bridge.Stats) int64 { return int64(s.Waiting) })},
		number{"kennel_bridge_received_messages_total", "Messages from the broker.", nil, of(func(s bridge.Stats) int64 { return s.Received })},
		number{"kennel_bridge_dropped_messages_total", dropped, label("reason", "full"), of(func(s bridge.Stats) int64 { return s.Dropped })},
		number{"kennel_bridge_dropped_messages_total", dropped, label("reason", "malformed"), of(func(s bridge.Stats) int64 { return s.Malformed })},
		number{"kennel_bridge_dropped_messages_total", dropped, label("reason", "unhandled"), of(func(s bridge.Stats) int64 { return s.Unhandled })},
		number{"kennel_bridge_answers_total", answers, label("result", "sent"), of(func(s bridge.Stats) int64 { return s.Answered })},
		number{"kennel_bridge_answers_total", answers, label("result", "unsent"), of(func(s bridge.Stats) int64 { return s.Unsent })},
		number{"kennel_bridge_panics_total", "Handlers that panicked: ours to mend.", nil, of(func(s bridge.Stats) int64 { return s.Panics + s.Requests.Panics })},
		number{"kennel_bridge_requests_total", "Requests of robots with a readable header.", nil, of(func(s bridge.Stats) int64 { return s.Requests.Requests })},
		number{"kennel_bridge_odd_requests_total", odd, label("reason", "duplicate"), of(func(s bridge.Stats) int64 { return s.Requests.Duplicates })},
		number{"kennel_bridge_odd_requests_total", odd, label("reason", "expired"), of(func(s bridge.Stats) int64 { return s.Requests.Expired })},
		number{"kennel_bridge_odd_requests_total", odd, label("reason", "unknown"), of(func(s bridge.Stats) int64 { return s.Requests.Unknown })},
		number{"kennel_bridge_odd_requests_total", odd, label("reason", "malformed"), of(func(s bridge.Stats) int64 { return s.Requests.Malformed })},
		number{"kennel_bridge_odd_requests_total", odd, label("reason", "unreadable"), of(func(s bridge.Stats) int64 { return s.Requests.Unreadable })},
		number{"kennel_bridge_odd_requests_total", odd, label("reason", "failed"), of(func(s bridge.Stats) int64 { return s.Requests.Failed })},
	)
}

// Uplink shows the queue that replaces the broker's own connection; with nil its numbers stay 0.
func (m *Meters) Uplink(q interface{ Stats() queue.Stats }) error {
	of := func(f func(queue.Stats) int64) func() float64 {
		return func() float64 {
			if q == nil {
				return 0
			}
			return float64(f(q.Stats()))
		}
	}
	const (
		name = "kennel_queue_messages_total"
		help = "Messages of robots from the uplink's queue. left: no room, they come again; unreadable: not what the broker's rules write; " +
			"dead: dropped after too many attempts."
	)
	return m.show(
		number{name, help, label("result", "taken"), of(func(s queue.Stats) int64 { return s.Taken })},
		number{name, help, label("result", "left"), of(func(s queue.Stats) int64 { return s.NotTaken })},
		number{name, help, label("result", "unreadable"), of(func(s queue.Stats) int64 { return s.Unreadable })},
		number{name, help, label("result", "dead"), of(func(s queue.Stats) int64 { return s.Dead })},
		number{"kennel_queue_received_messages_total", "Messages that the uplink's queue gave out, repeated ones too.", nil,
			of(func(s queue.Stats) int64 { return s.Received })},
		number{"kennel_queue_waiting_messages", "Messages of robots in the uplink's queue that no process was given yet; -1: not known.", nil, func() float64 {
			if l, ok := q.(interface {
				Lag() (int64, time.Duration, bool)
			}); ok {
				if n, _, known := l.Lag(); known {
					return float64(n)
				}
			}
			return -1
		}},
		number{"kennel_queue_failures_total", "Requests to the uplink's queue that failed for good.", nil, of(func(s queue.Stats) int64 { return s.Failures })},
	)
}

// Commands shows what went out of the outbox of commands and intents.
func (m *Meters) Commands(sender *command.Sender) error {
	const (
		name = "kennel_command_messages_total"
		help = "Commands and intents sent, repeated ones too. unsent: the broker did not take them; they are sent again after their pause."
	)
	return m.show(
		number{name, help, label("result", "sent"), func() float64 { return float64(sender.Stats().Sent) }},
		number{name, help, label("result", "unsent"), func() float64 { return float64(sender.Stats().Unsent) }},
	)
}

// Says shows what people told their robots to do.
func (m *Meters) Says(svc *intents.Service) error {
	const name, help = "kennel_intents_total", "What people told robots to do. pressed: by a button or a program; unmatched: a sentence without an intent."
	of := func(f func(intents.Stats) int64) func() float64 {
		return func() float64 { return float64(f(svc.Stats())) }
	}
	return m.show(
		number{name, help, label("result", "pressed"), of(func(s intents.Stats) int64 { return s.Pressed })},
		number{name, help, label("result", "matched"), of(func(s intents.Stats) int64 { return s.Matched })},
		number{name, help, label("result", "unmatched"), of(func(s intents.Stats) int64 { return s.Unmatched })},
	)
}

// Events shows what became of the robots' events.
func (m *Meters) Events(ingester *das.Ingester) error {
	of := func(f func(das.IngestStats) int64) func() float64 {
		return func() float64 { return float64(f(ingester.Stats())) }
	}
	const withheld = "Batches that robots keep for now because they send too much. quota: their day's; share: their part of the queue."
	const kept = "Events of robots. known: sent again after they were stored."
	return m.show(
		number{"kennel_das_batches_total", "Batches of events from robots.", nil, of(func(s das.IngestStats) int64 { return s.Batches })},
		number{"kennel_das_refused_batches_total", "Batches that go to a robot's quarantine.", nil, of(func(s das.IngestStats) int64 { return s.Refused })},
		number{"kennel_das_paced_batches_total", "Batches whose robots were told to send them later.", nil, of(func(s das.IngestStats) int64 { return s.Paced })},
		number{"kennel_das_withheld_batches_total", withheld, label("reason", "quota"), of(func(s das.IngestStats) int64 { return s.Quota })},
		number{"kennel_das_withheld_batches_total", withheld, label("reason", "share"), of(func(s das.IngestStats) int64 { return s.Share })},
		number{"kennel_das_events_total", kept, label("result", "stored"), of(func(s das.IngestStats) int64 { return s.Stored })},
		number{"kennel_das_events_total", kept, label("result", "known"), of(func(s das.IngestStats) int64 { return s.Known })},
		number{"kennel_das_groups_total", "Transactions that stored events.", nil, of(func(s das.IngestStats) int64 { return s.Groups })},
		number{"kennel_das_raw_detours_total", "Raw batches that waited in the database because S3 did not take them.", nil, of(func(s das.IngestStats) int64 { return s.RawToDB })},
		number{"kennel_das_waiting_bytes", "Batches received and not yet answered.", nil, of(func(s das.IngestStats) int64 { return s.Waiting })},
	)
}

// Broker shows what the embedded broker says of itself, as long as it says it. Every process hears the same broker: take the
// maximum, not the sum.
func (m *Meters) Broker() error {
	show := func(name, help string, labels []string, f func(s brokerapi.Stats) []telemetry.Sample) error {
		return m.Asked(telemetry.Metric{Name: name, Help: help + " Every process reports the one broker."}, labels, 0, func(context.Context) ([]telemetry.Sample, error) {
			s := m.broker.Load()
			if s == nil || time.Since(s.at) > staleAfter {
				return nil, nil
			}
			return f(s.Stats), nil
		})
	}
	one := func(f func(s brokerapi.Stats) int64) func(s brokerapi.Stats) []telemetry.Sample {
		return func(s brokerapi.Stats) []telemetry.Sample { return []telemetry.Sample{{Value: float64(f(s))}} }
	}
	return errors.Join(
		show("kennel_broker_start_time_seconds", "When the broker started, in seconds since 1970.", nil, one(func(s brokerapi.Stats) int64 { return s.StartedUnix })),
		show("kennel_broker_connected_clients", "Clients connected to the broker.", nil, one(func(s brokerapi.Stats) int64 { return s.Connected })),
		show("kennel_broker_subscriptions", "Subscriptions at the broker.", nil, one(func(s brokerapi.Stats) int64 { return s.Subscriptions })),
		show("kennel_broker_retained_messages", "Messages the broker keeps for who subscribes later.", nil, one(func(s brokerapi.Stats) int64 { return s.Retained })),
		show("kennel_broker_inflight_messages", "Messages without their PUBACK.", nil, one(func(s brokerapi.Stats) int64 { return s.Inflight })),
		show("kennel_broker_messages_total", "Messages through the broker. dropped: to slow subscribers; robots and cloud send again.", []string{"direction"},
			func(s brokerapi.Stats) []telemetry.Sample {
				return []telemetry.Sample{{Labels: []string{"received"}, Value: float64(s.MessagesReceived)}, {Labels: []string{"sent"}, Value: float64(s.MessagesSent)},
					{Labels: []string{"dropped"}, Value: float64(s.MessagesDropped)}}
			}),
		show("kennel_broker_unfinished_connections", "Connections at the broker that have not proved who they are.", nil, one(func(s brokerapi.Stats) int64 { return s.Unfinished })),
		show("kennel_broker_away_total", "Connections the broker turned away before they proved who they are, by reason.", []string{"reason"},
			func(s brokerapi.Stats) (out []telemetry.Sample) {
				for _, r := range admission.Reasons {
					out = append(out, telemetry.Sample{Labels: []string{string(r)}, Value: float64(s.Away[string(r)])})
				}
				return out
			}),
		show("kennel_broker_refusals_total", "Clients and packets the broker turned away.", nil, one(func(s brokerapi.Stats) int64 { return s.Refused })),
		show("kennel_broker_muted_refusals_total", "Refusals of the broker that are in no log, because there were too many.", nil, one(func(s brokerapi.Stats) int64 { return s.Muted })),
	)
}

const whole = " Every process with the role jobs reports the whole fleet."

// Fleet shows how many robots there are; one role asks, because the answer is the same for all.
func (m *Meters) Fleet(store *registrypg.Store) error {
	return m.Asked(telemetry.Metric{Name: "kennel_registry_things", Help: "Robots by species and presence." + whole}, []string{"species", "presence"}, AskEvery,
		func(ctx context.Context) ([]telemetry.Sample, error) {
			counts, err := store.CountBySpecies(ctx)
			if err != nil {
				return nil, err
			}
			now := map[thing.Species][3]int{}
			for _, s := range thing.AllSpecies() {
				now[s] = [3]int{} // none is a number too
			}
			for _, n := range counts {
				if _, known := now[n.Species]; known {
					now[n.Species] = [3]int{n.Present, n.Absent, n.Calls}
				}
			}
			var out []telemetry.Sample
			for s, n := range now {
				for i, presence := range []registry.Presence{registry.Present, registry.Absent, registry.Calls} {
					out = append(out, telemetry.Sample{Labels: []string{string(s), string(presence)}, Value: float64(n[i])})
				}
			}
			return out, nil
		})
}

// Bucket shows how much is in the bucket; one role asks.
func (m *Meters) Bucket(book *storage.Book) error {
	show := func(name, help string, of func(storage.Usage) int64) error {
		return m.Asked(telemetry.Metric{Name: name, Help: help + " Every process with the role jobs reports the whole bucket."}, []string{"class"}, AskEvery, func(ctx context.Context) ([]telemetry.Sample, error) {
			all, err := book.Usage(ctx)
			var out []telemetry.Sample
			for _, u := range all {
				out = append(out, telemetry.Sample{Labels: []string{u.Class}, Value: float64(of(u))})
			}
			return out, err
		})
	}
	return errors.Join(
		show("kennel_bucket_objects", "Objects in the bucket by the first folder of their keys, counted hourly.", func(u storage.Usage) int64 { return u.Objects }),
		show("kennel_bucket_bytes", "Size of these objects, without what the store adds.", func(u storage.Usage) int64 { return u.Bytes }),
		show("kennel_bucket_growth_bytes", "Growth of their size within the last day.", func(u storage.Usage) int64 { return u.MoreBytes }),
	)
}

// Backlog shows the commands that wait; one role asks.
func (m *Meters) Backlog(store *commandpg.Store) error {
	return errors.Join(
		m.Asked(telemetry.Metric{Name: "kennel_command_open_commands", Help: "Commands and intents without result or expiry." + whole}, nil, AskEvery,
			func(ctx context.Context) ([]telemetry.Sample, error) {
				n, _, err := store.Backlog(ctx)
				return []telemetry.Sample{{Value: float64(n)}}, err
			}),
		m.Asked(telemetry.Metric{Name: "kennel_command_oldest_seconds", Help: "Age of the oldest command or intent without result or expiry." + whole}, nil, AskEvery,
			func(ctx context.Context) ([]telemetry.Sample, error) {
				_, oldest, err := store.Backlog(ctx)
				return []telemetry.Sample{{Value: oldest.Seconds()}}, err
			}),
	)
}

// Standbys shows the servers that follow the database; one role asks.
func (m *Meters) Standbys(db pg.Querier) error {
	const note = " Every process with the role jobs reports the whole installation."
	return errors.Join(
		m.Asked(telemetry.Metric{Name: "kennel_postgres_standbys", Help: "Servers that follow the database. synchronous: a commit waits for them." + note}, []string{"synchronous"}, AskEvery,
			func(ctx context.Context) ([]telemetry.Sample, error) {
				all, err := pg.Standbys(ctx, db)
				n := map[bool]int{}
				for _, s := range all {
					n[s.Sync]++
				}
				return []telemetry.Sample{{Labels: []string{"yes"}, Value: float64(n[true])}, {Labels: []string{"no"}, Value: float64(n[false])}}, err
			}),
		m.Asked(telemetry.Metric{Name: "kennel_postgres_standby_behind_bytes", Help: "What the slowest of these servers has not applied yet; -1: not known, or this account may not see it (pg_monitor)." + note}, nil, AskEvery,
			func(ctx context.Context) ([]telemetry.Sample, error) {
				all, err := pg.Standbys(ctx, db)
				var worst int64
				for _, s := range all {
					if s.Behind < 0 || worst < 0 {
						worst = -1
						continue
					}
					worst = max(worst, s.Behind)
				}
				return []telemetry.Sample{{Value: float64(worst)}}, err
			}),
	)
}
