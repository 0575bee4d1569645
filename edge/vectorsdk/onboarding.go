package vectorsdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/env/robotfs"
	"kennel/edge/power"
	"kennel/infra/api/vectorpb"
	"kennel/infra/logging"
	"kennel/speech/intent"
)

// onboardingFile has the stage that an app brought the robot to. It is the owner's: it goes with the user data.
const onboardingFile = "data/kennel/onboarding.json"

// wakeWithin is how long the robot may take to wake up; own default.
const wakeWithin = 10 * time.Second

// onboarding is the state of the first minutes with a robot, as an app drives it (part of VEC-ONB-01). The stage stays over a restart, the phase does not.
//
//	NotStarted ─ complete, skip, mark complete ─► Complete ─ restart ─► NotStarted
//	     └────── wake up, and the robot does not ─► TimedOut ─ wake up, restart, complete ...
type onboarding struct {
	mu      sync.Mutex
	stage   vectorpb.OnboardingStages
	phase   vectorpb.OnboardingPhase
	state   vectorpb.OnboardingPhaseState
	waking  bool
	started bool // the robot was woken since the beginning
}

// readOnboarding returns the stage that is on disk; a file that cannot be read counts as none.
func readOnboarding(root *os.Root) (vectorpb.OnboardingStages, error) {
	var f struct{ Stage int32 }
	err := robotfs.ReadJSON(root, onboardingFile, &f)
	if errors.Is(err, fs.ErrNotExist) {
		return vectorpb.OnboardingStages_NotStarted, nil
	}
	if _, ok := vectorpb.OnboardingStages_name[f.Stage]; err == nil && !ok {
		err = fmt.Errorf("%s: stage %d", onboardingFile, f.Stage)
	}
	if err != nil {
		return vectorpb.OnboardingStages_NotStarted, err
	}
	return vectorpb.OnboardingStages(f.Stage), nil
}

// enter stores a stage and tells the event streams of it (part of VEC-ONB-04). f.onboarding.mu is held.
func (f *Facade) enter(stage vectorpb.OnboardingStages) error {
	x := &f.onboarding
	if x.stage == stage {
		return nil
	}
	b, err := json.Marshal(map[string]int32{"stage": int32(stage)})
	if err != nil {
		return err
	}
	if err := robotfs.WriteFile(f.cfg.Root, onboardingFile, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("stage of the onboarding: %w", err)
	}
	x.stage = stage
	f.moments.add(&vectorpb.Event{EventType: &vectorpb.Event_Onboarding{Onboarding: &vectorpb.Onboarding{
		OnboardingType: &vectorpb.Onboarding_OnboardingState{OnboardingState: &vectorpb.OnboardingState{Stage: stage}}}}})
	return nil
}

func (f *Facade) getOnboardingState(context.Context, client, *vectorpb.OnboardingStateRequest) (*vectorpb.OnboardingStateResponse, error) {
	x := &f.onboarding
	x.mu.Lock()
	defer x.mu.Unlock()
	return &vectorpb.OnboardingStateResponse{Status: fine(), OnboardingState: &vectorpb.OnboardingState{Stage: x.stage}}, nil
}

