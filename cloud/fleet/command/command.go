// Package command asks robots to do things: an outbox in Postgres, so that every command ends with exactly one result or its expiry,
// whatever dies on the way.
//
//	Send -> outbox -> Sender of any process -> down/cmd, down/intent -> robot -> req/command/result -> Finish
//	                                           req/command/pull (at every connect) -> Pull
//
// A thing gets its commands in the order they were given: the oldest open one is sent, with back-off, until its result or its expiry, then
// the next. A robot that connects pulls all of them at once. That the robot asks, instead of the cloud watching statuses for a new
// connection, needs no observer: the request is resent until it is answered, by any live process of the cloud.
package command

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/infra/api/commandwire"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// State is the state of a command.
type State string

// The states. The last three are final.
const (
	Pending State = "pending" // not sent yet
	Sent    State = "sent"    // sent at least once
	Done    State = "done"
	Failed  State = "failed"  // Result says why; also what the robot does not know
	Expired State = "expired" // not executed as far as anybody knows: the Result says so, or none came in time
)

// Closed reports whether the state is final.
func (s State) Closed() bool { return s == Done || s == Failed || s == Expired }

// stateOf is the state that a robot's result leads to.
func stateOf(s commandwire.Status) State {
	switch s {
	case commandwire.Done:
		return Done
	case commandwire.Expired:
		return Expired
	}
	return Failed
}

// Command is one row of the outbox.
type Command struct {
	ID      string          `json:"id"` // a UUID
	Thing   thing.ID        `json:"thing"`
	Kind    string          `json:"kind"`
	Args    json.RawMessage `json:"args"`
	By      string          `json:"by"`
	Created time.Time       `json:"created"`
	Expires time.Time       `json:"expires"`
	State   State           `json:"state"`
	Sends   int             `json:"sends"` // how often it was handed to the broker or pulled
	Closed  *time.Time      `json:"closed,omitempty"`
	Result  *Result         `json:"result,omitempty"`
}

// ByOwner is who gave a command when a robot's owner did. Not a name or an id: the command may outlive the person's account.
const ByOwner = "owner"

// Result is the robot's result; FinishedMS is by its clock.
type Result struct {
	Status     commandwire.Status `json:"status"`
	Detail     string             `json:"detail,omitempty"`
	FinishedMS int64              `json:"finished_ms"`
}

// Draft is a command to be.
type Draft struct {
	Thing thing.ID
	Kind  string
	Args  json.RawMessage
	TTL   time.Duration
	By    string
	// Account is the person's who gave it as the robot's owner (ByOwner); Send sets it. The command ends with the ownership.
	Account string
	Key     string // the caller's own, at most MaxKey bytes; "": every request is another command
}

// Outgoing is a command on its way, with how long it still has.
type Outgoing struct {
	ID     string
	Thing  thing.ID
	Kind   string
	Args   json.RawMessage
	Given  time.Time // later than the time of any command before it
	Expire time.Duration
}

// Wire returns what is sent.
func (o Outgoing) Wire() commandwire.Command {
	return commandwire.Command{V: 1, ID: o.ID, Kind: o.Kind, Args: o.Args, ExpiresInMS: max(o.Expire, 0).Milliseconds(), GivenUS: max(o.Given.UnixMicro(), 0)}
}

// Limits and our own defaults.
const (
	MaxKey     = 64 // bytes
	MinTTL     = time.Second
	DefaultTTL = time.Hour
	// Grace is how long after its expiry a command waits for a result that is under way before it counts as expired.
	Grace = 30 * time.Second
	// Keep is how long closed commands are kept.
	Keep = 30 * 24 * time.Hour

	DefaultLimit = 50
	MaxLimit     = 500
)

// Store is the storage that Service needs. It goes by the database's clock, so that processes agree.
type Store interface {
	// Add keeps d, tells every process, and returns the command; with a key that the same caller used for this thing before it returns
	// that command and added false. Exhausted if as many commands of the thing are open as commandwire.MaxOpen allows; never for an urgent one.
	Add(ctx context.Context, d Draft) (c Command, added bool, err error)
	// Keyed returns the command that d's sender gave d's thing with d's key; NotFound, also for a draft without a key.
	Keyed(ctx context.Context, d Draft) (Command, error)
	// Get returns one command of a thing; NotFound.
	Get(ctx context.Context, id thing.ID, command string) (Command, error)
	// List returns the newest first, open ones alone if asked.
	List(ctx context.Context, id thing.ID, open bool, limit int) ([]Command, error)
	// Open returns all that may still begin, oldest first, and counts them as sent.
	Open(ctx context.Context, id thing.ID) ([]Outgoing, error)
	// Close keeps the first result of a command and returns the command as it is then; NotFound if the thing has no such command.
	Close(ctx context.Context, id thing.ID, command string, s State, r Result) (Command, error)
	// End closes what an account gave a thing as its owner until then and is still open.
	End(ctx context.Context, id thing.ID, account string, until time.Time) error
	// Expire closes what is open later than grace after its expiry, and returns how many it closed.
	Expire(ctx context.Context, grace time.Duration) (int, error)
	// Forget removes what was closed longer than keep ago, and returns how many it removed.
	Forget(ctx context.Context, keep time.Duration) (int, error)
}

