package tokens

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/tokenwire"
	"kennel/infra/logging"
)

// HashesFile is the file with the hashes: a fixed path of the original's gateway and cloud process.
const HashesFile = "data/vic-gateway/token-hashes.json"

// Sizes of the original's hash form: base64(SHA-256(token, salt), salt); the bearer is base64(token).
const (
	tokenSize = 16
	saltSize  = 16
)

// maxClients bounds the entries compared with each bearer. The cloud's limit is lower.
const maxClients = 1024

// Client is one entry of the document: an app, or a program on a computer.
type Client struct {
	AppID      string `json:"app_id"`
	ClientName string `json:"client_name"`
	Hash       string `json:"hash"`
	IsPrimary  bool   `json:"is_primary"` // always false in the original
	IssuedAt   string `json:"issued_at"`
	// Rights are those of tokenwire.Rights that it has; nil: all but tokenwire.Hear, as the original's apps have.
	Rights    []string `json:"rights,omitzero"`
	ExpiresAt string   `json:"expires_at,omitempty"` // RFC 3339; "": never
}

// May reports whether the client has one of tokenwire.Rights; false for a right that there is not.
func (c Client) May(right string) bool {
	if c.Rights == nil {
		return right != tokenwire.Hear && slices.Contains(tokenwire.Rights, right)
	}
	return slices.Contains(tokenwire.Rights, right) && slices.Contains(c.Rights, right)
}

// lasts reports whether the client has not expired. An end that cannot be read is one that is over.
func (c Client) lasts(now time.Time) bool {
	end, err := time.Parse(time.RFC3339, c.ExpiresAt)
	return c.ExpiresAt == "" || err == nil && now.Before(end)
}

// digest is a hash taken apart.
type digest struct {
	sum  [sha256.Size]byte
	salt [saltSize]byte
}

// hashes is the document, ready to compare with.
type hashes struct {
	Clients []Client `json:"client_tokens"`
	digests []digest
}

func parseHashes(b []byte) (hashes, error) {
	var raw struct {
		Clients []json.RawMessage `json:"client_tokens"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return hashes{}, errors.New("not a document of client tokens: want {\"client_tokens\": [...]}")
	}
	var h hashes
	for _, r := range raw.Clients {
		var c Client
		if json.Unmarshal(r, &c) != nil {
			continue
		}
		d, ok := parseHash(c.Hash)
		if !ok {
			continue
		}
		if len(h.Clients) == maxClients {
			return hashes{}, fmt.Errorf("more than %d client tokens", maxClients)
		}
		h.Clients, h.digests = append(h.Clients, c), append(h.digests, d)
	}
	return h, nil
}

func parseHash(text string) (d digest, ok bool) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != len(d.sum)+len(d.salt) {
		return d, false
	}
	copy(d.sum[:], b)
	copy(d.salt[:], b[len(d.sum):])
	return d, true
}

func (h hashes) encode() ([]byte, error) {
	if h.Clients == nil {
		h.Clients = []Client{}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(h)
	return buf.Bytes(), err
}

// with returns the list and one more client, whose token this is.
func (h hashes) with(token logging.Secret, name, appID string, at time.Time) (hashes, error) {
	t, ok := parseBearer(token.Reveal())
	if !ok {
		return h, fmt.Errorf("client token: want base64 of %d bytes", tokenSize)
	}
	var d digest
	_, _ = rand.Read(d.salt[:]) // never fails
	d.sum = sum(t, d.salt)
	c := Client{
		AppID: appID, ClientName: name, IssuedAt: at.UTC().Format(time.RFC3339),
		Hash: base64.StdEncoding.EncodeToString(append(d.sum[:], d.salt[:]...)),
	}
	return hashes{append(h.Clients[:len(h.Clients):len(h.Clients)], c), append(h.digests[:len(h.digests):len(h.digests)], d)}, nil
}

// client returns the entry of a bearer. It compares with every entry, even after a match or if the bearer is malformed, so that the time reveals nothing.
func (h hashes) client(bearer string) (Client, bool) {
	token, ok := parseBearer(bearer)
	at := -1
	for i := range h.digests {
		s := sum(token, h.digests[i].salt)
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(s[:], h.digests[i].sum[:]), i, at)
	}
	if !ok || at < 0 {
		return Client{}, false
	}
	return h.Clients[at], true
}

func parseBearer(text string) (token [tokenSize]byte, ok bool) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != tokenSize {
		return token, false
	}
	copy(token[:], b)
	return token, true
}

func sum(token [tokenSize]byte, salt [saltSize]byte) [sha256.Size]byte {
	var b [tokenSize + saltSize]byte
	copy(b[:], token[:])
	copy(b[tokenSize:], salt[:])
	return sha256.Sum256(b[:])
}

func readHashes(root *os.Root) (hashes, error) {
	b, err := robotfs.ReadFile(root, HashesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return hashes{}, nil
	}
	if err != nil {
		return hashes{}, err
	}
	h, err := parseHashes(b)
	if err != nil {
		return hashes{}, fmt.Errorf("%s: %w", HashesFile, err)
	}
	return h, nil
}

func writeHashes(root *os.Root, h hashes) error {
	b, err := h.encode()
	if err != nil {
		return err
	}
	return robotfs.WriteFile(root, HashesFile, b, 0o600)
}

// pace is how often the document is read again because of strangers: at most once a minute, 3 times in 15 minutes, 6 times an hour (peer
// facts, section 2).
type pace struct{ at []time.Time }

var paceLimits = []struct {
	n      int
	within time.Duration
}{{1, time.Minute}, {3, 15 * time.Minute}, {6, time.Hour}}

// allow notes a read at now and reports whether it is permitted. If the clock goes back, later reads are forgotten.
func (p *pace) allow(now time.Time) bool {
	keep := p.at[:0]
	for _, t := range p.at {
		if age := now.Sub(t); age >= 0 && age < time.Hour {
			keep = append(keep, t)
		}
	}
	p.at = keep
	for _, l := range paceLimits {
		n := 0
		for _, t := range p.at {
			if now.Sub(t) < l.within {
				n++
			}
		}
		if n >= l.n {
			return false
		}
	}
	p.at = append(p.at, now)
	return true
}