// sendOnboardingInput does one of the nine requests and gives the answer that belongs to it (VEC-ONB-02); three have none but the status.
func (f *Facade) sendOnboardingInput(ctx context.Context, _ client, q *vectorpb.OnboardingInputRequest) (*vectorpb.OnboardingInputResponse, error) {
	a := &vectorpb.OnboardingInputResponse{Status: fine()}
	x := &f.onboarding
	if _, ok := q.GetOneofMessageType().(*vectorpb.OnboardingInputRequest_OnboardingWakeUpRequest); ok {
		r, err := f.wakeForOnboarding(ctx)
		a.Status, a.OneofMessageType = heard(), &vectorpb.OnboardingInputResponse_OnboardingWakeUpResponse{OnboardingWakeUpResponse: r}
		return a, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch m := q.GetOneofMessageType().(type) {
	case *vectorpb.OnboardingInputRequest_OnboardingCompleteRequest:
		err := f.enter(vectorpb.OnboardingStages_Complete)
		a.OneofMessageType = &vectorpb.OnboardingInputResponse_OnboardingCompleteResponse{OnboardingCompleteResponse: &vectorpb.OnboardingCompleteResponse{Completed: err == nil}}
		return a, err
	case *vectorpb.OnboardingInputRequest_OnboardingSkipOnboarding, *vectorpb.OnboardingInputRequest_OnboardingMarkCompleteAndExit:
		return a, f.enter(vectorpb.OnboardingStages_Complete)
	case *vectorpb.OnboardingInputRequest_OnboardingRestart:
		x.phase, x.state, x.started = vectorpb.OnboardingPhase_InvalidPhase, vectorpb.OnboardingPhaseState_PhaseInvalid, false
		return a, f.enter(vectorpb.OnboardingStages_NotStarted)
	case *vectorpb.OnboardingInputRequest_OnboardingWakeUpStartedRequest:
		a.OneofMessageType = &vectorpb.OnboardingInputResponse_OnboardingWakeUpStartedResponse{
			OnboardingWakeUpStartedResponse: &vectorpb.OnboardingWakeUpStartedResponse{AlreadyStarted: x.waking || x.started}}
		return a, nil
	case *vectorpb.OnboardingInputRequest_OnboardingSetPhaseRequest:
		return a, f.setPhase(m.OnboardingSetPhaseRequest.GetPhase(), a)
	case *vectorpb.OnboardingInputRequest_OnboardingPhaseProgressRequest:
		p := &vectorpb.OnboardingPhaseProgressResponse{Status: fine(), LastSetPhase: x.phase, LastSetPhaseState: x.state}
		if x.state == vectorpb.OnboardingPhaseState_PhaseComplete {
			p.PercentCompleted = 100
		}
		a.OneofMessageType = &vectorpb.OnboardingInputResponse_OnboardingPhaseProgressResponse{OnboardingPhaseProgressResponse: p}
		return a, nil
	case *vectorpb.OnboardingInputRequest_OnboardingChargeInfoRequest:
		c, err := f.charging()
		a.OneofMessageType = &vectorpb.OnboardingInputResponse_OnboardingChargeInfoResponse{OnboardingChargeInfoResponse: &vectorpb.OnboardingChargeInfoResponse{
			Status: fine(), OnCharger: c.GetOnCharger(), NeedsToCharge: c.GetNeedsToCharge(), RequiredChargeTime: c.GetSuggestedChargerTime()}}
		return a, err
	}
	return nil, errInvalid("onboarding input: none, want one of the nine requests")
}

// setPhase begins a phase. Default asks nothing of the robot; of the others it can wake up, which the app asks for, and has no behavior for the rest.
// f.onboarding.mu is held.
func (f *Facade) setPhase(p vectorpb.OnboardingPhase, a *vectorpb.OnboardingInputResponse) error {
	x := &f.onboarding
	switch p {
	case vectorpb.OnboardingPhase_Default:
		x.state = vectorpb.OnboardingPhaseState_PhaseComplete
	case vectorpb.OnboardingPhase_WakeUp:
		if x.state = vectorpb.OnboardingPhaseState_PhaseInProgress; x.started {
			x.state = vectorpb.OnboardingPhaseState_PhaseComplete
		}
	case vectorpb.OnboardingPhase_LookAtPhone, vectorpb.OnboardingPhase_LookAtUser, vectorpb.OnboardingPhase_TeachWakeWord, vectorpb.OnboardingPhase_TeachComeHere,
		vectorpb.OnboardingPhase_TeachMeetVictor:
		return status.Errorf(codes.Unimplemented, "phase %s: this robot does not have a behavior for it yet", p)
	default:
		return errInvalid("phase: %d, want 1 to 7", int32(p))
	}
	x.phase = p
	a.OneofMessageType = &vectorpb.OnboardingInputResponse_OnboardingSetPhaseResponse{
		OnboardingSetPhaseResponse: &vectorpb.OnboardingSetPhaseResponse{Status: fine(), Phase: x.phase, PhaseState: x.state}}
	return nil
}

// charging says whether the robot needs to charge (part of VEC-ONB-05).
func (f *Facade) charging() (*vectorpb.Onboarding1P0ChargingInfo, error) {
	now := f.cfg.Gateway.Reports()
	if now.State == nil {
		return nil, errLost
	}
	c := &vectorpb.Onboarding1P0ChargingInfo{OnCharger: f.onCharger(), NeedsToCharge: power.Level(now.State.BatteryLevel) == power.Low}
	if now.Power != nil {
		c.SuggestedChargerTime = float32(now.Power.SuggestedSec)
	}
	return c, nil
}

// wakeForOnboarding wakes the robot, and says so when it is awake.
func (f *Facade) wakeForOnboarding(ctx context.Context) (*vectorpb.OnboardingWakeUpResponse, error) {
	x := &f.onboarding
	c, err := f.charging()
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	if x.waking {
		x.mu.Unlock()
		return &vectorpb.OnboardingWakeUpResponse{WakingUp: true, ChargingInfo: c}, nil
	}
	x.waking = true
	x.mu.Unlock()
	limit, cancel := context.WithTimeout(ctx, wakeWithin)
	defer cancel()
	o, err := f.cfg.Intents().Take(limit, intent.User{Name: "kennel_wakeup"}, "app")
	x.mu.Lock()
	defer x.mu.Unlock()
	x.waking = false
	if err == nil && o.Done {
		x.started = true
		if x.phase == vectorpb.OnboardingPhase_WakeUp {
			x.state = vectorpb.OnboardingPhaseState_PhaseComplete
		}
		f.moments.add(&vectorpb.Event{EventType: &vectorpb.Event_Onboarding{Onboarding: &vectorpb.Onboarding{
			OnboardingType: &vectorpb.Onboarding_OnboardingWakeUpFinished{OnboardingWakeUpFinished: &vectorpb.OnboardingWakeUpFinished{}}}}})
		return &vectorpb.OnboardingWakeUpResponse{WakingUp: true, ChargingInfo: c}, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() // of a client that has gone
	}
	if err := f.enter(vectorpb.OnboardingStages_TimedOut); err != nil {
		return nil, err
	}
	f.cfg.Log.WarnContext(ctx, "robot not woken for its onboarding", "text", o.Text, logging.Err, err)
	return &vectorpb.OnboardingWakeUpResponse{ChargingInfo: c}, nil
}
