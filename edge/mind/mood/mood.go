// Package mood has a robot's emotions (chapter 29 of the Vector manual): five numbers that emotion events raise and lower and that fade with time, and the simple mood
// that follows from them. They choose animations and change sounds; the character is the one who acts.
//
//	what a part of the robot tells ─► emotion event ─► × repetition penalty ─► emotions, within their ranges ─► simple mood
//	                                                                              │ fade along a graph
//
// A robot's own files have the form of the original's; Kennel's own values are in config.
package mood

import (
	"math"
	"slices"
	"time"

	"kennel/infra/errs"
)

// Emotion is one of the dimensions of a mood (VEC-EMO-01).
type Emotion int

// The emotions. All are 0 at rest.
const (
	Stimulated Emotion = iota // how lively it is, 0 to 1
	Social                    // how eager it is for people, -1 to 1
	Confident                 // whether it succeeds, -1 to 1
	Happy                     // whether things go well, -1 to 1
	Trust                     // 0 to 1
	emotions
)

var emotionNames = [emotions]string{"Stimulated", "Social", "Confident", "Happy", "Trust"}

func (e Emotion) String() string { return emotionNames[e] }

// The simple moods (VEC-EMO-02).
const (
	Default    = "Default" // before anything has lasted long enough to be one
	Frustrated = "Frustrated"
	HighStim   = "HighStim"
	LowStim    = "LowStim"
	MedStim    = "MedStim"
)

var simpleMoods = []string{Default, Frustrated, HighStim, LowStim, MedStim}

// The limits between simple moods, and how long the emotions must stay beyond one before the mood changes. They are our own: the original's are compiled in.
const (
	lowStim    = 0.33
	medStim    = 0.66
	frustrated = -0.4
	simpleHold = 5 * time.Second
)

// significant is the least change of an emotion that starts its fading again (VEC-EMO-05); our own.
const significant = 0.05

// names are the emotion events of the original (annex C of the rows, VEC-EMO-07).
var names = []string{
	"Asleep", "BeQuietVoiceCommand", "CliffReact", "CubeSpinner", "DanceToTheBeat", "DriveOffCharger", "DriveToFaceSuccess", "DrivingActionFailedWithAbort",
	"DrivingActionFailedWithRetry", "DrivingActionSucceeded", "DrivingToFace", "EnrolledNewFace", "ExploringExamineObstacle", "EyeContactReaction", "FistBumpLeftHanging",
	"FistBumpSuccess", "FoundObservedObject", "GreetingSayName", "InteractWithFaceRetry", "InteractWithNamedFace", "InteractWithUnnamedFace", "KeepawayPounce",
	"KeepawayStarted", "LookAtFaceVerified", "MountChargerSuccess", "NoValidVoiceIntent", "OnboardingStarted", "PettingBlissLevelIncrease", "PettingReachedMaxBliss",
	"PettingStarted", "PickingOrPlacingActionFailedWithAbort", "PickingOrPlacingActionFailedWithRetry", "PickupSucceeded", "PlacedOnCharger", "ReactToDark",
	"ReactToMotion", "ReactToObstacle", "ReactToPickedUp", "ReactToSoundAsleep", "ReactToSoundAwake", "ReactToTriggerWord", "ReactToUnexpectedMovement",
	"RespondToGoodNight", "RespondToShortVoiceCommand", "RobotShaken", "RollSucceeded", "Sleeping", "TimerRinging",
}

// Known reports whether the original has an emotion event of this name.
func Known(name string) bool {
	_, ok := slices.BinarySearch(names, name)
	return ok
}

// Emotions are the values of all emotions.
type Emotions [emotions]float64

// Mood keeps what a robot feels. It belongs to one goroutine, whose times only grow.
type Mood struct {
	cfg    *Config
	now    time.Duration // of values
	values Emotions
	from   [emotions]origin
	fired  map[string]time.Duration // when an event was posted last
	simple string
	next   string // what the simple mood becomes if it stays so
	since  time.Duration
}

// origin is where an emotion fades from.
type origin struct {
	value float64
	at    time.Duration
}

// New returns a mood at rest.
func New(c *Config) *Mood {
	return &Mood{cfg: c, fired: map[string]time.Duration{}, simple: Default, next: Default}
}

// Emotions returns what the robot felt at the last step or event.
func (m *Mood) Emotions() Emotions { return m.values }

