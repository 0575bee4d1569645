package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/api/topics"
	"kennel/infra/bench"
	"kennel/infra/bench/house"
	"kennel/infra/thing"
)

const (
	eventThings  = 16
	eventBatches = 16              // of one thing in one turn
	batchEvents  = 1000            // a robot that was offline sends up to 2000 in one batch
	eventWindow  = 3               // batches on their way, as an agent has (edge/agent/das)
	resendAfter  = 5 * time.Second // as an agent's first
	maxEventTurn = 5 * time.Minute
)

// eventsToRows: things publish batches at full speed until the cloud has answered that they are stored, beside one COPY of the same rows
// into a table with the same columns, partitions and indexes. The batches are encoded before the clock starts: robots do that on their
// own processors.
func eventsToRows(ctx context.Context, env *bench.Env) ([]bench.Result, error) {
	h, err := house.Start(ctx, env.Bin)
	if err != nil {
		return nil, err
	}
	defer h.Stop()
	db, err := h.DB(ctx)
	if err != nil {
		return nil, err
	}
	defer db.Close(context.WithoutCancel(ctx))
	if err := makeTwin(ctx, db); err != nil {
		return nil, err
	}
	is, err := openIssuer(h.CA())
	if err != nil {
		return nil, err
	}
	peers, err := is.things(0, eventThings)
	if err != nil {
		return nil, err
	}
	senders := make([]*sender, eventThings)
	for i, p := range peers {
		if senders[i], err = newSender(ctx, h.URL("mqtt"), p); err != nil {
			return nil, err
		}
		defer senders[i].stop()
	}
	batches := bench.Part(env, eventBatches)
	turn := eventThings * batches * batchEvents // events
	round := 0
	var rows []events.Event // of this turn
	pairs, err := bench.Pairs(ctx, env.Count, func(ctx context.Context) (float64, error) {
		round++
		rows = rows[:0]
		for i, s := range senders {
			evs := makeEvents(s.id, fmt.Sprintf("bench-%d", round), i, batches*batchEvents)
			rows = append(rows, evs...)
			if err := s.load(evs); err != nil {
				return 0, err
			}
		}
		if err := fresh(ctx, db); err != nil {
			return 0, err
		}
		took, err := sendAll(ctx, senders)
		if err != nil {
			return 0, err
		}
		if err := holds(ctx, db, "das_event", turn); err != nil {
			return 0, err
		}
		return float64(turn) / took.Seconds(), nil
	}, func(ctx context.Context) (float64, error) {
		if err := fresh(ctx, db); err != nil {
			return 0, err
		}
		start := time.Now()
		if err := copyRows(ctx, db, rows); err != nil {
			return 0, err
		}
		took := time.Since(start)
		return float64(turn) / took.Seconds(), holds(ctx, db, "bench_event", turn)
	})
	if err != nil {
		return nil, err
	}
	return []bench.Result{bench.Line{Name: "events", Unit: "events/s", Bound: 0.3,
		Note: fmt.Sprintf("%d things, batches of %d over MQTT until acknowledged as stored; reference: one COPY of the same %d rows into an equal table on the same Postgres",
			eventThings, batchEvents, turn)}.Result(pairs)}, nil
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

// sender is a thing that publishes batches until they are acknowledged.
type sender struct {
	peer
	session *session
	acks    chan ack.Ack
	batches map[string][]byte
	order   []string
}

func newSender(ctx context.Context, url string, p peer) (*sender, error) {
	s := &sender{peer: p, acks: make(chan ack.Ack, 4*eventWindow)} // a lost one is asked for again
	var err error
	s.session, err = connect(ctx, url, string(p.id), p, func(_ string, payload []byte) {
		if a, err := ack.Parse(payload); err == nil {
			select {
			case s.acks <- a:
			default:
			}
		}
	}, topics.DownTopic(p.id, topics.Ack))
	return s, err
}

func (s *sender) stop() { s.session.stop() }

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
		return s.session.Publish(ctx, topics.UpTopic(s.id, topics.DAS), 1, false, s.batches[id])
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
				if err := errors.Join(pass(ctx, time.Duration(a.After)), publish(a.Batch)); err != nil {
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
	errc := make(chan error, len(senders)) // one from each
	var wg sync.WaitGroup
	start := time.Now()
	for _, s := range senders {
		wg.Go(func() { errc <- s.run(ctx) })
	}
	wg.Wait()
	took := time.Since(start)
	close(errc)
	var all error
	for err := range errc {
		all = errors.Join(all, err)
	}
	return took, all
}

// makeTwin makes bench_event: das_event's columns, partitions by day and indexes.
func makeTwin(ctx context.Context, db *pgx.Conn) error {
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

// fresh empties both tables and writes out what Postgres still holds back, so that each turn starts from the same place.
func fresh(ctx context.Context, db *pgx.Conn) error {
	_, err := db.Exec(ctx, `TRUNCATE das_event, bench_event`)
	if err == nil {
		_, err = db.Exec(ctx, `CHECKPOINT`)
	}
	return err
}

// holds checks that a turn's rows are all in table, once.
func holds(ctx context.Context, db *pgx.Conn, table string, want int) error {
	var n, distinct int
	err := db.QueryRow(ctx, `SELECT count(*), count(DISTINCT (thing, boot_id, seq)) FROM `+pgx.Identifier{table}.Sanitize()).Scan(&n, &distinct)
	if err == nil && (n != want || distinct != want) {
		err = fmt.Errorf("%s holds %d rows, %d different ones: want %d", table, n, distinct, want)
	}
	return err
}

var eventColumns = strings.Fields(`received grp thing boot_id seq ts uptime_ms unsynced level source robot_version profile_id feature_type
	feature_run_id event s1 s2 i1 i2`)

// copyRows is one COPY in one transaction.
func copyRows(ctx context.Context, db *pgx.Conn, evs []events.Event) error {
	received := time.Now()
	row := make([]any, 0, len(eventColumns))
	i := 0
	n, err := db.CopyFrom(ctx, pgx.Identifier{"bench_event"}, eventColumns, pgx.CopyFromFunc(func() ([]any, error) {
		if i == len(evs) {
			return nil, nil
		}
		e := &evs[i]
		i++
		row = append(row[:0], received, int64(1), "vic:"+e.RobotID, e.BootID, int64(e.Seq), e.TS, e.UptimeMS, e.Unsynced, string(e.Level), e.Source,
			e.RobotVersion, e.ProfileID, e.FeatureType, e.FeatureRunID, e.Name, e.S1, e.S2, e.I1.N, e.I2.N)
		return row, nil
	}))
	if err == nil && n != int64(len(evs)) {
		err = fmt.Errorf("copied %d rows: want %d", n, len(evs))
	}
	return err
}
