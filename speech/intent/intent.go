// Package intent finds in a sentence what a person wants of a robot. It knows the original robots' intents by all of their names (annex D),
// and the file by which robots name them.
//
// A sentence is compared with patterns (languages/*.txt) of whole words and slots. Words that a pattern lacks lower the confidence; fillers
// such as "please" do not, and words such as "not" forbid it. Below a confidence of 0.62 nothing is matched.
package intent

import "kennel/infra/thing"

// Listener is the robot that a sentence is said to.
type Listener struct {
	Thing    thing.ID // "": it did not prove which one it is
	Language string   // such as en-US
	Ours     bool     // it has our agent, which understands Own, too
}

// Match is the meaning of a sentence. The zero value: nothing that a robot knows.
type Match struct {
	UserIntent string            `json:"user_intent"`        // the robot's own name of it, such as set_timer; "": unmatched
	Cloud      string            `json:"cloud_intent"`       // the name that the cloud sends, such as intent_clock_settimer_extend
	Params     map[string]string `json:"params,omitempty"`   // by the cloud's names (VEC-INT-06), such as timer_duration; "when" of weather is for Day
	Confidence float64           `json:"confidence"`         // 0 to 1
	Language   string            `json:"language,omitempty"` // in which typed words were understood; a Matcher leaves it empty, it has one
	Custom     string            `json:"custom,omitempty"`   // the name of the custom intent that it is; UserIntent is then the robot's reaction
}
