package observer_test

import (
	"context"
	"errors"
	"testing"

	"kennel/infra/observer"
)

// TestTell: every hearer hears, whatever the others answer.
func TestTell(t *testing.T) {
	var n observer.Of[string]
	if err := n.Tell(t.Context(), "none"); err != nil {
		t.Error(err)
	}
	var heard []string
	deaf := errors.New("deaf")
	n.Hear(func(context.Context, string) error { return deaf })
	n.Hear(func(_ context.Context, s string) error { heard = append(heard, s); return nil })
	if err := n.Tell(t.Context(), "rex"); !errors.Is(err, deaf) || len(heard) != 1 || heard[0] != "rex" {
		t.Errorf("%v, heard %q", err, heard)
	}
}
