package auth

import (
	"context"
	"testing"

	"kennel/infra/errs"
)

func TestRequire(t *testing.T) {
	ep := Require(Changers...)(func(context.Context, any) (any, error) { return "done", nil })
	for role, want := range map[Role]errs.Kind{"": errs.Unauthenticated, Viewer: errs.Denied, Thing: errs.Denied, Owner: errs.Denied} {
		if _, err := ep(WithCaller(t.Context(), Caller{Role: role}), nil); err == nil || errs.KindOf(err) != want {
			t.Errorf("role %q: %v, want kind %v", role, err, want)
		}
	}
	for _, role := range Changers {
		if _, err := ep(WithCaller(t.Context(), Caller{Role: role}), nil); err != nil {
			t.Errorf("role %q: %v", role, err)
		}
	}
}
