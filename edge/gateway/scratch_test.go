package gateway_test

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"kennel/edge/mind"
	"kennel/edge/mind/mindtest"
	"kennel/infra/browser"
	"kennel/infra/testwait"
)

// TestScratchPage: who has a token looks at the robot in a browser, drives it with buttons and arrow keys, and types orders; at every size, by keyboard.
func TestScratchPage(t *testing.T) {
	s := newStudio(t, 10, display, mindtest.Voice)
	var shown board
	character := mindtest.With(t, s.dir, mind.Own{Seed: 1, Motions: mindtest.None, Notices: []mind.Notice{shown.notice}, Sound: mindtest.Synthesizer{Span: 2 * time.Minute}.Sound()})
	s.body.Measure("laser.distance", 0.5)
	p := browser.Start(t).Page(t, browser.Desktop)
	p.Goto("https://" + s.addr + "/")
	p.Sound(browser.Sizes...)
	p.Fill("Token", "no such token")
	p.Click("button", "Connect")
	p.SeeIn("alert", "", "token_wrong")
	p.Fill("Token", "all")
	p.Click("button", "Connect")
	p.See("you may look, talk, move, camera")
	p.SeeIn("group", "Values", "0.5")
	p.SeeRole("img", "What the camera sees now")
	p.Fill("Show parts with", "laser")
	if text := p.TextOf("group", "Values"); !strings.Contains(text, "robot.body.laser.distance") || strings.Contains(text, "pitch") {
		t.Errorf("the parts with laser: %s", text)
	}
	for _, line := range []struct{ text, answer string }{
		{"laser", "robot.body.laser.distance = 0.5 m"}, {"nowhere = 1", "invalid"}, {"headPitch = 0.2", "done"},
	} {
		p.Fill("An order, or the name of a part to read it", line.text)
		p.Press("Enter")
		p.SeeIn("log", "What happened", line.answer)
	}
	n := len(s.motions())
	p.Click("button", "Forward")
	if o := s.moved(t, n+1); math.Abs(o.A-0.05) > 1e-9 {
		t.Errorf("forward: %+v", o)
	}
	p.Click("button", "Stop all motors")
	p.SeeIn("log", "What happened", "stopped")
	p.Focus("button", "Left")
	p.Press("ArrowRight")
	if o := s.moved(t, n+2); math.Abs(o.A+math.Pi/12) > 1e-9 {
		t.Errorf("to the right: %+v", o)
	}
	p.Click("button", "Stop all motors")
	p.SeeRole("img", "What the display shows now")
	seeScreens(t, p, &shown)
	seeLive(t, p, character)
	p.Choose("Mood, trigger or clip", "LookBlink")
	p.Click("button", "Play")
	p.SeeIn("log", "What happened", "anim_look_blink_01: done")
	p.Click("button", "Listen")
	p.Fill("Text to say", "Here I am.")
	p.Click("button", "Say")
	p.SeeIn("status", "What it says", "Here I am.")
	testwait.Until(t, time.Minute, "the tone, by the browser's own measure", testwait.Holds(func() bool {
		return string(p.Eval("document.getElementById('loud').value > 0.2 && document.getElementById('loud').value < 0.3")) == "true"
	}))
	p.Sound(browser.Sizes...)
	if shot := os.Getenv("KENNEL_SHOT"); shot != "" {
		p.Shot(shot)
	}
	p.Click("button", "Silence robot")
	p.SeeIn("log", "What happened", "stopped: the robot was told to be silent")
	p.Click("button", "Listen")
	testwait.Until(t, time.Minute, "silence", testwait.Holds(func() bool { return string(p.Eval("document.getElementById('loud').value")) == "0" }))
	p.Reload() // the tab keeps the token
	p.See("you may look, talk, move, camera")
	for _, f := range p.Faults() {
		if !strings.Contains(f, "401") { // the wrong token
			t.Error(f)
		}
	}
}
