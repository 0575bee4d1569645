package vectorsdk

import (
	"kennel/edge/mind/mindlink"
	"kennel/infra/api/vectorpb"
)

// stimulated is the emotion that programs of the original hear of.
const stimulated = "Stimulated"

// Felt tells the event streams of a change of the robot's mood (VEC-EMO-10). It does not block.
func (f *Facade) Felt(now mindlink.Feeling) {
	s, ok := now.Emotions[stimulated]
	if !ok {
		return
	}
	f.moments.add(&vectorpb.Event{EventType: &vectorpb.Event_StimulationInfo{StimulationInfo: &vectorpb.StimulationInfo{
		EmotionEvents: now.Events, Value: float32(s.Value), ValueBeforeEvent: float32(s.Before), MinValue: float32(s.Min), MaxValue: float32(s.Max),
		Velocity: float32(now.Speed * 1000), Accel: float32(now.Acceleration * 1000)}}})
}

// WakeWordHeard tells the event streams that the robot listens (part of VEC-INT-12, VEC-AUD-01). It does not block.
func (f *Facade) WakeWordHeard() {
	f.wakeWord(&vectorpb.WakeWord{WakeWordType: &vectorpb.WakeWord_WakeWordBegin{WakeWordBegin: &vectorpb.WakeWordBegin{}}})
}

// WakeWordAnswered tells them whether it heard an intent, and which if no program has control. It does not block.
func (f *Facade) WakeWordAnswered(heard bool, intent string) {
	f.wakeWord(&vectorpb.WakeWord{WakeWordType: &vectorpb.WakeWord_WakeWordEnd{WakeWordEnd: &vectorpb.WakeWordEnd{IntentHeard: heard, IntentJson: intent}}})
}

func (f *Facade) wakeWord(w *vectorpb.WakeWord) {
	f.moments.add(&vectorpb.Event{EventType: &vectorpb.Event_WakeWord{WakeWord: w}})
}

// felt tells the robot's mood how an action ended (VEC-EMO-06). One that never began, or that its program cancelled, moves nothing.
func (f *Facade) felt(call string, code vectorpb.ActionResult_ActionResultCode) {
	x := mindlink.Feel{Action: call}
	if code == vectorpb.ActionResult_INTERRUPTED || code == vectorpb.ActionResult_TRACKS_LOCKED { // another program's doing
		return
	}
	switch code &^ 0xffffff { // the class of the result
	case vectorpb.ActionResult_ACTION_RESULT_SUCCESS:
		x.Result = mindlink.Success
	case vectorpb.ActionResult_ABORT:
		x.Result = mindlink.Abort
	case vectorpb.ActionResult_RETRY:
		x.Result = mindlink.Retry
	default:
		return
	}
	f.cfg.Feel(x)
}

// feltBehavior is felt for a behavior.
func (f *Facade) feltBehavior(call string, r vectorpb.BehaviorResults) {
	switch r {
	case complete:
		f.felt(call, vectorpb.ActionResult_ACTION_RESULT_SUCCESS)
	case failed:
		f.felt(call, vectorpb.ActionResult_ABORT)
	}
}
