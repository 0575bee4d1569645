// Package voice tells what became of what people said to robots (package session), and keeps the audio of robots whose owners want that.
package voice

import (
	"context"
	"slices"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/speech/session"
)

// Bounds and times.
const (
	KeepSessions = 30 * 24 * time.Hour
	KeepSums     = 400 * 24 * time.Hour
	DefaultDays  = 7
	DefaultLimit = 50
	maxGroups    = 200
	// AtLeast is how often a phrase must have been said before anyone sees it: what was said once may tell of a person.
	AtLeast = 3
)

// Store is the storage that Service needs; *sessionpg.Store is one.
type Store interface {
	Sessions(ctx context.Context, w session.Which) ([]session.Session, error)
	Groups(ctx context.Context, since time.Time, limit int) ([]session.Group, error)
	Unmatched(ctx context.Context, since time.Time, atLeast, limit int) ([]session.Phrase, int64, error)
	Expire(ctx context.Context, before, sums time.Time) (int64, error)
}

// Service answers questions about sessions. Safe for concurrent use.
type Service struct {
	Store Store
	Now   func() time.Time
}

// Stats sums up the sessions of some days.
type Stats struct {
	Days   int             `json:"days"`
	Since  time.Time       `json:"since"`
	Whole  session.Group   `json:"whole"`  // of all versions and languages
	Groups []session.Group `json:"groups"` // the most frequent first
}

// Unmatched holds the phrases that robots did not understand.
type Unmatched struct {
	Days    int              `json:"days"`
	AtLeast int              `json:"at_least"` // how often a phrase was said to be in the list
	Phrases []session.Phrase `json:"phrases"`  // the most frequent first
	Rarer   int64            `json:"rarer"`    // other phrases
}

// Session is one session. Its words are not kept.
type Session struct {
	Session    string       `json:"session"`
	Thing      thing.ID     `json:"thing,omitempty"`
	At         time.Time    `json:"at"`
	Kind       string       `json:"kind"`
	Language   string       `json:"language"`
	Firmware   string       `json:"firmware,omitempty"`
	Encoding   string       `json:"encoding"`
	Recognizer string       `json:"recognizer,omitempty"`
	Intent     string       `json:"intent,omitempty"`
	Confidence float64      `json:"confidence"`
	Failed     session.Step `json:"failed,omitempty"` // the step that failed
	Why        string       `json:"why,omitempty"`
	AudioMs    int64        `json:"audio_ms"`
	TookMs     int64        `json:"took_ms"`
}

// Stats sums up the sessions of the last days, today included.
func (s *Service) Stats(ctx context.Context, days int) (Stats, error) {
	out := Stats{Days: days, Since: s.since(days), Whole: session.Group{Failed: map[session.Step]int64{}}}
	var err error
	if out.Groups, err = s.Store.Groups(ctx, out.Since, maxGroups); err != nil {
		return out, err
	}
	for _, g := range out.Groups {
		w := &out.Whole
		w.Sessions, w.Ended = w.Sessions+g.Sessions, w.Ended+g.Ended
		w.Took += g.Took * time.Duration(g.Ended)
		for step, n := range g.Failed {
			w.Failed[step] += n
		}
	}
	out.Whole.Took /= time.Duration(max(out.Whole.Ended, 1))
	return out, nil
}

// Unmatched returns the phrases of the last days that no robot understood.
func (s *Service) Unmatched(ctx context.Context, days, limit int) (Unmatched, error) {
	phrases, rarer, err := s.Store.Unmatched(ctx, s.since(days), AtLeast, limit)
	return Unmatched{days, AtLeast, append([]session.Phrase{}, phrases...), rarer}, err
}

// Sessions returns the latest sessions first.
func (s *Service) Sessions(ctx context.Context, w session.Which) ([]Session, error) {
	if w.Step != "" && !slices.Contains(session.Steps, w.Step) {
		return nil, errs.New(errs.Invalid, "step %.20q: want one of %s", w.Step, errs.List(session.Steps))
	}
	all, err := s.Store.Sessions(ctx, w)
	out := make([]Session, 0, len(all))
	for _, x := range all {
		out = append(out, Session{x.ID, x.Thing, x.At, x.Kind, x.Language, x.Firmware, x.Encoding, x.Recognizer, x.Cloud, x.Confidence, x.Failed, x.Why, x.Audio.Milliseconds(), x.Took.Milliseconds()})
	}
	return out, err
}

// Expire deletes what is older than it may be.
func (s *Service) Expire(ctx context.Context) error {
	_, err := s.Store.Expire(ctx, s.Now().Add(-KeepSessions), s.Now().Add(-KeepSums))
	return err
}

// since is the beginning of the first of the last days (UTC).
func (s *Service) since(days int) time.Time {
	return s.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-days)
}
