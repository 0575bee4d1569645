package errs

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

func TestKinds(t *testing.T) {
	err := fmt.Errorf("outer: %w", New(NotFound, "document %q: %w", "x", io.EOF))
	if got := KindOf(err); got != NotFound {
		t.Errorf("KindOf = %v", got)
	}
	if !errors.Is(err, io.EOF) {
		t.Error("cause lost")
	}
	if got, want := err.Error(), `outer: document "x": EOF`; got != want {
		t.Errorf("Error = %q, want %q", got, want)
	}
	if got := Public(errors.New("dsn with password")); got != "internal error" {
		t.Errorf("Public = %q", got)
	}
	if got := RetryOf(RetryLater(time.Second, "later", io.EOF)); got != time.Second {
		t.Errorf("RetryOf = %v", got)
	}
	for k := Internal; k <= Corrupt; k++ {
		if got := ParseKind(k.String()); got != k {
			t.Errorf("ParseKind(%v) = %v", k, got)
		}
	}
	type role string
	if got := List([]role{"admin", "viewer"}); got != "admin, viewer" {
		t.Errorf("List = %q", got)
	}
}
