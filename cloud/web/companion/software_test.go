package companion

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/ota"
)

var whenValue = regexp.MustCompile(`name="when" value="([^"]*)"`)

// TestSoftware: the card of a robot's software says each state of an update in words that the German page has too, escapes what operators and robots wrote, and
// offers only choices that the service would keep.
func TestSoftware(t *testing.T) {
	mux, h := open(t)
	soon := time.Now().Add(13 * 24 * time.Hour)
	all := []string{"now", "tonight", "1d", "3d", "7d"}
	planned := func(change func(*ota.Update)) ota.Update {
		u := ota.Update{Release: "2.0.1.6079", Notes: "Quieter.\n\n" + evil, Size: 4096, Latest: soon}
		change(&u)
		return u
	}
	for _, tt := range []struct {
		name    string
		u       ota.Update
		has     string
		choices []string
	}{
		{"nothing", ota.Update{Running: "2.0.0.1"}, "No update is waiting.", nil},
		{"planned", planned(func(*ota.Update) {}), "What is new", all},
		{"postponed", planned(func(u *ota.Update) { u.When, u.Until = ota.WhenPostponed, soon }), "Postponed until", all},
		{"not for longer", planned(func(u *ota.Update) { u.Latest = time.Now().Add(25 * time.Hour) }), "Tonight", all[:3]},
		{"too late to postpone", planned(func(u *ota.Update) { u.Latest = time.Now().Add(time.Minute) }), "Tonight", all[:2]},
		{"tonight", planned(func(u *ota.Update) { u.When, u.Window = ota.WhenTonight, &ota.Night }), "between 02:00 and 05:00", all},
		{"at once", planned(func(u *ota.Update) { u.When, u.Waits = ota.WhenNow, ota.WaitCharger }), causes[ota.WaitCharger], all},
		{"an agent without words", planned(func(u *ota.Update) { u.Phase, u.Reason = ota.Pending, "the moon is full" }), `lang="en">the moon is full`, all},
		{"downloading", planned(func(u *ota.Update) { u.Phase, u.Percent, u.Latest = ota.Downloading, 40, time.Time{} }), `value="40"`, nil},
		{"installed", planned(func(u *ota.Update) { u.Phase, u.Latest = ota.Installed, time.Time{} }), "It is installed and starts", nil},
		{"back", planned(func(u *ota.Update) { u.Back, u.Latest = true, time.Time{} }), "returns your robot to an earlier version", nil},
		{"failed", planned(func(u *ota.Update) {
			u.Failed = &ota.Report{Received: noon, Status: ota.Status{Phase: ota.Failed, Code: int(ota.TimedOut)}}
		}), failures[ota.TimedOut], all},
		{"fell back", planned(func(u *ota.Update) {
			u.Failed = &ota.Report{Received: noon, Status: ota.Status{Phase: ota.FellBack, Code: int(ota.Other)}}
		}), "returned to the previous one", all},
		{"failed otherwise", planned(func(u *ota.Update) {
			u.Failed = &ota.Report{Received: noon, Status: ota.Status{Phase: ota.Failed, Code: 999}}
		}), "Something went wrong.", all},
	} {
		h.update = tt.u
		body := do(t, mux, "ann", "GET", "/my/robots/vic:00e20100", "").Body.String()
		var offered []string
		for _, m := range whenValue.FindAllStringSubmatch(body, -1) {
			offered = append(offered, m[1])
		}
		if !strings.Contains(body, tt.has) || !slices.Equal(offered, tt.choices) || strings.Contains(body, "<script>alert") {
			t.Errorf("%s: offers %q, want %q and %q", tt.name, offered, tt.choices, tt.has)
		}
	}
	h.update = planned(func(u *ota.Update) { u.When = ota.WhenPostponed; u.Until = soon })
	x := h.things[rex]
	x.Presence = registry.Absent
	h.things[rex] = x
	if body := do(t, mux, "ann", "GET", "/my/robots/vic:00e20100", "").Body.String(); !strings.Contains(body, "It gets this when it reconnects.") {
		t.Error("a robot that is offline is not said to hear of it later")
	}
	x.Presence = registry.Calls
	h.things[rex] = x
	if body := do(t, mux, "ann", "GET", "/my/robots/vic:00e20100", "").Body.String(); whenValue.MatchString(body) || !strings.Contains(body, "You cannot choose the time here.") {
		t.Error("an original robot, which hears of no choice, is offered one")
	}
	h.did = nil
	if w := do(t, mux, "ann", "POST", "/my/robots/vic:00e20100/update", form("when", "30d")); w.Code != 400 || len(h.did) > 0 {
		t.Errorf("30 days: %d, did %q", w.Code, h.did)
	}
}
