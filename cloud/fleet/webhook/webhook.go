// Package webhook tells programs elsewhere what happens to things: operators register a URL, the kinds of events it wants and whose; each
// event then arrives there as one signed POST, at least once, in order for each thing.
//
// Events come from an outbox in Postgres that is written in the transaction of what happened (webhookpg, infra/adr/0013). Service.Run hands
// them to the hooks as deliveries; a River task for each hook (TaskDeliver) sends what is due. A delivery that fails is tried again with
// back-off, and is dead after MaxAttempts. A hook whose endpoint does not answer is asked by one delivery at a time, and is switched off
// after DisableAfter.
//
// The request follows the Standard Webhooks specification, so that receivers find a ready verifier in their language:
//
//	POST <url>
//	Content-Type: application/json
//	Webhook-Id: <id of the event: the same for each attempt and replay>
//	Webhook-Timestamp: <seconds since 1970 of this attempt>
//	Webhook-Signature: v1,<base64 of HMAC-SHA256 over "id.timestamp.body"> [v1,<the same with the secret before>]
//	Kennel-Attempt: <1, 2, ...>
//
//	{"id": "...", "kind": "thing.absent", "thing": "vic:00e20100", "at": "2026-11-21T10:00:00Z", "data": {...}}
//
// Any 2xx is done. Redirects are not followed. 410 switches the hook off. Receivers refuse what is older than five minutes, and take an id
// they have seen for done.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/errs"
	"kennel/infra/secretbox"
	"kennel/infra/thing"
)

// Kind is the kind of an event.
type Kind string

// The kinds of events.
const (
	Present   Kind = "thing.present"
	Absent    Kind = "thing.absent"
	Activated Kind = "thing.activated" // got its first certificate, or another first one after a release
	Setting   Kind = "setting.changed"
	Command   Kind = "command.finished"
	Revoked   Kind = "certificate.revoked"

	ProblemRaised Kind = "problem.raised" // at once when a robot has a problem of a kind and code that it had not; kinds as filters know them
	ProblemGone   Kind = "problem.gone"   // when it has not had it for GoneAfter; a problem that comes back sooner is not raised again
	FaultRaised   Kind = "fault.raised"   // the problem is a numbered fault; its end is a ProblemGone
	AlertFiring   Kind = "alert.firing"   // many robots of one release have the same problem
	AlertResolved Kind = "alert.resolved"

	CrashGroupNew       Kind = "crash.group.new"       // a crash of a robot's program like none before
	CrashGroupRegressed Kind = "crash.group.regressed" // one that was resolved came back

	CustomIntent Kind = "intent.custom" // a robot heard an intent of the operators' own; without free words that were said

	// The turns of a rollout.
	RolloutWaiting Kind = "rollout.waiting" // for a second person's approval
	RolloutStarted Kind = "rollout.started"
	RolloutPhase   Kind = "rollout.phase" // the next one is open
	RolloutBaking  Kind = "rollout.baking"
	RolloutHeld    Kind = "rollout.held"     // until a person releases it
	RolloutFreed   Kind = "rollout.released" // by a person
	RolloutPaused  Kind = "rollout.paused"
	RolloutResumed Kind = "rollout.resumed"
	RolloutStopped Kind = "rollout.stopped" // by evidence of harm
	RolloutAborted Kind = "rollout.aborted"
	RolloutRetried Kind = "rollout.retried"
	RolloutDone    Kind = "rollout.done"

	Ping Kind = "ping" // a test; every webhook gets it without asking
)

// Kinds are those a hook may want, besides those of events.
var Kinds = []Kind{Present, Absent, Activated, Setting, Command, Revoked, ProblemRaised, ProblemGone, FaultRaised, AlertFiring, AlertResolved, CrashGroupNew, CrashGroupRegressed, CustomIntent,
	RolloutWaiting, RolloutStarted, RolloutPhase, RolloutBaking, RolloutHeld, RolloutFreed, RolloutPaused, RolloutResumed, RolloutStopped, RolloutAborted, RolloutRetried, RolloutDone}

// EventPrefix begins the kind of a robot's event, which ends with the event's name: event:robot.fault_code. A hook wants events by the
// beginning of their names: event:battery. or event: for all.
const EventPrefix = "event:"

var eventPattern = regexp.MustCompile(`^event:[A-Za-z0-9_.-]{0,100}$`)

