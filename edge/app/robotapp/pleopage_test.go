package robotapp

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/lifeos/lifeostest"
	"kennel/edge/body/pleo/pleosim"
	"kennel/edge/gateway"
	"kennel/edge/sim/uart"
	"kennel/infra/api/poke"
	"kennel/infra/browser"
	"kennel/infra/testwait"
)

// pleoHand touches a simulated Pleo.
type pleoHand struct{ *pleosim.Robot }

func (pleoHand) Present() bool                               { return true }
func (h pleoHand) Poke(_ context.Context, p poke.Poke) error { return h.Robot.Poke(p) }

const needyPleo = `#include <Drive.inc>
#include <Property.inc>
forward hunger_eval(); forward social_eval();
public init() {
	set(property_mood, 2);
	set(property_fatigue, -40);
	drive_add("hunger", -25, 30, 100);
	drive_add("social", 0, 10, 100);
}
public hunger_eval() return 12
public social_eval() return 77
main() for (;;) sleep 1000;
`

// TestPleoPage: the robot's own page of a Pleo shows its posture, drives and feelings as they are, and a click or a key on a place of its picture touches a
// simulated Pleo there. The buttons for driving make it walk. A real one is touched by hand, and the page says so.
func TestPleoPage(t *testing.T) {
	b := browser.Start(t)
	open := func(t *testing.T, hand func(*pleosim.Robot) gateway.Hand) (*browser.Page, *pleosim.Robot) {
		r, err := pleosim.NewRobot(pleosim.Config{Card: pleosim.Card{"main.amx": lifeostest.Compile(t, needyPleo)}})
		if err != nil {
			t.Fatal(err)
		}
		file := gatewayOf(t, "pleo:00e20100", "pleo", "", hand(r), func(ctx context.Context, line *uart.Socket) error { return r.Run(ctx, line, nil) })
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var at struct{ Address string }
		if err := json.Unmarshal(text, &at); err != nil {
			t.Fatal(err)
		}
		p := b.Page(t, browser.Desktop)
		p.Goto("https://" + at.Address + "/")
		p.Fill("Token", "nod")
		p.Click("button", "Connect")
		p.SeeIn("region", "Pleo", "social, active")
		return p, r
	}
	p, r := open(t, func(r *pleosim.Robot) gateway.Hand { return pleoHand{r} })
	for _, text := range []string{"On its feet", "hunger", "77", "Mood: happy", "-40"} {
		p.SeeIn("region", "Pleo", text)
	}
	leg := func() string { return string(p.Eval(`document.querySelector("#pleo path.limb").getAttribute("d")`)) }
	before := leg()
	p.Fill("An order, or the name of a part to read it", "hipFR.angle = 0.4 time:1s")
	p.Press("Enter")
	p.SeeIn("log", "What happened", "done")
	testwait.Until(t, patience, "the picture of the leg", testwait.Holds(func() bool { return leg() != before }))
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	p.Click("button", "Forward")
	if s, err := r.Await(ctx, func(s pleosim.State) bool { return s.Pose.X > 0.035 }); err != nil {
		t.Errorf("told to go 5 cm it is at %+v: %v", s.Pose, err)
	}
	p.Click("button", "Touch its chin")
	p.SeeIn("log", "What happened", "robot.touched headTouchD")
	p.Focus("button", "Touch its rump")
	p.Press("Enter")
	p.SeeIn("log", "What happened", "robot.touched bodyTouchB")
	r.Set(lifeos.SensorHead, 1)
	testwait.Until(t, patience, "the place that is touched", testwait.Holds(func() bool {
		return string(p.Eval(`document.querySelector("#pleo .touched")?.getAttribute("aria-label") ?? ""`)) == `"Touch its head"`
	}))
	p.Sound(browser.Phone, browser.Desktop)
	if shot := os.Getenv("KENNEL_SHOT"); shot != "" {
		p.Shot(shot)
	}
	if faults := slices.DeleteFunc(p.Faults(), func(f string) bool { return strings.Contains(f, "animations") }); len(faults) > 0 {
		t.Error(faults)
	}
	p, _ = open(t, func(*pleosim.Robot) gateway.Hand { return nil })
	p.SeeIn("region", "Pleo", "touch it by hand")
	if n := string(p.Eval(`document.querySelectorAll("#pleo [role=button]").length`)); n != "0" {
		t.Errorf("a real Pleo has %s buttons for hands", n)
	}
}
