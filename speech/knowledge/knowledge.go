// Package knowledge answers questions that people ask a robot (VEC-NLP-06), from whichever source a house has.
package knowledge

import (
	"context"
	"errors"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Bounds of a question and of what a robot says in answer, in bytes.
const (
	MaxQuestion = 500
	MaxAnswer   = 1000
)

// Question holds a person's question.
type Question struct {
	Text     string
	Language string // such as en-US
	Timezone string // of the robot, such as Europe/Berlin; "" means UTC

	Thing  thing.ID // that proved itself and was asked; "": none did
	Forget bool     // nothing of the question may be kept
}

// Answer holds the words that the robot says.
type Answer struct {
	Spoken  string
	Source  string   // of the answer, such as local or the name of a server
	Domains []string // the subjects of the answer, such as units; robots hand them on (domains.N)
	Partial bool     // the rest of the answer did not come
}

// ErrNoResult is the error of a provider that works and does not know (kind NotFound). A robot hears the answer type NoResultCommand.
var ErrNoResult = errs.New(errs.NotFound, "no result")

// Provider answers questions. All methods may be called concurrently.
type Provider interface {
	// Ask returns ErrNoResult if the provider does not know. Any other error says that it could not look.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// First asks providers in turn and returns the first answer.
type First []Provider

// Ask implements Provider. If no provider knows, an error of one that could not look is returned before ErrNoResult.
func (all First) Ask(ctx context.Context, q Question) (Answer, error) {
	failed := error(nil)
	for _, p := range all {
		a, err := p.Ask(ctx, q)
		if err == nil {
			return a, nil
		}
		if !errors.Is(err, ErrNoResult) && failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return Answer{}, failed
	}
	return Answer{}, ErrNoResult
}