// Known reports whether a hook may want a kind.
func (k Kind) Known() bool { return slices.Contains(Kinds, k) || eventPattern.MatchString(string(k)) }

// Bounds: ours, no source gives them.
const (
	MaxHooks    = 50
	MaxAttempts = 12 // of one delivery: about a day
	// MaxOpen is how many deliveries may wait for one hook; with more it is switched off, because the cloud is no place to keep them.
	MaxOpen      = 100_000
	DisableAfter = 3 * 24 * time.Hour // without an answer
	KeepDone     = 7 * 24 * time.Hour
	KeepDead     = 30 * 24 * time.Hour
	OldSecretFor = 24 * time.Hour // after a new one was made
	GoneAfter    = 30 * time.Second
	DefaultLimit = 50
	MaxLimit     = 500
	maxURL       = 2000
	maxNote      = 200
	maxKinds     = 50
)

// TaskDeliver is the name of the task that sends what is due to one hook.
const TaskDeliver = "webhook.deliver"

// ErrUnknown: no such hook or delivery.
var ErrUnknown = errs.Coded(errs.NotFound, "no_webhook", "no such webhook or delivery")

// Hook is one registration.
type Hook struct {
	ID           string     `json:"id"`
	URL          string     `json:"url"`
	Kinds        []Kind     `json:"kinds"`
	Filter       string     `json:"filter"` // filter of robots; "": all
	Note         string     `json:"note,omitempty"`
	By           string     `json:"by"` // who made it
	Created      time.Time  `json:"created"`
	Disabled     *time.Time `json:"disabled,omitempty"`     // nothing is sent since then
	DisabledWhy  string     `json:"disabled_why,omitempty"` // "": an operator did it
	Failures     int        `json:"failures"`               // in a row
	FailingSince *time.Time `json:"failing_since,omitempty"`
	RetryAt      *time.Time `json:"retry_at,omitempty"` // nothing is sent before
	LastOK       *time.Time `json:"last_ok,omitempty"`
	LastError    string     `json:"last_error,omitempty"`
	Open         int        `json:"open"` // deliveries that wait
	Dead         int        `json:"dead"` // deliveries given up and kept

	Secret    []byte     `json:"-"` // sealed
	OldSecret []byte     `json:"-"` // sealed
	OldUntil  *time.Time `json:"-"`
}

// wants reports whether the hook is to be told of events of a kind.
func (h *Hook) wants(k Kind) bool {
	return h.Disabled == nil && slices.ContainsFunc(h.Kinds, func(w Kind) bool {
		return w == k || strings.HasPrefix(string(w), EventPrefix) && strings.HasPrefix(string(k), string(w))
	})
}

// Event is an event as the outbox stores it.
type Event struct {
	ID    string
	Kind  Kind
	Thing thing.ID
	At    time.Time
	Data  json.RawMessage
}

// Body is the request body that a receiver gets.
type Body struct {
	ID    string          `json:"id"`
	Kind  Kind            `json:"kind"`
	Thing thing.ID        `json:"thing,omitempty"`
	At    time.Time       `json:"at"`
	Data  json.RawMessage `json:"data"`
}

// State is the state of a delivery.
type State string

// The states.
const (
	Open State = "open"
	Done State = "done"
	Dead State = "dead" // given up; it can be replayed
)

// Delivery is one event for one hook.
type Delivery struct {
	ID        int64      `json:"id"`
	Hook      string     `json:"hook"`
	Event     string     `json:"event"`
	Kind      Kind       `json:"kind"`
	Thing     thing.ID   `json:"thing,omitempty"`
	Created   time.Time  `json:"created"`
	State     State      `json:"state"`
	Next      time.Time  `json:"next"` // when it is tried, if it is open
	Attempts  int        `json:"attempts"`
	Last      *time.Time `json:"last,omitempty"`   // attempt
	Status    int        `json:"status,omitempty"` // of the answer; 0: none came
	LatencyUS int64      `json:"latency_us,omitempty"`
	Error     string     `json:"error,omitempty"` // of the last attempt

	Body []byte `json:"-"`
}

