package corelink

import "kennel/infra/api/live"

// GetTree asks for the Tree.
type GetTree struct {
	Request uint32 `json:"request"` // of the peer's choice; comes back in the answer
}

// Tree is the body's structure tree: what never changes while robotd runs.
type Tree struct {
	Request uint32 `json:"request"`
	live.Tree
}

// GetValues asks for the Values of the moment.
type GetValues struct {
	Request uint32 `json:"request"`
}

// Values are all slots that have been measured or set, all of one moment. A slot without a value is left out.
type Values struct {
	Request uint32       `json:"request"`
	AtUS    int64        `json:"at_us"` // the moment, CLOCK_MONOTONIC
	Values  []live.Value `json:"values,omitempty"`
}

// Introduce sends robotd the robot's identity, for the slots of the tree's root: robotd does not read it itself.
type Introduce struct {
	Name   string `json:"name"`
	Serial string `json:"serial"`
	IP     string `json:"ip"`
}
