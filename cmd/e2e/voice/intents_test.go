package voice

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/liveview"
	"kennel/cmd/e2e/housetest"
)

// said is the command that came of a sentence to a robot.
type said struct {
	Intent   string
	Language string
	Command  struct {
		ID, State string
		Result    *struct{ Detail string }
	}
}

// tells sends a sentence or an intent to an own robot and waits for the robot's answer.
func tells(p *housetest.Person, thing string, what map[string]any) (s said) {
	p.T.Helper()
	p.Do("POST", "/v1/my/robots/"+thing+"/intents", what, &s)
	housetest.Await(p.T, time.Minute, fmt.Sprintf("an answer of %s to %v", thing, what), func() error {
		p.Do("GET", "/v1/things/"+thing+"/commands/"+s.Command.ID, nil, &s.Command)
		if s.Command.State == "pending" || s.Command.State == "sent" {
			return errors.New(s.Command.State)
		}
		return nil
	})
	return s
}

// TestIntents: an owner tells two species of robots what to do, in words; each acts as its body can, and says what it cannot (issue 19: build 4 and 7). A German robot
// understands typed German, then English (issue 31; part of VEC-NLP-08).
func TestIntents(t *testing.T) {
	h := housetest.New(t, "-robots", "vector:1,amigobot:1", "-robot-env", "KENNEL_FLUSH_MS=200")
	h.Start()
	things := h.AwaitPresent(2)
	ann := h.Owner(t, "ann@example.org", "Ann")
	words := func(text string) map[string]any { return map[string]any{"text": text} }
	for _, thing := range things {
		root := h.RobotRoot(thing)
		ann.Do("POST", "/v1/my/robots/claim", map[string]string{"code": housetest.ShownCode(t, root)}, nil)
		ann.Agrees(thing, true)
		answer := func(what map[string]any, intent, state, detail string) {
			t.Helper()
			s := tells(ann, thing, what)
			if s.Intent != intent || s.Command.State != state || s.Command.Result == nil || s.Command.Result.Detail != detail {
				t.Errorf("%s: %v: %+v, %+v; want %s, %s, %q", thing, what, s, s.Command.Result, intent, state, detail)
			}
		}
		h.Seen(thing, "its tree", func(liveview.Robot) error { return nil })
		housetest.Await(t, time.Minute, "what the robot can do", func() error {
			var r struct{ Status struct{ Intents []string } }
			if err := h.CtlJSON(&r, "robots", "show", thing); err != nil {
				return err
			}
			all := strings.Join(r.Status.Intents, " ")
			if !strings.Contains(all, "movement_forward") || strings.Contains(all, "kennel_lookup") != strings.HasPrefix(thing, "vic:") {
				return errors.New(all)
			}
			return nil
		})
		for try := 0; ; try++ { // where the machine has too much to do the core stops a drive for its own lateness
			before := h.Seen(thing, "rest", housetest.AtRest)
			s := tells(ann, thing, words("Go forward, please"))
			if s.Command.State != "done" && try < 10 {
				t.Logf("%s: %+v", thing, s.Command.Result)
				continue
			}
			after := h.Seen(thing, "rest after the drive", housetest.AtRest)
			from, to := before.World.Pose, after.World.Pose
			if way := math.Hypot(to[0]-from[0], to[1]-from[1]); s.Intent != "movement_forward" || s.Command.State != "done" || math.Abs(way-0.1) > 0.02 {
				t.Errorf("%s: %+v, it went %.3f m", thing, s, way)
			}
			break
		}
		answer(words("volume up"), "imperative_volumeup", "done", "my volume is 5 of 5")
		housetest.FileHas(t, root, "master_volume", 5)
		h.CloudHas(thing, "master_volume", 5)
		answer(words("what is two plus two"), "knowledge_response", "done", "The answer is 4.")
		answer(words("roll your cube"), "play_rollcube", "failed", "not supported by this robot")
		for try := 0; ; try++ { // an animation, too, may be ended by a late loop before it begins
			if s := tells(ann, thing, words("dance")); s.Command.State == "done" || try == 10 {
				if s.Command.Result == nil || s.Command.Result.Detail != "I dance" {
					t.Errorf("%s: dance: %+v", thing, s.Command.Result)
				}
				break
			}
		}
		if strings.HasPrefix(thing, "vic:") {
			for try := 0; ; try++ {
				if s := tells(ann, thing, words("look up")); s.Command.State == "done" || try == 10 {
					if s.Command.Result == nil || s.Command.Result.Detail != "I look up" {
						t.Errorf("look up: %+v", s.Command.Result)
					}
					break
				}
			}
		} else {
			answer(words("look up"), "imperative_lookatme", "failed", "not supported by this robot")
		}
		if strings.HasPrefix(thing, "vic:") {
			if out, err := h.Ctl("jdocs", "set", thing, "vic.RobotSettings", "locale=de-DE"); err != nil {
				t.Fatalf("a German robot: %s, %v", out, err)
			}
			housetest.FileHas(t, root, "locale", "de-DE")
			answer(words("Stell bitte den Timer auf fuenf Minuten"), "set_timer", "done", "Timer gestellt: 5 Minuten")
			answer(words("cancel the timer"), "global_stop", "done", "Timer gelöscht")
			answer(words("what is two plus two"), "knowledge_response", "done", "The answer is 4.") // said in English
			if out, err := h.Ctl("robot", "say", thing, "läuft der timer noch"); err != nil || !strings.Contains(string(out), "de-DE") || !strings.Contains(string(out), "es ist kein Timer gestellt") {
				t.Errorf("kennelctl robot say in German: %s, %v", out, err)
			}
			if out, err := h.Ctl("jdocs", "set", thing, "vic.RobotSettings", "locale=en-US"); err != nil {
				t.Fatalf("an English robot: %s, %v", out, err)
			}
			housetest.FileHas(t, root, "locale", "en-US")
		}
		answer(words("set a timer for five minutes"), "set_timer", "done", "timer set for 5 minutes")
		answer(words("cancel the timer"), "global_stop", "done", "timer cancelled")
		answer(map[string]any{"intent": "set_timer", "params": map[string]string{"timer_duration": "1"}}, "set_timer", "done", "timer set for 1 second")
		housetest.Await(t, time.Minute, "the ring of the timer", func() error {
			var events []struct{ S1 string }
			if err := h.CtlJSON(&events, "events", "list", "-thing", thing, "-event", "robot.timer"); err != nil {
				return err
			}
			for _, e := range events {
				if e.S1 == "rang" {
					return nil
				}
			}
			return fmt.Errorf("%+v", events)
		})
	}
	if code, b := ann.Try("POST", "/v1/my/robots/"+things[0]+"/intents", words("colourless green ideas")); code != 400 || !strings.Contains(string(b), "not_understood") {
		t.Errorf("not understood: %d %s", code, b)
	}
	bob := h.Owner(t, "bob@example.org", "Bob")
	if code, b := bob.Try("POST", "/v1/my/robots/"+things[0]+"/intents", words("stop")); code != 404 {
		t.Errorf("another's robot: %d %s", code, b)
	}
	if out, err := h.Ctl("robot", "say", things[0], "check", "the", "timer"); err != nil || !strings.Contains(string(out), "no timer is set") {
		t.Errorf("kennelctl robot say: %s, %v", out, err)
	}
}
