package corelink

import (
	"fmt"
	"os"
	"unicode/utf8"

	"kennel/infra/api/live"
)

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

// Subscribe asks for an Update of slots by their ID each time one of them changes, but at most once in EveryMS, at least MinEveryMS; the first
// comes at once (GOSTAI-OPEN-02). It lasts until Unsubscribe, or until the peer leaves.
type Subscribe struct {
	Request uint32 `json:"request"` // names the subscription
	Slots   []int  `json:"slots,omitempty"`
	EveryMS uint32 `json:"every_ms"`
}

// MinEveryMS is the shortest interval of a subscription: 50 a second.
const MinEveryMS = 20

// Unsubscribe ends a subscription, without an answer.
type Unsubscribe struct {
	Request uint32 `json:"request"` // of Subscribe
}

// Update has the values of a subscription's slots, all of one moment; a slot without a value is left out. An update that its peer is too slow for
// is replaced by the next one: then numbers are missing in Seq.
type Update struct {
	Request uint32       `json:"request"` // of Subscribe
	Seq     uint64       `json:"seq"`     // of the subscription, from 1
	AtUS    int64        `json:"at_us"`   // the moment, CLOCK_MONOTONIC
	Values  []live.Value `json:"values,omitempty"`
}

// GetBoard asks for the Board. A robotd that shares none answers with a Reply.
type GetBoard struct {
	Request uint32 `json:"request"`
}

// Board comes with a file of shared memory that holds the numbers of all slots. A peer that follows them there costs robotd nothing.
type Board struct {
	Request uint32   `json:"request"`
	File    *os.File `json:"-" cbor:"-"` // for sharedmem.Map and state.ReadShared; the receiver closes it; nil if none came
}

// check is decode of what was just encoded, without the decoding: the encoder has refused numbers that are not finite.
func (m *Update) check() error {
	if len(m.Values) > maxElements {
		return fmt.Errorf("%w: %d values, want at most %d", ErrMalformed, len(m.Values), maxElements)
	}
	for i := range m.Values {
		if t := m.Values[i].Text; t != nil && !utf8.ValidString(*t) {
			return fmt.Errorf("%w: text of slot %d is not UTF-8", ErrMalformed, m.Values[i].Slot)
		}
	}
	return nil
}

// Introduce sends robotd the robot's identity, for the slots of the tree's root: robotd does not read it itself.
type Introduce struct {
	Name   string `json:"name"`
	Serial string `json:"serial"`
	IP     string `json:"ip"`
}
