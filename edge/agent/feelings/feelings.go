// Package feelings connects agentd to the robot's mood, which mindd keeps: it reports what the robot's voice and programs do, and passes changes of the mood to programs
// and to the event log.
package feelings

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/agent/voice"
	"kennel/edge/mind/mindlink"
	"kennel/infra/api/events"
	"kennel/infra/backoff"
	"kennel/infra/logging"
	"kennel/infra/runner"
)

// Mind is the robot's character; *mindlink.Client is one.
type Mind interface {
	Feel(ctx context.Context, f mindlink.Feel) error
	Feelings(ctx context.Context, give func(mindlink.Feeling) error) error
}

// Config holds what feelings need; Told may be nil.
type Config struct {
	Mind Mind
	Runs func() bool // whether the robot's character runs
	Emit func(events.Event)
	Told func(mindlink.Feeling) // hears each change of the mood, and must not block
	Log  *slog.Logger
}

const (
	retry    = 2 * time.Second // until mindd is looked for again; our own
	patience = 5 * time.Second // for mindd's answer
	waiting  = 32              // reports that wait for mindd; more are dropped, since a mood is about the present
)

// Feelings are made by New. Safe for concurrent use.
type Feelings struct {
	cfg  Config
	what chan mindlink.Feel
	now  atomic.Pointer[mindlink.Feeling] // nil: not known
}

// Now returns what the robot feels; false: its character does not run.
func (f *Feelings) Now() (now mindlink.Feeling, ok bool) {
	if n := f.now.Load(); n != nil {
		return *n, true
	}
	return now, false
}

// New returns feelings that are told nothing before their part runs.
func New(cfg Config) *Feelings {
	if cfg.Told == nil {
		cfg.Told = func(mindlink.Feeling) {}
	}
	return &Feelings{cfg: cfg, what: make(chan mindlink.Feel, waiting)}
}

// Part is f as a part of agentd.
func (f *Feelings) Part() host.Part {
	return host.Part{Name: "feelings", Services: []runner.Service{{Name: "feelings", Run: f.run}}}
}

// Feel tells the mood of something. It does not block.
func (f *Feelings) Feel(x mindlink.Feel) {
	x.Program = "agentd"
	select {
	case f.what <- x:
	default:
	}
}

// Heard takes every event of the robot's voice (VEC-INT-12, VEC-NLP-09). It does not block.
func (f *Feelings) Heard(e voice.Event) {
	if e.Stimulation != nil {
		f.Feel(mindlink.Feel{Events: e.Stimulation.Emotions})
	}
}

func (f *Feelings) run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { f.pass(ctx) })
	for ctx.Err() == nil {
		if f.cfg.Runs() {
			if err := f.follow(ctx); ctx.Err() == nil {
				f.cfg.Log.DebugContext(ctx, "mood not heard", logging.Err, err) // mindd says itself why it ends
			}
		}
		_ = backoff.Sleep(ctx, retry) // ctx ends the loop
	}
	return nil
}

// pass passes what happened on to mindd. What it does not take is lost.
func (f *Feelings) pass(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case x := <-f.what:
			if !f.cfg.Runs() {
				continue
			}
			limit, cancel := context.WithTimeout(ctx, patience)
			if err := f.cfg.Mind.Feel(limit, x); err != nil && ctx.Err() == nil {
				f.cfg.Log.DebugContext(ctx, "mood not moved", "events", x.Events, "action", x.Action, logging.Err, err)
			}
			cancel()
		}
	}
}

// follow hears mindd until it ends.
func (f *Feelings) follow(ctx context.Context) error {
	first := true
	defer f.now.Store(nil)
	return f.cfg.Mind.Feelings(ctx, func(now mindlink.Feeling) error {
		f.now.Store(&now)
		if first { // as it is: nothing changed
			first = false
			return nil
		}
		for _, e := range now.Events {
			f.cfg.Emit(events.Event{Source: mindlink.Program, Name: "mood.event", S1: e})
		}
		if now.Simple != now.SimpleBefore { // VEC-EMO-02
			f.cfg.Emit(events.Event{Source: mindlink.Program, Name: "mood.simple_mood_transition", S1: now.Simple, S2: now.SimpleBefore})
		}
		f.cfg.Told(now)
		return nil
	})
}
