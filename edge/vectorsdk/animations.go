package vectorsdk

import (
	"context"
	"math"
	"time"

	"kennel/edge/mind/mindlink"
	"kennel/edge/robot/claim"
	"kennel/infra/api/vectorpb"
	"kennel/infra/errs"
)

// listAnimations returns the names of the animations; of none, if the robot's character does not run: the Python SDK asks before a program's first line
// (VEC-ANI-01).
func (f *Facade) listAnimations(ctx context.Context, _ client, _ *vectorpb.ListAnimationsRequest) (*vectorpb.ListAnimationsResponse, error) {
	a := &vectorpb.ListAnimationsResponse{Status: fine()}
	l, _ := f.cfg.Gateway.Mind().List(ctx)
	for _, c := range l.Clips {
		a.AnimationNames = append(a.AnimationNames, &vectorpb.Animation{Name: c.Name})
	}
	return a, nil
}

// listAnimationTriggers is listAnimations for triggers.
func (f *Facade) listAnimationTriggers(ctx context.Context, _ client, _ *vectorpb.ListAnimationTriggersRequest) (*vectorpb.ListAnimationTriggersResponse, error) {
	a := &vectorpb.ListAnimationTriggersResponse{Status: fine()}
	l, _ := f.cfg.Gateway.Mind().List(ctx)
	for _, name := range l.Triggers {
		a.AnimationTriggerNames = append(a.AnimationTriggerNames, &vectorpb.AnimationTrigger{Name: name})
	}
	return a, nil
}

// playAnimation plays an animation by its name (part of VEC-ANI-02).
func (f *Facade) playAnimation(ctx context.Context, c client, q *vectorpb.PlayAnimationRequest) (*vectorpb.PlayAnimationResponse, error) {
	r := mindlink.Request{Clip: q.GetAnimation().GetName(), Loops: loops(q.Loops), Ignore: ignored(q.IgnoreHeadTrack, q.IgnoreLiftTrack, q.IgnoreBodyTrack)}
	return f.animate(ctx, c, "animation", r.Clip, r)
}

// playAnimationTrigger plays one of the animations of a trigger (part of VEC-ANI-03). The robot never carries a cube, so that use_lift_safe changes nothing.
func (f *Facade) playAnimationTrigger(ctx context.Context, c client, q *vectorpb.PlayAnimationTriggerRequest) (*vectorpb.PlayAnimationResponse, error) {
	r := mindlink.Request{Trigger: q.GetAnimationTrigger().GetName(), Loops: loops(q.Loops), Ignore: ignored(q.IgnoreHeadTrack, q.IgnoreLiftTrack, q.IgnoreBodyTrack)}
	return f.animate(ctx, c, "animation_trigger", r.Trigger, r)
}

// loops returns how often an animation plays: 0 is once (part of VEC-ANI-02).
func loops(n uint32) int { return int(max(1, min(n, math.MaxInt32))) }

// ignored returns the names of tracks.
func ignored(head, lift, body bool) (names []string) {
	for _, t := range []struct {
		on   bool
		name string
	}{{head, mindlink.Head}, {lift, mindlink.Lift}, {body, mindlink.Body}} {
		if t.on {
			names = append(names, t.name)
		}
	}
	return names
}

// animate plays, and returns the animation that was played with its result: COMPLETE at its end, INVALID if it was stopped, and WONT_ACTIVATE without control or
// while another program plays (part of VEC-CTL-07). The status is NOT_FOUND for a name that the robot does not have.
func (f *Facade) animate(ctx context.Context, c client, field, name string, r mindlink.Request) (*vectorpb.PlayAnimationResponse, error) {
	h := f.control.of(c)
	switch {
	case h == nil:
		return &vectorpb.PlayAnimationResponse{Status: forbidden(), Result: vectorpb.BehaviorResults_BEHAVIOR_WONT_ACTIVATE_STATE}, nil
	case name == "":
		return nil, errInvalid("%s.name: empty, want a name of the list", field)
	case r.Loops > mindlink.MaxLoops:
		return nil, errInvalid("loops: %d, want at most %d", r.Loops, mindlink.MaxLoops)
	}
	ctx, cancel := h.during(ctx)
	defer cancel()
	h.plays.Add(1)
	defer func() {
		h.played.Store(time.Now().UnixNano())
		h.plays.Add(-1)
	}()
	ended, err := f.cfg.Gateway.Play(ctx, c.Caller, r, claim.Priority(h.priority.Load()), func(mindlink.Progress) error { return nil })
	a := &vectorpb.PlayAnimationResponse{Status: heard(), Animation: &vectorpb.Animation{Name: ended.Clip}, Result: vectorpb.BehaviorResults_BEHAVIOR_INVALID_STATE}
	switch {
	case h.ended():
		return a, nil
	case errs.CodeOf(err) == "not_found":
		a.Status = answered(vectorpb.ResponseStatus_NOT_FOUND)
	case errs.CodeOf(err) == "busy":
		a.Result = vectorpb.BehaviorResults_BEHAVIOR_WONT_ACTIVATE_STATE
	case err != nil:
		return nil, err
	case ended.Outcome == mindlink.Done:
		a.Result = vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE
	}
	return a, nil
}

// displayFaceImage shows a picture on the display for a time (VEC-DIS-01). While an animation of the program has the display, the picture waits for
// interrupt_running: without it the call is refused.
func (f *Facade) displayFaceImage(ctx context.Context, c client, q *vectorpb.DisplayFaceImageRGBRequest) (*vectorpb.DisplayFaceImageRGBResponse, error) {
	if f.control.of(c) == nil {
		return &vectorpb.DisplayFaceImageRGBResponse{Status: forbidden()}, nil
	}
	if n := len(q.FaceData); n != mindlink.ImageSize {
		return nil, errInvalid("face_data: %d bytes, want %d: 184 by 96 pixels of RGB565, the high byte first", n, mindlink.ImageSize)
	}
	err := f.cfg.Gateway.Mind().Show(ctx, mindlink.Image{Pixels: q.FaceData, ForMS: int64(max(q.DurationMs, 1)), Interrupt: q.InterruptRunning, Program: c.Program()})
	if err != nil {
		return nil, err
	}
	return &vectorpb.DisplayFaceImageRGBResponse{Status: heard()}, nil
}

// setEyeColor gives the eyes a colour, which no setting keeps (part of VEC-DIS-03).
func (f *Facade) setEyeColor(ctx context.Context, c client, q *vectorpb.SetEyeColorRequest) (*vectorpb.SetEyeColorResponse, error) {
	if f.control.of(c) == nil {
		return &vectorpb.SetEyeColorResponse{Status: forbidden()}, nil
	}
	if err := f.cfg.Gateway.Mind().Eyes(ctx, mindlink.Eyes{Hue: q.Hue, Saturation: q.Saturation}); err != nil {
		return nil, err
	}
	return &vectorpb.SetEyeColorResponse{Status: heard()}, nil
}
