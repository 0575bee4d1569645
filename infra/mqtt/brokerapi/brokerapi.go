// Package brokerapi defines the messages between the embedded broker and the cloud beside the fleet's traffic: which clients were refused
// and why, the broker's state, which clients to disconnect, and which to refuse. All of it is JSON on topics below $kennel/broker/, which
// only services may use.
package brokerapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kennel/infra/api/topics"
)

// Topics.
const (
	RefusedTopic = topics.BrokerRefused   // broker -> cloud: Refusal
	StatsTopic   = "$kennel/broker/stats" // broker -> cloud: Stats, every 10 s, retained
	KickTopic    = "$kennel/broker/kick"  // cloud -> broker: Kick
	DenyTopic    = "$kennel/broker/deny"  // cloud -> broker: Deny; acknowledged when it is in force and on disk
)

// Refusal codes, stable words for programs.
const (
	CodeNoCertificate = "no_certificate"   // TLS client without a certificate
	CodeExpired       = "expired"          // certificate ended
	CodeNotYetValid   = "not_yet_valid"    // certificate not begun
	CodeForeign       = "foreign"          // not issued by an authority we trust for clients
	CodeWeakKey       = "key_weak"         // RSA with a small public exponent
	CodeBadName       = "bad_name"         // common name is neither a thing nor a service
	CodeClientID      = "client_id"        // client id is not the certificate's name
	CodeWill          = "will"             // will on a topic that is not the client's
	CodeProtocol      = "protocol"         // not MQTT 3.1.1, or malformed
	CodePublish       = "publish_denied"   // topic, size, retain or QoS outside the contract
	CodeSubscribe     = "subscribe_denied" // filter outside the contract
	CodeTLS           = "tls"              // handshake ended early; often a client that lacks our root
	CodeKicked        = "kicked"           // disconnected on the cloud's order
	CodeBusy          = "too_many_clients" // the limit of connections
	CodeTakeover      = "takeover"         // the client id is in use under another certificate name
	CodeRevoked       = "revoked"          // certificate or its key was revoked
	CodeBlocked       = "blocked"          // the thing is refused with any certificate
)

// Refusal says that the broker turned a client or one of its packets away.
type Refusal struct {
	V        int       `json:"v"`
	At       time.Time `json:"at"`
	Addr     string    `json:"addr"`                // remote address
	ClientID string    `json:"client_id,omitempty"` // as the client said; empty before CONNECT
	CN       string    `json:"cn,omitempty"`        // common name of its certificate, verified or not
	Issuer   string    `json:"issuer,omitempty"`    // common name of its issuer
	Serial   string    `json:"serial,omitempty"`    // of the certificate, hex; empty: it showed none
	NotAfter time.Time `json:"not_after,omitzero"`  // when the certificate ends
	Code     string    `json:"code"`
	Reason   string    `json:"reason"`          // for people: what was wrong, what was expected
	Muted    int64     `json:"muted,omitempty"` // refusals of its kind not published since the last one, by the rate limit
}

// Encode returns the refusal as JSON, its texts bounded.
func (r Refusal) Encode() ([]byte, error) {
	r.V = 1
	r.ClientID, r.CN, r.Issuer, r.Serial, r.Reason = clip(r.ClientID), clip(r.CN), clip(r.Issuer), clip(r.Serial), clip(r.Reason)
	return json.Marshal(r)
}

// ParseRefusal reads and checks a refusal.
func ParseRefusal(b []byte) (Refusal, error) {
	var r Refusal
	if err := json.Unmarshal(b, &r); err != nil {
		return Refusal{}, fmt.Errorf("refusal: %w", err)
	}
	if r.V != 1 || r.Code == "" || r.At.IsZero() {
		return Refusal{}, fmt.Errorf("refusal: version %d, code %.40q, at %v: want version 1, a code and a time", r.V, r.Code, r.At)
	}
	return r, nil
}

// Kick asks the broker to close the session of a client. A client whose certificate is still accepted comes back.
type Kick struct {
	V        int    `json:"v"`
	ClientID string `json:"client_id"`
	Reason   string `json:"reason"`
}

// Encode returns the kick as JSON.
func (k Kick) Encode() ([]byte, error) { k.V = 1; return json.Marshal(k) }

// ParseKick reads and checks a kick.
func ParseKick(b []byte) (Kick, error) {
	var k Kick
	if err := json.Unmarshal(b, &k); err != nil {
		return Kick{}, fmt.Errorf("kick: %w", err)
	}
	if k.V != 1 || k.ClientID == "" || len(k.ClientID) > 256 {
		return Kick{}, errors.New("kick: want version 1 and a client_id of 1 to 256 bytes")
	}
	return k, nil
}

// Stats is how the broker is. Counts are since its start unless they say now.
type Stats struct {
	V                int   `json:"v"`
	StartedUnix      int64 `json:"started"`
	Connected        int64 `json:"connected"`     // now
	Subscriptions    int64 `json:"subscriptions"` // now
	Retained         int64 `json:"retained"`      // now
	Inflight         int64 `json:"inflight"`      // QoS 1 messages without PUBACK, now
	MessagesReceived int64 `json:"messages_received"`
	MessagesSent     int64 `json:"messages_sent"`
	MessagesDropped  int64 `json:"messages_dropped"` // to slow subscribers; robots and cloud send again
	Refused          int64 `json:"refused"`          // clients and packets turned away
	Muted            int64 `json:"muted,omitempty"`  // of them, those neither logged nor published, by the rate limit
	// The front door (infra/admission).
	Unfinished int64            `json:"unfinished"`     // connections that have not proved who they are, now
	Away       map[string]int64 `json:"away,omitempty"` // connections turned away before they did, by reason
	News       string           `json:"news,omitempty"` // a sentence for operators
}

// Encode returns the stats as JSON.
func (s Stats) Encode() ([]byte, error) { s.V = 1; return json.Marshal(s) }

// ParseStats reads and checks stats.
func ParseStats(b []byte) (Stats, error) {
	var s Stats
	if err := json.Unmarshal(b, &s); err != nil {
		return Stats{}, fmt.Errorf("broker stats: %w", err)
	}
	if s.V != 1 {
		return Stats{}, fmt.Errorf("broker stats: version %d: want 1", s.V)
	}
	return s, nil
}

// clip bounds text from strangers.
func clip(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
