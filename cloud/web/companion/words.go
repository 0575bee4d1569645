package companion

import (
	"cmp"
	"fmt"
	"io/fs"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/owner"
	"kennel/infra/api/status"
	"kennel/infra/thing"
)

// state returns a robot's state in words for its owner.
type state struct {
	Mood    string // here, away, new, ill: how its face looks
	Line    string // one sentence
	Since   time.Time
	Battery string // one sentence; "": unknown, or not of now
	Posture string // one sentence, likewise
	Help    string // what the owner can do; "": nothing
	Says    []string
	Release string
	Tells   bool              // it says which documents it has
	Docs    map[string]uint64 // those, and their versions
	Can     []string          // intents that it can act on
}

// silentAfter is when an original robot, which calls about once a day, counts as away.
const silentAfter = 26 * time.Hour

// newState puts what the fleet knows into words.
func newState(t registry.Thing, now time.Time) state {
	s := state{Since: t.Since}
	switch {
	case t.LastSeen.IsZero():
		s.Mood, s.Line = "new", "It has not connected yet."
		s.Help = "Check that it is switched on and on your Wi-Fi."
		return s
	case t.Presence == registry.Calls:
		s.Mood, s.Line, s.Release = "here", "It last connected "+registry.Ago(now.Sub(t.LastSeen))+" ago.", t.Facets.Version
		if now.Sub(t.LastSeen) > silentAfter {
			s.Mood, s.Since, s.Help = "away", t.LastSeen, "A robot that is switched on connects about once a day. Put it on its charger and check that it is on your Wi-Fi."
		}
		return s
	case t.Presence != registry.Present:
		s.Mood, s.Line = "away", "It is offline."
		if s.Help = "Put it on its charger and check that it is on your Wi-Fi. It reconnects by itself."; now.Sub(t.Since) < 2*time.Minute {
			s.Help = "" // it may just walk through a door
		}
	default:
		s.Mood, s.Line = "here", "It is online and well."
	}
	m := t.Status
	if m == nil {
		return s
	}
	s.Release, s.Tells, s.Docs, s.Can = m.OS, m.Docs != nil, m.Docs, m.Intents
	if s.Mood != "here" {
		return s
	}
	for _, kind := range registry.KindsOf(t.Problems) {
		e := registry.Explain(kind)
		s.Says = append(s.Says, e.Says)
		s.Help = cmp.Or(s.Help, e.Do)
	}
	for _, p := range t.Problems {
		if p.Kind == status.KindOther {
			s.Says = append(s.Says, p.Text)
		}
	}
	if b := m.Body; b != nil {
		switch {
		case b.Charging:
			s.Battery = "It is charging."
		case b.OnCharger:
			s.Battery = "It sits on its charger."
		case b.BatteryLevel == "low":
			s.Battery = "Its battery is low."
		case b.BatteryLevel == "full":
			s.Battery = "Its battery is full."
		case b.BatteryLevel == "nominal":
			s.Battery = "Its battery is fine."
		}
		s.Posture = postures[b.Posture]
		if b.Fault != 0 {
			s.Mood, s.Line, s.Help = "ill", fmt.Sprintf("It shows fault %d.", b.Fault), "Switch it off and on again. If the number comes back, ask the operator of this server."
			return s
		}
	}
	if len(s.Says) > 0 {
		s.Mood, s.Line = "ill", "It is online, but it has a problem."
	}
	return s
}

// postures are the words of robots for how their body is.
var postures = map[string]string{
	"on its feet": "It is on its feet.", "standing": "It is on its feet.", "sitting": "It is sitting.", "lying": "It is lying down.", "off the floor": "It is off the floor.",
	"on its side": "It has fallen on its side.", "on its back": "It has fallen on its back.", "on its nose": "It has fallen on its nose.", "on its tail": "It has fallen on its tail.",
}

// picture returns the asset with the picture of a species; one without a picture of its own has the neutral one.
func picture(s thing.Species) string {
	if name := "robot-" + string(s) + ".svg"; fs.ValidPath("assets/" + name) {
		if _, err := fs.Stat(files, "assets/"+name); err == nil {
			return name
		}
	}
	return "robot.svg"
}

// how says how a robot came to its owner.
var how = map[string]string{
	owner.HowCode: "with its code", owner.HowAssociate: "with your app", owner.HowWiped: "with your app", owner.HowTransfer: "from its previous owner",
}

// day is a date as people say it; the clock does not matter.
func day(t time.Time) string { return t.UTC().Format("2 January 2006") }
