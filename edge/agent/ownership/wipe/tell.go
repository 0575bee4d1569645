package wipe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/events"
	"kennel/infra/api/owners"
	"kennel/infra/backoff"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/wake"
)

// EventName is the event of a wipe (VEC-TOK-10).
const EventName = "robot.cleared_user_data"

// Pauses between attempts to tell, and the bound of one; our own defaults.
const (
	firstPause = 2 * time.Second
	maxPause   = 5 * time.Minute
	askTime    = 30 * time.Second
)

// Teller introduces the robot to the cloud: above all it tells of a wipe, so that ownership ends there too. Safe for concurrent use; Run is
// called once at a time.
type Teller struct {
	root *os.Root
	ask  kitmqtt.Requester
	emit func(ctx context.Context, e events.Event) error // returns when the event is on disk for good
	log  *slog.Logger
	wake wake.Signal // one slot
}

// NewTeller returns a Teller that does nothing until Run.
func NewTeller(root *os.Root, ask kitmqtt.Requester, emit func(ctx context.Context, e events.Event) error, log *slog.Logger) *Teller {
	return &Teller{root, ask, emit, log, wake.New()}
}

// Connected says that there is a connection, or more to say over it.
func (t *Teller) Connected() { t.wake.Set() }

// Pending reports whether the cloud does not know of a wipe yet. Until it does, it takes the robot for its former owner's.
func (t *Teller) Pending() bool {
	j, err := readJournal(t.root)
	return err == nil && j.Erased
}

// Run introduces the robot to the cloud at every connection, until ctx ends, and repeats what fails while linked: first it tells of a wipe,
// because until the cloud knows, the robot is its former owner's; then it calls rest, which says everything else.
func (t *Teller) Run(ctx context.Context, linked func() bool, rest func(context.Context) error) error {
	pause := backoff.Pause{Min: firstPause, Max: maxPause}
	for ctx.Err() == nil {
		var again <-chan time.Time // nil: at the next connection
		if linked() {
			err := t.Tell(ctx)
			if err == nil {
				err = rest(ctx)
			}
			if err == nil {
				pause.Reset()
			} else if ctx.Err() == nil {
				t.log.WarnContext(ctx, "introduction to the cloud incomplete; retrying", "err", err)
				again = time.After(pause.Next(err))
			}
		}
		select {
		case <-ctx.Done():
		case <-t.wake:
		case <-again:
		}
	}
	return nil
}

// Tell tells the cloud once of a wipe that it does not know, if there is one.
func (t *Teller) Tell(ctx context.Context) error {
	j, err := readJournal(t.root)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !j.Erased {
		return nil
	}
	if err != nil {
		return err
	}
	if !j.Told {
		if err := t.emit(ctx, events.Event{Source: "agentd", Name: EventName}); err != nil {
			return fmt.Errorf("record the event %s: %w", EventName, err)
		}
		j.Told = true
		if err := writeJournal(t.root, j); err != nil {
			return err
		}
	}
	body, err := owners.Encode(owners.Keyed{Key: j.Key})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if _, err := t.ask.Do(ctx, owners.Service, owners.WipedMethod, body); err != nil {
		return fmt.Errorf("report cleared user data to the cloud: %w", err)
	}
	if err := t.root.Remove(journalFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t.log.InfoContext(ctx, "data reset reported to the cloud")
	return robotfs.SyncDir(t.root, "persist/kennel")
}
