// Package intents lets people tell their robots what to do, by a sentence or by the press of a button.
//
//	sentence ─► Match ─► intent ─► command "intent" ─► robot ─► result
//
// A sentence is not kept: the robot gets the intent and its parameters, and the audit log the intent's name.
package intents

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"kennel/cloud/fleet/command"
	"kennel/infra/api/commandwire"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/speech/intent"
)

// Our own limits.
const (
	MaxText = 500              // bytes of a sentence
	TTL     = 20 * time.Second // in which the robot must begin: a wish of a minute ago is none
	recent  = 20               // commands among which Recent looks
)

// Saying is said to a robot: a sentence, or an intent by its user or cloud name.
type Saying struct {
	Text   string            `json:"text,omitempty"`
	Intent string            `json:"intent,omitempty"`
	Params map[string]string `json:"params,omitempty"` // of Intent, by the cloud's names
}

// Said is the intent of a saying, and the command that came of it. The command's result is the robot's answer.
type Said struct {
	Intent     string            `json:"intent"` // the robot's own name of it
	Params     map[string]string `json:"params,omitempty"`
	Confidence float64           `json:"confidence,omitempty"` // of a sentence
	Language   string            `json:"language,omitempty"`   // in which a sentence was understood, such as de-DE: the robot's, else English
	Command    command.Command   `json:"command"`
}

// Match returns the intent of a sentence; one without a name: it has none.
type Match func(ctx context.Context, id thing.ID, text string) (intent.Match, error)

// Stats counts wishes since the start.
type Stats struct{ Pressed, Matched, Unmatched int64 }

// Service is safe for concurrent use.
type Service struct {
	match    Match
	commands *command.Service

	pressed, matched, unmatched atomic.Int64
}

// New returns a service that gives its commands to c.
func New(match Match, c *command.Service) *Service { return &Service{match: match, commands: c} }

// Stats returns the counts.
func (s *Service) Stats() Stats { return Stats{s.pressed.Load(), s.matched.Load(), s.unmatched.Load()} }

// Find returns the intent of a wish. Errors: Invalid, with code not_understood for a sentence without an intent.
func (s *Service) Find(ctx context.Context, id thing.ID, a Saying) (intent.Match, error) {
	text := strings.TrimSpace(a.Text)
	switch {
	case (text == "") == (a.Intent == ""):
		return intent.Match{}, errs.New(errs.Invalid, "want a text or an intent")
	case a.Intent != "":
		s.pressed.Add(1)
		return named(a)
	case len(text) > MaxText || !utf8.ValidString(text):
		return intent.Match{}, errs.New(errs.Invalid, "text of %d bytes: want at most %d of UTF-8", len(text), MaxText)
	}
	m, err := s.match(ctx, id, text)
	if err != nil {
		return m, err
	}
	if m.UserIntent == "" || m.UserIntent == intent.Unmatched {
		s.unmatched.Add(1)
		return m, errs.Coded(errs.Invalid, "not_understood", "your robot does not understand that; try \"go forward\" or \"set a timer for five minutes\"")
	}
	s.matched.Add(1)
	return m, nil
}

func named(a Saying) (intent.Match, error) {
	in, known := intent.ByUser(a.Intent)
	if !known {
		in, known = intent.ByCloud(a.Intent)
	}
	switch {
	case !known && intent.IsOwn(a.Intent):
		in = intent.Intent{User: a.Intent, Cloud: a.Intent}
	case !known:
		return intent.Match{}, errs.Coded(errs.Invalid, "no_intent", "no such intent %.64q", a.Intent)
	}
	return intent.Match{UserIntent: in.User, Cloud: cmp.Or(in.Cloud, in.User), Params: a.Params, Confidence: 1}, nil
}

// Say gives a robot the intent m for by, and returns its command. A wish to stop goes before all that waits.
func (s *Service) Say(ctx context.Context, id thing.ID, by string, m intent.Match) (Said, error) {
	params, err := json.Marshal(m.Params)
	if err != nil {
		return Said{}, err
	}
	if m.Params == nil {
		params = nil
	}
	args, err := json.Marshal(commandwire.IntentArgs{Intent: m.Cloud, Params: params})
	if err != nil {
		return Said{}, err
	}
	if stops(m) {
		if _, err := s.commands.Send(ctx, command.Draft{Thing: id, Kind: commandwire.RobotStop, By: by}); err != nil {
			return Said{}, err
		}
	}
	c, err := s.commands.Send(ctx, command.Draft{Thing: id, Kind: commandwire.Intent, Args: args, TTL: TTL, By: by})
	return Said{Intent: m.UserIntent, Params: m.Params, Confidence: m.Confidence, Language: m.Language, Command: c}, err
}

func stops(m intent.Match) bool {
	return slices.Contains([]string{"global_stop", "imperative_quiet", "imperative_shutup"}, m.UserIntent) && len(m.Params) == 0
}

// Recent returns the newest wishes of a robot's owner since then, at most n.
func (s *Service) Recent(ctx context.Context, id thing.ID, since time.Time, n int) ([]command.Command, error) {
	all, err := s.commands.Commands(ctx, id, false, recent)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c command.Command) bool {
		return c.Kind != commandwire.Intent || c.By != command.ByOwner || c.Created.Before(since)
	})
	return all[:min(n, len(all))], nil
}

// IntentOf returns the user intent of a command.
func IntentOf(c command.Command) string {
	a, err := commandwire.ParseIntent(c.Args)
	if err != nil {
		return ""
	}
	if in, ok := intent.ByCloud(a.Intent); ok {
		return in.User
	}
	return a.Intent
}