// Service holds the rules. It is safe for concurrent use.
type Service struct {
	store  Store
	online func(context.Context, thing.ID) error
}

// Option changes a Service.
type Option func(*Service)

// Online makes Send ask online, which returns an error for a robot that is offline, before it takes a command that moves a robot or is said to it. Such a
// command begins soon or never, so its sender hears at once. A stop and a hold are always taken: the robot may come back before they expire.
func Online(online func(context.Context, thing.ID) error) Option {
	return func(s *Service) { s.online = online }
}

// New returns a service on store.
func New(store Store, options ...Option) *Service {
	s := &Service{store: store, online: func(context.Context, thing.ID) error { return nil }}
	for _, o := range options {
		o(s)
	}
	return s
}

// Check reports the first thing that makes d no command; errors are of kind Invalid. TTL 0 becomes DefaultTTL, or
// what the kind allows.
func (d *Draft) Check() error {
	most := commandwire.MaxTTLOf(d.Kind)
	if d.TTL == 0 {
		d.TTL = min(DefaultTTL, most)
	}
	if len(bytes.TrimSpace(d.Args)) == 0 {
		d.Args = json.RawMessage("{}")
	}
	if h, err := commandwire.ParseHold(d.Args); d.Kind == commandwire.RobotHold && err == nil {
		h.By = strings.ToValidUTF8(d.By[:min(len(d.By), commandwire.MaxReason)], "") // whatever the caller says
		if d.Args, err = json.Marshal(h); err != nil {
			return err
		}
	}
	switch {
	case d.TTL < MinTTL || d.TTL > most:
		return errs.New(errs.Invalid, "time to live of %v: want %v to %v for %.40s", d.TTL, MinTTL, most, d.Kind)
	case len(d.Key) > MaxKey || strings.ContainsRune(d.Key, 0) || !utf8.ValidString(d.Key):
		return errs.New(errs.Invalid, "key %.80q: want at most %d bytes of UTF-8 without NUL", d.Key, MaxKey)
	}
	if err := commandwire.Check(d.Kind, d.Args); err != nil {
		return errs.New(errs.Invalid, "%w", err)
	}
	return nil
}

// Send puts a command into the outbox and returns it. The same caller's same key again returns the command of the first time; Conflict if
// that was another kind or had other arguments. Unavailable if the robot would have to begin soon and is offline (Online).
func (s *Service) Send(ctx context.Context, d Draft) (Command, error) {
	if err := d.Check(); err != nil {
		return Command{}, err
	}
	if commandwire.Moves(d.Kind) || d.Kind == commandwire.Intent {
		if err := s.online(ctx, d.Thing); err != nil {
			if taken, none := s.store.Keyed(ctx, d); none == nil { // before it went offline
				return sameOf(taken, d)
			}
			return Command{}, err
		}
	}
	if d.By == ByOwner {
		d.Account = auth.CallerFrom(ctx).Account
	}
	c, added, err := s.store.Add(ctx, d)
	if err != nil {
		return Command{}, err
	}
	if added {
		return c, nil
	}
	return sameOf(c, d)
}

// sameOf returns c, the command that already has d's key; Conflict if d asks for something else.
func sameOf(c Command, d Draft) (Command, error) {
	if c.Kind != d.Kind || !bytes.Equal(compact(c.Args), compact(d.Args)) {
		return Command{}, errs.Coded(errs.Conflict, "key_used", "key %q is already used by command %s, %s with other arguments", d.Key, c.ID, c.Kind)
	}
	return c, nil
}

// TenureEnded ends the open commands of an account whose ownership of a thing ended then. It may be repeated, and come late.
func (s *Service) TenureEnded(ctx context.Context, id thing.ID, account string, then time.Time) error {
	return s.store.End(ctx, id, account, then)
}

func compact(b json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return b // it was checked; compared as it is
	}
	return out.Bytes()
}

// Command returns one command of a thing.
func (s *Service) Command(ctx context.Context, id thing.ID, command string) (Command, error) {
	return s.store.Get(ctx, id, command)
}

// Commands returns the newest first, at most limit; only those without a result if open.
func (s *Service) Commands(ctx context.Context, id thing.ID, open bool, limit int) ([]Command, error) {
	return s.store.List(ctx, id, open, limit)
}

// Pull returns whatever is open for a thing, oldest first.
func (s *Service) Pull(ctx context.Context, id thing.ID) ([]Outgoing, error) {
	return s.store.Open(ctx, id)
}

// Finish keeps a thing's result, if it is the first of that command, and returns the stored command: every repetition gets the same.
func (s *Service) Finish(ctx context.Context, id thing.ID, r commandwire.Result) (Command, error) {
	return s.store.Close(ctx, id, r.ID, stateOf(r.Status), Result{r.Status, r.Detail, r.Finished})
}

// Expire closes what waited Grace past its expiry; a periodic job.
func (s *Service) Expire(ctx context.Context) error {
	_, err := s.store.Expire(ctx, Grace)
	return err
}

// Forget removes what was closed longer than Keep ago; a periodic job.
func (s *Service) Forget(ctx context.Context) error {
	_, err := s.store.Forget(ctx, Keep)
	return err
}
