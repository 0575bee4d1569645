package status

import (
	"regexp"
	"strings"
)

// Problem is one thing that is wrong with a robot. Programs read Kind and Code; Text is for people, and no program reads it.
type Problem struct {
	Kind string `json:"kind"`           // one of the kinds below, or one of a newer agent
	Code string `json:"code,omitempty"` // within the kind, such as the number of a fault
	Text string `json:"text,omitempty"` // what is wrong here and now, with its step and peer
}

// Kinds of problems. The agent reports the first group, the cloud finds the second in the rest of the status.
const (
	KindDocuments  = "documents"  // settings are not in step with the cloud
	KindParameters = "parameters" // settings wait to be stored in the body
	KindRobotd     = "robotd"     // the real-time core does not answer
	KindBody       = "body"       // the body sends nothing
	KindHeld       = "held"       // a person halted the robot
	KindIdentity   = "identity"   // the robot cannot prove who it is
	KindRecovery   = "recovery"   // the robot started its recovery system
	KindFault      = "fault"      // a numbered fault is open; Code is its number
	KindOther      = "other"      // a problem without a kind

	KindBattery = "battery" // low, and not charging
	KindLoop    = "loop"    // the real-time loop is late
	KindClock   = "clock"   // the robot's clock is wrong
	KindEvents  = "events"  // the cloud refused events of the robot
	KindCrash   = "crash"   // a program crashed lately; Code is the release on which it did
)

// Kinds are all kinds that this release knows.
var Kinds = []string{KindBattery, KindBody, KindClock, KindCrash, KindDocuments, KindEvents, KindFault, KindHeld, KindIdentity, KindLoop, KindOther,
	KindParameters, KindRecovery, KindRobotd}

// firstWords are the first words of problems of agents that send texts alone, where the kind is another word.
var firstWords = map[string]string{"document": KindDocuments, "faults": KindFault, "held": KindHeld, "recovery": KindRecovery, "fault": KindFault}

var (
	kindPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,23}$`)
	codePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`)
	headPattern = regexp.MustCompile(`^[a-z][a-z0-9 _-]{0,23}$`)
)

// Token is kind/code, or the kind of a problem without a code. Filters and webhooks compare tokens.
func (p Problem) Token() string {
	if p.Code == "" {
		return p.Kind
	}
	return p.Kind + "/" + p.Code
}

// String returns the problem as people read it, which begins with its kind.
func (p Problem) String() string {
	switch {
	case p.Text == "":
		return p.Token()
	case p.Kind == KindOther || strings.HasPrefix(p.Text, p.Kind):
		return p.Text
	}
	return p.Kind + ": " + p.Text
}

// Tell adds problems to the message.
func (m *Message) Tell(problems ...Problem) {
	for _, p := range problems {
		m.Problems = append(m.Problems, p.String())
		m.Codes = append(m.Codes, p.Token())
	}
}

// Told returns the problems that the robot reports. An agent that sends texts alone is understood by the first word of each text; nothing
// else reads a kind from words. A kind that cannot be one becomes Other.
func (m *Message) Told() []Problem {
	var out []Problem
	for i, text := range m.Problems {
		if i < len(m.Codes) {
			out = append(out, coded(m.Codes[i], text))
		} else {
			out = append(out, worded(text))
		}
	}
	return out
}

func coded(token, text string) Problem {
	kind, code, _ := strings.Cut(strings.ToLower(token), "/")
	if !kindPattern.MatchString(kind) || kind == "none" || kind == "any" { // words of the filters
		kind, code = KindOther, ""
	}
	if !codePattern.MatchString(code) {
		code = ""
	}
	return Problem{kind, code, strings.TrimPrefix(text, kind+": ")}
}

func worded(text string) Problem {
	head, rest, colon := strings.Cut(text, ":")
	words := strings.Fields(strings.ToLower(head))
	if len(words) == 0 {
		return Problem{Kind: KindOther, Text: text}
	}
	if kind, ok := firstWords[words[0]]; ok {
		token := kind
		if kind == KindFault && colon && len(words) == 2 {
			token += "/" + words[1]
		}
		return coded(token, text)
	}
	if !colon || !headPattern.MatchString(strings.Join(words, " ")) {
		return Problem{Kind: KindOther, Text: text}
	}
	p := coded(words[0], text)
	if len(words) == 1 && p.Kind != KindOther {
		p.Text = strings.TrimSpace(rest)
	}
	return p
}
