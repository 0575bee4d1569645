package robotapp

import (
	"bytes"
	"errors"
	"fmt"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/vectorpb"
	"kennel/infra/testwait"
)

// rounds returns how often something is done: a few times, or in the long form as often as the issue wants.
func rounds(few, many int) int {
	if os.Getenv("KENNEL_SOAK") == "1" {
		return many
	}
	return few
}

// TestVectorLives: programs connect one after the other, take control, drive a square, turn the head, read battery, state, range and camera, change eye color and
// volume, and disconnect (issue 33, what must hold 1). KENNEL_SOAK does it 100 times in a row.
func TestVectorLives(t *testing.T) {
	r := newSDKRobot(t)
	for n := range rounds(2, 100) {
		var p *sdkProgram
		testwait.Until(t, 4*patience, "the robot", func() (err error) { p, err = r.start(t, fmt.Sprint("life ", n)); return err })
		p.live(r, n)
		p.stop()
		if t.Failed() {
			t.Fatalf("life %d", n)
		}
	}
}

// live is the life of a program from control to its end.
func (p *sdkProgram) live(r *sdkRobot, n int) {
	t := p.t
	t.Helper()
	r.undisturbed(t, func() string {
		from := poseIn(t, r.in)
		for side := range 4 {
			p.straight(r.in, 40)
			p.turn(float64(side+1) * math.Pi / 2)
		}
		if to := poseIn(t, r.in); math.Hypot(to[0]-from[0], to[1]-from[1]) > 0.06 {
			return fmt.Sprintf("a square that began at %v ended at %v", from, to)
		}
		return ""
	})
	angle := 0.1 + 0.1*float64(n%4)
	p.act("head", func(tag int32) (*vectorpb.ActionResult, error) {
		a, err := p.SetHeadAngle(p.ctx, &vectorpb.SetHeadAngleRequest{AngleRad: float32(angle), IdTag: tag, NumRetries: 2})
		return a.GetResult(), err
	})
	s, err := p.state(func(s *vectorpb.RobotState) bool {
		return math.Abs(float64(s.HeadAngleRad)-angle) < 0.05 && (s.ProxData.FoundObject || s.ProxData.Unobstructed)
	})
	if err != nil {
		t.Fatalf("state: %v, %v", s, err)
	}
	if b, err := p.BatteryState(p.ctx, &vectorpb.BatteryStateRequest{}); err != nil || b.BatteryVolts < 3.5 {
		t.Errorf("battery: %v, %v", b, err)
	}
	p.look()
	color, volume := vectorpb.EyeColor(n%7), vectorpb.MasterVolumeLevel(n%5)
	if a, err := p.UpdateSettings(p.ctx, &vectorpb.UpdateSettingsRequest{Settings: &vectorpb.RobotSettingsConfig{EyeColor: &color}}); err != nil || a.Code != vectorpb.ResultCode_SETTINGS_ACCEPTED {
		t.Errorf("eye color: %v, %v", a, err)
	}
	if _, err := p.SetMasterVolume(p.ctx, &vectorpb.MasterVolumeRequest{VolumeLevel: volume}); err != nil {
		t.Errorf("volume: %v", err)
	}
	doc, err := p.PullJdocs(p.ctx, &vectorpb.PullJdocsRequest{JdocTypes: []vectorpb.JdocType{vectorpb.JdocType_ROBOT_SETTINGS}})
	if err != nil || len(doc.NamedJdocs) != 1 {
		t.Fatalf("settings: %v, %v", doc, err)
	}
	for _, want := range []string{fmt.Sprintf(`"eye_color":%d`, color), fmt.Sprintf(`"master_volume":%d`, volume+1)} {
		if text := doc.NamedJdocs[0].Doc.JsonDoc; !strings.Contains(text, want) {
			t.Errorf("settings %s, want %s", text, want)
		}
	}
}

// look takes a picture, which shows the simulated world.
func (p *sdkProgram) look() {
	t := p.t
	t.Helper()
	var shot *vectorpb.CaptureSingleImageResponse
	testwait.Until(t, 4*patience, "a picture", func() (err error) {
		shot, err = p.CaptureSingleImage(p.ctx, &vectorpb.CaptureSingleImageRequest{})
		return err
	})
	img, err := jpeg.Decode(bytes.NewReader(shot.Data))
	if err != nil || img.Bounds().Dx() != 640 || img.Bounds().Dy() != 360 {
		t.Fatalf("picture: %v, status %v", err, shot.Status)
	}
	least, most := uint32(math.MaxUint32), uint32(0)
	for y := 0; y < 360; y += 20 {
		for x := 0; x < 640; x += 20 {
			_, g, _, _ := img.At(x, y).RGBA()
			least, most = min(least, g), max(most, g)
		}
	}
	if most-least < 0x1000 {
		t.Errorf("a picture of nothing: levels %d to %d", least, most)
	}
}

