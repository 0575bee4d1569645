package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/cloud/wire"
	"kennel/infra/backoff"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokeradmin/natsserver"
	"kennel/infra/telemetry"
)

// Our own limits (the source gives none).
const (
	watchEvery  = 5 * time.Second
	growingFor  = time.Minute // an uplink queue that did not shrink for that long grows
	manyWaiting = 1000        // messages; fewer are a moment's work
	oldAnswer   = 30 * time.Second
)

// watch remembers how the broker's servers and the uplink's queue were lately, so that the checks of readiness need not wait for an answer.
type watch struct {
	members func(context.Context) ([]natsserver.Member, error)  // nil: not a broker of several servers
	lag     func() (messages int64, age time.Duration, ok bool) // nil: no queue, or one that does not say

	mu      sync.Mutex
	seen    []natsserver.Member
	seenErr error
	seenAt  time.Time // zero: not asked yet
	lags    []lagSample
}

// lagSample holds the length of the queue at a time.
type lagSample struct {
	at      time.Time
	waiting int64
}

// run looks until ctx ends, then returns nil.
func (w *watch) run(ctx context.Context) error {
	for ctx.Err() == nil {
		w.look(ctx)
		_ = backoff.Sleep(ctx, watchEvery) // the loop looks at ctx
	}
	return nil
}

func (w *watch) look(ctx context.Context) {
	if w.members != nil {
		all, err := w.members(ctx)
		w.mu.Lock()
		w.seen, w.seenErr, w.seenAt = all, err, time.Now()
		w.mu.Unlock()
	}
	if w.lag == nil {
		return
	}
	if n, age, ok := w.lag(); ok && age < oldAnswer {
		w.mu.Lock()
		w.lags = recent(append(w.lags, lagSample{time.Now(), n}), time.Now())
		w.mu.Unlock()
	}
}

// recent drops samples that are older than the time to judge by, but for one.
func recent(all []lagSample, now time.Time) []lagSample {
	first := 0
	for first+1 < len(all) && now.Sub(all[first+1].at) >= growingFor {
		first++
	}
	return slices.Delete(all, 0, first)
}

// growing reports whether many messages have been waiting for growingFor, and not fewer now than then.
func growing(all []lagSample) bool {
	if len(all) < 2 || all[len(all)-1].at.Sub(all[0].at) < growingFor {
		return false
	}
	return all[len(all)-1].waiting >= all[0].waiting && !slices.ContainsFunc(all, func(s lagSample) bool { return s.waiting < manyWaiting })
}

// servers judges how many of want servers answered.
func servers(seen []natsserver.Member, want int) (says string, err error) {
	var names []string
	leader := ""
	for _, m := range seen {
		names = append(names, m.Name)
		leader = cmp.Or(leader, m.Leader)
	}
	says = fmt.Sprintf("%d of %d servers (%s)", len(seen), want, strings.Join(names, ", "))
	if leader != "" {
		says += ", " + leader + " leads"
	}
	switch {
	case 2*len(seen) <= want:
		err = telemetry.Advise(telemetry.Warning("most of the broker's servers do not answer: no robot can log in"), "Start the missing servers; more than half of them must run.")
	case len(seen) < want:
		err = telemetry.Advise(telemetry.Warning(fmt.Sprintf("%d of the broker's %d servers does not answer", want-len(seen), want)),
			"Start it again: while it is away, one more may not die.")
	case leader == "":
		err = telemetry.Advise(telemetry.Warning("the broker's servers have no leader: nothing is stored"), "See whether they reach each other.")
	}
	return says, err
}

// Look is the check of readiness of the broker: which is used, and whether it answers.
func (l *Link) Look(context.Context) (says string, err error) {
	says = cmp.Or(l.cfg.Broker, brokerEmbedded) + " at " + l.cfg.URL
	if err := l.Answers(); err != nil {
		if errors.Is(err, mqtt.ErrDisconnected) {
			err = errors.New("no connection to " + l.cfg.URL + "; see the log")
		}
		return says, telemetry.Advise(err, "Start the broker, or correct mqtt.url; robots keep their events until then.")
	}
	if l.watch.members == nil {
		return says, nil
	}
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	switch {
	case l.watch.seenAt.IsZero():
		return says, nil
	case l.watch.seenErr != nil:
		return says, telemetry.Advise(telemetry.Warning("the broker's servers cannot be asked how they are"), "See the log, and mqtt.nats.servers.")
	}
	more, err := servers(l.watch.seen, len(l.cfg.NATS.Servers))
	return says + ": " + more, err
}

// LookUplink is the check of readiness of the way in for robots' messages: how many wait.
func (l *Link) LookUplink(context.Context) (says string, err error) {
	if !l.base.Has(wire.Bridge) {
		return "not read by this process", nil
	}
	if l.watch.lag == nil {
		return fmt.Sprintf("by the broker's own connection; %d messages wait in this process", l.Stats().Waiting), nil
	}
	n, age, ok := l.watch.lag()
	if !ok || age > oldAnswer {
		return "queue; how many messages wait is not known", telemetry.Advise(telemetry.Warning("the uplink's queue does not say how many messages wait"),
			"See the log: the queue may be away, or the right to ask is missing.")
	}
	says = fmt.Sprintf("queue; %d messages wait, as it said %v ago", n, age.Round(time.Second))
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	if growing(l.watch.lags) {
		err = telemetry.Advise(telemetry.Warning("the uplink's queue grows: robots' messages come faster than they are stored"),
			"Start another kenneld with the role bridge; if its processor is idle, look at Postgres.")
	}
	return says, err
}
