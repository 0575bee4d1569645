package owner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kennel/infra/api/owners"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// alphabet of codes: 32 digits and letters that people do not take for one another (Crockford's).
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// A code is 8 characters: 4 by which it is found, and all 8, 40 bits, that must be right. A robot shows "K7QM-3XW9".
const (
	codeLength    = 8
	locatorLength = 4
)

// ParseCode reads a code as people type it: in any case, with any blanks and dashes, O for 0, I and L for 1. The result is 8 characters of
// the alphabet.
func ParseCode(typed string) (string, error) {
	const want = "want 8 letters and digits, such as K7QM-3XW9"
	if len(typed) > 64 {
		return "", errs.Coded(errs.Invalid, "code_malformed", "code of %d bytes: %s", len(typed), want)
	}
	var b strings.Builder
	for _, r := range strings.ToUpper(typed) {
		switch r {
		case ' ', '-', '\t', '\r', '\n':
			continue
		case 'O':
			r = '0'
		case 'I', 'L':
			r = '1'
		}
		if !strings.ContainsRune(alphabet, r) {
			return "", errs.Coded(errs.Invalid, "code_malformed", "code: character %q is not used in codes; %s", r, want)
		}
		b.WriteRune(r)
	}
	if b.Len() != codeLength {
		return "", errs.Coded(errs.Invalid, "code_malformed", "code of %d characters: %s", b.Len(), want)
	}
	return b.String(), nil
}

// FormatCode returns a code as robots show it.
func FormatCode(code string) string { return code[:locatorLength] + "-" + code[locatorLength:] }

// code returns the code that a robot gets for a key: it cannot be guessed without the secret, and a repeated call returns the same.
func (s *Service) code(id thing.ID, key string) string {
	mac := s.keyed("code", string(id), key)
	var out [codeLength]byte
	for i := range out {
		out[i] = alphabet[mac[i]&31]
	}
	return string(out[:])
}

func (s *Service) hashed(id thing.ID, code string) Code {
	return Code{Thing: id, Locator: code[:locatorLength], Hash: s.keyed("typed", code)}
}

// OfferCode returns a code for a robot to show, and how long it is good. It takes the place of the one before; the same key again is the same
// code. Conflict "owned" for a robot that has an owner, "code_over" for a key whose code was used, tried too often or is too old; Exhausted.
func (s *Service) OfferCode(ctx context.Context, id thing.ID, key string) (code string, expires time.Duration, err error) {
	if key == "" {
		return "", 0, errs.New(errs.Invalid, "code for %s: no key", id)
	}
	if wait := s.ByThing.Allow(string(id)); wait > 0 {
		return "", 0, slowDown(wait, "too many codes requested by the robot")
	}
	code = s.code(id, key)
	st, err := s.Codes.PutCode(ctx, s.hashed(id, code), CodeLife)
	switch {
	case errors.Is(err, ErrOwned):
		s.step(ctx, id, StepCode, "owned", "", "it has an owner: the owner releases it, or its user data are wiped")
		return "", 0, errs.Coded(errs.Conflict, "owned", "%s has an owner", id)
	case err != nil:
		return "", 0, fmt.Errorf("code for %s: %w", id, err)
	case !st.Good():
		return "", 0, errs.Coded(errs.Conflict, "code_over", "the code for this key has expired or was used: ask for another one with a new key")
	}
	s.step(ctx, id, StepCode, "", "", "shows a code")
	return FormatCode(code), st.Expires, nil
}

// Status returns what a robot may know of its owner.
func (s *Service) Status(ctx context.Context, id thing.ID) (owners.Status, error) {
	var out owners.Status
	// The code before the owner: a code that is used up now has its owner in what is read next.
	st, err := s.Codes.CodeStanding(ctx, id)
	switch {
	case err == nil && st.Good():
		out.CodeExpiresInMS, out.CodeTriesLeft = max(st.Expires.Milliseconds(), 1), MaxTries-st.Tries
	case err != nil && !errors.Is(err, ErrNone):
		return owners.Status{}, fmt.Errorf("code of %s: %w", id, err)
	}
	t, err := s.Store.Current(ctx, id)
	switch {
	case err == nil:
		out.Owned, out.UserID = true, t.Account
	case !errors.Is(err, ErrNone):
		return owners.Status{}, fmt.Errorf("owner of %s: %w", id, err)
	}
	if out.DataCollection, err = s.consent(ctx, t.Account); err != nil {
		return owners.Status{}, err
	}
	return out, nil
}

// Claim makes an account the owner of the robot that shows what was typed. With a thing it must be that one's code, and a wrong one counts
// as a try of its code; without, the code says whose it is. Whatever is wrong, the answer is NotFound "code_refused": an unknown code, one
// that expired or was tried too often, another robot's. Invalid for what is no code; Exhausted.
func (s *Service) Claim(ctx context.Context, account, addr string, id thing.ID, typed string) (Tenure, error) {
	if err := checkAccount(account); err != nil {
		return Tenure{}, err
	}
	if wait := s.ByAddr.Allow(addr); wait > 0 {
		return Tenure{}, slowDown(wait, "too many codes tried; try again later")
	}
	code, err := ParseCode(typed)
	if err != nil {
		return Tenure{}, err
	}
	row := s.hashed("", code)
	found, err := s.Codes.TryCode(ctx, Try{Account: account, Thing: id, Code: row}, attemptWindow, maxAttempts)
	if err != nil {
		return Tenure{}, fmt.Errorf("try a code: %w", err)
	}
	if found.Attempts > maxAttempts {
		return Tenure{}, slowDown(found.Window, "too many codes tried; try again later")
	}
	for _, th := range found.Things {
		if !th.Right {
			s.wrong(ctx, th)
			continue
		}
		row.Thing = th.Thing
		if err := s.note(ctx, "owner.claim", string(th.Thing)); err != nil {
			return Tenure{}, err
		}
		t, err := s.Codes.UseCode(ctx, row, account)
		switch {
		case err == nil:
			s.step(ctx, t.Thing, StepClaim, "", "", "claimed with its code")
			return t, nil
		case errors.Is(err, ErrOwned):
			s.step(ctx, th.Thing, StepClaim, "owned", "", "its code was typed, but it has an owner by now")
		case errors.Is(err, ErrNone):
			s.step(ctx, th.Thing, StepClaim, "code_over", "", "its code was typed after it was used or replaced")
		default:
			return Tenure{}, fmt.Errorf("claim %s: %w", th.Thing, err)
		}
	}
	return Tenure{}, errs.Coded(errs.NotFound, "code_refused", "wrong or expired code: ask the robot for a new one")
}

func (s *Service) wrong(ctx context.Context, th TriedThing) {
	if th.Tries >= MaxTries {
		s.step(ctx, th.Thing, StepClaim, "code_dead", "", fmt.Sprintf("a wrong code was typed for the %dth time: the robot needs another", th.Tries))
		return
	}
	s.step(ctx, th.Thing, StepClaim, "code_wrong", "", fmt.Sprintf("a wrong code was typed, try %d of %d", th.Tries, MaxTries))
}

func slowDown(wait time.Duration, msg string) error {
	return &errs.Error{Kind: errs.Exhausted, Code: "too_many_attempts", Msg: msg, Retry: wait}
}
