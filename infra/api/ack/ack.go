// Package ack is the one acknowledgement that counts: the application's answer on kennel/<thing>/down/ack, sent after the commit
// (infra/adr). A PUBACK of the broker says nothing about storage.
package ack

import (
	"encoding/json"
	"fmt"

	"kennel/infra/api/envelope"
)

// Status is the outcome of an uplink message.
type Status string

// The statuses. Only Stored lets the robot forget; Refused puts the message into quarantine; RetryAfter paces the fleet.
const (
	Stored     Status = "stored"
	Refused    Status = "refused"
	RetryAfter Status = "retry_after"
)

// Ack answers the uplink message whose id is Batch.
type Ack struct {
	V      int             `json:"v"`
	Batch  string          `json:"batch"`
	Status Status          `json:"status"`
	Code   string          `json:"code,omitempty"`     // refused, and retry_after for a reason of the robot's own: a stable word
	Reason string          `json:"reason,omitempty"`   // with Code: what was wrong, where, what was expected
	Bad    []uint64        `json:"bad_seqs,omitempty"` // refused: the events that spoil the batch; empty: all of it
	After  envelope.Millis `json:"after_ms,omitempty"` // retry_after: not before
}

// Encode returns the ack as JSON.
func (a Ack) Encode() ([]byte, error) { a.V = 1; return json.Marshal(a) }

// Parse reads and checks an ack.
func Parse(b []byte) (Ack, error) {
	var a Ack
	if err := json.Unmarshal(b, &a); err != nil {
		return Ack{}, fmt.Errorf("ack: %w", err)
	}
	if a.V != 1 || a.Batch == "" {
		return Ack{}, fmt.Errorf("ack: version %d, batch %.80q: want version 1 and a batch id", a.V, a.Batch)
	}
	switch a.Status {
	case Stored, Refused, RetryAfter:
		return a, nil
	}
	return Ack{}, fmt.Errorf("ack: status %.20q: want stored, refused or retry_after", a.Status)
}
