package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

const (
	fanBatch = 500
	tick     = time.Second // what a hint of the database was lost for is found then
	lanes    = 8           // things that one hook is told about at the same time
	dueBatch = 4 * lanes
	workTime = 15 * time.Second // of one task, after which it takes nothing new: with the last attempts it stays below the time of a task
)

// Back-off of one delivery, and of an endpoint that does not answer. A quarter of it is chance.
const (
	firstPause    = 10 * time.Second
	longestPause  = 6 * time.Hour
	longestProbe  = 10 * time.Minute
	pauseOfSwitch = time.Second // shortest, for an answer that asks for no time
)

// backOff returns the pause after n failures in a row, which grows by factor up to limit.
func backOff(n, factor int, limit time.Duration) time.Duration {
	d := firstPause
	for range n - 1 {
		if d *= time.Duration(factor); d >= limit {
			d = limit
			break
		}
	}
	return d - rand.N(d/4)
}

// Run hands events to the hooks and orders what is due, until ctx ends. Any number of processes may run it.
func (s *Service) Run(ctx context.Context) error {
	return s.cfg.Outbox.Follow(ctx, s.cfg.Log, tick, s.step)
}

// step empties the outbox and orders the tasks of hooks for which something is due.
func (s *Service) step(ctx context.Context) error {
	for n := fanBatch; n == fanBatch; {
		broken := map[string]string{}
		var err error
		n, err = s.cfg.Outbox.FanOut(ctx, fanBatch, func(hooks []Hook, events []Event) ([]Delivery, error) { return s.plan(ctx, hooks, events, broken) })
		if err != nil {
			return err
		}
		for id, why := range broken {
			if err := s.disable(ctx, id, why); err != nil {
				return err
			}
		}
	}
	full, err := s.cfg.Outbox.Overfull(ctx, MaxOpen)
	if err != nil {
		return err
	}
	for _, id := range full {
		if err := s.disable(ctx, id, fmt.Sprintf("more than %d deliveries wait", MaxOpen)); err != nil {
			return err
		}
	}
	due, err := s.cfg.Outbox.DueHooks(ctx, s.cfg.Now())
	for _, id := range due {
		err = errors.Join(err, s.cfg.Order(ctx, id))
	}
	return err
}

