package registry

import (
	"strings"

	"kennel/infra/api/status"
)

// Explanation says what a kind of problem means for a person, and what they can do. No program reads it.
type Explanation struct {
	Says string
	Do   string
}

// explanations is the one table of these words.
var explanations = map[string]Explanation{
	status.KindBattery:    {"Its battery is low, and it is not charging.", "Put it on its charger."},
	status.KindBody:       {"Its body does not answer.", "Check that the body is switched on, connected and in its usual mode."},
	status.KindClock:      {"Its clock is wrong.", "Let it reach a time server. Until then its event times are wrong."},
	status.KindCrash:      {"One of its programs crashed and was restarted.", "Its crash reports show the cause. If it keeps crashing, install another release. This problem clears 6 hours after the last crash."},
	status.KindDocuments:  {"Its settings are not in sync with the cloud.", "It keeps trying. If this lasts, check the document that is named."},
	status.KindEvents:     {"The cloud refused some of its events.", "The robot keeps them. Its event log and the cloud's log name the batch and the reason."},
	status.KindFault:      {"It reports a fault code.", "Look up the code in the list of fault codes. Switch the robot off and on again. If the code returns, it needs repair."},
	status.KindHeld:       {"A person has stopped it, so it does not move.", "The person who stopped it can release it."},
	status.KindIdentity:   {"It cannot prove its identity to the cloud.", "See the health checks. Fix the first one that fails."},
	status.KindLoop:       {"It is busy and may move jerkily.", "Restarting it usually helps."},
	status.KindOther:      {"It reports a problem.", "It keeps trying. Its message names the step and the other side."},
	status.KindParameters: {"Some of its parameters are not stored in its body yet.", "Its message says what the body is waiting for."},
	status.KindRecovery:   {"It started its recovery system without its settings.", "Switch it off and on for a normal start."},
	status.KindRobotd:     {"Its body program does not answer.", "It restarts by itself. If this lasts, switch the robot off and on."},
}

// Explain returns the words for a kind. A kind of a newer agent is explained as one without a kind.
func Explain(kind string) Explanation {
	if e, ok := explanations[kind]; ok {
		return e
	}
	return explanations[status.KindOther]
}

// Words returns problems as people read them, on one line.
func Words(problems []status.Problem) string {
	out := make([]string, len(problems))
	for i, p := range problems {
		out[i] = p.String()
	}
	return strings.Join(out, "; ")
}

// KindsOf returns the different kinds of problems, in the order in which they occur.
func KindsOf(problems []status.Problem) (out []string) {
	seen := map[string]bool{}
	for _, p := range problems {
		if !seen[p.Kind] {
			seen[p.Kind] = true
			out = append(out, p.Kind)
		}
	}
	return out
}
