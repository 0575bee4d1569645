package gateway_test

import (
	"bytes"
	"errors"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/mind/mindtest"
	"kennel/edge/robot"
	"kennel/infra/api/robotpb"
)

var display = robot.Part{Path: "body.head.display", Is: []string{"VideoOut"}}

// plays plays to the end, and returns how it began and how it ended.
func plays(t *testing.T, r robotpb.RobotClient, token string, q *robotpb.PlayRequest) (begun *robotpb.PlayBegun, ended *robotpb.PlayEnded, err error) {
	t.Helper()
	s, err := r.Play(as(token), q)
	if err != nil {
		t.Fatal(err)
	}
	for {
		p, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return begun, ended, nil
		}
		if err != nil {
			return begun, ended, err
		}
		if b := p.GetBegun(); b != nil {
			begun = b
		}
		if e := p.GetEnded(); e != nil {
			ended = e
		}
	}
}

// TestPlay: a program lists what the robot plays and plays it, hears what is left out and how it ended; one without the right, or whose motors are another's,
// does not. A program with a lease plays with the parts that it holds, and has them again afterwards.
func TestPlay(t *testing.T) {
	t.Parallel()
	d := newDesk(t, display)
	d.body.Measure("headPitch.turn", 0)
	mindtest.Start(t, d.dir, mindtest.None)
	r := d.dial(t)
	l, err := r.Animations(as("look"), &robotpb.AnimationsRequest{})
	if err != nil || len(l.Animations) < 20 || !slices.Contains(l.Triggers, "MoodHappy") || !slices.ContainsFunc(l.Moods, func(m *robotpb.Mood) bool { return m.Name == "happy" && m.Trigger == "MoodHappy" }) ||
		!slices.Equal(l.Lacks, []string{"lift"}) {
		t.Errorf("%v, %v", l, err)
	}
	happy := &robotpb.PlayRequest{What: &robotpb.PlayRequest_Mood{Mood: "happy"}, Ignore: []string{"body"}}
	begun, ended, err := plays(t, r, "all", happy)
	if err != nil || begun.GetClip() != "anim_mood_happy_01" || begun.SpanMs != 1300 || len(begun.LeftOut) != 1 || ended.GetOutcome() != "done" || ended.AtMs < 1300 {
		t.Errorf("%v, %v, %v", begun, ended, err)
	}
	lease, err := r.Claim(as("other"), &robotpb.ClaimRequest{Parts: []string{"headPitch"}, ForMs: 60_000})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = plays(t, r, "all", happy)
	if status.Code(err) != codes.FailedPrecondition && status.Code(err) != codes.Aborted && status.Code(err) != codes.AlreadyExists {
		t.Errorf("another's head: %v", err)
	}
	if _, _, err := plays(t, r, "look", happy); status.Code(err) != codes.PermissionDenied {
		t.Error(err)
	}
	happy.Lease = lease.Id
	if _, _, err := plays(t, r, "all", happy); err == nil {
		t.Error("another's lease")
	}
	if _, ended, err := plays(t, r, "other", happy); err != nil || ended.GetOutcome() != "done" {
		t.Errorf("%v, %v", ended, err)
	}
	if _, err := r.Renew(as("other"), &robotpb.RenewRequest{Lease: lease.Id}); err != nil {
		t.Error(err)
	}
	for _, wrong := range []*robotpb.PlayRequest{{}, {What: &robotpb.PlayRequest_Clip{Clip: "anim_look_blink_01"}, Loops: 101}, {What: &robotpb.PlayRequest_Clip{Clip: "none"}}} {
		if _, _, err := plays(t, r, "all", wrong); status.Code(err) != codes.InvalidArgument && status.Code(err) != codes.NotFound {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

// TestScreen: the display's frames come in each format, 184 by 96 pixels, one by one and as a stream whose frames differ, and only where there is a display.
func TestScreen(t *testing.T) {
	t.Parallel()
	d := newDesk(t, display)
	r := d.dial(t)
	if _, err := r.Screen(as("look"), &robotpb.ScreenRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("without a character: %v", err)
	}
	mindtest.Start(t, d.dir, mindtest.None)
	for format, size := range map[string]int{"": 0, "png": 0, "jpeg": 0, "rgb": 3 * 184 * 96, "rgb565": 2 * 184 * 96} {
		p, err := r.Screen(as("look"), &robotpb.ScreenRequest{Format: format})
		if err != nil || p.Width != 184 || p.Height != 96 || size > 0 && len(p.Data) != size {
			t.Errorf("%q: %d by %d, %d bytes, %v", format, p.GetWidth(), p.GetHeight(), len(p.GetData()), err)
			continue
		}
		if size > 0 {
			continue
		}
		img, kind, err := image.Decode(bytes.NewReader(p.Data))
		if err != nil || img.Bounds().Dx() != 184 || img.Bounds().Dy() != 96 || kind != p.Format {
			t.Errorf("%q: %s, %v", format, kind, err)
		}
	}
	s, err := r.Screens(as("look"), &robotpb.ScreensRequest{Format: "rgb565", RateHz: 30})
	if err != nil {
		t.Fatal(err)
	}
	var last *robotpb.Picture
	for differ := 0; differ < 3; {
		p, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if p.Format == "" {
			continue
		}
		if last != nil {
			if p.Seq <= last.Seq || p.AtUs <= last.AtUs {
				t.Errorf("frame %d at %d after %d at %d", p.Seq, p.AtUs, last.Seq, last.AtUs)
			}
			if !bytes.Equal(p.Data, last.Data) {
				differ++
			}
		}
		last = p
	}
	for _, wrong := range []*robotpb.ScreensRequest{{Format: "gif"}, {RateHz: 100}, {RateHz: -1}} {
		s, err := r.Screens(as("look"), wrong)
		if err == nil {
			_, err = s.Recv()
		}
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", wrong, err)
		}
	}

	d = newDesk(t)
	mindtest.Start(t, d.dir, mindtest.None)
	if _, err := d.dial(t).Screen(as("look"), &robotpb.ScreenRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without a display: %v", err)
	}
}
