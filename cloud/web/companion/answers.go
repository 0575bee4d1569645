package companion

import (
	"context"

	"kennel/cloud/voice/answers"
	"kennel/infra/thing"
)

// Answers tells where the answers of robots come from; *answers.Service does.
type Answers interface {
	Weather(ctx context.Context, id thing.ID) (answers.Weather, error)
}

// answers fills in where the robot's answers come from.
func (c *companion) answers(ctx context.Context, v *robotPage) error {
	if c.Answers == nil {
		return nil
	}
	w, err := c.Answers.Weather(ctx, v.Thing)
	v.Weather = &w
	return err
}
