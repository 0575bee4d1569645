package activity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"kennel/edge/agent/voice"
	"kennel/edge/body"
	"kennel/edge/core/corelink"
	"kennel/edge/power"
	"kennel/infra/api/events"
	"kennel/jdocs"
)

// rig keeps what an Activity counts and tells.
type rig struct {
	*Activity
	stats  map[string]float64
	events []events.Event
}

func newRig() *rig {
	r := &rig{stats: map[string]float64{}}
	r.Activity = New(Config{
		Emit: func(e events.Event) { r.events = append(r.events, e) },
		Stats: func(inc map[string]float64) {
			for k, v := range inc {
				r.stats[k] += v
			}
		},
	})
	return r
}

// told returns the events as name and feature, and forgets them.
func (r *rig) told() (out []string) {
	for _, e := range r.events {
		out = append(out, strings.TrimPrefix(e.Name, "behavior.feature.")+" "+e.S1)
	}
	r.events = nil
	return out
}

// counted returns the counters as text, and forgets them.
func (r *rig) counted() (out []string) {
	for _, k := range slices.Sorted(maps.Keys(r.stats)) {
		out = append(out, fmt.Sprint(k, " ", r.stats[k]))
	}
	clear(r.stats)
	return out
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestClasses: the 70 features of annex C have a class of the statistics, all six are used, and what is counted is a key of annex A (part of VEC-DOC-08).
func TestClasses(t *testing.T) {
	if len(classes) != 70 {
		t.Errorf("%d features, want the 70 of annex C", len(classes))
	}
	used := map[string]bool{}
	counted := 0
	for name, class := range classes {
		if name == "NoFeature" {
			continue
		}
		used["FeatureType."+class] = true
		if !slices.Contains(jdocs.StatKeys, "FeatureType."+class) {
			t.Errorf("%s has the class %q, which is no key of the statistics", name, class)
		}
		if key := statOf(name); key != "" {
			counted++
			if !slices.Contains(jdocs.StatKeys, key) {
				t.Errorf("%s is counted as %q, which is no key of the statistics", name, key)
			}
		}
	}
	if len(used) != 6 {
		t.Errorf("classes %v, want six", used)
	}
	// 17 keys Feature.AI without Onboarding and Petting, and three greetings of one key.
	if counted != 15+3 {
		t.Errorf("%d features have a key of their own, want 18", counted)
	}
	for _, key := range []string{AnimationPlayed, BehaviorActivated, ReactedToCliff, ReactedToTriggerWord} {
		if !slices.Contains(jdocs.StatKeys, key) {
			t.Errorf("%q is no key of the statistics", key)
		}
	}
}

// TestFeature: a feature is counted as itself, as one of its class and as a behaviour when it begins, and its events share a run (part of VEC-DOC-08, VEC-DAS-12).
func TestFeature(t *testing.T) {
	r := newRig()
	end := r.Begin("ReactToHello")
	same(t, "counted", r.counted(), []string{"BStat.BehaviorActivated 1", "Feature.Voice.VC_Greeting 1", "FeatureType.Social 1"})
	end()
	end()
	if len(r.events) != 3 {
		t.Fatalf("%d events, want 3", len(r.events))
	}
	run := r.events[0].FeatureRunID
	for _, e := range r.events {
		if run == "" || e.FeatureRunID != run || e.S3 != run || e.FeatureType != "Social" || e.S4 != "Social" {
			t.Errorf("%+v: want the run %q and the type Social", e, run)
		}
	}
	same(t, "told", r.told(), []string{"pre_start ReactToHello", "start ReactToHello", "end ReactToHello"})
	same(t, "the end counts", r.counted(), nil)
	r.Begin("TimerSet")()
	if r.events[0].FeatureRunID == run {
		t.Error("two runs have one id")
	}
	same(t, "without a key of its own", r.counted(), []string{"BStat.BehaviorActivated 1", "FeatureType.Utility 1"})
	r.told()
	for _, none := range []string{"NoFeature", "", "Ours"} {
		r.Begin(none)()
		same(t, none, append(r.counted(), r.told()...), nil)
	}
}

// TestVoice: a call is counted, however it came, and a sentence that means nothing is a feature (VEC-NLP-09, part of VEC-DOC-07).
func TestVoice(t *testing.T) {
	r := newRig()
	for _, e := range []voice.Event{
		{WakeWord: &voice.Word{Begin: &struct{}{}}},
		{WakeWord: &voice.Word{End: &voice.WakeWordEnd{}}},
		{Result: &voice.Result{Reason: voice.Silent}},
		{Result: &voice.Result{Done: true}},
		{Stimulation: &voice.Stimulation{}},
	} {
		r.Heard(e)
	}
	same(t, "a call", append(r.counted(), r.told()...), []string{"BStat.ReactedToTriggerWord 1"})
	r.Heard(voice.Event{Result: &voice.Result{Reason: voice.Unmatched}})
	same(t, "unmatched", r.counted(), []string{"BStat.BehaviorActivated 1", "Feature.AI.UnmatchedVoiceIntent 1", "FeatureType.Failure 1"})
	same(t, "unmatched: told", r.told(), []string{"pre_start UnmatchedVoiceIntent", "start UnmatchedVoiceIntent", "end UnmatchedVoiceIntent"})
}

// TestBody: what robotd tells becomes features: each once, however often it is told, and nothing of the time before (part of VEC-DOC-07).
func TestBody(t *testing.T) {
	cliff := &corelink.Event{Name: "robot.cliff_detected", Numbers: []int64{2}}
	off := func(now, before string) *corelink.Event {
		return &corelink.Event{Name: "robot.offtreadsstatechanged", Texts: []string{now, before}}
	}
	sleeps := func(s power.Sleep) *corelink.Power { return &corelink.Power{Sleep: s.String()} }
	battery := func(l power.Level, p body.Power) *corelink.State {
		return &corelink.State{BatteryLevel: uint8(l), Power: uint16(p)}
	}
	old := *cliff
	old.Replayed = true
	for _, tt := range []struct {
		name          string
		says          []corelink.Message
		told, counted []string
	}{
		{"a cliff", []corelink.Message{cliff, &old}, []string{"pre_start ReactToCliff", "start ReactToCliff", "end ReactToCliff"},
			[]string{"BStat.BehaviorActivated 1", "BStat.ReactedToCliff 1", "Feature.AI.ReactToCliff 1", "FeatureType.Autonomous 1"}},
		{"lifted, falls, and down", []corelink.Message{off("InAir", "OnTreads"), off("Falling", "InAir"), off("OnTreads", "Falling")},
			[]string{"pre_start InTheAir", "start InTheAir", "end InTheAir"},
			[]string{"BStat.BehaviorActivated 1", "Feature.AI.InTheAir 1", "FeatureType.Autonomous 1"}},
		{"on its side", []corelink.Message{off("OnBack", "InAir"), off("OnLeftSide", "OnBack"), &corelink.Event{Name: "robot.offtreadsstatechanged"}},
			[]string{"pre_start ReactToRobotOnSide", "start ReactToRobotOnSide"}, []string{"BStat.BehaviorActivated 1", "FeatureType.Failure 1"}},
		{"sleeps twice", []corelink.Message{sleeps(power.Awake), sleeps(power.LightSleep), sleeps(power.DeepSleep), sleeps(power.Awake), sleeps(power.SleepOnCharger)},
			[]string{"pre_start Sleeping", "start Sleeping", "end Sleeping", "pre_start Sleeping", "start Sleeping"},
			[]string{"BStat.BehaviorActivated 2", "Feature.AI.Sleeping 2", "FeatureType.Sleep 2"}},
		{"low, and charged", []corelink.Message{battery(power.Nominal, 0), battery(power.Low, 0), battery(power.Low, 0), battery(power.Low, body.OnCharger)},
			[]string{"pre_start LowBattery", "start LowBattery", "end LowBattery"},
			[]string{"BStat.BehaviorActivated 1", "Feature.AI.LowBattery 1", "FeatureType.Autonomous 1"}},
		{"well", []corelink.Message{battery(power.Full, 0), sleeps(power.Awake), off("OnTreads", "Unsettled"), &corelink.Event{Name: "robot.poked"}}, nil, nil},
	} {
		r := newRig()
		for _, m := range tt.says {
			r.Handle(m)
		}
		same(t, tt.name+": told", r.told(), tt.told)
		same(t, tt.name+": counted", r.counted(), tt.counted)
	}
}
