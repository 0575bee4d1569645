package ota

import (
	"context"
	"errors"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// HintRate is how many present robots a second are hinted that another release is wanted of their species: our own default. 100,000 robots take eight minutes, and
// as many ask as are hinted.
const HintRate = 200

// TaskHint is the task that hints the present robots of a species, whose name is its id.
const TaskHint = "ota.hint"

// hintEnd is how long before its end a run begins no further second.
const hintEnd = 5 * time.Second

// Round is one change of a species' wish, of which present robots are being hinted.
type Round struct {
	Num   int64    // 0: none is under way
	After thing.ID // the last robot that was hinted; "": none yet
}

// Rounds keeps how far the hints are. A change of a species' wish begins another round in the same transaction.
type Rounds interface {
	// Round returns the round of a species.
	Round(ctx context.Context, species thing.Species) (Round, error)
	// Hinted notes the last robot that was hinted in a round, or that the round is over; a round that another one replaced stays over.
	Hinted(ctx context.Context, species thing.Species, r Round, over bool) error
	// Unhinted returns the species with a round.
	Unhinted(ctx context.Context) ([]thing.Species, error)
}

// Crowd says how the robots of a species hear of a wish.
type Crowd struct {
	Rounds  Rounds
	Present func(ctx context.Context, species thing.Species, after thing.ID, limit int) ([]thing.ID, error) // present robots by id, those after one
	Order   func(ctx context.Context, task, id string) error
}

// Announce makes the service hint the robots of a species; it is called before the service is used.
func (s *Service) Announce(c Crowd) { s.crowd = &c }

// HintSpecies hints the present robots of a species, HintRate a second, from where the last run ended. It is the work of TaskHint: with CodeAgain it wants to run again.
func (s *Service) HintSpecies(ctx context.Context, id string) error {
	species := thing.Species(id)
	pace := time.NewTicker(time.Second)
	defer pace.Stop()
	for {
		r, err := s.crowd.Rounds.Round(ctx, species) // each time: another wish may have begun another one
		if err != nil || r.Num == 0 {
			return err
		}
		ids, err := s.crowd.Present(ctx, species, r.After, HintRate)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if _, err := s.tell(ctx, id); err != nil && ctx.Err() != nil {
				return err
			}
			r.After = id
		}
		if err := s.crowd.Rounds.Hinted(ctx, species, r, len(ids) < HintRate); err != nil {
			return err
		}
		again := errs.Coded(errs.Unavailable, errs.CodeAgain, "another round of hints to robots is running")
		if at, ok := ctx.Deadline(); ok && time.Until(at) < hintEnd {
			return again
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			return again
		}
	}
}

// ResumeHints orders the rounds that are not over. It is a periodic job: an order is lost if the process ends just after the wish.
func (s *Service) ResumeHints(ctx context.Context) error {
	list, err := s.crowd.Rounds.Unhinted(ctx)
	for _, species := range list {
		err = errors.Join(err, s.crowd.Order(ctx, TaskHint, string(species)))
	}
	return err
}

// tell hints a robot what it should run. If that cannot be found out just now the hint says nothing: the robot asks in any case.
func (s *Service) tell(ctx context.Context, id thing.ID) (Desired, error) {
	d, err := s.Desired(ctx, id)
	if s.hint == nil {
		return d, err
	}
	payload, bad := d.Encode()
	if bad != nil {
		return d, errors.Join(err, bad)
	}
	s.hint.Hint(ctx, id, HintName, payload)
	return d, err
}
