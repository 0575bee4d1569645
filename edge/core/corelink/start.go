package corelink

// Start holds the time of each step of robotd's start (edge/startup, part of VEC-BOOT-11). It is sent again, longer, after each step, and the newest
// one to a peer that joins later. Times are CLOCK_MONOTONIC, in microseconds.
type Start struct {
	BeganUS int64       `json:"began_us"`
	Over    bool        `json:"over"` // the last step is in it
	Stages  []StageTime `json:"stages,omitempty"`
}

// StageTime is one step.
type StageTime struct {
	Name    string `json:"name"`
	BeganUS int64  `json:"began_us"`
	EndedUS int64  `json:"ended_us"`
	Error   string `json:"error"` // why it failed; "": it did not
}
