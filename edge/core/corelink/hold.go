package corelink

// Hold halts the robot until Unhold, for as long as people want: also a robotd that starts again stays halted, and no Resume lifts it.
type Hold struct {
	Request uint32 `json:"request"`
	By      string `json:"by"` // the person
	Reason  string `json:"reason"`
}

// Unhold ends a Hold. The sender has made sure that the person may do so.
type Unhold struct {
	Request uint32 `json:"request"`
}

// Held names the person who holds the robot; it is sent when that changes, and to each peer that joins.
type Held struct {
	By      string `json:"by"` // "": the robot is not held
	Reason  string `json:"reason"`
	SinceMS int64  `json:"since_ms"` // ms since 1970 by the robot's clock
}