// Simple returns the simple mood.
func (m *Mood) Simple() string { return m.simple }

// Range returns the least and the greatest value of an emotion.
func (m *Mood) Range(e Emotion) (least, greatest float64) {
	return m.cfg.ranges[e][0], m.cfg.ranges[e][1]
}

// Told returns the emotion event of something that a part of the robot tells, such as robot.touched; "": it moves nothing (VEC-EMO-06).
func (m *Mood) Told(what string) (event string) { return m.cfg.mapper[what] }

// Result returns the emotion event of an action's result; "": it moves nothing.
func (m *Mood) Result(action, result string) (event string) { return m.cfg.results[action+" "+result] }

// Has returns nil if the robot has an effect for each of these emotion events; otherwise the error names the first without one.
func (m *Mood) Has(events ...string) error {
	for _, name := range events {
		if m.cfg.events[name] == nil {
			return errs.Coded(errs.NotFound, "not_found", "emotion event %.60q: this robot has none of that name", name)
		}
	}
	return nil
}

// Post applies emotion events. All are applied or none: it fails as Has does.
func (m *Mood) Post(now time.Duration, events ...string) error {
	if err := m.Has(events...); err != nil {
		return err
	}
	m.Step(now)
	for _, name := range events {
		m.post(now, m.cfg.events[name])
	}
	return nil
}

func (m *Mood) post(now time.Duration, e *Event) {
	ratio := 1.0
	if last, again := m.fired[e.Name]; again { // VEC-EMO-04
		penalty := e.Penalty
		if penalty == nil {
			penalty = m.cfg.penalty
		}
		ratio = penalty.at((now - last).Seconds())
	}
	m.fired[e.Name] = now
	for _, a := range e.Affectors {
		m.set(now, a.Emotion, m.values[a.Emotion]+a.Value*ratio)
	}
}

// Names returns the emotion events of the original.
func Names() []string { return slices.Clone(names) }

// Set replaces emotions by other values, within their ranges.
func (m *Mood) Set(now time.Duration, values map[Emotion]float64) {
	m.Step(now)
	for e, v := range values {
		m.set(now, e, v)
	}
}

func (m *Mood) set(now time.Duration, e Emotion, v float64) {
	least, greatest := m.Range(e)
	before := m.values[e]
	v = min(greatest, max(least, v))
	m.values[e] = v
	from, ratio := &m.from[e], 0.0
	if !m.cfg.decays[e].slope {
		ratio = m.cfg.decays[e].graph.at((now - from.at).Seconds())
	}
	if math.Abs(v-before) >= significant || ratio < 1e-3 {
		*from = origin{v, now}
	} else {
		from.value = v / ratio // it fades as before
	}
}

// Step lets the emotions fade up to now.
func (m *Mood) Step(now time.Duration) {
	dt := (now - m.now).Minutes()
	m.now = max(m.now, now)
	for e := range m.values {
		v, d := &m.values[e], &m.cfg.decays[e]
		switch {
		case *v == 0 || len(d.graph) == 0:
		case d.slope:
			*v = math.Copysign(max(0, math.Abs(*v)-d.graph.at(*v)*max(0, dt)), *v)
		default:
			*v = m.from[e].value * d.graph.at((m.now - m.from[e].at).Seconds())
		}
		least, greatest := m.Range(Emotion(e))
		if *v = min(greatest, max(least, *v)); math.Abs(*v) < 1e-6 {
			*v = 0
		}
	}
	if is := simpleOf(&m.values); is != m.next {
		m.next, m.since = is, m.now
	}
	if m.now-m.since >= simpleHold {
		m.simple = m.next
	}
}

// simpleOf returns the simple mood of emotions that last.
func simpleOf(v *Emotions) string {
	switch {
	case v[Confident] < frustrated:
		return Frustrated
	case v[Stimulated] < lowStim:
		return LowStim
	case v[Stimulated] < medStim:
		return MedStim
	}
	return HighStim
}

// Audio calls set with each parameter of the sounds that depends on the mood (VEC-EMO-09, VEC-SND-06).
func (m *Mood) Audio(set func(parameter string, value float64)) {
	for e, parameter := range m.cfg.audio {
		if parameter != "" {
			set(parameter, m.values[e])
		}
	}
	for simple, parameter := range m.cfg.simple {
		v := 0.0
		if simple == m.simple {
			v = 1
		}
		set(parameter, v)
	}
}
