package console

import (
	"slices"
	"strings"
	"testing"

	"kennel/cloud/access"
	"kennel/infra/auth"
)

// TestRobotPage: everybody of the staff sees the tree, the buttons and sliders are for those who may send commands.
func TestRobotPage(t *testing.T) {
	mux, _ := openDesk(t)
	for _, role := range auth.Staff {
		w := do(t, mux, role, "GET", "/things/vic:00e20100/robot", "")
		body := w.Body.String()
		for _, want := range []string{"headPitch", "robot.body.head.pitch", `<details class="part" id="part-robot.body.head.pitch" data-part="headPitch">`, `data-filter="tree"`, "0.25", ">rad<", "-0.785 to 0.384", "130 ms", "not known", "12.30 m", `data-again="1000"`, `aria-current="page">Robot<`, "Motion is blocked"} {
			if w.Code != 200 || !strings.Contains(body, want) {
				t.Fatalf("as %q: %d without %q", role, w.Code, want)
			}
		}
		if strings.Contains(body, "<script>alert") || strings.Contains(body, ">robot.body<") {
			t.Errorf("as %q: text of the robot is markup, or a part that only holds others is shown", role)
		}
		for _, want := range []string{`<img class="display" src="data:image/jpeg;base64,/9j/"`, ">simulated<", "0.4 m from the ", `role="status" data-live="where"`, "-0.1", "Position error", "10.0 cm", "14° down", "5 more walls", `class="ghost"`, `class="wall"`} {
			if !strings.Contains(body, want) {
				t.Errorf("as %q: the world is shown without %q", role, want)
			}
		}
		for _, form := range []string{"stop", "poke"} {
			may := slices.Contains(access.HTTP["POST /things/{thing}/"+form].Roles, role)
			if shown := strings.Contains(body, `action="/things/vic:00e20100/`+form+`"`); may != shown {
				t.Errorf("as %q: may %s it: %v, has the button: %v", role, form, may, shown)
			}
		}
		may := slices.Contains(access.HTTP["POST /v1/things/{thing}/commands"].Roles, role)
		for _, part := range []string{`data-commands="/v1/things/vic:00e20100/commands"`, `name="headPitch" min="-0.785" max="0.384" step="any" value="0.25"`, "/assets/drive.js?"} {
			if strings.Contains(body, part) != may {
				t.Errorf("as %q: may drive it: %v, has %s: %v", role, may, part, !may)
			}
		}
	}
}

// TestHand: the page has a button for each thing that the body feels, which works without a script. A form with anything else is refused.
func TestHand(t *testing.T) {
	mux, d := openDesk(t)
	body := do(t, mux, auth.Admin, "GET", "/things/vic:00e20100/robot", "").Body.String()
	for text, want := range map[string]bool{
		`<button name="do" value="touch">Touch</button>`:                true,
		`<button name="do" value="turn back">Turn on its back</button>`: true,
		`value="lift"`: false,
	} {
		if strings.Contains(body, text) != want {
			t.Errorf("%s is there: %v, want %v", text, !want, want)
		}
	}
	for _, form := range []string{"", form("do", "kick"), form("do", "turn")} {
		w := do(t, mux, auth.Admin, "POST", "/things/vic:00e20100/poke", form)
		if w.Code != 400 || !strings.Contains(w.Body.String(), "want one of") || len(d.did) > 0 {
			t.Errorf("%q: %d, did %q", form, w.Code, d.did)
		}
	}
}

// TestNoWorld: the page of a robot that is not simulated speaks of no world, and has no buttons for a hand.
func TestNoWorld(t *testing.T) {
	r, err := glass{}.Look(t.Context(), rex)
	if err != nil {
		t.Fatal(err)
	}
	r.World = nil
	if v := newRobotView(thingHead{}, r); v.World != nil || v.Hand != nil || v.Where != "" || !v.Seen {
		t.Errorf("%+v", v)
	}
}
