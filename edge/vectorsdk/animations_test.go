package vectorsdk_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/face"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mindtest"
	"kennel/edge/robot"
	"kennel/infra/api/vectorpb"
)

// TestAnimations: a program lists animations and triggers and plays them with control alone, which it keeps although the robot's character has its motors
// meanwhile; loops, tracks that are ignored, and a name that the robot does not have (VEC-ANI-01, part of VEC-ANI-02, part of VEC-ANI-03).
func TestAnimations(t *testing.T) {
	t.Parallel()
	d := newDesk(t, robot.Part{Path: "body.head.display", Is: []string{"VideoOut"}})
	r := d.dial(t)
	if a, err := r.ListAnimations(as(t, "look"), &vectorpb.ListAnimationsRequest{}); err != nil || len(a.AnimationNames) != 0 {
		t.Errorf("without a character: %v, %v", a, err)
	}
	mind := mindtest.Start(t, d.dir, mindtest.None)
	clips, err := r.ListAnimations(as(t, "look"), &vectorpb.ListAnimationsRequest{})
	if err != nil || !slices.ContainsFunc(clips.AnimationNames, func(a *vectorpb.Animation) bool { return a.Name == "anim_look_blink_01" }) {
		t.Errorf("%v, %v", clips, err)
	}
	triggers, err := r.ListAnimationTriggers(as(t, "look"), &vectorpb.ListAnimationTriggersRequest{})
	if err != nil || !slices.ContainsFunc(triggers.AnimationTriggerNames, func(a *vectorpb.AnimationTrigger) bool { return a.Name == "MoodHappy" }) {
		t.Errorf("%v, %v", triggers, err)
	}
	nod := &vectorpb.PlayAnimationTriggerRequest{AnimationTrigger: &vectorpb.AnimationTrigger{Name: "GreetingGoodbye"}, IgnoreBodyTrack: true}
	if a, err := r.PlayAnimationTrigger(as(t, "all"), nod); err != nil || a.Status.Code != vectorpb.ResponseStatus_FORBIDDEN {
		t.Errorf("without control: %v, %v", a, err)
	}
	p := d.granted(t, "all")
	if a, err := p.PlayAnimationTrigger(p.ctx, nod); err != nil || a.Result != vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE || a.Animation.Name != "anim_greeting_goodbye_01" {
		t.Errorf("%v, %v", a, err)
	}
	blink := &vectorpb.PlayAnimationRequest{Animation: &vectorpb.Animation{Name: "anim_look_blink_01"}, Loops: 2}
	if a, err := p.PlayAnimation(p.ctx, blink); err != nil || a.Result != vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE || a.Animation.Name != "anim_look_blink_01" {
		t.Errorf("%v, %v", a, err)
	}
	blink.Animation.Name = "anim_none"
	if a, err := p.PlayAnimation(p.ctx, blink); err != nil || a.Status.Code != vectorpb.ResponseStatus_NOT_FOUND {
		t.Errorf("%v, %v", a, err)
	}
	for _, wrong := range []*vectorpb.PlayAnimationRequest{{}, {Animation: &vectorpb.Animation{Name: "x"}, Loops: 101}} {
		if _, err := p.PlayAnimation(p.ctx, wrong); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	// It has control still.
	if a, err := p.DriveWheels(p.ctx, &vectorpb.DriveWheelsRequest{}); err != nil || a.Status.Code == vectorpb.ResponseStatus_FORBIDDEN {
		t.Errorf("after the animations: %v, %v", a, err)
	}

	image := &vectorpb.DisplayFaceImageRGBRequest{FaceData: []byte(strings.Repeat("\x07\xe0", face.Width*face.Height)), DurationMs: 60_000}
	if a, err := r.DisplayFaceImageRGB(as(t, "all"), image); err != nil || a.Status.Code != vectorpb.ResponseStatus_FORBIDDEN {
		t.Errorf("without control: %v, %v", a, err)
	}
	if a, err := p.DisplayFaceImageRGB(p.ctx, image); err != nil || a.Status.Code != vectorpb.ResponseStatus_RESPONSE_RECEIVED {
		t.Errorf("%v, %v", a, err)
	}
	seen := errors.New("seen")
	if err := mind.Watch(p.ctx, mindlink.MaxRate, func(f mindlink.Frame) error {
		if slices.ContainsFunc(f.Picture.Pix[:], func(v uint16) bool { return v != 0x07e0 }) { // the high byte came first (VEC-DIS-01)
			t.Error("another picture")
		}
		return seen
	}); !errors.Is(err, seen) {
		t.Error(err)
	}
	image.FaceData = image.FaceData[2:]
	if _, err := p.DisplayFaceImageRGB(p.ctx, image); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	if a, err := p.SetEyeColor(p.ctx, &vectorpb.SetEyeColorRequest{Hue: 0.5, Saturation: 1}); err != nil || a.Status.Code != vectorpb.ResponseStatus_RESPONSE_RECEIVED {
		t.Errorf("%v, %v", a, err)
	}
	if _, err := p.SetEyeColor(p.ctx, &vectorpb.SetEyeColorRequest{Hue: 1.5}); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
}