// TestVectorFight: four programs want control at once, again and again. Each does its work in the end; what another takes from it ends INTERRUPTED or does not start,
// and once they have left, the robot rests and the next program has control.
func TestVectorFight(t *testing.T) {
	r := newSDKRobot(t)
	var first *sdkProgram
	testwait.Until(t, 4*patience, "the robot", func() (err error) { first, err = r.start(t, "first"); return err })
	first.act("head", func(tag int32) (*vectorpb.ActionResult, error) { // so that the head has found its zero, for which it needs longer than a fighter has control
		a, err := first.SetHeadAngle(first.ctx, &vectorpb.SetHeadAngleRequest{AngleRad: 0.2, IdTag: tag, NumRetries: 2})
		return a.GetResult(), err
	})
	first.end()
	const fighters = 4
	ended := make(chan error, fighters)
	for n := range fighters {
		var p *sdkProgram
		testwait.Until(t, 4*patience, "the robot", func() (err error) { p, err = r.start(t, fmt.Sprint("fighter ", n)); return err })
		defer p.end()
		go func() { ended <- p.fight(n, rounds(3, 100)) }()
	}
	for range fighters {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	var p *sdkProgram
	testwait.Until(t, 4*patience, "control after the fight", func() (err error) { p, err = r.start(t, "peace"); return err })
	defer p.stop()
	if s, err := p.state(func(s *vectorpb.RobotState) bool { return s.Status&0x20000 == 0 && s.LeftWheelSpeedMmps == 0 }); err != nil {
		t.Errorf("the robot does not rest: %v, %v", s, err)
	}
}

// fight nods so many times, and asks for control again whenever another has taken it.
func (p *sdkProgram) fight(n, nods int) error {
	answers := make(chan bool, 64) // granted or lost
	go func() {
		defer close(answers)
		for {
			m, err := p.control.Recv()
			if err != nil {
				return
			}
			switch {
			case m.GetControlGrantedResponse() != nil:
				answers <- true
			case m.GetControlLostEvent() != nil:
				answers <- false
			}
		}
	}()
	mine, done := true, 0
	for done < nods {
		if err := p.ctx.Err(); err != nil {
			return fmt.Errorf("fighter %d after %d nods: %w", n, done, err)
		}
		if !mine {
			time.Sleep(200*time.Millisecond + rand.N(1500*time.Millisecond)) // so that some nods end
			if err := p.control.Send(&vectorpb.BehaviorControlRequest{RequestType: &vectorpb.BehaviorControlRequest_ControlRequest{
				ControlRequest: &vectorpb.ControlRequest{Priority: vectorpb.ControlRequest_DEFAULT}}}); err != nil {
				return fmt.Errorf("fighter %d asks for control: %w", n, err)
			}
			for !mine {
				granted, open := <-answers
				if !open {
					return fmt.Errorf("fighter %d: its control stream ended", n)
				}
				mine = granted
			}
		}
		p.tag++
		angle := 0.1 + 0.3*float32(done%2)
		a, err := p.SetHeadAngle(p.ctx, &vectorpb.SetHeadAngleRequest{AngleRad: angle, MaxSpeedRadPerSec: 4, IdTag: p.tag})
		if err != nil {
			return fmt.Errorf("fighter %d nods: %w", n, err)
		}
		switch a.Result.GetCode() {
		case vectorpb.ActionResult_ACTION_RESULT_SUCCESS:
			done++
		case vectorpb.ActionResult_INTERRUPTED:
		case vectorpb.ActionResult_NOT_STARTED: // the stream says so too, now or soon
			if granted, open := <-answers; !open {
				return fmt.Errorf("fighter %d lost control and did not hear so", n)
			} else if mine = granted; granted {
				return fmt.Errorf("fighter %d has control and is told that it has not", n)
			}
		default:
			return errors.New("a nod ended " + a.Result.GetCode().String())
		}
		for heard := true; heard; {
			select {
			case granted, open := <-answers:
				mine, heard = granted && open, open
			default:
				heard = false
			}
		}
	}
	return nil
}
