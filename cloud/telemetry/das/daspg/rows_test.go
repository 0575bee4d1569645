package daspg

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/bridge"
	"kennel/cloud/telemetry/das"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/api/topics"
	"kennel/infra/bench"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

const (
	eventThings  = 16
	eventBatches = 64              // of one thing in one turn
	batchEvents  = 250             // a robot that was offline sends up to 2000 in one batch
	eventWindow  = 3               // batches on their way, as an agent has (edge/agent/das)
	resendAfter  = 5 * time.Second // as an agent's first
	maxEventTurn = 5 * time.Minute
	halfLoad     = 10 * time.Second // at half the rate that was reached
	latest       = 2 * time.Second  // for a batch to be rows then, in 99 of 100 cases
)

// BenchmarkEventsBesideCopy sends batches of events over MQTT at full speed, through broker, bridge and ingester, until the cloud has answered that
// they are stored and the sums of the fleet hold them, beside one COPY of the same rows into a table with the same columns, partitions and indexes on the same Postgres, which syncs
// every commit; then at half that rate, beside the time that a batch may take. The batches are encoded before the clock starts: robots do that on their own processors.
func BenchmarkEventsBesideCopy(b *testing.B) { eventsBesideCopy(b) }

func TestEventsBesideCopy(t *testing.T) {
	bench.Soak(t)
	eventsBesideCopy(t)
}

func eventsBesideCopy(tb testing.TB) {
	pool := pgtest.Durable(tb, 32)
	store := Open(pool)
	if err := errors.Join(store.EnsurePartitions(tb.Context(), time.Now()), makeTwin(tb.Context(), pool)); err != nil {
		tb.Fatal(err)
	}
	broker := mqtttest.Start(tb)
	ingest(tb, store, broker)
	senders := make([]*sender, eventThings)
	for i := range senders {
		id := thing.MustParse(fmt.Sprintf("vic:%08x", 0x00b00000+i))
		senders[i] = newSender(tb, broker, id)
	}
	batches := bench.Part(tb, eventBatches)
	turn := eventThings * batches * batchEvents // events
	round := 0
	var rows []das.Fresh // of this turn
	var rates []float64
	publish := func(ctx context.Context) (float64, error) {
		round++
		rows = rows[:0]
		for i, s := range senders {
			evs := makeEvents(s.id, fmt.Sprintf("bench-%d", round), i, batches*batchEvents)
			for i := range evs {
				rows = append(rows, das.Fresh{Thing: s.id, Event: &evs[i]})
			}
			if err := s.load(evs); err != nil {
				return 0, err
			}
		}
		if err := empty(ctx, pool); err != nil {
			return 0, err
		}
		start := time.Now()
		_, err := sendAll(ctx, senders)
		if err == nil {
			err = allSummed(ctx, pool)
		}
		took := time.Since(start)
		rates = append(rates, float64(turn)/took.Seconds())
		return float64(turn) / took.Seconds(), errors.Join(err, holds(ctx, pool, "das_event", turn))
	}
	plain := func(ctx context.Context) (float64, error) {
		if err := empty(ctx, pool); err != nil {
			return 0, err
		}
		start := time.Now()
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return copyInto(ctx, tx, "bench_event", start, 1, rows) })
		took := time.Since(start)
		return float64(turn) / took.Seconds(), errors.Join(err, holds(ctx, pool, "bench_event", turn))
	}
	bench.Beside(tb, bench.Line{Name: "events", Unit: "events/s", Bound: 0.4,
		Note: fmt.Sprintf("%d things, batches of %d over MQTT until acknowledged as stored and summed up; reference: one COPY of the same %d rows into an equal table on the same Postgres",
			eventThings, batchEvents, turn)}, publish, plain)
	took, err := atHalf(tb.Context(), senders, bench.Median(rates)/2, bench.Part(tb, halfLoad))
	if err != nil {
		tb.Fatal(err)
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	bench.Report(tb, bench.Line{Name: "events/p99", Unit: "ms", Less: true, Bound: 1, Note: fmt.Sprintf("of %d batches at half that load, from publish to the answer that they are stored; reference: 2 s", len(took))},
		[]bench.Pair{{Value: float64(p99.Microseconds()) / 1000, Reference: float64(latest.Milliseconds())}})
}

// atHalf sends batches at a rate of events a second for a while, whatever is answered, and returns how long each took to be stored.
func atHalf(ctx context.Context, senders []*sender, rate float64, long time.Duration) (took []time.Duration, err error) {
	every := time.Duration(float64(len(senders)*batchEvents) / rate * float64(time.Second))
	n := max(1, int(long/every))
	for i, s := range senders {
		if err := s.load(makeEvents(s.id, "half", i, n*batchEvents)); err != nil {
			return nil, err
		}
	}
	all := make([][]time.Duration, len(senders))
	_, err = bench.Many(len(senders), len(senders), func(i int) (err error) {
		all[i], err = senders[i].pace(ctx, every)
		return err
	})
	return slices.Concat(all...), err
}

