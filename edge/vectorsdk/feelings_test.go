package vectorsdk_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"kennel/edge/mind/mindlink"
	"kennel/infra/api/vectorpb"
)

// TestStimulation: programs hear of each change of the mood (VEC-EMO-10), in millimetres, and around what a person says in the original's order: the wake word, what it
// stirred, and what was heard (VEC-INT-12, part of VEC-AUD-01).
func TestStimulation(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	l := d.listen(t, &vectorpb.EventRequest{ListType: &vectorpb.EventRequest_WhiteList{WhiteList: &vectorpb.FilterList{List: []string{"stimulation_info", "wake_word"}}}})
	l.primary()
	d.sdk.WakeWordHeard()
	d.sdk.Felt(mindlink.Feeling{Emotions: map[string]mindlink.Emotion{"Stimulated": {Value: 1, Before: 0.25, Max: 1}, "Happy": {Min: -1, Max: 1}}, Events: []string{"ReactToTriggerWord"},
		Speed: 0.05, Acceleration: -0.2})
	d.sdk.WakeWordAnswered(true, `{"type":"x"}`)
	d.sdk.Felt(mindlink.Feeling{}) // of a body without emotions
	d.sdk.Felt(mindlink.Feeling{Emotions: map[string]mindlink.Emotion{"Stimulated": {Value: 0.5, Before: 0.5, Max: 1}}})
	for i, want := range []*vectorpb.Event{
		{EventType: &vectorpb.Event_WakeWord{WakeWord: &vectorpb.WakeWord{WakeWordType: &vectorpb.WakeWord_WakeWordBegin{WakeWordBegin: &vectorpb.WakeWordBegin{}}}}},
		{EventType: &vectorpb.Event_StimulationInfo{StimulationInfo: &vectorpb.StimulationInfo{EmotionEvents: []string{"ReactToTriggerWord"}, Value: 1, ValueBeforeEvent: 0.25, MaxValue: 1,
			Velocity: 50, Accel: -200}}},
		{EventType: &vectorpb.Event_WakeWord{WakeWord: &vectorpb.WakeWord{WakeWordType: &vectorpb.WakeWord_WakeWordEnd{WakeWordEnd: &vectorpb.WakeWordEnd{IntentHeard: true, IntentJson: `{"type":"x"}`}}}}},
		{EventType: &vectorpb.Event_StimulationInfo{StimulationInfo: &vectorpb.StimulationInfo{Value: 0.5, ValueBeforeEvent: 0.5, MaxValue: 1}}},
	} {
		got := l.await(func(e *vectorpb.Event) bool { return e.GetKeepAlive() == nil })
		if !proto.Equal(got, want) {
			t.Errorf("event %d: %v, want %v", i, got, want)
		}
	}
}

// TestActionsMoveTheMood: the mood hears how a program's actions and behaviors end (VEC-EMO-06), and nothing of those that another program ended.
func TestActionsMoveTheMood(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	if a, err := p.GoToPose(p.ctx, &vectorpb.GoToPoseRequest{XMm: 5, IdTag: 2000001}); err != nil || a.Result.Code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
		t.Fatalf("%v, %v", a, err)
	}
	if a, err := p.GoToPose(p.ctx, &vectorpb.GoToPoseRequest{XMm: 20000, IdTag: 2000002}); err != nil || a.Result.Code != vectorpb.ActionResult_PATH_PLANNING_FAILED_ABORT {
		t.Fatalf("%v, %v", a, err)
	}
	for _, code := range []vectorpb.ActionResult_ActionResultCode{
		vectorpb.ActionResult_DID_NOT_REACH_PREACTION_POSE, vectorpb.ActionResult_INTERRUPTED, vectorpb.ActionResult_TRACKS_LOCKED,
		vectorpb.ActionResult_ACTION_RESULT_CANCELLED_WHILE_RUNNING, vectorpb.ActionResult_NOT_STARTED, vectorpb.ActionResult_VISUAL_OBSERVATION_FAILED,
	} {
		d.sdk.ActionEnded("RollObject", code)
	}
	if a, err := p.DriveOffCharger(p.ctx, &vectorpb.DriveOffChargerRequest{}); err != nil || a.Result != vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE {
		t.Fatalf("%v, %v", a, err)
	}
	for _, want := range []mindlink.Feel{
		{Action: "GoToPose", Result: mindlink.Success}, {Action: "GoToPose", Result: mindlink.Abort},
		{Action: "RollObject", Result: mindlink.Retry}, {Action: "RollObject", Result: mindlink.Abort},
		{Action: "DriveOffCharger", Result: mindlink.Success},
	} {
		if got := <-d.felt; got.Action != want.Action || got.Result != want.Result {
			t.Errorf("the mood heard of %+v, want %+v", got, want)
		}
	}
}
