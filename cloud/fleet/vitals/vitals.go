// Package vitals remembers how robots were: battery, warmth and the real-time loop over time, so that people see that a battery has been
// failing since Tuesday. The registry keeps the last status alone; this keeps one sample of each slot of time, and forgets.
//
// The Recorder sees every status, gathers in memory and writes seldom: each robot costs two small rows in FlushEvery, whatever its pace. A
// process that dies takes at most that much of a curve with it, which no decision depends on. Slots are by the time of receipt, and
// processes that hear the same robot within one slot add to the same row.
package vitals

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/status"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Grain is the length of slots, and for how long they are kept.
type Grain struct {
	Every, Keep time.Duration
}

// The grains: a robot has at most 432 and 840 rows.
var (
	Fine   = Grain{10 * time.Minute, 3 * 24 * time.Hour}
	Coarse = Grain{time.Hour, 35 * 24 * time.Hour}
	Grains = []Grain{Fine, Coarse}
)

const (
	// FlushEvery is how often a Recorder writes.
	FlushEvery   = 2 * time.Minute
	flushTimeout = 30 * time.Second
	maxWaiting   = 200_000 // samples in memory while the database is away; then the rest of the outage is lost
)

// Sample holds a robot's reports within one slot. A nil pointer means that it reported nothing.
type Sample struct {
	Thing       thing.ID
	At          time.Time // begin of the slot
	Volts       *float64  // the last
	Low         *float64  // the lowest, volts
	Temperature *float64  // the highest, degrees Celsius
	LateP99     *float64  // the worst, microseconds
	Problems    int       // the most at once, a fault among them
}

// Store keeps samples.
type Store interface {
	// Add joins samples with what their slots hold. Each is of one slot of g.
	Add(ctx context.Context, g Grain, samples []Sample) error
}

// Recorder gathers samples. Safe for concurrent use; Run must run for anything to be written.
type Recorder struct {
	store Store
	log   *slog.Logger
	now   func() time.Time

	mu   sync.Mutex
	open map[slot]*Sample
	lost int64 // statuses that found no room
}

type slot struct {
	thing thing.ID
	grain int // index of Grains
	at    int64
}

// NewRecorder returns a Recorder that writes to store.
func NewRecorder(store Store, log *slog.Logger) *Recorder {
	return &Recorder{store: store, log: log, now: time.Now, open: map[slot]*Sample{}}
}

// Handle takes one message of up/status before next does; its form is kitmqtt.UpHandler. What is no status is next's to complain about.
func (r *Recorder) Handle(next func(context.Context, thing.ID, []byte, func(ack.Ack))) func(context.Context, thing.ID, []byte, func(ack.Ack)) {
	return func(ctx context.Context, id thing.ID, payload []byte, answer func(ack.Ack)) {
		if m, err := status.Parse(payload); err == nil && m.State == status.Online {
			r.Take(id, m)
		}
		next(ctx, id, payload, answer)
	}
}

// Take notes one status, received now.
func (r *Recorder) Take(id thing.ID, m status.Message) {
	if m.Body == nil && m.Loop == nil && len(m.Problems) == 0 {
		return
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, g := range Grains {
		at := now.UTC().Truncate(g.Every)
		key := slot{id, i, at.Unix()}
		s := r.open[key]
		if s == nil {
			if len(r.open) >= maxWaiting {
				r.lost++
				return
			}
			s = &Sample{Thing: id, At: at}
			r.open[key] = s
		}
		s.Join(sampleOf(m))
	}
}

func sampleOf(m status.Message) Sample {
	s := Sample{Problems: len(m.Problems)}
	if b := m.Body; b != nil {
		if b.BatteryVolts > 0 { // 0: this body has no way to tell
			s.Volts, s.Low = &b.BatteryVolts, &b.BatteryVolts
		}
		if b.TemperatureC != 0 {
			s.Temperature = &b.TemperatureC
		}
		if b.Fault != 0 {
			s.Problems++
		}
	}
	if m.Loop != nil {
		s.LateP99 = &m.Loop.LateP99
	}
	return s
}

// Join adds what was said later in the same slot.
func (s *Sample) Join(later Sample) {
	if later.Volts != nil {
		s.Volts = later.Volts
	}
	s.Low = least(s.Low, later.Low)
	s.Temperature = most(s.Temperature, later.Temperature)
	s.LateP99 = most(s.LateP99, later.LateP99)
	s.Problems = max(s.Problems, later.Problems)
}

func least(a, b *float64) *float64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

func most(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// Run writes what was gathered every FlushEvery, and once more at the end.
func (r *Recorder) Run(ctx context.Context) error {
	tick := time.NewTicker(FlushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.flush(ctx)
		case <-ctx.Done():
			r.flush(context.WithoutCancel(ctx))
			return nil
		}
	}
}

// flush writes; what cannot be written stays for the next time.
func (r *Recorder) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	r.mu.Lock()
	open, lost := r.open, r.lost
	r.open, r.lost = map[slot]*Sample{}, 0
	r.mu.Unlock()
	if lost > 0 {
		r.log.WarnContext(ctx, "history full; status samples dropped", "statuses", lost)
	}
	for i, g := range Grains {
		var list []Sample
		for k, s := range open {
			if k.grain == i {
				list = append(list, *s)
			}
		}
		if len(list) == 0 {
			continue
		}
		if err := r.store.Add(ctx, g, list); err != nil {
			r.log.WarnContext(ctx, "history not written; retrying", "slots", len(list), logging.Err, err)
			r.back(i, open)
		}
	}
}

// back takes samples of a grain in again that could not be written.
func (r *Recorder) back(grain int, open map[slot]*Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, s := range open {
		if k.grain != grain {
			continue
		}
		if later := r.open[k]; later != nil {
			s.Join(*later)
		} else if len(r.open) >= maxWaiting {
			r.lost++
			continue
		}
		r.open[k] = s
	}
}
