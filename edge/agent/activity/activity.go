// Package activity tells what a robot does: it counts features of the character, reactions and animations in the lifetime statistics, and records events
// at the beginning and the end of each feature.
//
// A feature is one of annex C, such as Sleeping or TimerSet. Each belongs to a class, which the source names without a table (part of VEC-DOC-08): classes is ours.
// Features may overlap: a robot that a person lifts while it sleeps is InTheAir and Sleeping.
package activity

import (
	"crypto/rand"
	"slices"
	"sync"

	"kennel/edge/agent/host"
	"kennel/edge/agent/voice"
	"kennel/edge/body"
	"kennel/edge/core/corelink"
	"kennel/edge/power"
	"kennel/infra/api/events"
	"kennel/jdocs"
)

// Features that this package notices itself, or that other parts of agentd begin.
const (
	GoHome       = "GoHome"
	InTheAir     = "InTheAir"
	LowBattery   = "LowBattery"
	OnSide       = "ReactToRobotOnSide"
	ReactToCliff = "ReactToCliff"
	Sleeping     = "Sleeping"
	Unmatched    = "UnmatchedVoiceIntent"
)

// Counters that are not features, by their keys of the lifetime statistics (part of VEC-DOC-07).
const (
	AnimationPlayed      = "BStat.AnimationPlayed"
	BehaviorActivated    = "BStat.BehaviorActivated"
	ReactedToCliff       = "BStat.ReactedToCliff"
	ReactedToTriggerWord = "BStat.ReactedToTriggerWord"
)

// Config holds what counting needs; both are required and must not block.
type Config struct {
	Emit  func(events.Event)
	Stats func(map[string]float64) // takes increments of lifetime statistics
}

// Activity is made by New. Safe for concurrent use.
type Activity struct {
	cfg Config

	mu     sync.Mutex
	active map[string]func() // ends a feature that robotd's messages began
}

// New returns an Activity of a robot that does nothing yet.
func New(cfg Config) *Activity { return &Activity{cfg: cfg, active: map[string]func(){}} }

// Part is a as a part of agentd, which hears robotd.
func (a *Activity) Part() host.Part {
	return host.Part{Name: "activity", Hears: []host.Hearing{host.On(a.Handle)}}
}

// Count adds one to a counter.
func (a *Activity) Count(key string) { a.cfg.Stats(map[string]float64{key: 1}) }

// Begin counts the beginning of a feature and records it; the function that it returns records the end, once. Its events share an id (VEC-DAS-12). A name
// that is no feature counts nothing.
func (a *Activity) Begin(feature string) (end func()) {
	class, known := classes[feature]
	if !known || class == "" {
		return func() {}
	}
	counts := map[string]float64{BehaviorActivated: 1, "FeatureType." + class: 1}
	if key := statOf(feature); key != "" {
		counts[key] = 1
	}
	a.cfg.Stats(counts)
	run := rand.Text()
	a.tell("behavior.feature.pre_start", feature, run, class)
	a.tell("behavior.feature.start", feature, run, class)
	return sync.OnceFunc(func() { a.tell("behavior.feature.end", feature, run, class) })
}

func (a *Activity) tell(name, feature, run, class string) {
	a.cfg.Emit(events.Event{Source: "agentd", Name: name, S1: feature, S3: run, S4: class, FeatureRunID: run, FeatureType: class})
}

// statOf returns the key of the statistics that counts a feature; "": none does. Feature.AI.Petting holds milliseconds, which robotd's sums bring.
func statOf(feature string) string {
	switch feature {
	case "ReactToGoodBye", "ReactToGoodMorning", "ReactToHello":
		return "Feature.Voice.VC_Greeting"
	case "KeepAway": // under this spelling
		return "Feature.AI.Keepaway"
	case "Petting":
		return ""
	}
	if key := "Feature.AI." + feature; slices.Contains(jdocs.StatKeys, key) {
		return key
	}
	return ""
}

// Handle takes every message of robotd.
func (a *Activity) Handle(m corelink.Message) {
	switch m := m.(type) {
	case *corelink.Event:
		if !m.Replayed {
			a.event(m)
		}
	case *corelink.Power:
		s, _ := power.ParseSleep(m.Sleep)
		a.is(Sleeping, s.Asleep())
	case *corelink.State:
		a.is(LowBattery, power.Level(m.BatteryLevel) == power.Low && !body.Power(m.Power).Has(body.OnCharger))
	}
}

func (a *Activity) event(m *corelink.Event) {
	switch m.Name {
	case "robot.cliff_detected":
		a.Count(ReactedToCliff)
		a.Begin(ReactToCliff)()
	case "robot.offtreadsstatechanged":
		if len(m.Texts) == 0 {
			return
		}
		now := m.Texts[0]
		a.is(InTheAir, now == "InAir" || now == "Falling")
		a.is(OnSide, slices.Contains([]string{"OnBack", "OnFace", "OnLeftSide", "OnRightSide"}, now))
	}
}

// Heard takes every event of the robot's voice.
func (a *Activity) Heard(e voice.Event) {
	switch {
	case e.WakeWord != nil && e.WakeWord.Begin != nil:
		a.Count(ReactedToTriggerWord)
	case e.Result != nil && e.Result.Reason == voice.Unmatched:
		a.Begin(Unmatched)() // VEC-NLP-09
	}
}

// is begins a feature, or ends it, when that changes.
func (a *Activity) is(feature string, now bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch end := a.active[feature]; {
	case now && end == nil:
		a.active[feature] = a.Begin(feature)
	case !now && end != nil:
		end()
		delete(a.active, feature)
	}
}
