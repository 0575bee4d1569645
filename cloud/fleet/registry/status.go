package registry

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/status"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/jdocs"
)

const (
	statusTimeout = 5 * time.Second
	// casAttempts bounds the races for one thing that HandleStatus loses before it leaves the matter to the robot's next status.
	casAttempts = 5
)

// HandleStatus takes one message of up/status; its form is kitmqtt.UpHandler. A status is not acknowledged: the next one says more. What
// cannot be read or stored is logged and dropped.
func (s *Service) HandleStatus(ctx context.Context, id thing.ID, payload []byte, _ func(ack.Ack)) {
	m, err := parseStatus(payload)
	if err != nil {
		s.log.WarnContext(ctx, "status refused", logging.Thing, id, logging.Err, err)
		s.record(ctx, Step{Thing: id, Name: StepStatus, Code: "malformed", Detail: err.Error()})
		return
	}
	bounded, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if err := s.Apply(bounded, id, m); err != nil && ctx.Err() == nil { // at shutdown there is no need: the robot reports again after the restart
		s.log.WarnContext(ctx, "status not stored", logging.Thing, id, logging.Err, err)
	}
}

// parseStatus checks what status.Parse leaves to storage.
func parseStatus(payload []byte) (status.Message, error) {
	m, err := status.Parse(payload)
	switch {
	case err != nil:
		return m, errs.New(errs.Invalid, "%w", err)
	case m.ConnectSeq > math.MaxInt64 || m.Seq > math.MaxInt64:
		return m, errs.New(errs.Invalid, "status: connect_seq %d, seq %d: want at most %d", m.ConnectSeq, m.Seq, int64(math.MaxInt64))
	case strings.ContainsRune(m.BootID, 0):
		return m, errs.New(errs.Invalid, "status: boot_id has a zero byte")
	}
	return m, nil
}

var errRace = errors.New("other processes kept changing the thing")

// Apply brings m into the thing's lease. A message that the lease rule ignores is no error.
func (s *Service) Apply(ctx context.Context, id thing.ID, m status.Message) error {
	m = named(id, m)
	for range casAttempts {
		l, rev, now, err := s.store.Lease(ctx, id)
		if err != nil {
			return err
		}
		next, changes, ok := l.Next(m, now)
		if !ok {
			s.log.DebugContext(ctx, "status ignored", logging.Thing, id, "state", m.State, "connect_seq", m.ConnectSeq, "seq", m.Seq)
			return nil
		}
		var st *StatusAt
		if m.State == status.Online {
			st = &StatusAt{Message: m, ClockMS: clockOffset(m.TS, now)}
		}
		if saved, err := s.store.SaveLease(ctx, id, rev, next, changes, st); err != nil || saved {
			return err
		}
	}
	return errRace
}

// named returns m with the names that the documents have here: a robot with earlier software calls its settings vic.RobotSettings, whatever its species.
func named(id thing.ID, m status.Message) status.Message {
	const former = jdocs.RobotSettings
	own := former.Of(id)
	if own == former {
		return m
	}
	if v, said := m.Docs[string(former)]; said {
		m.Docs = maps.Clone(m.Docs)
		delete(m.Docs, string(former))
		m.Docs[string(own)] = v
	}
	if i := slices.Index(m.Dirty, string(former)); i >= 0 {
		m.Dirty = slices.Clone(m.Dirty)
		m.Dirty[i] = string(own)
	}
	return m
}

// clockOffset is the robot's clock minus ours in milliseconds; a robot that says no time counts as right.
func clockOffset(ts int64, now time.Time) int64 {
	if ts == 0 {
		return 0
	}
	const bound = int64(100 * 365 * 24 * time.Hour / time.Millisecond)
	ts = min(max(ts, -bound), 2*bound) // far outside any clock, far inside int64
	return ts - now.UnixMilli()
}
