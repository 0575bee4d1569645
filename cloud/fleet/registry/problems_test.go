package registry

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"kennel/infra/api/status"
)

// TestWordsChangeNoFilter: neither a robot's words nor the explanation of a kind decide what a robot is found by.
func TestWordsChangeNoFilter(t *testing.T) {
	at := func(text string) StatusAt {
		m := status.Message{Body: &status.Body{BatteryLevel: "low", Fault: 914}}
		m.Tell(status.Problem{Kind: status.KindDocuments, Code: "not_synced", Text: text}, status.Problem{Kind: "novel", Text: text})
		return StatusAt{Message: m}
	}
	was := FacetsOf(at("vic.RobotSettings: read: no answer"))
	if want := []string{"battery", "documents", "fault", "novel"}; !slices.Equal(was.Problems, want) {
		t.Errorf("kinds %q, want %q", was.Problems, want)
	}
	if want := []string{"battery", "documents/not_synced", "fault/914", "novel"}; !slices.Equal(was.Codes, want) {
		t.Errorf("codes %q, want %q", was.Codes, want)
	}
	before := maps.Clone(explanations)
	t.Cleanup(func() { explanations = before })
	for kind := range explanations {
		explanations[kind] = Explanation{"fault: another sentence", "loop: another advice"}
	}
	if got := FacetsOf(at("fault 1: in other words: loop")); !reflect.DeepEqual(got, was) {
		t.Errorf("got %+v, want %+v", got, was)
	}
}

// TestEveryKindIsExplained: no kind is left without words.
func TestEveryKindIsExplained(t *testing.T) {
	for _, kind := range status.Kinds {
		if e, ok := explanations[kind]; !ok || e.Says == "" || e.Do == "" {
			t.Errorf("%s is not explained: %+v", kind, e)
		}
	}
	if len(explanations) != len(status.Kinds) || Explain("novel") != Explain(status.KindOther) {
		t.Error("a kind is explained that none has, or a new one is not")
	}
}

// TestTheRobotNamesItsFault: the fault that both the body and the agent tell of counts once.
func TestTheRobotNamesItsFault(t *testing.T) {
	m := status.Message{Body: &status.Body{Fault: 914}}
	m.Tell(status.Problem{Kind: status.KindFault, Code: "914", Text: "fault 914: it ended"})
	if got := ProblemsOf(StatusAt{Message: m}); len(got) != 1 || got[0].Text != "fault 914: it ended" {
		t.Errorf("got %+v", got)
	}
}
