// Package audit is the audit log: an append-only record of who did what, which shows when it was altered.
//
// The log is a chain: the hash of a line is SHA-256 over the hash of the line before and the line itself, and line numbers have no gaps.
// Changing, removing or adding a line without rewriting every later one breaks the chain. A chain that was rewritten to its end is found out by
// an Anchor that was kept elsewhere, for example in the log of a kenneld (Keep). Lines hold ids and no names. The address of a line is kept
// beside the chain, which holds a salted hash of it, so that the address can be deleted: after addrMemory, and when the person is erased.
//
// The id of a person who leaves gives way to a random one in the lines that stay (Erased). Such a line keeps its hash, and a later line of the
// chain attests its new words, so that Verify tells an erasure from any other change.
package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/infra/auth"
	"kennel/infra/errs"
)

const (
	addrMemory = 90 * 24 * time.Hour
	clockSlack = 24 * time.Hour // between the process that deletes old addresses and the one that verifies
	maxVerify  = 100_000        // lines in one call: about half a second
	maxText    = 2000           // bytes of one field
	uuidLen    = 36
	retryPause = 5 * time.Second // until a refused change is worth another try
)

// Erased is the action of a line that attests what other lines say since a person was erased. In them its object replaces the person's id.
const Erased = "audit.erased"

// Hash is the SHA-256 of a line and of all lines before it.
type Hash [sha256.Size]byte

// Entry is one line. Actor is an account id or a thing id; names are joined on reading, so that no name of a deleted person is kept.
type Entry struct {
	ID     int64 // set by the store: the line's number, from 1 on without gaps
	At     time.Time
	Actor  string
	Role   auth.Role
	Addr   string
	Action string // such as "thing.register"
	Object string // the thing, account or other object that the action changed
	Detail string

	// Only on reading.
	Name    string // of the actor, if it is an account that still exists, or was an operator's
	On      string // the name of the object, likewise
	Refused string // the kind of the refusal; "": the action was done
}

// accounts begin the actions whose object is an account.
var accounts = []string{"account.", "audit.", "email.", "login", "operator.", "passkey.", "password.", "session."}

// ByName returns the actor as people know it.
func (e Entry) ByName() string {
	if e.Name == "" && len(e.Actor) == uuidLen && !strings.Contains(e.Actor, ":") {
		return "deleted account"
	}
	return cmp.Or(e.Name, e.Actor, "not signed in")
}

// OnName returns the object as people know it.
func (e Entry) OnName() string {
	if e.On == "" && e.Object != "" && slices.ContainsFunc(accounts, func(a string) bool { return strings.HasPrefix(e.Action, a) }) {
		return "deleted account"
	}
	return cmp.Or(e.On, e.Object)
}

// Result says what became of the action: "done", or "not done: " and the kind of the refusal.
func (e Entry) Result() string {
	if e.Refused != "" {
		return notDone + e.Refused
	}
	return "done"
}

// Anchor is a line's number and hash. A copy that is kept elsewhere shows later whether the log up to that line is still the same.
type Anchor struct {
	Seq  int64
	Hash Hash
}

// String returns the anchor as people keep it: the number, a colon, the hash in hex.
func (a Anchor) String() string { return fmt.Sprintf("%d:%x", a.Seq, a.Hash[:]) }

// ParseAnchor parses the text of String, or a line's number alone, which leaves the hash unchecked. Invalid.
func ParseAnchor(s string) (Anchor, error) {
	place, sum, whole := strings.Cut(s, ":")
	seq, err := strconv.ParseInt(place, 10, 64)
	if err != nil || seq < 0 || place != strconv.FormatInt(seq, 10) {
		return Anchor{}, errs.New(errs.Invalid, "anchor %.100q: want a line's number, or number:hash as the verifier prints it", s)
	}
	a := Anchor{Seq: seq}
	if !whole {
		return a, nil
	}
	b, err := hex.DecodeString(sum)
	if err != nil || len(b) != len(a.Hash) {
		return Anchor{}, errs.New(errs.Invalid, "anchor %.100q: want a hash of %d hex digits", s, 2*len(a.Hash))
	}
	copy(a.Hash[:], b)
	return a, nil
}

// Link is a line with the fields that chain it to the line before.
type Link struct {
	Entry
	Column     string // the line's own column of the address, which is empty in every line that the cloud wrote
	AddrDigest []byte // SHA-256 of salt and address; empty: there was no address
	Salt       []byte // empty after the address was deleted
	Hash       Hash

	// Attested is the digest of the words that an erasure left in this line; nil: the line is as it was written, or no line attests its words.
	Attested []byte
	Words    bool // an erasure changed the words
	// Attests is the digest of all digests that this line attests; nil unless its action is Erased.
	Attests []byte
}

// Attestation returns the detail of the line that attests n lines; sum is the SHA-256 of their digests in order.
func Attestation(n int, sum []byte) string { return fmt.Sprintf("%d lines %x", n, sum) }

