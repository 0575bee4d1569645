package host

import (
	"context"
	"log/slog"
	"os"
	"time"

	"kennel/edge/env"
	"kennel/infra/api/events"
	"kennel/infra/thing"
)

// EnvFile holds what an operator may want to change on a robot; a variable KENNEL_<KEY> of the process overrides it.
const EnvFile = "anki/etc/kennel-agent.env"

// Robot is the robot that an agent runs on.
type Robot struct {
	Root     *os.Root // its folder
	Dir      string   // Root by name, for files that no os.Root reaches
	Hardware env.Hardware
	Thing    thing.ID
	Boot, OS string
	Frugal   bool // it shares its process with many others: no watch on files, and none open between writes
	Recovery bool // started by a recovery boot
	Now      func() time.Time
	Uptime   func() time.Duration // of the agent
	Getenv   func(string) string
	Changed  func()                                          // asks for a status soon
	Emit     func(events.Event)                              // records an event, and logs a failure
	Keep     func(ctx context.Context, e events.Event) error // records an event that must not be lost; if the owner wants none, there is nothing to lose
	Log      *slog.Logger
}
