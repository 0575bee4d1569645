package kennel

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"kennel/infra/api/robotpb"
)

// Error is a refusal of the robot, or says why there is no answer.
type Error struct {
	// Code is one of the robot's (infra/api/robotpb/robot.proto), such as busy, or one of this package: file_missing, file_wrong, unreachable,
	// certificate_wrong, lost, not_measured.
	Code    string
	Message string
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Is reports whether target has the same code, so that errors.Is finds ErrLost whatever its message.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// ErrLost is the robot that is no longer heard.
var ErrLost = &Error{"lost", "the robot is not heard any longer"}

func errorf(code, format string, a ...any) *Error { return &Error{code, fmt.Sprintf(format, a...)} }

// NotDone is the error of a motion that did not end as ordered.
type NotDone struct{ *robotpb.Ended }

func (n *NotDone) Error() string { return n.Outcome + ": " + n.Words }

// explain returns what an error of a call means to the program. If the call was ended on this side, it is the reason for that.
func explain(ctx context.Context, err error, trailer metadata.MD) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	s := status.Convert(err)
	if code := trailer.Get("kennel-code"); len(code) > 0 {
		return &Error{code[0], s.Message()}
	}
	if s.Code() == codes.Unavailable {
		return errorf("lost", "%v", s.Message())
	}
	return &Error{strings.ToLower(s.Code().String()), s.Message()}
}