// attests reports whether the detail of a line is the attestation of these digests.
func (l Link) attests() bool {
	_, sum, ok := strings.Cut(l.Detail, " lines ")
	return ok && len(l.Attests) == sha256.Size && sum == hex.EncodeToString(l.Attests)
}

// linkHash computes a line's hash as the database does (migration 0025).
func linkHash(prev Hash, l Link) Hash {
	b := append([]byte(nil), prev[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(l.ID))
	b = binary.BigEndian.AppendUint64(b, uint64(l.At.UnixMicro()))
	for _, f := range []string{l.Actor, string(l.Role), l.Action, l.Object, l.Detail, string(l.AddrDigest)} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(f)))
		b = append(b, f...)
	}
	return sha256.Sum256(b)
}

// Store keeps the chain. Its methods are safe for concurrent use.
type Store interface {
	// AppendAudit appends a line. Lines are in the order in which the calls return.
	AppendAudit(ctx context.Context, e Entry) error
	// AuditLog returns at most limit lines with an id below before (0: from the newest), newest first.
	AuditLog(ctx context.Context, before int64, limit int) ([]Entry, error)
	// WalkAudit calls f for at most limit lines in order, beginning at line from, and returns the head of the chain, all in one snapshot.
	WalkAudit(ctx context.Context, from int64, limit int, f func(Link) error) (Anchor, error)
	// PruneAudit deletes the addresses of lines older than old.
	PruneAudit(ctx context.Context, old time.Time) error
}

// Log is the audit log. Safe for concurrent use.
type Log struct {
	store Store
	now   func() time.Time
}

// New returns the log in a store; a nil now is time.Now.
func New(store Store, now func() time.Time) *Log {
	if now == nil {
		now = time.Now
	}
	return &Log{store, now}
}

// Append adds a line at the present time. Text beyond 2000 bytes is cut. Errors: Unwritten.
func (l *Log) Append(ctx context.Context, e Entry) error {
	if err := l.store.AppendAudit(ctx, l.Stamp(ctx, e)); err != nil {
		return Unwritten(e.Action, err)
	}
	return nil
}

// Unwritten is the error for a change whose line cannot be written: Unavailable "audit_unwritten".
func Unwritten(action string, err error) error {
	return &errs.Error{Kind: errs.Unavailable, Code: "audit_unwritten", Retry: retryPause, Err: fmt.Errorf("audit %s: %w", action, err),
		Msg: "the audit log cannot be written, and no change is made without a line in it; try again later"}
}

// Announce is Append for a line that comes before its change. If the request that makes the change is refused after all, a second line says so; see
// Request.
func (l *Log) Announce(ctx context.Context, e Entry) error {
	err := l.Append(ctx, e)
	if err == nil {
		wrote(ctx, e, true)
	}
	return err
}

// Note appends a line about an action of the caller in ctx, which is about to be done; see Request. It fits the Audit setting of other domains'
// APIs.
func (l *Log) Note(ctx context.Context, action, object, detail string) error {
	c := auth.CallerFrom(ctx)
	return l.Announce(ctx, Entry{Actor: cmp.Or(c.Account, string(c.Thing)), Role: c.Role, Addr: c.Addr, Action: action, Object: object, Detail: detail})
}

// Stamp returns e as Append stores it, for stores that append a line in the transaction of the change that it records.
func (l *Log) Stamp(ctx context.Context, e Entry) Entry {
	wrote(ctx, e, false)
	e.At = l.now()
	for _, f := range []*string{&e.Actor, &e.Addr, &e.Action, &e.Object, &e.Detail} {
		*f = Clip(*f, maxText)
	}
	return e
}

