// Package answers tells owners where the answers of their robots come from, and keeps what they choose about answers of a language model: whether it is asked
// at all, its personality, and whether it remembers talks (infra/adr/0045).
package answers

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/speech/knowledge"
	"kennel/speech/weather"
)

// Bounds.
const (
	MaxPersona = 600 // characters
	Kept       = 30 * 24 * time.Hour
	KeptTurns  = 40 // of one robot
	told       = 6  // turns that the model is told, the newest
)

// The actions in the audit log of an owner who chooses, and who deletes the memory.
const (
	AuditChoose = "talk.choose"
	AuditForget = "talk.forget"
)

// Choice holds the wishes of an owner about a language model. The zero Choice: nothing.
type Choice struct {
	Asks     bool   `json:"asks"` // it may be asked
	Persona  string `json:"persona"`
	Remember bool   `json:"remember"`
}

// Store keeps choices and turns; *answerspg.Store is one.
type Store interface {
	// Choice returns what the account chose for a robot; the zero Choice if it chose nothing.
	Choice(ctx context.Context, id thing.ID, account string) (Choice, error)
	// Set replaces the choice of any account for a robot. Turns stay only if the same account still wants a memory.
	Set(ctx context.Context, id thing.ID, account string, c Choice, now time.Time) error
	// Turns returns the newest turns of what an account lets a robot remember, the oldest first.
	Turns(ctx context.Context, id thing.ID, account string, n int) ([]knowledge.Turn, error)
	// Keep stores a turn if the account lets the robot remember, and forgets the oldest beyond KeptTurns.
	Keep(ctx context.Context, id thing.ID, account string, t knowledge.Turn) error
	Forget(ctx context.Context, id thing.ID, account string) error
	// End forgets the choice, and all turns, if it is from before a time.
	End(ctx context.Context, id thing.ID, before time.Time) error
}

// Service is safe for concurrent use once its fields are set.
type Service struct {
	Source string // of weather reports, for people; "": there is none
	Place  string // of robots whose settings name none of their own; "": none
	Model  string // the language model, for people; "": there is none
	// Settings returns the settings document of a robot, "" if there is none.
	Settings func(ctx context.Context, id thing.ID) (string, error)
	// Owner returns the account of a robot's owner; "" or NotFound: it has none.
	Owner func(ctx context.Context, id thing.ID) (string, error)
	Store Store
	Now   func() time.Time
}

// Weather says how a robot answers who asks for the weather and names no place.
type Weather struct {
	Source string `json:"source"` // "": it cannot
	weather.Wishes
}

// Weather returns where a robot's weather is from.
func (s *Service) Weather(ctx context.Context, id thing.ID) (Weather, error) {
	doc, err := s.Settings(ctx, id)
	return Weather{s.Source, weather.Of(doc, s.Place)}, err
}

// Talk holds everything that an owner sees of a robot's talks.
type Talk struct {
	Model string // "": there is none
	Choice
	Turns []knowledge.Turn // the oldest first
}

// Talk returns what the account chose, and what the robot remembers.
func (s *Service) Talk(ctx context.Context, id thing.ID, account string) (Talk, error) {
	c, err := s.Store.Choice(ctx, id, account)
	if err != nil {
		return Talk{}, err
	}
	turns, err := s.Store.Turns(ctx, id, account, KeptTurns)
	return Talk{s.Model, c, turns}, err
}

// Choose notes what the owner of a robot chose. Without Remember, what it remembers is deleted. Invalid for a persona that is too long.
func (s *Service) Choose(ctx context.Context, id thing.ID, account string, c Choice) error {
	c.Persona = strings.TrimSpace(c.Persona)
	if utf8.RuneCountInString(c.Persona) > MaxPersona || !utf8.ValidString(c.Persona) || strings.ContainsRune(c.Persona, 0) {
		return errs.New(errs.Invalid, "the personality may have at most %d characters", MaxPersona)
	}
	return s.Store.Set(ctx, id, account, c, s.Now())
}

// Forget deletes what the robot remembers.
func (s *Service) Forget(ctx context.Context, id thing.ID, account string) error {
	return s.Store.Forget(ctx, id, account)
}

// owner returns the account of a robot's owner; "": it has none.
func (s *Service) owner(ctx context.Context, id thing.ID) (string, error) {
	account, err := s.Owner(ctx, id)
	if errs.KindOf(err) == errs.NotFound {
		return "", nil
	}
	return account, err
}

// Recall implements knowledge.Memory. The model is asked for robots whose owners chose so, and for those without an owner, which remember nothing.
func (s *Service) Recall(ctx context.Context, id thing.ID) (knowledge.Talk, error) {
	account, err := s.owner(ctx, id)
	if err != nil || account == "" {
		return knowledge.Talk{Allowed: err == nil}, err
	}
	c, err := s.Store.Choice(ctx, id, account)
	if err != nil || !c.Asks {
		return knowledge.Talk{}, err
	}
	t := knowledge.Talk{Allowed: true, Persona: c.Persona}
	if c.Remember {
		t.Turns, err = s.Store.Turns(ctx, id, account, told)
	}
	return t, err
}

// Remember implements knowledge.Memory.
func (s *Service) Remember(ctx context.Context, id thing.ID, t knowledge.Turn) error {
	account, err := s.owner(ctx, id)
	if err != nil || account == "" {
		return err
	}
	return s.Store.Keep(ctx, id, account, t)
}
