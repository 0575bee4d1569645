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
