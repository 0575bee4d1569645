// Package errs gives errors a kind where a class of error crosses a wire. Inside one program a wrapped error is enough;
// a kind is added where a transport must choose a status code. What has no kind is Internal, and the peer learns no more
// than that.
package errs

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is a class of error. The zero value is Internal.
type Kind uint8

// The kinds, in the order of the table every transport maps.
const (
	Internal        Kind = iota // ours to mend
	Invalid                     // the request can never work
	NotFound                    // no such thing, document, release
	Conflict                    // someone else was first
	Unauthenticated             // who are you
	Denied                      // you may not
	Exhausted                   // a limit or quota is reached; see RetryAfter
	Unavailable                 // not now; see RetryAfter
	Corrupt                     // data is damaged
)

var names = [...]string{"internal", "invalid", "not_found", "conflict", "unauthenticated", "denied", "exhausted", "unavailable", "corrupt"}

// String returns the kind's name on the wire, such as "not_found".
func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return names[Internal]
}

// ParseKind returns the kind of that name; unknown names are Internal.
func ParseKind(s string) Kind {
	for i, n := range names {
		if n == s {
			return Kind(i)
		}
	}
	return Internal
}

// Error is an error with a kind. Msg is for the peer: what was wrong, where, and what was expected.
type Error struct {
	Kind  Kind
	Code  string // stable word for programs, such as "secret_mismatch"; may be empty
	Msg   string
	Retry time.Duration // when to try again; 0: not said
	Err   error         // cause, for our own log only
}

func (e *Error) Error() string {
	if e.Err != nil {
		if cause := e.Err.Error(); cause != "" {
			return e.Msg + ": " + cause
		}
	}
	return e.Msg
}

func (e *Error) Unwrap() error { return e.Err }

// New returns an error of kind k whose formatted message the peer may read. A %w argument stays reachable by errors.Is.
func New(k Kind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: k, Msg: err.Error(), Err: unwrapOnly{errors.Unwrap(err)}.orNil()}
}

// Coded is New with a stable code for programs.
func Coded(k Kind, code, format string, args ...any) error {
	e := New(k, format, args...).(*Error)
	e.Code = code
	return e
}

// RetryLater says: not now, try again after d (Unavailable). cause is for our log.
func RetryLater(d time.Duration, msg string, cause error) error {
	return &Error{Kind: Unavailable, Code: "retry_after", Msg: msg, Retry: d, Err: cause}
}

// CodeAgain is the code of an Unavailable error that says: a part is done, and the rest is to be done at once. Nothing failed.
const CodeAgain = "again"

// CodeOffline is the code of an Unavailable error about a robot that is not connected. Nothing failed.
const CodeOffline = "robot_offline"

// KindOf returns the kind of the first *Error in err's chain, else Internal. A nil error has no kind; do not ask.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// CodeOf returns the stable code in err's chain, or "".
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// RetryOf returns the pause that err asks for, or 0.
func RetryOf(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.Retry
	}
	return 0
}

// Public returns what a peer may read of err: the message of its *Error, or "internal error".
func Public(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Msg
	}
	return "internal error"
}

// List returns words with commas between, for a message that says what was expected.
func List[T ~string](words []T) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// unwrapOnly keeps a %w cause for errors.Is without printing it twice.
type unwrapOnly struct{ err error }

func (u unwrapOnly) orNil() error {
	if u.err == nil {
		return nil
	}
	return u
}
func (u unwrapOnly) Error() string { return "" }
func (u unwrapOnly) Unwrap() error { return u.err }
