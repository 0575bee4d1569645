// Package customintent holds the intents that operators add to those of the original robots, for the whole fleet or for one robot. A sentence that
// means one gives the robot a reaction that it knows, and the fleet's webhooks the event intent.custom.
package customintent

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/speech/intent"
)

// Bounds, ours.
const (
	MaxAll   = 2000            // of the fleet and all robots together
	MaxHeard = 16 << 10        // bytes of a recogniser's grammar for those of the fleet, and the same for those of a robot: they take time of each utterance
	fresh    = 5 * time.Second // how long a process may not know of a change that another made
	fireTime = time.Second
)

// Wanted is a custom intent as a person writes it.
type Wanted struct {
	Thing thing.ID `json:"thing,omitempty"` // only for this robot (default: all robots)
	intent.Custom
}

// Custom is a custom intent.
type Custom struct {
	ID int64 `json:"id"`
	Wanted
	Created time.Time `json:"created"`
	By      string    `json:"by"`
}

// Store keeps custom intents for Service.
type Store interface {
	// List returns all, those of robots before those of the fleet.
	List(ctx context.Context) ([]Custom, error)
	// Add returns c with its id: Conflict if the fleet, or the robot, has one of that name; Exhausted if there are MaxAll, or intent.MaxCustoms
	// for the same robot.
	Add(ctx context.Context, c Custom) (Custom, error)
	Drop(ctx context.Context, id int64) error
	// Fired tells the webhooks that a robot heard a custom intent.
	Fired(ctx context.Context, id thing.ID, name string, params map[string]string) error
}

// Service holds the rules. It is safe for concurrent use.
type Service struct {
	store Store
	log   *slog.Logger
	now   func() time.Time

	mu    sync.Mutex
	asked time.Time
	known *known // nil: never read
	none  known  // while it was not
}

// known holds the customs as a process read them last.
type known struct {
	of       map[thing.ID][]intent.Custom // "": of the fleet
	matchers sync.Map                     // by intent.Listener, of robots without customs of their own with Thing "", *intent.Matcher
}

// New returns a service.
func New(store Store, log *slog.Logger) *Service {
	return &Service{store: store, log: log, now: time.Now}
}

// List returns the custom intents of the fleet and of id; with id "" those of all robots.
func (s *Service) List(ctx context.Context, id thing.ID) ([]Custom, error) {
	all, err := s.store.List(ctx)
	return slices.DeleteFunc(all, func(c Custom) bool { return id != "" && c.Thing != "" && c.Thing != id }), err
}

// Add stores a custom intent. One whose phrases mean a built-in intent that it does not override is refused with words.
func (s *Service) Add(ctx context.Context, w Wanted, by string) (Custom, error) {
	if err := w.Check(); err != nil {
		return Custom{}, err
	}
	if err := s.room(ctx, w); err != nil {
		return Custom{}, err
	}
	c, err := s.store.Add(ctx, Custom{Wanted: w, Created: s.now(), By: by})
	s.forget()
	return c, err
}

// room refuses w as Exhausted if a recogniser would have too much to listen for with it. Two that are added in one moment may take a little more.
func (s *Service) room(ctx context.Context, w Wanted) error {
	all, err := s.store.List(ctx)
	if err != nil {
		return err
	}
	base, err := intent.Load("en-US")
	if err != nil {
		return err
	}
	own := []intent.Custom{w.Custom}
	for _, c := range all {
		if c.Thing == w.Thing && c.Name != w.Name { // Add refuses the same name
			own = append(own, c.Custom)
		}
	}
	m, err := base.WithStored(own)
	if err != nil {
		s.log.WarnContext(ctx, "custom intents left out", logging.Err, err)
	}
	if n := len(m.Grammar()) - len(base.Grammar()); n > MaxHeard {
		return errs.New(errs.Exhausted, "with custom intent %s the phrases take %d bytes: want at most %d for all robots, and as many for each robot; use fewer or shorter phrases", w.Name, n, MaxHeard)
	}
	return nil
}

// Drop removes a custom intent.
func (s *Service) Drop(ctx context.Context, id int64) error {
	defer s.forget()
	return s.store.Drop(ctx, id)
}

func (s *Service) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = time.Time{}
}

