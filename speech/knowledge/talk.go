package knowledge

import (
	"context"
	"time"

	"kennel/infra/thing"
)

// Turn is a question that a robot answered.
type Turn struct {
	At    time.Time `json:"at"`
	Asked string    `json:"asked"`
	Said  string    `json:"said"`
}

// Talk is everything that a provider that talks may know of a robot.
type Talk struct {
	Allowed bool   // the robot's owner lets the provider answer, or it has no owner
	Persona string // how the owner wants the robot to be, in the owner's words; "": as it is
	Turns   []Turn // that the robot remembers, the oldest first
}

// Memory keeps talks for the owners of robots. All methods may be called concurrently.
type Memory interface {
	Recall(ctx context.Context, id thing.ID) (Talk, error)
	// Remember keeps a turn, if the owner of now wants that.
	Remember(ctx context.Context, id thing.ID, t Turn) error
}
