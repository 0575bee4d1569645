package token

import (
	"errors"

	"kennel/infra/errs"
)

// Refusal is the reason why a caller was refused. Error is for our log and the doctor; transports find the kind and the public text, which do not
// say which half was wrong.
type Refusal struct {
	Code   string // stable word, such as "token_expired"
	Reason string // for people
	public *errs.Error
	cause  error
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Code + ": " + r.Reason }

// Unwrap returns what the peer learns, and what led to the refusal.
func (r *Refusal) Unwrap() []error {
	if r.cause == nil {
		return []error{r.public}
	}
	return []error{r.public, r.cause}
}

// The texts that peers see. One text for everything that must be proved, and one for everything that is wrong with an access token.
const (
	notAccepted      = "not accepted; the operator's doctor knows why"
	tokenNotAccepted = "access token is not accepted"
	wrongAccount     = "the robot belongs to another account"
)

func refuse(kind errs.Kind, public, code, reason string, cause error) *Refusal {
	return &Refusal{Code: code, Reason: reason, public: &errs.Error{Kind: kind, Msg: public}, cause: cause}
}

// unproved: certificate, app key or user session.
func unproved(code, reason string, cause error) *Refusal {
	return refuse(errs.Unauthenticated, notAccepted, code, reason, cause)
}

// badToken makes an original robot refresh, and stop when it is the refresh that was refused.
func badToken(code, reason string) *Refusal {
	return refuse(errs.Denied, tokenNotAccepted, code, reason, nil)
}

// notOwner is the refusal that an original robot shows in its app as "wrong account".
func notOwner(code, reason string) *Refusal {
	return refuse(errs.Invalid, wrongAccount, code, reason, nil)
}

// codeOf is the code and the reason of an error for the doctor. What is ours to mend has no reason there.
func codeOf(err error) (code, reason string) {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code, r.Reason
	}
	if c := errs.CodeOf(err); c != "" {
		return c, errs.Public(err)
	}
	return errs.KindOf(err).String(), errs.Public(err)
}
