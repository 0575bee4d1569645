package corelink

import (
	"fmt"
	"strings"

	"kennel/edge/core"
	"kennel/infra/api/live"
)

// Motion is how the body moves (edge/core/control.Report).
type Motion struct {
	AtUS int64 `json:"at_us"`
	live.Motion
}

// Order asks the body for something. Motions need a claim; lights that no other peer has claimed and robot.stop() need none. It is answered when its
// first step has begun, or is done, and is of no effect if any of its steps makes no sense for this body.
type Order struct {
	Request uint32 `json:"request"` // of the peer's choice; comes back in the answer
	core.Order
}

// Do is an Order of one step as text, for peers older than Order. It reads, writes or calls slots of the tree, in one or several statements separated by ';': headPitch, robot.go(0.2) speed:0.1,
// wheelL.speed = 3; wheelR.speed = 3 (edge/robot.ParseLines, GOSTAI-OPEN-01). It does all or nothing.
type Do struct {
	Request uint32 `json:"request"` // of the peer's choice; comes back in the answer
	Line    string `json:"line"`
	ForMS   uint32 `json:"for_ms"` // the deadline of parts that need one, such as wheels; 0: as late as robotd allows
}

// Claim asks for devices, by any name of the tree, for TTLMS (0: until Release, or until the peer leaves). All or nothing.
type Claim struct {
	Request  uint32   `json:"request"`
	Devices  []string `json:"devices,omitempty"`
	Priority uint8    `json:"priority"` // edge/robot/claim.Priority, at most Person
	TTLMS    uint32   `json:"ttl_ms"`
}

// Renew lets a claim last for TTLMS more.
type Renew struct {
	Request uint32 `json:"request"`
	Lease   uint64 `json:"lease"` // of a Reply
	TTLMS   uint32 `json:"ttl_ms"`
}

// Release ends a claim.
type Release struct {
	Request uint32 `json:"request"`
	Lease   uint64 `json:"lease"`
}

// Stop stops all motors, also those of other peers, and needs no claim. (Halt takes the power away, and keeps it away.)
type Stop struct {
	Request uint32 `json:"request"`
}

// Reply answers each message with a Request that has no answer of its own, once.
type Reply struct {
	Request  uint32 `json:"request"`
	Code     string `json:"code"`     // ok, invalid, busy, not_held, stopped, full, gone, unable, unavailable (edge/core/control.Code)
	Detail   string `json:"detail"`   // for people: the reason of a refusal, or deviations from the request
	Underway bool   `json:"underway"` // a motion has begun; Ended says how it ends
	Lease    uint64 `json:"lease"`    // of a Claim
	Value    string `json:"value"`    // of an order: the values read or written, as in a line; of several statements separated by "; "
}

// Ended says how the motion of a request ended.
type Ended struct {
	Request uint32   `json:"request"`
	Outcome string   `json:"outcome"`           // done, cancelled, expired, released, blocked, missed, astray, stopped
	Reasons []string `json:"reasons,omitempty"` // of stopped, in words
	Moved   float64  `json:"moved"`             // of robot.go and robot.turn: the way that was made, as the call counts it
	Of      float64  `json:"of"`                // and what was asked for
	Unit    string   `json:"unit"`              // of both; "": the motion has no such way
	X       float64  `json:"x"`                 // where the body is
	Y       float64  `json:"y"`
	Theta   float64  `json:"theta"`
}

// Done is the outcome of a motion that went as asked.
const Done = "done"

// Words says to people how the motion ended: "stopped after 0.011 m of 0.1 m: its loop was late".
func (m *Ended) Words() string {
	s := m.Outcome
	switch {
	case m.Unit == "":
	case m.Outcome == Done:
		s += fmt.Sprintf(" after %.3g %s", m.Moved, m.Unit)
	default:
		s += fmt.Sprintf(" after %.3g %s of %.3g %s", m.Moved, m.Unit, m.Of, m.Unit)
	}
	if len(m.Reasons) > 0 {
		s += ": " + strings.Join(m.Reasons, ", ")
	}
	return s
}