// pace sends a batch at each tick and returns how long each took.
func (s *sender) pace(ctx context.Context, every time.Duration) (took []time.Duration, err error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	sent := map[string]time.Time{}
	for len(took) < len(s.order) {
		select {
		case <-tick.C:
			if len(sent) < len(s.order) {
				id := s.order[len(sent)]
				sent[id] = time.Now()
				if err := s.link.Publish(ctx, topics.UpTopic(s.id, topics.DAS), 1, false, s.batches[id]); err != nil {
					return nil, err
				}
			}
		case a := <-s.acks:
			if at, ours := sent[a.Batch]; ours && a.Status == ack.Stored {
				took = append(took, time.Since(at))
			} else if ours {
				return nil, fmt.Errorf("batch %s of %s: %s", a.Batch, s.id, a.Status)
			}
		case <-time.After(time.Minute):
			return nil, fmt.Errorf("%d of %d batches of %s have no answer", len(s.order)-len(took), len(s.order), s.id)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return took, nil
}

// allSummed waits until every commit is in the sums.
func allSummed(ctx context.Context, db *pgxpool.Pool) error {
	for {
		var open bool
		if err := db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM das_group WHERE NOT rolled)`).Scan(&open); err != nil || !open {
			return err
		}
		if err := bench.Pass(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// ingest runs an ingester behind a bridge until the test ends.
func ingest(tb testing.TB, store *Store, broker *mqtttest.Broker) {
	tb.Helper()
	in, err1 := das.NewIngester(das.Config{Writer: store, Blobs: nowhere{}, Log: quietLog})
	if err1 != nil {
		tb.Fatal(err1)
	}
	br, err := bridge.New(bridge.Config{MQTT: mqtt.Config{URL: broker.URL, TLS: broker.Cloud(tb)}, Log: quietLog})
	if err != nil {
		tb.Fatal(err)
	}
	br.Handle(bridge.Handlers{Up: map[string]kitmqtt.UpHandler{topics.DAS: in.Handle}})
	svc := das.NewService(store)
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { _ = in.Run(ctx) }) // nil by contract
	wg.Go(func() { _ = br.Run(ctx) }) // likewise
	wg.Go(func() { _ = store.Listen(ctx, quietLog, svc.Wake) })
	wg.Go(func() {
		_ = svc.KeepSums(ctx, store.Roll, func(context.Context) {}, func(err error) { tb.Errorf("sums: %v", err) })
	})
	tb.Cleanup(func() { cancel(); wg.Wait() })
}

// makeEvents makes n events as a robot's programs do: a few names, short texts and numbers that differ.
func makeEvents(id thing.ID, boot string, seed, n int) []events.Event {
	names := []string{"behavior.feature.start", "battery.periodic_log", "robot.onTreads", "wifi.connection.state", "vision.face.observed", "das.upload.stats"}
	out := make([]events.Event, n)
	for i := range out {
		x := uint64(seed*n+i+1) * 0x9e3779b97f4a7c15 // spread, and the same in every run
		out[i] = events.Event{
			Source: "vic-engine", TS: 1_700_000_000_000 + int64(i)*137, Seq: uint64(i + 1), Level: events.Info, RobotID: id.Serial(), RobotVersion: "2.0.0.6074",
			BootID: boot, ProfileID: "system", FeatureType: "Observing", FeatureRunID: fmt.Sprintf("%016x", x>>8), Name: names[i%len(names)],
			S1: fmt.Sprintf("%08x", uint32(x)), S2: "BehaviorID::ObservingOnCharger", I1: events.Num(int64(x >> 40)), I2: events.Num(int64(i)), UptimeMS: int64(i) * 137,
		}
	}
	return out
}

// TestEventsAreValid: the cloud would refuse others, and equal ones would compress better than real ones.
func TestEventsAreValid(t *testing.T) {
	evs := makeEvents("vic:00b00000", "bench-1", 3, 100)
	for i := range evs {
		if err := evs[i].Validate(); err != nil {
			t.Fatal(err)
		}
		if i > 0 && evs[i].S1 == evs[i-1].S1 {
			t.Fatalf("events %d and %d are alike", i-1, i)
		}
	}
	if _, err := events.EncodeBatch("b", evs); err != nil {
		t.Fatal(err)
	}
}

// sender is a thing that publishes batches until they are acknowledged.
type sender struct {
	id      thing.ID
	link    *mqtt.Client
	acks    chan ack.Ack
	batches map[string][]byte
	order   []string
}

// newSender connects a thing until the test ends.
func newSender(tb testing.TB, broker *mqtttest.Broker, id thing.ID) *sender {
	tb.Helper()
	s := &sender{id: id, acks: make(chan ack.Ack, 1024)} // more than are on their way; a lost one is asked for again
	conf, err := broker.Thing(tb, id)()
	if err != nil {
		tb.Fatal(err)
	}
	up := make(chan struct{})
	first := sync.OnceFunc(func() { close(up) })
	s.link, err = mqtt.New(mqtt.Config{URL: broker.URL, ClientID: string(id), TLS: func() (*tls.Config, error) { return conf, nil }, MinBackoff: 100 * time.Millisecond,
		OnConnect: func(ctx context.Context, c *mqtt.Client) error {
			if err := c.Subscribe(ctx, 1, topics.DownTopic(id, topics.Ack)); err != nil {
				return err
			}
			first()
			return nil
		},
		OnMessage: func(_ string, payload []byte, taken func()) {
			taken()
			if a, err := ack.Parse(payload); err == nil {
				select {
				case s.acks <- a:
				default:
				}
			}
		}})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.link.Run(ctx) // nil by contract
	}()
	tb.Cleanup(func() { cancel(); <-ended })
	select {
	case <-up:
	case <-time.After(time.Minute):
		tb.Fatalf("%s is not connected after a minute", id)
	}
	return s
}

// load encodes evs as the batches of one turn.
func (s *sender) load(evs []events.Event) error {
	s.batches, s.order = map[string][]byte{}, nil
	for len(evs) > 0 {
		n := min(batchEvents, len(evs))
		id := fmt.Sprintf("%s-%d", evs[0].BootID, len(s.order))
		payload, err := events.EncodeBatch(id, evs[:n])
		if err != nil {
			return err
		}
		s.batches[id], s.order, evs = payload, append(s.order, id), evs[n:]
	}
	return nil
}

// run sends all batches, eventWindow at a time.
func (s *sender) run(ctx context.Context) error {
	publish := func(id string) error {
		return s.link.Publish(ctx, topics.UpTopic(s.id, topics.DAS), 1, false, s.batches[id])
	}
	next, flying := 0, 0
	for len(s.batches) > 0 {
		for flying < eventWindow && next < len(s.order) {
			if err := publish(s.order[next]); err != nil {
				return err
			}
			next, flying = next+1, flying+1
		}
		select {
		case a := <-s.acks:
			if _, ours := s.batches[a.Batch]; !ours {
				continue // answered twice
			}
			switch a.Status {
			case ack.Stored:
				delete(s.batches, a.Batch)
				flying--
			case ack.RetryAfter:
				if err := errors.Join(bench.Pass(ctx, time.Duration(a.After)), publish(a.Batch)); err != nil {
					return err
				}
			default:
				return fmt.Errorf("batch %s of %s refused: %s: %s", a.Batch, s.id, a.Code, a.Reason)
			}
		case <-time.After(resendAfter):
			for _, id := range s.order[:next] {
				if _, open := s.batches[id]; open {
					if err := publish(id); err != nil {
						return err
					}
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func sendAll(ctx context.Context, senders []*sender) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, maxEventTurn)
	defer cancel()
	start := time.Now()
	_, err := bench.Many(len(senders), len(senders), func(i int) error { return senders[i].run(ctx) })
	return time.Since(start), err
}

// makeTwin makes bench_event: das_event's columns, partitions by day and indexes.
func makeTwin(ctx context.Context, db *pgxpool.Pool) error {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	sql := `CREATE TABLE bench_event (LIKE das_event INCLUDING ALL) PARTITION BY RANGE (received);`
	for d := range 2 {
		from := today.AddDate(0, 0, d)
		sql += fmt.Sprintf(`CREATE TABLE bench_event_%d PARTITION OF bench_event FOR VALUES FROM ('%s') TO ('%s');`,
			d, from.Format(time.RFC3339), from.AddDate(0, 0, 1).Format(time.RFC3339))
	}
	if _, err := db.Exec(ctx, sql); err != nil {
		return fmt.Errorf("make the reference's table: %w", err)
	}
	var same bool
	err := db.QueryRow(ctx, `SELECT (SELECT count(*) FROM pg_indexes WHERE tablename = 'bench_event') = (SELECT count(*) FROM pg_indexes WHERE tablename = 'das_event')`).Scan(&same)
	if err == nil && !same {
		err = errors.New("the reference's table has other indexes than das_event")
	}
	return err
}

// empty empties both tables and writes out what Postgres still holds back, so that each turn starts from the same place.
func empty(ctx context.Context, db *pgxpool.Pool) error {
	_, err := db.Exec(ctx, `TRUNCATE das_event, bench_event`)
	if err == nil {
		_, err = db.Exec(ctx, `CHECKPOINT`)
	}
	return err
}

// holds checks that a turn's rows are all in table, once.
func holds(ctx context.Context, db *pgxpool.Pool, table string, want int) error {
	var n, distinct int
	err := db.QueryRow(ctx, `SELECT count(*), count(DISTINCT (thing, boot_id, seq)) FROM `+pgx.Identifier{table}.Sanitize()).Scan(&n, &distinct)
	if err == nil && (n != want || distinct != want) {
		err = fmt.Errorf("%s holds %d rows, %d different ones: want %d", table, n, distinct, want)
	}
	return err
}
