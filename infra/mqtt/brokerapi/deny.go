package brokerapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kennel/infra/thing"
)

// maxDeny bounds the entries of one message, so that it stays below topics.MaxPayload: an entry is at most 640 bytes.
const maxDeny = 200

// Deny names certificates and things that the broker refuses from now on; it ends their sessions too. Certificates are added to those that
// it knows, and never removed: a thing that is allowed again has a new certificate. Things are blocked and allowed by name.
type Deny struct {
	V     int                 `json:"v"`
	Certs []DenyCert          `json:"certs,omitempty"`
	Reset bool                `json:"reset,omitempty"` // Block is all that is blocked; else it is added
	Block map[thing.ID]string `json:"block,omitempty"` // with the reason
	Allow []thing.ID          `json:"allow,omitempty"`
}

// DenyCert is one revoked certificate. Serial or Key may be empty, not both.
type DenyCert struct {
	Serial string    `json:"serial,omitempty"` // hex, lower case
	Key    string    `json:"key,omitempty"`    // SHA-256 of the public key, hex: every certificate of that key
	Thing  thing.ID  `json:"thing,omitempty"`
	Until  time.Time `json:"until"` // its end; the entry may be forgotten then
	Reason string    `json:"reason,omitempty"`
}

// Messages returns d as messages that a broker takes, in the order to send them. Nothing to say is no message.
func (d Deny) Messages() ([][]byte, error) {
	var out [][]byte
	add := func(part Deny) error {
		part.V = 1
		b, err := json.Marshal(part)
		if err != nil {
			return fmt.Errorf("deny: %w", err)
		}
		out = append(out, b)
		return nil
	}
	for part := range slices.Chunk(d.Certs, maxDeny) {
		part = slices.Clone(part)
		for i := range part {
			part[i].Reason = shorten(part[i].Reason)
		}
		if err := add(Deny{Certs: part}); err != nil {
			return nil, err
		}
	}
	reset := d.Reset
	for part := range slices.Chunk(slices.Sorted(maps.Keys(d.Block)), maxDeny) {
		block := map[thing.ID]string{}
		for _, id := range part {
			block[id] = shorten(d.Block[id])
		}
		if err := add(Deny{Reset: reset, Block: block}); err != nil {
			return nil, err
		}
		reset = false
	}
	if reset {
		if err := add(Deny{Reset: true}); err != nil {
			return nil, err
		}
	}
	for part := range slices.Chunk(d.Allow, maxDeny) {
		if err := add(Deny{Allow: part}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ParseDeny reads and checks one message.
func ParseDeny(b []byte) (Deny, error) {
	d, err := parseDeny(b)
	if n := len(d.Certs) + len(d.Block) + len(d.Allow); err == nil && n > maxDeny {
		return Deny{}, fmt.Errorf("deny: %d entries: want at most %d", n, maxDeny)
	}
	return d, err
}

// ParseDenyFile reads the output of EncodeFile, with any number of entries.
func ParseDenyFile(b []byte) (Deny, error) { return parseDeny(b) }

// EncodeFile returns d as one piece, for the file that a broker keeps.
func (d Deny) EncodeFile() ([]byte, error) { d.V = 1; return json.Marshal(d) }

func parseDeny(b []byte) (Deny, error) {
	var d Deny
	if err := json.Unmarshal(b, &d); err != nil {
		return Deny{}, fmt.Errorf("deny: %w", err)
	}
	if d.V != 1 {
		return Deny{}, fmt.Errorf("deny: version %d: want 1", d.V)
	}
	for _, c := range d.Certs {
		if c.Serial == "" && c.Key == "" || !isHex(c.Serial) || len(c.Serial) > 40 || !isHex(c.Key) || len(c.Key) != 0 && len(c.Key) != 64 ||
			c.Until.IsZero() {
			return Deny{}, fmt.Errorf("deny: certificate %.60q, key %.80q, until %v: want lower-case hex of a serial number or a SHA-256, and an end",
				c.Serial, c.Key, c.Until)
		}
	}
	for _, id := range slices.Concat(slices.Collect(maps.Keys(d.Block)), d.Allow) {
		if _, err := thing.Parse(string(id)); err != nil {
			return Deny{}, fmt.Errorf("deny: %w", err)
		}
	}
	return d, nil
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// shorten bounds a reason, which six bytes of JSON may be needed for each byte of.
func shorten(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
