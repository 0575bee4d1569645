package vectorsdk_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/infra/api/vectorpb"
)

// The tests of this file show that this robot does better, within the original's words, than people found the original to do (issue 33, item 5).
// docs/vector-sdk.md lists the seven findings with the tests of each.

// TestDetectionSaysThatItIsOff: detection that the robot cannot do is refused when a program switches it on, with control and by its name. It is never on or off in
// silence.
func TestDetectionSaysThatItIsOff(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	for name, on := range map[string]func(bool) (*vectorpb.ResponseStatus, error){
		"faces": func(on bool) (*vectorpb.ResponseStatus, error) {
			a, err := p.EnableFaceDetection(p.ctx, &vectorpb.EnableFaceDetectionRequest{Enable: on})
			return a.GetStatus(), err
		},
		"markers": func(on bool) (*vectorpb.ResponseStatus, error) {
			a, err := p.EnableMarkerDetection(p.ctx, &vectorpb.EnableMarkerDetectionRequest{Enable: on})
			return a.GetStatus(), err
		},
		"motion": func(on bool) (*vectorpb.ResponseStatus, error) {
			a, err := p.EnableMotionDetection(p.ctx, &vectorpb.EnableMotionDetectionRequest{Enable: on})
			return a.GetStatus(), err
		},
		"mirror": func(on bool) (*vectorpb.ResponseStatus, error) {
			a, err := p.EnableMirrorMode(p.ctx, &vectorpb.EnableMirrorModeRequest{Enable: on})
			return a.GetStatus(), err
		},
	} {
		if s, err := on(false); err != nil || s.Code != vectorpb.ResponseStatus_OK {
			t.Errorf("%s off: %v, %v", name, s, err)
		}
		if s, err := on(true); status.Code(err) != codes.Unimplemented || s != nil {
			t.Errorf("%s on: %v, %v", name, s, err)
		}
	}
}

// TestListsDoNotWait: the lists of animations answer while the core is lost too, when the original's programs waited 20 s for them.
func TestListsDoNotWait(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := d.dial(t)
	for _, lost := range []bool{false, true} {
		if lost {
			d.lose()
		}
		ctx, cancel := context.WithTimeout(as(t, "all"), 10*time.Second) // half of what the original took
		if a, err := c.ListAnimations(ctx, &vectorpb.ListAnimationsRequest{}); err != nil || a.Status.Code != vectorpb.ResponseStatus_OK {
			t.Errorf("lost %v: %v, %v", lost, a, err)
		}
		if a, err := c.ListAnimationTriggers(ctx, &vectorpb.ListAnimationTriggersRequest{}); err != nil || a.Status.Code != vectorpb.ResponseStatus_OK {
			t.Errorf("lost %v: %v, %v", lost, a, err)
		}
		cancel()
	}
}

// TestDeathIsTold: a robot whose core ends says so on every stream, and to each call that needs it, in the words of gRPC.
func TestDeathIsTold(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	events := d.listen(t, &vectorpb.EventRequest{})
	events.primary()
	maps, err := p.NavMapFeed(p.ctx, &vectorpb.NavMapFeedRequest{Frequency: 1})
	if err != nil {
		t.Fatal(err)
	}
	d.lose()
	p.expects("lost") // the control stream stays, so that a program can ask again
	for name, next := range map[string]func() error{
		"events": func() error { _, err := events.s.Recv(); return err },
		"map":    func() error { _, err := maps.Recv(); return err },
	} {
		for err = nil; err == nil; err = next() {
		}
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := p.BatteryState(p.ctx, &vectorpb.BatteryStateRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("battery: %v", err)
	}
}

// TestFindingsDocumented: each test that docs/vector-sdk.md names for a finding exists.
func TestFindingsDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/vector-sdk.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(b), "\n## What people found about the original\n")
	if !ok {
		t.Fatal("no section on the findings")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var code strings.Builder
	for _, name := range []string{"findings_test.go", "behavior_test.go", "control_test.go", "events_test.go", "world_test.go", "cubes_test.go", "../app/robotapp/vectorsdk_test.go", "../../cmd/e2e/lives/originals_test.go", "../../cmd/e2e/lives/programs_test.go"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(b)
	}
	tests := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(section, -1)
	if rows := strings.Count(section, "\n| "); rows != 8 || len(tests) < 5 { // the head and seven findings
		t.Errorf("%d rows with %d tests", rows, len(tests))
	}
	for _, m := range tests {
		if !strings.Contains(code.String(), "func "+m[1]+"(") {
			t.Errorf("no %s", m[1])
		}
	}
}
