package faultcode

import "errors"

// Error is an error that the robot reports as a numbered fault. Error's kind (infra/errs) and whatever else is in the chain stay reachable.
type Error struct {
	Code Code
	Err  error
}

// Wrap makes an error the fault of that number; nil stays nil.
func Wrap(c Code, err error) error {
	if err == nil {
		return nil
	}
	return &Error{c, err}
}

func (e *Error) Error() string { return "fault " + e.Code.String() + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Of returns the fault that is in err's chain; 0 if there is none.
func Of(err error) Code {
	if f, ok := errors.AsType[*Error](err); ok {
		return f.Code
	}
	return 0
}
