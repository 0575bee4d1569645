package gateway_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"google.golang.org/grpc"

	"kennel/infra/api/robotpb"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// TestAuthenticate: part of VEC-SEC-06: a program without a token gives a session of the owner's account and gets one; a wrong session, a name that no page could show and too many tries
// are refused, and a cloud that does not answer is told as that.
func TestAuthenticate(t *testing.T) {
	d := newDesk(t)
	d.exchange = func(_ context.Context, session logging.Secret, client, app string) (logging.Secret, error) {
		switch {
		case session.Reveal() == "of the owner" && client == "laptop" && app == "SDK":
			return "a new token", nil
		case session.Reveal() == "offline":
			return "", errs.New(errs.Unavailable, "no cloud")
		}
		return "", errs.New(errs.Denied, "no such session")
	}
	r := d.dial(t)
	ask := func(session, name string) (token, code string, kind codes.Code) {
		t.Helper()
		var trailer metadata.MD
		a, err := r.Authenticate(t.Context(), &robotpb.AuthenticateRequest{Session: session, ClientName: name}, grpc.Trailer(&trailer))
		return a.GetToken(), strings.Join(trailer.Get("kennel-code"), ","), status.Code(err)
	}
	if token, code, kind := ask("of the owner", "laptop"); token != "a new token" || kind != codes.OK {
		t.Error(token, code, kind)
	}
	for _, tc := range []struct {
		session, name, code string
		kind                codes.Code
	}{
		{"of the owner", "", "invalid", codes.InvalidArgument},
		{"of the owner", strings.Repeat("x", 65), "invalid", codes.InvalidArgument},
		{"of another", "laptop", "session_wrong", codes.Unauthenticated},
		{"offline", "laptop", "unavailable", codes.Unavailable},
	} {
		if token, code, kind := ask(tc.session, tc.name); token != "" || code != tc.code || kind != tc.kind {
			t.Errorf("%+v: %q %s %v", tc, token, code, kind)
		}
	}
	for kind := codes.OK; kind != codes.ResourceExhausted; {
		_, _, kind = ask("guess", "laptop")
	}
}
