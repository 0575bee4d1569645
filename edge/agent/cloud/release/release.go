// Package release asks the cloud which release this robot should run and reports the progress towards it. Applying an archive is the
// updater's work; until it is part of this agent, a robot that should run something else says Pending and why.
package release

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/topics"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/wake"
	"kennel/ota"
)

// Our own defaults. The original asked once an hour.
const (
	poll       = time.Hour
	firstRetry = 2 * time.Second
	maxRetry   = 2 * time.Minute
)

// Agent follows the desired release and reports the robot's progress. Safe for concurrent use.
type Agent struct {
	running string // the robot's own name of its release
	ask     kitmqtt.Requester
	publish func(ctx context.Context, name string, payload []byte) error
	log     *slog.Logger

	wake wake.Signal // one slot: look again

	mu      sync.Mutex
	online  bool
	desired ota.Desired
	pending *ota.Status // the report that the cloud has not confirmed yet
	said    ota.Status  // the last report that it did confirm
}

// New returns an agent of a robot that runs the given version.
func New(running string, ask kitmqtt.Requester, publish func(context.Context, string, []byte) error, log *slog.Logger) *Agent {
	return &Agent{running: running, ask: ask, publish: publish, log: log, wake: wake.New()}
}

// Connected says that the cloud can be reached now, or no longer.
func (a *Agent) Connected(yes bool) {
	a.mu.Lock()
	a.online = yes
	a.mu.Unlock()
	if yes {
		a.wake.Set()
	}
}

// Hint says that the desired release may have changed. Its payload is not trusted: the agent asks.
func (a *Agent) Hint([]byte) { a.wake.Set() }

// HandleAck takes the cloud's answer to a report. It returns false if the ack is for another part.
func (a *Agent) HandleAck(k ack.Ack) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pending == nil || a.pending.ID != k.Batch {
		return false
	}
	switch k.Status {
	case ack.Stored:
		a.said, a.pending = *a.pending, nil
	case ack.Refused:
		a.log.Error("cloud refused the update status", "code", k.Code, "reason", k.Reason)
		a.said, a.pending = *a.pending, nil // saying it again would be refused again
	case ack.RetryAfter:
		// The resend timer is already on.
	}
	return true
}

// Run asks for the desired release on every connect, on hints and once an hour, and resends reports until they are confirmed.
func (a *Agent) Run(ctx context.Context) error {
	pause := backoff.Pause{Min: firstRetry, Max: maxRetry}
	timer := time.NewTimer(poll)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
			pause.Reset()
		case <-timer.C:
		}
		next := poll
		if done := a.step(ctx); !done {
			next = pause.Next(nil)
		}
		timer.Reset(next)
	}
}

// step asks and reports; done is true if nothing is left to do.
func (a *Agent) step(ctx context.Context) (done bool) {
	a.mu.Lock()
	online := a.online
	a.mu.Unlock()
	if !online {
		return true // Connected wakes us
	}
	want, err := a.pull(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.log.WarnContext(ctx, "desired release not read", logging.Err, err)
		}
		return false
	}
	report := a.judge(want)
	a.mu.Lock()
	a.desired = want
	if same(report, a.said) {
		a.pending = nil
	} else if a.pending == nil || !same(report, *a.pending) {
		report.ID = rand.Text()
		report.TS = time.Now().UnixMilli()
		a.pending = &report
	}
	var out []byte
	if a.pending != nil {
		out, err = a.pending.Encode()
	}
	a.mu.Unlock()
	if out == nil || err != nil {
		return err == nil
	}
	_ = a.publish(ctx, topics.OTA, out) // not acknowledged: the timer says it again
	return false
}

func (a *Agent) pull(ctx context.Context) (ota.Desired, error) {
	body, err := json.Marshal(ota.DesiredRequest{V: 1, Running: a.running})
	if err != nil {
		return ota.Desired{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	resp, err := a.ask.Do(ctx, "ota", "desired", body)
	if err != nil {
		return ota.Desired{}, fmt.Errorf("ask for the desired release: %w", err)
	}
	d, err := ota.ParseDesired(resp)
	if err != nil {
		return ota.Desired{}, errs.New(errs.Corrupt, "answer of the cloud: %w", err)
	}
	return d, nil
}

// judge compares the robot's release with the desired one.
func (a *Agent) judge(want ota.Desired) ota.Status {
	s := ota.Status{Release: want.Release, Running: a.running, Phase: ota.Current}
	if want.Release != "" && string(want.Release) != a.running {
		s.Phase = ota.Pending
		s.Reason = "not supported by this robot: it does not install releases"
	}
	return s
}

func same(x, y ota.Status) bool {
	return x.Release == y.Release && x.Phase == y.Phase && x.Running == y.Running && x.Reason == y.Reason
}
