package corelink

// Event is something that happened, as the robot's event log names it (edge/core/control.Event). A sense or a body that is new needs no other message.
type Event struct {
	Seq      uint64   `json:"seq"` // of this robotd, from 1
	AtUS     int64    `json:"at_us"`
	Name     string   `json:"name"`
	Warning  bool     `json:"warning"`
	Quiet    bool     `json:"quiet"`    // for the robot's programs alone: the event log leaves it out
	Replayed bool     `json:"replayed"` // it happened before the peer joined
	Numbers  []int64  `json:"numbers,omitempty"`
	Texts    []string `json:"texts,omitempty"`
}

// Totals are sums that only grow while robotd runs, such as odometers, under the keys of the lifetime statistics (part of VEC-DOC-07).
type Totals struct {
	Names  []string  `json:"names,omitempty"`
	Values []float64 `json:"values,omitempty"` // one for each name
}
