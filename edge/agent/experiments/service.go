package experiments

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
	"kennel/infra/logging"
)

// Load reads File; without it there is no experiment.
func Load(root *os.Root) (Plan, error) {
	b, err := robotfs.ReadFile(root, File)
	if errors.Is(err, fs.ErrNotExist) {
		return Plan{}, nil
	}
	if err != nil {
		return Plan{}, err
	}
	p, err := Parse(b)
	if err != nil {
		return Plan{}, fmt.Errorf("%s: %w", File, err)
	}
	return p, nil
}

// look is how often the time and the file are looked at.
const look = time.Minute

// Follow reports the robot's part in each experiment until ctx ends, when it begins, changes and ends:
//
//	experiment.assigned  s1 key, s2 variation, s3 version of the file, s4 why; i1 version of the experiment
//	experiment.ended     the same, of a variation that the robot has no longer
func Follow(ctx context.Context, root *os.Root, r Robot, now func() time.Time, emit func(events.Event), log *slog.Logger) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	f := follower{robot: r, emit: emit, told: map[string]events.Event{}}
	said := ""
	for {
		plan, err := Load(root)
		if err == nil {
			f.tell(plan, now())
			said = ""
		} else if err.Error() != said {
			said = err.Error()
			log.ErrorContext(ctx, "experiments invalid; keeping the previous ones", logging.Err, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

type follower struct {
	robot Robot
	emit  func(events.Event)
	told  map[string]events.Event // by key
}

func (f *follower) tell(p Plan, now time.Time) {
	has := map[string]events.Event{}
	for _, e := range p.Experiments {
		if a := e.Assign(f.robot, now); a.Variation != "" {
			has[e.Key] = events.Event{Source: "agentd", Name: "experiment.assigned", S1: e.Key, S2: a.Variation, S3: p.Version, S4: a.Why, I1: events.Num(int64(e.Version))}
		}
	}
	for key, before := range f.told {
		if now, ok := has[key]; !ok || now.S2 != before.S2 {
			before.Name = "experiment.ended"
			f.emit(before)
		}
	}
	for key, e := range has {
		if f.told[key] != e {
			f.emit(e)
		}
	}
	f.told = has
}
