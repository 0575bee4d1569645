// Package owners holds the messages of robot and cloud about the robot's owner, as JSON over MQTT requests. The broker has
// proved which robot asks.
//
//	req/owner/code    Keyed -> Code    a code to show; the person who types it owns the robot. Refused while it has an owner
//	req/owner/wiped   Keyed -> {}      the user's data are gone (VEC-TOK-10), and with them its owner
//	req/owner/status  (empty) -> Status
//
// A request carries a key that the robot makes up for each code it wants and for each wipe, and repeats with the request: a code asked for
// twice with one key is one code, a wipe told twice is one wipe, however late the second comes. Times are durations: robot clocks lie.
package owners

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Names of the requests.
const (
	Service      = "owner"
	CodeMethod   = "code"
	WipedMethod  = "wiped"
	StatusMethod = "status"
)

// MaxBody bounds each body, in bytes; MaxKey a key.
const (
	MaxBody = 4 << 10
	MaxKey  = 64
)

// Keyed is the body of a request for a code and of the news of a wipe.
type Keyed struct {
	Key string `json:"key"` // 1 to 64 letters, digits, - and _
}

// Code is the code that the robot shows.
type Code struct {
	Code        string `json:"code"` // such as "K7QM-3XW9"
	ExpiresInMS int64  `json:"expires_in_ms"`
}

// Status says whose the robot is.
type Status struct {
	Owned bool `json:"owned"`
	// UserID is the owner's account; "" without one. It is the only thing that robots learn of people (VEC-DOC-09).
	UserID string `json:"user_id,omitempty"`
	// DataCollection: events of this robot are kept (VEC-DAS-08).
	DataCollection bool `json:"data_collection"`
	// CodeExpiresInMS is how long the code that was last asked for is good; 0: there is none, or it was used or tried too often.
	CodeExpiresInMS int64 `json:"code_expires_in_ms,omitempty"`
	CodeTriesLeft   int   `json:"code_tries_left,omitempty"`
}

// MayCollect reports whether data of the robot may be collected: it has no owner, so that they are no person's, or its owner allows it (part of VEC-DAS-08).
func (s Status) MayCollect() bool { return !s.Owned || s.DataCollection }

// ParseKeyed reads a request: one JSON object with a well-formed key and nothing else.
func ParseKeyed(b []byte) (Keyed, error) {
	k, err := parse[Keyed](b, true)
	if err != nil {
		return Keyed{}, err
	}
	if !wellFormed(k.Key) {
		return Keyed{}, fmt.Errorf("key %.80q: want 1 to %d letters, digits, - and _", k.Key, MaxKey)
	}
	return k, nil
}

// ParseCode reads the answer to a request for a code. Fields of later versions pass.
func ParseCode(b []byte) (Code, error) {
	c, err := parse[Code](b, false)
	if err == nil && (c.Code == "" || len(c.Code) > MaxKey || c.ExpiresInMS <= 0) {
		err = errors.New("answer: want a code and its validity")
	}
	if err != nil {
		return Code{}, err
	}
	return c, nil
}

// ParseStatus reads the answer to a request for the status. Fields of later versions pass.
func ParseStatus(b []byte) (Status, error) {
	s, err := parse[Status](b, false)
	if err == nil && s.Owned != (s.UserID != "") {
		err = fmt.Errorf("answer: owned %v, user_id %.80q: want both or neither", s.Owned, s.UserID)
	}
	if err != nil {
		return Status{}, err
	}
	return s, nil
}

func wellFormed(key string) bool {
	for i := range len(key) {
		c := key[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return key != "" && len(key) <= MaxKey
}

// Encode returns the body that carries v: one of the types above.
func Encode[T Keyed | Code | Status](v T) ([]byte, error) { return json.Marshal(v) }

func parse[T any](b []byte, strict bool) (T, error) {
	var v, none T
	if len(b) > MaxBody {
		return none, fmt.Errorf("body of %d bytes: want at most %d", len(b), MaxBody)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("empty: want a JSON object")
		}
		return none, fmt.Errorf("body at byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return none, fmt.Errorf("body: data after the object at byte %d", d.InputOffset())
	}
	return v, nil
}
