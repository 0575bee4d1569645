package status

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestTextsAlone: agents that know no kinds are understood by the first word.
func TestTextsAlone(t *testing.T) {
	for text, want := range map[string]Problem{
		"documents: vic.RobotSettings: read: no answer": {KindDocuments, "", "vic.RobotSettings: read: no answer"},
		"document vic.RobotSettings: read: no answer":   {KindDocuments, "", "document vic.RobotSettings: read: no answer"},
		"robotd: the real-time core does not answer":    {KindRobotd, "", "the real-time core does not answer"},
		"Body : silent":                                    {KindBody, "", "silent"},
		"body: it sends nothing (fault 898)":               {KindBody, "", "it sends nothing (fault 898)"},
		"fault 914: vic-anim ended (Anim died)":            {KindFault, "914", "fault 914: vic-anim ended (Anim died)"},
		"faults: 3 more stand":                             {KindFault, "", "faults: 3 more stand"},
		"held by op because a wheel is off: nothing moves": {KindHeld, "", "held by op because a wheel is off: nothing moves"},
		"recovery boot: the user data are left alone":      {KindRecovery, "", "recovery boot: the user data are left alone"},
		"identity: renew: no route":                        {KindIdentity, "", "renew: no route"},
		"vic-anim: fault 914":                              {"vic-anim", "", "fault 914"},
		"wifi signal: weak":                                {"wifi", "", "wifi signal: weak"},
		"lookup api.example: no such host":                 {KindOther, "", "lookup api.example: no such host"},
		"it is dark":                                       {KindOther, "", "it is dark"},
		"none: x":                                          {KindOther, "", "none: x"},
		"":                                                 {KindOther, "", ""},
	} {
		m := Message{Problems: []string{text}}
		if got := m.Told(); len(got) != 1 || got[0] != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
}

// TestThereAndBack: a cloud of before reads the texts, this one gets the problems back, and a robot cannot invent kinds.
func TestThereAndBack(t *testing.T) {
	told := []Problem{{KindDocuments, "not_synced", "vic.RobotSettings: read: no answer"}, {KindFault, "914", "fault 914: it ended"}, {KindOther, "", "it is dark"}, {"novel", "7", "fault is what it says"}}
	m := Message{State: Online, BootID: "b"}
	m.Tell(told...)
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var before struct{ Problems []string }
	if err := json.Unmarshal(b, &before); err != nil || !slices.Equal(before.Problems, []string{"documents: vic.RobotSettings: read: no answer", "fault 914: it ended", "it is dark", "novel: fault is what it says"}) {
		t.Errorf("a cloud of before reads %q, %v", before.Problems, err)
	}
	got, err := Parse(b)
	if err != nil || !slices.Equal(got.Told(), told) {
		t.Errorf("got %+v, %v; want %+v", got.Told(), err, told)
	}
	odd := Message{Problems: []string{"a", "b", "c: d"}, Codes: []string{"None of it", "fault/<b>"}}
	if got, want := odd.Told(), []Problem{{KindOther, "", "a"}, {KindFault, "", "b"}, {"c", "", "d"}}; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