// Clip makes text fit a column: valid UTF-8, without zero bytes, at most n bytes.
func Clip(s string, n int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

// Lines returns lines with an id below before (0: from the newest), newest first, with their results; a line that only tells the result of an
// older one is left out. limit is 1 to 1000; 0 means 100. Fewer lines than limit: the log has no others.
func (l *Log) Lines(ctx context.Context, before int64, limit int) ([]Entry, error) {
	if limit == 0 {
		limit = 100
	}
	if before < 0 || limit < 0 || limit > 1000 {
		return nil, errs.New(errs.Invalid, "before %d, limit %d: want before of 0 or more and limit of 1 to 1000", before, limit)
	}
	next, size, found := before, limit, results{}
	if before > 0 {
		next, size = before+ahead, limit+ahead
	}
	var out []Entry
	for {
		lines, err := l.store.AuditLog(ctx, next, size)
		if err != nil {
			return nil, err
		}
		for _, e := range lines {
			next = e.ID
			if !found.read(&e) || before > 0 && e.ID >= before {
				continue
			}
			if out = append(out, e); len(out) == limit {
				return out, nil
			}
		}
		if len(lines) < size {
			return out, nil
		}
	}
}

// Keep deletes old addresses, and writes an anchor to log, so that one is kept outside the database.
func (l *Log) Keep(ctx context.Context, log *slog.Logger) error {
	if err := l.store.PruneAudit(ctx, l.now().Add(-addrMemory)); err != nil {
		return fmt.Errorf("prune addresses of the audit log: %w", err)
	}
	head, err := l.Head(ctx)
	if err != nil {
		return fmt.Errorf("read the head of the audit log: %w", err)
	}
	log.InfoContext(ctx, "audit log anchored", "anchor", head.String())
	return nil
}

// Report is the result of Verify.
type Report struct {
	Checked   int    // lines
	Forgotten int    // checked lines whose address was deleted
	Erased    int    // checked lines that name a random id in place of a person who left
	To        Anchor // the last intact line
	Done      bool   // To is the end of the log; else continue from it
	Broken    *Break
}

// Break is the first line that was altered, removed or added.
type Break struct {
	Seq int64
	Why string
}

var errBroken = errors.New("audit: the chain is broken")

// Verify computes the chain again from an anchor on (the zero Anchor: from the first line) and reports the first line that was altered,
// removed, or not written by the cloud. It checks at most maxVerify lines; the report says where to continue. An anchor that does not fit is a
// break at its line.
func (l *Log) Verify(ctx context.Context, from Anchor) (Report, error) {
	if from.Seq < 0 || from.Seq == 0 && from.Hash != (Hash{}) {
		return Report{}, errs.New(errs.Invalid, "anchor %v: want a line's number from 1 on", from)
	}
	r := Report{To: from}
	broken := func(seq int64, format string, args ...any) error {
		r.Broken = &Break{seq, fmt.Sprintf(format, args...)}
		return errBroken
	}
	anchored, lines, young := from.Seq == 0, 0, l.now().Add(clockSlack-addrMemory)
	head, err := l.store.WalkAudit(ctx, max(from.Seq, 1), maxVerify, func(l Link) error {
		lines++
		if !anchored { // the anchor's own line
			anchored = true
			switch {
			case l.ID != from.Seq:
				return broken(from.Seq, "the line is missing")
			case from.Hash != Hash{} && l.Hash != from.Hash:
				return broken(from.Seq, "the log up to this line is not the one from which the anchor was taken")
			}
			r.To = Anchor{l.ID, l.Hash}
			return nil
		}
		if want := r.To.Seq + 1; l.ID != want {
			return broken(want, "the line is missing; the next one is %d", l.ID)
		}
		switch {
		case l.Words && linkHash(Hash{}, l) != Hash(padded(l.Attested)):
			return broken(l.ID, "the line was changed, and no erasure of a person attests its text")
		case !l.Words && linkHash(r.To.Hash, l) != l.Hash:
			return broken(l.ID, "the line was changed: its hash does not match it and the line before")
		case l.Action == Erased && !l.attests():
			return broken(l.ID, "the lines whose text this one attests are not those of that erasure")
		case l.Words:
			r.Erased++
		}
		switch {
		case l.Column != "":
			return broken(l.ID, "the line has an address that was not stored with it")
		case len(l.Salt) > 0 && sha256.Sum256(append(append([]byte(nil), l.Salt...), l.Addr...)) != Hash(padded(l.AddrDigest)):
			return broken(l.ID, "the address of the line is not the one that was stored")
		case len(l.Salt) == 0 && len(l.AddrDigest) > 0 && !l.Words && l.At.After(young):
			return broken(l.ID, "the address of the line was deleted too early")
		case len(l.Salt) == 0 && len(l.AddrDigest) > 0:
			r.Forgotten++
		}
		r.Checked++
		r.To = Anchor{l.ID, l.Hash}
		return nil
	})
	switch {
	case errors.Is(err, errBroken):
		return r, nil
	case err != nil:
		return Report{}, fmt.Errorf("read audit log: %w", err)
	case lines == maxVerify && r.To != head:
		return r, nil // there is more
	case !anchored:
		_ = broken(from.Seq, "the line is missing; the log ends at %d", head.Seq)
	case head.Seq > r.To.Seq:
		_ = broken(r.To.Seq+1, "the line is missing; %d lines were written", head.Seq)
	case head.Seq < r.To.Seq:
		_ = broken(head.Seq+1, "the line was not written by the cloud, whose last line is %d", head.Seq)
	case head.Hash != r.To.Hash:
		_ = broken(r.To.Seq, "the line is not the last one that the cloud wrote")
	}
	r.Done = r.Broken == nil
	return r, nil
}

// padded returns b, or zeros if it does not have the length of a hash.
func padded(b []byte) (out [sha256.Size]byte) {
	if len(b) == len(out) {
		copy(out[:], b)
	}
	return out
}

// Head returns the last line's anchor.
func (l *Log) Head(ctx context.Context) (Anchor, error) {
	return l.store.WalkAudit(ctx, 1, 0, nil)
}
