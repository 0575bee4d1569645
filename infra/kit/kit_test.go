package kit

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"kennel/infra/errs"
)

func TestTypedRefusesOtherTypes(t *testing.T) {
	ep := Typed(func(_ context.Context, n int) (int, error) { return n + 1, nil })
	if got, err := ep(t.Context(), 1); err != nil || got != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := ep(t.Context(), "1"); err == nil {
		t.Error("a string was taken for an int")
	}
}

func TestRequire(t *testing.T) {
	ep := Require(Changers...)(func(context.Context, any) (any, error) { return "done", nil })
	for role, want := range map[Role]errs.Kind{"": errs.Unauthenticated, RoleViewer: errs.Denied, RoleThing: errs.Denied, RoleOwner: errs.Denied} {
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

func TestRecoverAndTimeout(t *testing.T) {
	boom := Recover(slog.New(slog.DiscardHandler))(func(context.Context, any) (any, error) { panic("secret words") })
	if _, err := boom(t.Context(), nil); err == nil || errs.KindOf(err) != errs.Internal || err.Error() != "internal error" {
		t.Errorf("after a panic: %v", err)
	}
	slow := Timeout(time.Nanosecond)(func(ctx context.Context, _ any) (any, error) { <-ctx.Done(); return nil, ctx.Err() })
	if _, err := slow(t.Context(), nil); err == nil {
		t.Error("no deadline")
	}
}
