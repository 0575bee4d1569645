// Package jdocs holds the rules of documents: their content, how versions advance, what a reader gets, how two changed copies merge.
// A robot and the cloud both keep a copy of each document; the version says whose is newer (VEC-JDS-01..04, 08, 10).
//
//	jdocs.go     keys, documents, limits, Service and the Store it needs
//	service.go   the rules
//	merge.go     three-way merge, pure functions
//	robots.go    what robots reach     people/     what owners and operators reach
//	schemas/     the documents of each species and of people: fields, defaults, formats, words for people
//	schema.go, settings.go, stats.go   what follows from them
//	jdocspg/ storage   jdocsapi/ transports   jdocswire/ bodies and the robot's client
package jdocs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Limits of VEC-JDS-10.
const (
	MaxID    = 64     // characters of an account id and a document name
	MaxMeta  = 32     // characters of client metadata
	MaxJSON  = 204800 // bytes of a document's text
	MaxDepth = 16     // levels of objects and arrays
	MaxItems = 64     // documents in one read
)

// Name is a document's name, such as "vic.RobotSettings". It is also a file name on the robot, hence its alphabet.
type Name string

// The documents that Vectors know (peer facts, section 5). Robots of all species keep those but the first; SettingsOf names their settings.
const (
	RobotSettings      Name = "vic.RobotSettings"
	RobotLifetimeStats Name = "vic.RobotLifetimeStats"
	AccountSettings    Name = "vic.AccountSettings"
	UserEntitlements   Name = "vic.UserEntitlements"
	AppTokens          Name = "vic.AppTokens"
)

// ParseName checks a document name: 1 to 64 letters, digits, dots, dashes and underscores, not beginning with a dot.
func ParseName(s string) (Name, error) {
	ok := s != "" && len(s) <= MaxID && s[0] != '.'
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_'
	}
	if !ok {
		return "", errs.New(errs.Invalid, "document name %.80q: want 1 to %d letters, digits, . - _, such as %s", s, MaxID, RobotSettings)
	}
	return Name(s), nil
}

// OfAccount reports whether the document belongs to a person, whatever robot asks. The others belong to the robot, whatever its owner.
func (n Name) OfAccount() bool { return schemaOf(n).Account }

// Key names one document. Robot documents use Thing, account documents Account; NewKey drops the part that is not used (VEC-JDS-01).
type Key struct {
	Account string
	Thing   thing.ID
	Name    Name
}

// NewKey checks and returns the key of a document for the asking thing.
func NewKey(account string, id thing.ID, name Name) (Key, error) {
	if _, err := ParseName(string(name)); err != nil {
		return Key{}, err
	}
	if !name.OfAccount() {
		if id == "" {
			return Key{}, errs.New(errs.Invalid, "document %s: want the thing to which it belongs", name)
		}
		return Key{Thing: id, Name: name}, nil
	}
	switch {
	case account == "":
		return Key{}, errs.New(errs.Invalid, "document %s: want the account to which it belongs", name)
	case utf8.RuneCountInString(account) > MaxID || !text(account):
		return Key{}, errs.New(errs.Invalid, "account %.80q: want at most %d characters of text", account, MaxID)
	}
	return Key{Account: account, Name: name}, nil
}

func (k Key) String() string { return k.Account + string(k.Thing) + "/" + string(k.Name) }

// Doc is one version of a document. The zero Doc means that there is none.
type Doc struct {
	Version    uint64 // 0: none; the first is 1; each accepted change adds one
	FmtVersion uint64 // of the structure; 0 is invalid
	ClientMeta string // free for the client, normally empty
	JSON       string // the document as text, kept byte for byte
}

// Check reports the first limit that d breaks (VEC-JDS-10); kind Invalid.
func (d Doc) Check() error {
	if utf8.RuneCountInString(d.ClientMeta) > MaxMeta || !text(d.ClientMeta) {
		return errs.New(errs.Invalid, "client metadata %.80q: want at most %d characters of text", d.ClientMeta, MaxMeta)
	}
	return CheckJSON([]byte(d.JSON))
}

// CheckJSON reports whether b is one JSON value within the limits of size and depth; kind Invalid, with the place of the fault.
func CheckJSON(b []byte) error {
	if len(b) > MaxJSON {
		return errs.New(errs.Invalid, "document of %d bytes: want at most %d", len(b), MaxJSON)
	}
	if !utf8.Valid(b) {
		return errs.New(errs.Invalid, "document is not UTF-8 text")
	}
	if at, ok := tooDeep(b); ok {
		return errs.New(errs.Invalid, "document: byte %d opens level %d: want at most %d", at, MaxDepth+1, MaxDepth)
	}
	var v json.RawMessage
	if err := json.Unmarshal(b, &v); err != nil {
		var syn *json.SyntaxError
		if errors.As(err, &syn) {
			return errs.New(errs.Invalid, "document: byte %d: %v", syn.Offset, err)
		}
		return errs.New(errs.Invalid, "document: %v", err)
	}
	return nil
}

// tooDeep finds the bracket that opens one level too many. It runs before the parser, so that depth costs nothing.
func tooDeep(b []byte) (at int, ok bool) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > MaxDepth {
				return i, true
			}
		case '}', ']':
			depth--
		}
	}
	return 0, false
}

// text: what storage can hold and a person can read.
func text(s string) bool { return utf8.ValidString(s) && !bytes.ContainsRune([]byte(s), 0) }

