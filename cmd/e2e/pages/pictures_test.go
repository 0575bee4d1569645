package pages

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/app/demo"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/browser"
)

// desk is the part of a console page that a picture shows.
var desk = browser.Size{Width: 1440, Height: 960}

// pictures looks at the pages that README.md and docs/ show: those of the demo, and of one simulated robot beside it. make screens takes the pictures again.
func pictures(t *testing.T, s *housetest.Site) {
	t.Helper()
	h := s.House
	console := h.Ready.Endpoints["console"]
	operator, owner := demoPeople(t, h)

	p := s.Browser.Page(t, desk)
	signIn(p, console+"/", operator)
	p.At("^/account/password")
	p.Fill("Current password", operator.Password)
	p.Fill("New password, at least 10 characters", housetest.OwnersPassword)
	p.Fill("New password again", housetest.OwnersPassword)
	p.Press("Enter")
	p.See("Password changed.")
	p.Follow("Continue", "^/$")
	p.SeeIn("region", "Releases in use", "2.1.0.6091")
	p.Fits(browser.Sizes...)
	s.Picture(p, "overview", desk)
	p.Goto(console + "/rollouts/rollout?id=" + demo.Rollout)
	p.SeeIn("region", "Guards", "silent")
	p.Fits(browser.Sizes...)
	s.Picture(p, "rollout", browser.Size{Width: 1440, Height: 1480})
	p.Goto(console + "/crashes?version=2.1.0.6091")
	p.Follow("kennel/edge/agent/voice.(*Stream).window | kennel/edge/agent/voice.(*Stream).Write | kennel/edge/agent/voice.(*Session).Run", "^/crashes/group")
	p.Fits(browser.Sizes...)
	s.Picture(p, "crash-group", desk)
	p.Goto(console + "/things/vic:00e2d007?zoom=week")
	p.SeeRole("heading", "Health checks")
	p.Fits(browser.Sizes...)
	s.Picture(p, "robot-timeline", desk)
	p.Goto(console + "/things/vic:00e20100/robot")
	p.SeeIn("region", "Components and values", "headPitch")
	p.SeeIn("region", "Motion", "at rest")
	for _, joint := range []string{"arm, m", "headPitch, rad"} { // they have their places a while after the start
		p.SeeRole("slider", joint)
	}
	p.SeeRole("img", "What the robot’s display shows")
	s.Picture(p, "robot-page", browser.Size{Width: 1440, Height: 860})
	for _, path := range []string{"/alerts", "/health", "/things", "/events", "/audit", "/releases", "/bulk", "/rollouts"} { // no picture, and fuller than anywhere else
		p.Goto(console + path)
		p.Fits(browser.Sizes...)
	}

	phone := s.Browser.Page(t, browser.Phone)
	signIn(phone, console+"/my", owner)
	phone.At("^/my$")
	phone.Follow("Rex", "^/my/robots/")
	phone.SeeRole("heading", "Rex")
	phone.Fits(browser.Sizes...)
	s.Picture(phone, "my-robot", browser.Size{Width: 390, Height: 1236, Touch: true})
	phone.Goto(console + "/my")
	phone.Follow("Nia", "^/my/robots/") // who runs, and so answers
	phone.Click("button", "Battery level")
	housetest.Await(t, time.Minute, "an answer of the simulated robot", func() error {
		if told := string(phone.Eval(`(document.querySelector("#told li p span")?.textContent || "")`)); !strings.Contains(told, "battery") {
			return fmt.Errorf("it says %s", told)
		}
		return nil
	})
}

// firstSignIn is one person of the file of first passwords.
type firstSignIn struct{ Email, Password string }

func demoPeople(t *testing.T, h *housetest.House) (operator, owner firstSignIn) {
	t.Helper()
	b, err := os.ReadFile(h.Ready.Files["passwords"])
	var people struct{ Operator, Owner firstSignIn }
	if err == nil {
		err = json.Unmarshal(b, &people)
	}
	if err != nil {
		t.Fatal(err)
	}
	return people.Operator, people.Owner
}

func signIn(p *browser.Page, address string, who firstSignIn) {
	p.Goto(address)
	p.Fill("E-mail", who.Email)
	p.Fill("Password", who.Password)
	p.Press("Enter")
}

// TestDemo (issue 30.7): what the demo shows, by its ids, and the pictures of it. The same folder continues with the same robots.
func TestDemo(t *testing.T) {
	h := housetest.New(t, "-demo", "-robots", "1")
	h.Start()
	list := func(v any, line ...string) {
		t.Helper()
		if err := h.CtlJSON(v, line...); err != nil {
			t.Fatal(err)
		}
	}
	var robots []housetest.RobotRow
	list(&robots, "robots", "list")
	var r struct {
		State    string
		Progress struct {
			Phases []struct{ Done, Failed, Open, Offline int }
			Guards []struct{ Metric string }
		}
	}
	list(&r, "rollout", "show", demo.Rollout)
	if p := r.Progress; r.State != "running" || len(p.Guards) != 3 || len(p.Phases) < 3 || p.Phases[0].Done == 0 || p.Phases[2].Done == 0 || p.Phases[2].Open == 0 || p.Phases[2].Failed == 0 || p.Phases[2].Offline == 0 {
		t.Errorf("the rollout under way: %+v", r)
	}
	if list(&r, "rollout", "show", demo.OverRollout); r.State != "done" {
		t.Errorf("the rollout that is over: %+v", r)
	}
	var alerts []struct {
		Release, Kind, Code string
		Resolved            *time.Time
		Ack, Silenced       *struct{ By string }
	}
	list(&alerts, "alerts", "list")
	var seen []string
	for _, a := range alerts {
		seen = append(seen, fmt.Sprintf("%s %s/%s resolved=%v ack=%v silenced=%v", a.Release, a.Kind, a.Code, a.Resolved != nil, a.Ack != nil, a.Silenced != nil))
	}
	for _, want := range []string{"2.0.1.6076 fault/914 resolved=false ack=true silenced=false", "2.1.0.6091 crash_share/ resolved=false ack=false silenced=false", "2.0.0.6074 documents/ resolved=true ack=false silenced=true"} {
		if !slices.Contains(seen, want) {
			t.Errorf("no alert %q among %q", want, seen)
		}
	}
	var groups []struct {
		State    string
		Robots   int
		Versions []string
	}
	list(&groups, "crashes", "list")
	states := map[string]int{}
	for _, g := range groups {
		states[g.State] += g.Robots
	}
	if states["open"] < 10 || states["resolved"] == 0 {
		t.Errorf("robots with crashes, by the state of their group: %v", states)
	}
	s := housetest.NewSite(t, h)
	pictures(t, s)
	h.Stop()
	h.Start()
	var again []housetest.RobotRow
	if list(&again, "robots", "list"); len(again) != len(robots) || len(robots) < 100 {
		t.Errorf("%d robots, %d after another start", len(robots), len(again))
	}
	if online := func(r housetest.RobotRow) bool { return r.Presence == "present" }; !slices.ContainsFunc(robots, online) {
		t.Error("no robot is online")
	}
	h.AwaitPresent(100) // also after another start
	firstVisits(t, s)
}
