package certs

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base32"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// WaitingLimits bounds the list of robots that wait for an operator, which anyone on the network can try to fill. Our own defaults: a
// workshop behind one address fits, a flood from one does not fill the list, and abandoned requests make room.
type WaitingLimits struct {
	Max        int           // robots in the list; 500
	PerNetwork int           // of them from one address, or one /64 of IPv6; 50
	PerThing   int           // of them under one thing id, each with another key; 3
	Expire     time.Duration // after the robot asked last; 15 min
	Refused    time.Duration // how long a refusal lasts; 24 h
	Pause      time.Duration // a robot's wait between two requests; 30 s
}

func (l WaitingLimits) withDefaults() WaitingLimits {
	l.Max, l.PerNetwork, l.PerThing = cmp.Or(l.Max, 500), cmp.Or(l.PerNetwork, 50), cmp.Or(l.PerThing, 3)
	l.Expire, l.Refused, l.Pause = cmp.Or(l.Expire, 15*time.Minute), cmp.Or(l.Refused, 24*time.Hour), cmp.Or(l.Pause, 30*time.Second)
	return l
}

// Ask is one request of a robot without any proof.
type Ask struct {
	Thing   thing.ID
	Key     Key
	Addr    string
	Network string // of the address, for WaitingLimits.PerNetwork
	At      time.Time
}

// Waiting is a robot in the list.
type Waiting struct {
	Thing   thing.ID
	Key     Key
	Addr    string // of its latest request
	First   time.Time
	Last    time.Time
	Times   int
	Refused time.Time // zero: an operator has not answered
	Reason  string    // of the refusal

	Known   bool // the thing is registered
	Bound   bool // to another key: to approve it, release it first
	Revoked bool // its identity was revoked: to approve it, release it first
}

// WaitingList keeps robots that wait for an operator.
type WaitingList interface {
	// Ask notes a request and returns its state; fresh says that it was not in the list. ErrFull if a limit leaves no room for it.
	Ask(ctx context.Context, a Ask, l WaitingLimits) (w Waiting, fresh bool, err error)
	// Waiting returns what is in the list at a time, the longest waiting first.
	Waiting(ctx context.Context, at time.Time, l WaitingLimits) ([]Waiting, error)
	// Approve binds the key to the thing's claim, making one if there is none, and removes the thing's requests from the list; ErrUnknown if
	// it is not there, ErrBound if another key is bound or the thing is revoked.
	Approve(ctx context.Context, id thing.ID, key Key, at time.Time) error
	// Refuse marks a request; ErrUnknown.
	Refuse(ctx context.Context, id thing.ID, key Key, reason string, at time.Time) error
}

// short is an alphabet that people compare without mistakes: no I, L, O or U.
var short = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// Short returns the first 60 bits of the fingerprint for people to compare, such as "7QK4-0ZTM-9R3X". Robot and operator see the same; to
// make a key that looks like another's takes 2^60 tries.
func (k Key) Short() string {
	s := short.EncodeToString(k[:8])
	return s[0:4] + "-" + s[4:8] + "-" + s[8:12]
}

// Is reports whether text is the fingerprint in either form, in any case, with or without dashes, and with the letters that look like digits.
func (k Key) Is(text string) bool {
	text = strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(strings.TrimSpace(text)))
	if text == k.String() {
		return true
	}
	text = strings.NewReplacer("i", "1", "l", "1", "o", "0").Replace(text)
	return text == strings.ToLower(strings.ReplaceAll(k.Short(), "-", ""))
}