// Outcome is the result of an attempt, as the store keeps it.
type Outcome struct {
	At      time.Time
	State   State
	Next    time.Time // if it stays open
	Status  int
	Latency time.Duration
	Error   string
	// Trouble is the endpoint's, not this delivery's: nothing is sent before RetryAt.
	Trouble bool
	RetryAt time.Time
	// Disable says why the hook is switched off; "": it is not.
	Disable string
}

// Query asks for a page of deliveries, the newest first.
type Query struct {
	State  State // "": all
	Before int64 // only those before this id; 0: from the newest
	Limit  int
}

// Store keeps hooks. Errors: ErrUnknown for a hook that is gone.
type Store interface {
	Hooks(ctx context.Context) ([]Hook, error)
	Hook(ctx context.Context, id string) (Hook, error)
	// Add refuses more than MaxHooks with Exhausted.
	Add(ctx context.Context, h Hook) error
	// Change lets f change a hook, which is locked meanwhile.
	Change(ctx context.Context, id string, f func(h *Hook) error) (Hook, error)
	Remove(ctx context.Context, id string) error
}

// Outbox keeps events until they are deliveries, and deliveries until they are old. Errors like those of Store.
type Outbox interface {
	// FanOut takes at most n events out of the outbox, the oldest first, and keeps the deliveries that plan makes of them, all or nothing. One
	// process does so at a time; the others get 0.
	FanOut(ctx context.Context, n int, plan func(hooks []Hook, events []Event) ([]Delivery, error)) (int, error)
	// Overfull returns hooks that are on and for which more than n deliveries wait.
	Overfull(ctx context.Context, n int) ([]string, error)
	// DueHooks returns the hooks for which something is due.
	DueHooks(ctx context.Context, now time.Time) ([]string, error)
	// Due returns open deliveries of a hook that are due and the first of their thing, the oldest first.
	Due(ctx context.Context, hook string, now time.Time, n int) ([]Delivery, error)
	// Finish notes what became of an attempt.
	Finish(ctx context.Context, d Delivery, o Outcome) error
	// Log keeps a delivery that was sent without waiting in line, and returns its id.
	Log(ctx context.Context, d Delivery, o Outcome) (int64, error)
	Deliveries(ctx context.Context, hook string, q Query) ([]Delivery, error)
	// Replay opens a delivery once more, or with 0 every dead one, behind those that wait; it returns how many.
	Replay(ctx context.Context, hook string, id int64, now time.Time) (int, error)
	Forget(ctx context.Context, doneBefore, deadBefore time.Time) (int, error)
	// Follow calls step when there may be an event, and after every so often, until ctx ends; it then returns nil (pg.Follow).
	Follow(ctx context.Context, log *slog.Logger, every time.Duration, step func(context.Context) error) error
}

// Config holds what Service is made of; all but Now and Notice are required.
type Config struct {
	Store  Store
	Outbox Outbox
	Sealer secretbox.Sealer
	Sender *Sender
	// Select returns which robots a filter selects, at most limit; it may be asked about some by adding their ids to the filter.
	Select func(ctx context.Context, f filter.Filter, limit int) ([]thing.ID, error)
	// Order orders the task TaskDeliver for a hook.
	Order func(ctx context.Context, hook string) error
	// Notice tells operators that a hook was switched off.
	Notice func(ctx context.Context, h Hook, why string)
	Log    *slog.Logger
	Now    func() time.Time // nil: time.Now
}

// Service states the rules. Safe for concurrent use.
type Service struct{ cfg Config }