// Revision is one accepted version of a document, with its author (a thing id, an operator's name) and time (the store's clock).
type Revision struct {
	Doc
	By      string
	At      time.Time
	Deleted bool // this change was a deletion: no text
}

// Listing is a document without its text.
type Listing struct {
	Name       Name
	Version    uint64
	FmtVersion uint64
	By         string
	At         time.Time
}

// Errors of a Store.
var (
	// ErrStale: another writer was first.
	ErrStale = errors.New("document has another version")
	// ErrFormat: the stored document has a newer format.
	ErrFormat = errors.New("document has a newer format")
	// ErrNotFound: there is no such document or revision.
	ErrNotFound = errs.New(errs.NotFound, "no such document")
)

// Store is the storage that the rules need. Safe for concurrent use.
//
// A deleted document leaves its version behind, so that no version of a key is used twice: after a delete the next create gets the next
// number. To callers a deleted document is absent.
type Store interface {
	// Get returns the current document, or ErrNotFound.
	Get(ctx context.Context, key Key) (Revision, error)
	// Put stores d if the current version still equals d.Version (0: there is none) and the current format is no newer than newest, and
	// returns the version it got; else the current document (zero: none), with ErrStale if it has another version.
	Put(ctx context.Context, key Key, d Doc, newest uint64, by string) (version uint64, cur Revision, err error)
	// Delete removes the document and returns the version of that change; 0 if there was none.
	Delete(ctx context.Context, key Key, by string) (uint64, error)
	// Revision returns one version while the history holds it, else ErrNotFound.
	Revision(ctx context.Context, key Key, version uint64) (Revision, error)
	// History returns the newest revisions, newest first; none is not an error.
	History(ctx context.Context, key Key, limit int) ([]Revision, error)
	// List returns the documents of a thing, by name.
	List(ctx context.Context, id thing.ID) ([]Listing, error)
}

// WriteStatus is the result of a write. The numbers are the published ones.
type WriteStatus uint8

// A rejection is a result, not an error (VEC-JDS-02).
const (
	Accepted WriteStatus = iota
	RejectedBadDocVersion
	RejectedBadFmtVersion
)

var writeNames = [...]string{"ACCEPTED", "REJECTED_BAD_DOC_VERSION", "REJECTED_BAD_FMT_VERSION"}

func (s WriteStatus) String() string { return word(writeNames[:], uint8(s)) }

// ParseWriteStatus returns the status of that published name.
func ParseWriteStatus(s string) (WriteStatus, error) {
	n, err := number(writeNames[:], s)
	return WriteStatus(n), err
}

// WriteResult answers a write: the status and the version now stored.
type WriteResult struct {
	Status WriteStatus
	Latest uint64
}

// ReadStatus says how a document compares with the reader's version. The numbers are the published ones.
type ReadStatus uint8

// Changed is also the answer to a reader that is ahead (VEC-JDS-03).
const (
	Unchanged ReadStatus = iota
	Changed
	NotFound
)

var readNames = [...]string{"UNCHANGED", "CHANGED", "NOT_FOUND"}

func (s ReadStatus) String() string { return word(readNames[:], uint8(s)) }

// ParseReadStatus returns the status of that published name.
func ParseReadStatus(s string) (ReadStatus, error) {
	n, err := number(readNames[:], s)
	return ReadStatus(n), err
}

// Item asks for one document. MyVersion 0 asks for its text whatever its version.
type Item struct {
	Name      Name
	MyVersion uint64
}

// ReadResult answers an Item. Doc is without text when unchanged and zero when not found, and always there (peer facts, section 1).
type ReadResult struct {
	Status ReadStatus
	Doc    Doc
}

// Service offers the operations on documents. by names the author of a change, a thing id or an operator's name, kept in the history.
type Service interface {
	// Write creates (Version 0) or replaces a document. A stale version is a result; a broken limit is an error of kind Invalid.
	Write(ctx context.Context, key Key, d Doc, by string) (WriteResult, error)
	// Read answers each item in order.
	Read(ctx context.Context, account string, id thing.ID, items []Item) ([]ReadResult, error)
	// Delete removes a document; an absent one succeeds with version 0 (VEC-JDS-04).
	Delete(ctx context.Context, key Key, by string) (uint64, error)
	// Set changes named fields and leaves the rest, trying again while other writers are first. Values are checked against the
	// document's schema where there is one. A document that does not exist yet begins with its defaults.
	Set(ctx context.Context, key Key, fields map[string]json.RawMessage, by string) (Revision, error)
	// Restore makes an earlier version the current one, as a new version, trying again while other writers are first.
	Restore(ctx context.Context, key Key, old Doc, by string) (Revision, error)
	// Get returns the current document, with the author and time of the last change.
	Get(ctx context.Context, key Key) (Revision, error)
	// Revision returns one accepted version.
	Revision(ctx context.Context, key Key, version uint64) (Revision, error)
	// History returns the newest accepted versions, newest first, limit 1 to 1000.
	History(ctx context.Context, key Key, limit int) ([]Revision, error)
	// List returns the documents of a thing.
	List(ctx context.Context, id thing.ID) ([]Listing, error)
}

func word(names []string, n uint8) string {
	if int(n) < len(names) {
		return names[n]
	}
	return "UNKNOWN"
}

func number(names []string, s string) (int, error) {
	for i, n := range names {
		if n == s {
			return i, nil
		}
	}
	return 0, errs.New(errs.Invalid, "status %.40q: want one of %s", s, errs.List(names))
}