// checkApproved accepts a key that is bound already, because an operator approved it, and puts any other key on the waiting list. The
// answer does not show whether the thing is known: a stranger learns only that it waits.
func (s *Service) checkApproved(ctx context.Context, id thing.ID, csr *x509.CertificateRequest, st Standing, addr string) error {
	key := KeyOf(csr.RawSubjectPublicKeyInfo)
	if st.Known && st.Key == key || st.KeyReleased || st.KeyRevoked {
		return st.mayTakeKey()
	}
	w, fresh, err := s.requests.Ask(ctx, Ask{Thing: id, Key: key, Addr: addr, Network: network(addr), At: s.now()}, s.waiting)
	switch {
	case errors.Is(err, ErrFull):
		return &refusal{Code: "waiting_list_full", Reason: "list of robots that wait for approval is full",
			Quiet: s.byThing.Allow("full "+network(addr)) > 0,
			Public: &errs.Error{
				Kind: errs.Exhausted, Code: "waiting_list_full", Msg: "too many robots wait for approval; try again later",
				Retry: 4 * s.waiting.Pause,
			}}
	case err != nil:
		return fmt.Errorf("waiting list: %w", err)
	case !w.Refused.IsZero():
		return &refusal{Code: "approval_refused", Reason: "an operator refused this robot: " + w.Reason,
			Quiet:  w.Times > 1 && s.byThing.Allow("refused "+string(id)) > 0,
			Public: errs.Coded(errs.Denied, "approval_refused", "an operator refused the robot with fingerprint %s", key.Short())}
	}
	return &refusal{Code: "waiting_approval", Reason: fmt.Sprintf("waiting for an operator's approval, fingerprint %s", key.Short()), Quiet: !fresh,
		Public: &errs.Error{Kind: errs.Unavailable, Code: "waiting_approval", Retry: s.waiting.Pause,
			Msg: "waiting for an operator to approve the robot with fingerprint " + key.Short(), Err: &MustWait{key.Short()}}}
}

// MustWait is in the chain of the error "waiting_approval".
type MustWait struct {
	Fingerprint string // what robot and operator compare
}

func (*MustWait) Error() string { return "" } // the error that holds it has said it

// network returns the part of an address that one stranger has to himself: an IPv6 peer is its /64.
func network(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap().WithZone("")
	if p, err := ip.Prefix(64); err == nil && ip.Is6() {
		return p.String()
	}
	return ip.String()
}

// Waiting returns the robots that wait for approval, the longest waiting first.
func (s *Service) Waiting(ctx context.Context) ([]Waiting, error) {
	return s.requests.Waiting(ctx, s.now(), s.waiting)
}

// Approve approves a waiting robot: its next request gets a certificate. fingerprint is the one that the robot shows, in either form
// (Key.Is); it decides between several robots with the same thing id. Errors: NotFound "not_waiting"; Conflict "thing_exists" for a thing
// that is bound to another key or was revoked and must be released first.
func (s *Service) Approve(ctx context.Context, id thing.ID, fingerprint string) error {
	w, err := s.find(ctx, id, fingerprint)
	if err != nil {
		return err
	}
	switch err := s.requests.Approve(ctx, id, w.Key, s.now()); {
	case errors.Is(err, ErrUnknown):
		return notWaiting(id, fingerprint)
	case errors.Is(err, ErrBound):
		return errs.Coded(errs.Conflict, "thing_exists", "%s has another key or was revoked: release it first", id)
	case err != nil:
		return fmt.Errorf("approve %s: %w", id, err)
	}
	s.recorder.Record(ctx, Step{Thing: id, Step: StepApproval, Peer: w.Addr, OK: true, Reason: "approved, fingerprint " + w.Key.Short(), At: s.now()})
	return nil
}

// Refuse turns a waiting robot away for a day. Errors as for Approve.
func (s *Service) Refuse(ctx context.Context, id thing.ID, fingerprint, reason string) error {
	w, err := s.find(ctx, id, fingerprint)
	if err != nil {
		return err
	}
	switch err := s.requests.Refuse(ctx, id, w.Key, reason, s.now()); {
	case errors.Is(err, ErrUnknown):
		return notWaiting(id, fingerprint)
	case err != nil:
		return fmt.Errorf("refuse %s: %w", id, err)
	}
	s.recorder.Record(ctx, Step{Thing: id, Step: StepApproval, Peer: w.Addr, Code: "approval_refused", Reason: reason, At: s.now()})
	return nil
}

func (s *Service) find(ctx context.Context, id thing.ID, fingerprint string) (Waiting, error) {
	all, err := s.Waiting(ctx)
	if err != nil {
		return Waiting{}, fmt.Errorf("waiting list: %w", err)
	}
	for _, w := range all {
		if w.Thing == id && w.Key.Is(fingerprint) {
			return w, nil
		}
	}
	return Waiting{}, notWaiting(id, fingerprint)
}

func notWaiting(id thing.ID, fingerprint string) error {
	return errs.Coded(errs.NotFound, "not_waiting", "no robot %s with fingerprint %.70q is waiting; compare the one shown by the robot", id, fingerprint)
}