// Match returns what a sentence means to a robot, with the custom intents of the fleet and its own; one of its own hides the fleet's of the same
// name. It tells the webhooks of a custom intent. Words in a language that is not known (intent.Closest) mean nothing. While the storage cannot be read, it uses what
// it read last.
func (s *Service) Match(ctx context.Context, to intent.Listener, text string) intent.Match {
	of := s.matcher(ctx, to)
	if of == nil {
		return intent.Match{}
	}
	m := of.Match(text)
	switch {
	case m.Custom == "":
		return m
	case intent.IsOwn(m.Custom):
		m.UserIntent, m.Cloud, m.Custom = m.Custom, m.Custom, ""
		return m
	}
	ctx, cancel := context.WithTimeout(ctx, fireTime)
	defer cancel()
	if err := s.store.Fired(ctx, to.Thing, m.Custom, plain(m.Params)); err != nil {
		s.log.WarnContext(ctx, "webhooks not told of custom intent", "intent", m.Custom, logging.Err, err)
	}
	return m
}

// plain returns the parameters that hold no free words of a person: those would link what was said to a robot and its owner (VEC-NLP-07).
func plain(params map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range params {
		if k != "text" && k != "name" && k != "known" && k != "place" {
			out[k] = v
		}
	}
	return out
}

// Grammar returns the sentences for which a recogniser is to listen: "" if they are the built-in ones alone.
func (s *Service) Grammar(ctx context.Context, to intent.Listener) string {
	base, err := intent.Load(intent.Closest(to.Language))
	of := s.matcher(ctx, to)
	if err != nil || of == nil || of == base {
		return ""
	}
	return of.Grammar()
}

// matcher returns the matcher of a robot; nil: its language is not known.
func (s *Service) matcher(ctx context.Context, to intent.Listener) *intent.Matcher {
	if to.Language = intent.Closest(cmp.Or(to.Language, "en-US")); to.Language == "" {
		return nil
	}
	base, err := intent.Load(to.Language)
	if err != nil {
		return nil
	}
	k := s.read(ctx)
	if k == nil {
		k = &s.none
	}
	if len(k.of[to.Thing]) == 0 {
		to.Thing = ""
	}
	if m, ok := k.matchers.Load(to); ok {
		return m.(*intent.Matcher)
	}
	var own []intent.Custom
	for _, all := range [][]intent.Custom{k.of[to.Thing], k.of[""]} {
		for _, c := range all {
			if c.For(to.Language) && !slices.ContainsFunc(own, func(o intent.Custom) bool { return o.Name == c.Name }) {
				own = append(own, c)
			}
		}
	}
	if to.Ours {
		own = append(own, intent.Own...) // those for other languages are passed over
	}
	m := base
	if len(own) > 0 {
		if m, err = base.WithStored(own); err != nil {
			s.log.WarnContext(ctx, "custom intents left out", logging.Err, err)
		}
	}
	k.matchers.Store(to, m)
	return m
}

// read returns what is known, after it asked the storage if that was long ago.
func (s *Service) read(ctx context.Context) *known {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known != nil && s.now().Sub(s.asked) < fresh {
		return s.known
	}
	ctx, cancel := context.WithTimeout(ctx, fireTime)
	defer cancel()
	all, err := s.store.List(ctx)
	s.asked = s.now()
	if err != nil {
		s.log.WarnContext(ctx, "custom intents not read", logging.Err, err)
		return s.known
	}
	k := &known{of: map[thing.ID][]intent.Custom{}}
	for _, c := range all {
		k.of[c.Thing] = append(k.of[c.Thing], c.Custom)
	}
	s.known = k
	return k
}

// Words says in the audit log what a custom intent is.
func (w Wanted) Words() string {
	out := w.Name + ": " + strings.Join(w.Phrases, "; ")
	if len(w.Overrides) > 0 {
		out += "; overrides " + strings.Join(w.Overrides, ", ")
	}
	if w.Thing != "" {
		out += "; for " + string(w.Thing)
	}
	return out
}

// Actions in the audit log.
const (
	AuditAdd  = "intent.add"
	AuditDrop = "intent.remove"
)

// Missing is the error for an id that does not exist.
func Missing(id any) error { return errs.New(errs.NotFound, "no custom intent %v", id) }
