package registry

import (
	"context"
	"fmt"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Known returns NotFound for an unregistered thing.
func (s *Service) Known(ctx context.Context, id thing.ID) error {
	_, err := s.Thing(ctx, id)
	return err
}

// Online returns Unavailable with errs.CodeOffline, since when and why, for a robot that is not connected, and NotFound for an unregistered one. Original robots
// never are.
func (s *Service) Online(ctx context.Context, id thing.ID) error {
	one, err := s.thing(ctx, id)
	if err != nil {
		return err
	}
	t, text := one[0], "has never connected"
	switch {
	case t.Presence == Present:
		return nil
	case t.Presence == Calls:
		text = "is an original robot, which takes no commands"
	case !t.Since.IsZero():
		text = "has been offline since " + stamp(t.Since)
	}
	if s.src.Certificate != nil {
		c, ok, err := s.src.Certificate(ctx, id)
		if err != nil {
			return fmt.Errorf("certificate: %w", err)
		}
		if ok && !c.Revoked.IsZero() {
			text += "; its certificates were revoked"
		}
	}
	return errs.Coded(errs.Unavailable, errs.CodeOffline, "%s %s", id, text)
}

// Every lists the fleet.
func (s *Service) Every(ctx context.Context) ([]thing.ID, error) {
	var out []thing.ID
	for q := (Query{Limit: MaxLimit}); ; q.After = out[len(out)-1] {
		page, err := s.Things(ctx, q)
		if err != nil || len(page) == 0 {
			return out, err
		}
		for _, t := range page {
			out = append(out, t.ID)
		}
	}
}
