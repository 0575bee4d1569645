package das

import (
	"context"
	"time"

	"kennel/infra/thing"
)

// Class groups events for the sums of the fleet. A fault is FaultClass followed by its code.
type Class string

// The classes. An event is in All, and in at most one of the others.
const (
	All        Class = ""
	Crash      Class = "crash"         // robot.crash; of the version that crashed, where the event names it (VEC-CRS-06)
	FaultClass Class = "fault/"        // robot.fault_code with this code (VEC-DAS-11)
	BatteryLow Class = "battery.low"   // battery.periodic_log or battery.battery_level_changed that says low or critical, and battery.low
	VoiceHeard Class = "voice.heard"   // the robot heard its name
	VoiceDone  Class = "voice.done"    // an intent came of it, even if the robot could not do it
	VoiceLost  Class = "voice.lost"    // nothing was understood, or the cloud did not answer
	Failures   Class = "level.failure" // any other event of level error
)

// Slots of time in which robots are counted.
const (
	Hour = time.Hour
	Day  = 24 * time.Hour
)

// How long robots are counted one by one.
const (
	KeepHours = 3 * Day
	KeepDays  = 35 * Day // at most; then a day is kept as a sum
)

// Tally is the sum of one class of events of robots that ran one version.
type Tally struct {
	At      time.Time // begin of the slot; zero: of a whole stretch of time
	Version string
	Class   Class
	Robots  int   // different ones
	Slots   int   // robots times slots in which they sent such an event, each for every version in which they did
	Events  int64 // how often
}

// Age is how many robots of a species and version sent their latest event of a class so many minutes ago. Classes are All, Crash, and faults.
type Age struct {
	Species string
	Version string
	Class   Class
	Minutes int
	Robots  int
}

// Heard is how many robots of a version sent events in an hour.
type Heard struct {
	At      time.Time // its begin
	Version string
	Robots  int
}

// EventSince asks for the events of a name since a time, to the minute.
type EventSince struct {
	Event string
	Since time.Time
}

// EventCount is how many there were of a version.
type EventCount struct {
	EventSince
	Version string
	N       int64
}

// HourSum sums up one hour of the whole fleet.
type HourSum struct {
	At      time.Time // its begin
	Robots  int       // that sent events, one for each version that it ran
	Crashes int64
}

// Recent holds the counts from which windows of time that end now are made.
type Recent struct {
	Ages   []Age
	Heard  []Heard
	Events []EventCount
}

// Slots are those of length Every that begin from Since until before Until, of all robots or of some.
type Slots struct {
	Every        time.Duration
	Since, Until time.Time
	Things       []thing.ID // nil: all
	Whole        bool       // all versions are one, named ""
}

// Rolled tells of one step of adding commits to the sums.
type Rolled struct {
	Groups          int
	Crashes, Faults int64 // events
}

// sumEvery is how long commits gather before they are added to the sums together.
const sumEvery = 250 * time.Millisecond

// KeepSums calls roll after each commit until ctx ends, and urgent when crashes or faults were added. While the database is away it tries again each second.
func (s *Service) KeepSums(ctx context.Context, roll func(context.Context) (Rolled, error), urgent func(context.Context), failed func(error)) error {
	for {
		wake := s.wakes()
		crashed := false
		for {
			r, err := roll(ctx)
			if err != nil && ctx.Err() == nil {
				failed(err)
			}
			crashed = crashed || r.Crashes+r.Faults > 0
			if err != nil || r.Groups == 0 {
				break
			}
		}
		if crashed {
			urgent(ctx)
		}
		select {
		case <-wake:
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return nil
		}
		select {
		case <-time.After(sumEvery):
		case <-ctx.Done():
			return nil
		}
	}
}