// plan makes deliveries of events. A hook whose filter cannot be asked any more, such as one of a cohort that was deleted, gets none and
// is noted in broken, with why.
func (s *Service) plan(ctx context.Context, hooks []Hook, events []Event, broken map[string]string) ([]Delivery, error) {
	now := s.cfg.Now()
	bodies := make([][]byte, len(events))
	var out []Delivery
	for k := range hooks {
		h := &hooks[k]
		var whose map[thing.ID]bool // nil: everybody's
		if h.Filter != "" && h.Disabled == nil {
			var things []thing.ID
			for i := range events {
				if h.wants(events[i].Kind) && !slices.Contains(things, events[i].Thing) {
					things = append(things, events[i].Thing)
				}
			}
			if len(things) == 0 {
				continue
			}
			var err error
			whose, err = s.selected(ctx, h.Filter, things)
			switch errs.KindOf(err) {
			case errs.Invalid, errs.NotFound, errs.Denied:
				broken[h.ID] = errs.Public(err)
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		for i := range events {
			e := &events[i]
			if !h.wants(e.Kind) || whose != nil && !whose[e.Thing] {
				continue
			}
			if bodies[i] == nil {
				var err error
				if bodies[i], err = e.body(); err != nil {
					return nil, fmt.Errorf("event %s of kind %s: %w", e.ID, e.Kind, err)
				}
			}
			out = append(out, Delivery{Hook: h.ID, Event: e.ID, Kind: e.Kind, Thing: e.Thing, Created: now, State: Open, Next: now, Body: bodies[i]})
		}
	}
	return out, nil
}

// body returns what is sent of an event.
func (e *Event) body() ([]byte, error) {
	b := Body{ID: e.ID, Kind: e.Kind, Thing: e.Thing, At: e.At.UTC(), Data: e.Data}
	if e.Kind == Setting {
		b.Data = settingData(e.Data)
	}
	return json.Marshal(b)
}

// settingData names the settings that changed. Their values stay here: some say where a person lives.
func settingData(raw json.RawMessage) json.RawMessage {
	var in struct {
		Doc      string
		Version  int64
		By       string
		Old, New string
	}
	out := struct {
		Doc     string   `json:"doc"`
		Version int64    `json:"version"`
		By      string   `json:"by"` // robot, owner or operator
		Keys    []string `json:"keys"`
	}{Keys: []string{}}
	if json.Unmarshal(raw, &in) == nil {
		out.Doc, out.Version, out.By = in.Doc, in.Version, byWhom(in.By)
		was, is := map[string]json.RawMessage{}, map[string]json.RawMessage{}
		_, _ = json.Unmarshal([]byte(in.Old), &was), json.Unmarshal([]byte(in.New), &is) // a document that is no object has no settings to name
		for k, v := range is {
			if old, ok := was[k]; !ok || string(old) != string(v) {
				out.Keys = append(out.Keys, k)
			}
			delete(was, k)
		}
		for k := range was {
			out.Keys = append(out.Keys, k)
		}
		slices.Sort(out.Keys)
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err) // texts and a number
	}
	return b
}

// byWhom makes a class of who changed something: names and ids stay here.
func byWhom(by string) string {
	if _, err := thing.Parse(by); err == nil {
		return "robot"
	}
	if strings.Contains(by, "@") {
		return "operator"
	}
	return "owner"
}

// Deliver sends what is due to one hook: the task TaskDeliver. A hook that is gone is no error. What it leaves behind is ordered again by Run.
func (s *Service) Deliver(ctx context.Context, hook string) error {
	until := time.Now().Add(workTime)
	for time.Now().Before(until) && ctx.Err() == nil {
		h, err := s.cfg.Store.Hook(ctx, hook)
		if errors.Is(err, ErrUnknown) {
			return nil
		} else if err != nil {
			return err
		}
		now := s.cfg.Now()
		if h.Disabled != nil || h.RetryAt != nil && now.Before(*h.RetryAt) {
			return nil
		}
		n := dueBatch
		if h.Failures > 0 {
			n = 1 // one asks whether the endpoint is back; the others do not spend their attempts
		}
		due, err := s.cfg.Outbox.Due(ctx, hook, now, n)
		if err != nil || len(due) == 0 {
			return err
		}
		keys, err := s.secrets(&h)
		if err != nil {
			return s.disable(ctx, h.ID, "its secret cannot be opened with this cloud's sealing key")
		}
		if err := s.deliverAll(ctx, h, keys, due); err != nil {
			return err
		}
	}
	return nil
}

// deliverAll sends deliveries of different things side by side.
func (s *Service) deliverAll(ctx context.Context, h Hook, keys [][]byte, due []Delivery) error {
	var mu sync.Mutex
	var all error
	var wg sync.WaitGroup
	turn := make(chan struct{}, lanes)
	trouble := false
	for i := range due {
		turn <- struct{}{}
		mu.Lock()
		stop := trouble || ctx.Err() != nil
		mu.Unlock()
		if stop {
			break
		}
		wg.Go(func() {
			defer func() { <-turn }()
			o, err := s.attempt(ctx, h, keys, &due[i])
			mu.Lock()
			defer mu.Unlock()
			trouble = trouble || o.Trouble
			all = errors.Join(all, err)
		})
	}
	wg.Wait()
	return all
}

// attempt sends one delivery and notes what became of it.
func (s *Service) attempt(ctx context.Context, h Hook, keys [][]byte, d *Delivery) (Outcome, error) {
	a := s.cfg.Sender.send(ctx, &h, keys, d, d.Attempts+1, s.cfg.Now())
	if ctx.Err() != nil && a.err != nil {
		return Outcome{}, ctx.Err() // this process stops: it says nothing about the endpoint
	}
	o := s.judge(&h, d, a)
	if err := s.cfg.Outbox.Finish(ctx, *d, o); err != nil {
		return o, err
	}
	if o.State == Dead {
		s.cfg.Log.WarnContext(ctx, "webhook delivery abandoned", "webhook", h.ID, "delivery", d.ID, logging.Thing, d.Thing,
			"attempts", d.Attempts+1, "status", o.Status, "why", o.Error)
	}
	if o.Disable != "" {
		return o, s.disable(ctx, h.ID, o.Disable)
	}
	return o, nil
}

// judge says what an answer means.
func (s *Service) judge(h *Hook, d *Delivery, a answer) Outcome {
	now := s.cfg.Now()
	o := Outcome{At: now, State: Done, Status: a.status, Latency: a.latency}
	if a.err == nil && a.status/100 == 2 {
		return o
	}
	switch {
	case a.err != nil:
		o.Error, o.Trouble = a.err.Error(), true
	case a.status/100 == 3:
		o.Error = "answered with a redirect, which is not followed"
	case a.status == http.StatusGone:
		o.Error, o.Disable = "answered 410 Gone", "its endpoint answered 410 Gone"
	case a.status == http.StatusRequestTimeout, a.status == http.StatusTooManyRequests, a.status >= 500:
		o.Error, o.Trouble = fmt.Sprintf("answered %d %s", a.status, http.StatusText(a.status)), true
	default:
		o.Error = fmt.Sprintf("answered %d %s", a.status, http.StatusText(a.status))
	}
	if len(o.Error) > maxErrorText {
		o.Error = strings.ToValidUTF8(o.Error[:maxErrorText], "")
	}
	o.Error = strings.ReplaceAll(strings.ToValidUTF8(o.Error, "\ufffd"), "\x00", "")
	o.State, o.Next = Open, now.Add(max(backOff(d.Attempts+1, 3, longestPause), a.retryAfter))
	if d.Attempts+1 >= MaxAttempts {
		o.State = Dead
	}
	if o.Trouble {
		o.RetryAt = now.Add(max(backOff(h.Failures+1, 2, longestProbe), a.retryAfter, pauseOfSwitch))
		if h.FailingSince != nil && now.Sub(*h.FailingSince) >= DisableAfter {
			o.Disable = fmt.Sprintf("its endpoint has not answered well since %s; the last time: %s", h.FailingSince.UTC().Format(time.RFC3339), o.Error)
		}
	}
	return o
}

// errAlready ends a change that changes nothing.
var errAlready = errors.New("webhook: already disabled")

// disable switches a hook off and tells operators, once.
func (s *Service) disable(ctx context.Context, id, why string) error {
	now := s.cfg.Now()
	h, err := s.cfg.Store.Change(ctx, id, func(h *Hook) error {
		if h.Disabled != nil {
			return errAlready
		}
		h.Disabled, h.DisabledWhy = &now, why
		return nil
	})
	if errors.Is(err, errAlready) || errors.Is(err, ErrUnknown) {
		return nil
	} else if err != nil {
		return err
	}
	s.cfg.Log.WarnContext(ctx, "webhook disabled", "webhook", id, "why", why)
	s.cfg.Notice(ctx, h, why)
	return nil
}

// Ping sends a test at once, also to a hook that is off, and returns how it went. It changes nothing else, except that an endpoint that
// answers is asked again without waiting.
func (s *Service) Ping(ctx context.Context, hook string) (Delivery, error) {
	h, err := s.cfg.Store.Hook(ctx, hook)
	if err != nil {
		return Delivery{}, err
	}
	keys, err := s.secrets(&h)
	if err != nil {
		return Delivery{}, err
	}
	now := s.cfg.Now()
	e := Event{ID: newID(), Kind: Ping, At: now, Data: json.RawMessage(`{}`)}
	d := Delivery{Hook: h.ID, Event: e.ID, Kind: Ping, Created: now.UTC(), Next: now.UTC()}
	if d.Body, err = e.body(); err != nil {
		return Delivery{}, err
	}
	a := s.cfg.Sender.send(ctx, &h, keys, &d, 1, now)
	if ctx.Err() != nil {
		return Delivery{}, errs.New(errs.Unavailable, "no answer in time")
	}
	o := s.judge(&h, &d, a)
	if o.State != Done {
		o.State = Dead
	}
	o.Trouble, o.Disable = false, ""
	if d.ID, err = s.cfg.Outbox.Log(ctx, d, o); err != nil {
		return Delivery{}, err
	}
	last := o.At.UTC()
	d.State, d.Attempts, d.Last, d.Status, d.LatencyUS, d.Error = o.State, 1, &last, o.Status, o.Latency.Microseconds(), o.Error
	return d, nil
}
