package account

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kennel/infra/errs"
)

// The audit log is a chain: a line's hash is SHA-256 over the hash of the line before and the line itself, and a line's place has no gap before
// it. To change, remove or add a line without rewriting every later one breaks it; a chain that was rewritten to the end is found out by an
// Anchor that was kept elsewhere, such as in the log of a kenneld (Run). Lines hold ids, no names. The address a line came from is kept beside
// the chain, which holds a salted hash of it, so that it can be forgotten: after auditAddrMemory, and when the person leaves.

const (
	auditAddrMemory = 90 * 24 * time.Hour
	maxVerify       = 100_000 // lines in one go: about half a second
)

// Anchor is a place in the audit log and the hash of the line there: who keeps one can tell later whether the log up to it is still the same.
type Anchor struct {
	Seq  int64
	Hash Hash
}

// String returns the anchor as people keep it: the place, a colon, the hash in hex.
func (a Anchor) String() string { return fmt.Sprintf("%d:%x", a.Seq, a.Hash[:]) }

// ParseAnchor reads what String wrote, or a place alone, which gets its current hash. Invalid.
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

// Link is a line of the audit log with what chains it.
type Link struct {
	Entry             // its ID is its place
	AddrDigest []byte // SHA-256 of salt and address; empty: it came from none
	Salt       []byte // empty once the address is forgotten
	Hash       Hash
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

// AuditStore keeps the chain.
type AuditStore interface {
	// Audit appends a line, in the order of the calls that return.
	Audit(ctx context.Context, e Entry) error
	// AuditLog returns lines with an id below before (0: from the newest), newest first, at most limit.
	AuditLog(ctx context.Context, before int64, limit int) ([]Entry, error)
	// WalkAudit calls f for at most limit lines from a place on, in their order, and returns the head of the chain: all of one moment.
	WalkAudit(ctx context.Context, from int64, limit int, f func(Link) error) (Anchor, error)
	// PruneAudit forgets the addresses of lines from before old.
	PruneAudit(ctx context.Context, old time.Time) error
}

// AuditReport is the result of VerifyAudit.
type AuditReport struct {
	Checked   int    // lines
	Forgotten int    // of them, whose address is not kept any more
	To        Anchor // the last line that is as it was written
	Done      bool   // that is the last line; else continue from To
	Broken    *AuditBreak
}

// AuditBreak is the first line that is not as it was written.
type AuditBreak struct {
	Seq int64
	Why string
}

// VerifyAudit computes the chain again from an anchor on (the zero Anchor: from the first line), and names the first line that is changed,
// missing, or was not written by the cloud. It does a bounded number of lines; the report says where to continue. An anchor that does not fit is a
// break at its line.
func (s *Service) VerifyAudit(ctx context.Context, from Anchor) (AuditReport, error) {
	return s.verifyAudit(ctx, from, maxVerify)
}

var errBroken = errors.New("account: the chain is broken")

func (s *Service) verifyAudit(ctx context.Context, from Anchor, limit int) (AuditReport, error) {
	if from.Seq < 0 || from.Seq == 0 && from.Hash != (Hash{}) {
		return AuditReport{}, errs.New(errs.Invalid, "anchor %v: want a line's number from 1 on", from)
	}
	r := AuditReport{To: from}
	broken := func(seq int64, format string, args ...any) error {
		r.Broken = &AuditBreak{seq, fmt.Sprintf(format, args...)}
		return errBroken
	}
	anchored := from.Seq == 0
	lines := 0
	head, err := s.cfg.Store.WalkAudit(ctx, max(from.Seq, 1), limit, func(l Link) error {
		lines++
		if !anchored { // the anchor's own line
			anchored = true
			switch {
			case l.ID != from.Seq:
				return broken(from.Seq, "the line is missing")
			case from.Hash != Hash{} && l.Hash != from.Hash:
				return broken(from.Seq, "the log up to this line is not the one that the anchor was taken of")
			}
			r.To = Anchor{l.ID, l.Hash}
			return nil
		}
		if want := r.To.Seq + 1; l.ID != want {
			return broken(want, "the line is missing; the next one is %d", l.ID)
		}
		if linkHash(r.To.Hash, l) != l.Hash {
			return broken(l.ID, "the line is not as it was written: its hash does not follow from it and the line before")
		}
		switch {
		case len(l.Salt) > 0 && sha256.Sum256(append(append([]byte(nil), l.Salt...), l.Addr...)) != Hash(padded(l.AddrDigest)):
			return broken(l.ID, "the address beside the line is not the one that was written")
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
		return AuditReport{}, fmt.Errorf("read audit log: %w", err)
	case lines == limit && r.To != head:
		return r, nil // there is more
	case !anchored:
		_ = broken(from.Seq, "the line is missing; the log ends at %d", head.Seq)
	case head.Seq > r.To.Seq:
		_ = broken(r.To.Seq+1, "the line is missing; %d lines were written", head.Seq)
	case head.Seq < r.To.Seq:
		_ = broken(head.Seq+1, "the line was not written by the cloud, whose last one is %d", head.Seq)
	case head.Hash != r.To.Hash:
		_ = broken(r.To.Seq, "the line is not the last one that was written")
	}
	r.Done = r.Broken == nil
	return r, nil
}

// padded returns 32 bytes of b, zeros if it is not that long.
func padded(b []byte) (out [sha256.Size]byte) {
	if len(b) == len(out) {
		copy(out[:], b)
	}
	return out
}

// AuditHead returns the head of the audit log: an anchor to be kept elsewhere.
func (s *Service) AuditHead(ctx context.Context) (Anchor, error) {
	return s.cfg.Store.WalkAudit(ctx, 1, 0, nil)
}
