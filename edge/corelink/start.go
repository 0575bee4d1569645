package corelink

// Start says what each step of robotd's start took (edge/stages, VEC-BOOT-11). It comes again, longer, with each step that is over, and is the newest
// for a peer that joins later. Times are CLOCK_MONOTONIC, in microseconds.
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