// New returns the service.
func New(cfg Config) (*Service, error) {
	if cfg.Store == nil || cfg.Outbox == nil || cfg.Sender == nil || cfg.Select == nil || cfg.Order == nil || cfg.Log == nil {
		return nil, errors.New("webhook: store, outbox, sender, select, order and log are required")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Notice == nil {
		cfg.Notice = func(context.Context, Hook, string) {}
	}
	return &Service{cfg}, nil
}

// Draft is an operator's input for a hook; a nil field stays as it is, or takes its default.
type Draft struct {
	URL      *string `json:"url,omitempty"`    // https
	Kinds    *[]Kind `json:"kinds,omitempty"`  // kinds of events to send (kennelctl webhooks -help lists them)
	Filter   *string `json:"filter,omitempty"` // filter of robots; "": all
	Note     *string `json:"note,omitempty"`   // note for other operators
	Disabled *bool   `json:"disabled,omitempty"`
}

func (d Draft) apply(h *Hook, now time.Time) error {
	if d.URL != nil {
		h.URL = *d.URL
	}
	if d.Kinds != nil {
		h.Kinds = slices.Compact(slices.Sorted(slices.Values(*d.Kinds)))
	}
	if d.Filter != nil {
		f, err := filter.Parse(*d.Filter)
		if err != nil {
			return err
		}
		if f.Uses(filter.Owner) {
			return errs.New(errs.Invalid, "filter: owner: is not allowed in a webhook: want a tag instead")
		}
		h.Filter = f.String()
	}
	if d.Note != nil {
		h.Note = strings.TrimSpace(*d.Note)
	}
	if d.Disabled != nil && *d.Disabled != (h.Disabled != nil) {
		if h.Disabled, h.DisabledWhy = nil, ""; *d.Disabled {
			h.Disabled = &now
		} else {
			h.Failures, h.FailingSince, h.RetryAt = 0, nil, nil
		}
	}
	return nil
}

// check reports the first thing wrong with a hook.
func (h *Hook) check(guard Guard) error {
	if err := CheckURL(h.URL, guard); err != nil {
		return err
	}
	if len(h.Kinds) == 0 || len(h.Kinds) > maxKinds {
		return errs.New(errs.Invalid, "kinds: want 1 to 50 of %s, or event: and the start of an event's name", errs.List(Kinds))
	}
	for _, k := range h.Kinds {
		if !k.Known() {
			return errs.New(errs.Invalid, "kind %.40q: want one of %s, or event: and the start of an event's name", string(k), errs.List(Kinds))
		}
	}
	if len(h.Note) > maxNote || strings.ContainsFunc(h.Note, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return errs.New(errs.Invalid, "note: want at most %d bytes on one line", maxNote)
	}
	return nil
}

// CheckURL refuses what is never called: anything but https, user names, fragments, and addresses that the guard refuses.
func CheckURL(s string, guard Guard) error {
	bad := func(why string) error { return errs.New(errs.Invalid, "url: %s; want https://host/path", why) }
	if len(s) > maxURL {
		return bad(fmt.Sprintf("longer than %d bytes", maxURL))
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return bad("not a URL")
	case u.Scheme != "https":
		return bad("its scheme is not https")
	case u.Hostname() == "":
		return bad("no host")
	case u.User != nil:
		return bad("contains a user name or password, which would be visible; put a token into the path, or check the signature")
	case u.Fragment != "":
		return bad("contains a fragment (#)")
	}
	if err := guard.CheckHost(u.Hostname()); err != nil {
		return errs.Coded(errs.Invalid, "address_not_allowed", "url: %w", err)
	}
	return nil
}

// Add registers a hook. secret may be one that the receiver has already, or "": one is made. It is returned this once.
func (s *Service) Add(ctx context.Context, by string, d Draft, secret string) (Hook, string, error) {
	key, err := parseSecret(secret)
	if err != nil {
		return Hook{}, "", err
	}
	now := s.cfg.Now()
	h := Hook{ID: newID(), By: by, Created: now.UTC()}
	if err := d.apply(&h, now); err != nil {
		return Hook{}, "", err
	}
	if err := h.check(s.cfg.Sender.Guard()); err != nil {
		return Hook{}, "", err
	}
	if err := s.tryFilter(ctx, h.Filter); err != nil {
		return Hook{}, "", err
	}
	h.Secret = s.cfg.Sealer.Seal(key, []byte(h.ID))
	if err := s.cfg.Store.Add(ctx, h); err != nil {
		return Hook{}, "", err
	}
	return h, secretText(key), nil
}

// Hooks returns all hooks.
func (s *Service) Hooks(ctx context.Context) ([]Hook, error) { return s.cfg.Store.Hooks(ctx) }

// Hook returns one.
func (s *Service) Hook(ctx context.Context, id string) (Hook, error) {
	return s.cfg.Store.Hook(ctx, id)
}

// Change changes a hook.
func (s *Service) Change(ctx context.Context, id string, d Draft) (Hook, error) {
	if d.Filter != nil {
		if err := s.tryFilter(ctx, *d.Filter); err != nil {
			return Hook{}, err
		}
	}
	h, err := s.cfg.Store.Change(ctx, id, func(h *Hook) error {
		if err := d.apply(h, s.cfg.Now()); err != nil {
			return err
		}
		return h.check(s.cfg.Sender.Guard())
	})
	if err != nil {
		return Hook{}, err
	}
	return h, nil
}

// tryFilter finds out whether a filter can be asked, such as whether its cohort exists.
func (s *Service) tryFilter(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	_, err := s.selected(ctx, text, []thing.ID{"vic:0"})
	if errs.KindOf(err) == errs.NotFound { // it is the filter that is wrong, not the address of the request
		return errs.New(errs.Invalid, "%w", err)
	}
	return err
}

// selected returns which of some things a filter selects.
func (s *Service) selected(ctx context.Context, text string, things []thing.ID) (map[thing.ID]bool, error) {
	f, err := filter.Parse(text)
	if err != nil {
		return nil, err
	}
	these := filter.Term{Key: filter.ID}
	for _, id := range things {
		these.Values = append(these.Values, filter.Value{Text: string(id)})
	}
	ids, err := s.cfg.Select(ctx, f.With(these), len(things))
	if err != nil {
		return nil, fmt.Errorf("filter %.100q: %w", text, err)
	}
	out := map[thing.ID]bool{}
	for _, id := range ids {
		out[id] = true
	}
	return out, nil
}

// Remove forgets a hook and what waits for it.
func (s *Service) Remove(ctx context.Context, id string) error { return s.cfg.Store.Remove(ctx, id) }

// NewSecret gives a hook another secret and returns it this once. The one before signs too, for OldSecretFor.
func (s *Service) NewSecret(ctx context.Context, id string) (string, error) {
	key, err := parseSecret("")
	if err != nil {
		return "", err
	}
	until := s.cfg.Now().Add(OldSecretFor)
	_, err = s.cfg.Store.Change(ctx, id, func(h *Hook) error {
		h.OldSecret, h.OldUntil = h.Secret, &until
		h.Secret = s.cfg.Sealer.Seal(key, []byte(h.ID))
		return nil
	})
	if err != nil {
		return "", err
	}
	return secretText(key), nil
}

// secrets opens what signs now.
func (s *Service) secrets(h *Hook) ([][]byte, error) {
	key, err := s.cfg.Sealer.Open(h.Secret, []byte(h.ID))
	if err != nil {
		return nil, fmt.Errorf("secret of webhook %s: %w", h.ID, err)
	}
	out := [][]byte{key}
	if h.OldUntil != nil && s.cfg.Now().Before(*h.OldUntil) {
		if old, err := s.cfg.Sealer.Open(h.OldSecret, []byte(h.ID)); err == nil {
			out = append(out, old)
		}
	}
	return out, nil
}

// Deliveries returns a page of the log.
func (s *Service) Deliveries(ctx context.Context, hook string, q Query) ([]Delivery, error) {
	switch {
	case q.State != "" && q.State != Open && q.State != Done && q.State != Dead:
		return nil, errs.New(errs.Invalid, "state %.20q: want open, done or dead", string(q.State))
	case q.Limit < 1 || q.Limit > MaxLimit:
		return nil, errs.New(errs.Invalid, "limit %d: want 1 to %d", q.Limit, MaxLimit)
	case q.Before < 0:
		return nil, errs.New(errs.Invalid, "before %d: want the id of a delivery", q.Before)
	}
	if _, err := s.cfg.Store.Hook(ctx, hook); err != nil {
		return nil, err
	}
	return s.cfg.Outbox.Deliveries(ctx, hook, q)
}

// Replay sends a delivery once more, or with 0 every dead one, behind those that wait. It returns how many.
func (s *Service) Replay(ctx context.Context, hook string, id int64) (int, error) {
	if _, err := s.cfg.Store.Hook(ctx, hook); err != nil {
		return 0, err
	}
	n, err := s.cfg.Outbox.Replay(ctx, hook, id, s.cfg.Now())
	if err == nil && n == 0 && id != 0 {
		return 0, ErrUnknown
	}
	return n, err
}

// Forget drops deliveries that are old. It is a periodic job.
func (s *Service) Forget(ctx context.Context) error {
	now := s.cfg.Now()
	_, err := s.cfg.Outbox.Forget(ctx, now.Add(-KeepDone), now.Add(-KeepDead))
	return err
}

// Guard returns which addresses may be called.
func (s *Service) Guard() Guard { return s.cfg.Sender.Guard() }
