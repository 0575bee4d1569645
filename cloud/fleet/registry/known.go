package registry

import (
	"context"

	"kennel/infra/thing"
)

// Known returns NotFound for an unregistered thing.
func (s *Service) Known(ctx context.Context, id thing.ID) error {
	_, err := s.Thing(ctx, id)
	return err
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
