package kennel

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"kennel/infra/api/robotpb"
)

// Animation names what a robot plays: exactly one of Clip, Trigger and Mood.
type Animation struct {
	Clip    string   // such as "anim_mood_happy_01"
	Trigger string   // such as "MoodHappy", of whose clips one is drawn
	Mood    string   // such as "happy": what shows it on this body
	Loops   int      // at most 100; 0: once
	Ignore  []string // tracks that do not play: "head", "lift", "body"
}

func (a Animation) request(lease string) *robotpb.PlayRequest {
	q := &robotpb.PlayRequest{Loops: uint32(max(a.Loops, 0)), Ignore: a.Ignore, Lease: lease}
	switch {
	case a.Clip != "":
		q.What = &robotpb.PlayRequest_Clip{Clip: a.Clip}
	case a.Trigger != "":
		q.What = &robotpb.PlayRequest_Trigger{Trigger: a.Trigger}
	case a.Mood != "":
		q.What = &robotpb.PlayRequest_Mood{Mood: a.Mood}
	}
	return q
}

// Animations returns what the robot plays: clips, triggers, and moods with what shows them on its body.
func (r *Robot) Animations(ctx context.Context) (*robotpb.AnimationList, error) {
	return ask(ctx, r, r.api.Animations, &robotpb.AnimationsRequest{})
}

// Play plays an animation and returns when it has ended, which says what was left out because the body lacks it. tell, if not nil, hears its progress; an error
// of tell ends the animation, and Play returns it. If it was stopped the error is a *NotDone, whose words say why. If ctx ends first, the animation does. A Lease's
// Play takes the parts of the lease from its other motions meanwhile.
func (m Mover) Play(ctx context.Context, a Animation, tell func(*robotpb.PlayProgress) error) (ended *robotpb.PlayEnded, err error) {
	err = listen(ctx, m.r, m.r.api.Play, a.request(m.lease), func(p *robotpb.PlayProgress) error {
		if ended = p.GetEnded(); ended != nil {
			return io.EOF
		}
		if tell == nil {
			return nil
		}
		err := tell(p)
		if errors.Is(err, io.EOF) {
			err = context.Canceled
		}
		return err
	})
	return ended, notDone(ended, err)
}

// notDone returns err, or for something that was stopped a *NotDone.
func notDone(ended *robotpb.PlayEnded, err error) error {
	if err == nil && ended.Outcome != "done" {
		err = &NotDone{&robotpb.Ended{Outcome: ended.Outcome, Reasons: []string{ended.Reason}, Words: ended.Outcome + ": " + ended.Reason}}
	}
	return err
}

// Screen returns what the robot's display shows: as "png", "jpeg", "rgb" or "rgb565" (two bytes a pixel, the high one first); "": png. Its refusal is unable for
// a body without a display.
func (r *Robot) Screen(ctx context.Context, format string) (Picture, error) {
	m, err := ask(ctx, r, r.api.Screen, &robotpb.ScreenRequest{Format: format})
	if err != nil {
		return Picture{}, err
	}
	return picture(m), nil
}

// Screens gives see the frames of the robot's display, at most l.Rate a second, up to 33; 0: 20. A see that takes long gets the newest one next. It returns as
// Subscribe does.
func (r *Robot) Screens(ctx context.Context, l Look, see func(Picture) error) error {
	call := func(ctx context.Context, q *robotpb.ScreensRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[robotpb.Picture], error) {
		return r.api.Screens(ctx, q, opts...)
	}
	return listen(ctx, r, call, &robotpb.ScreensRequest{Format: l.Format, RateHz: l.Rate}, func(m *robotpb.Picture) error {
		if m.Format == "" {
			return nil // it only says that the robot is there
		}
		return see(picture(m))
	})
}
