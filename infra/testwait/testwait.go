// Package testwait waits in tests: for a message, or until a condition holds. A test never waits for a time to pass.
package testwait

import (
	"errors"
	"testing"
	"time"
)

// Long is the limit for an event that must happen. Only a test that fails waits for it, so it suits a busy machine.
const Long = 30 * time.Second

// For returns the next value of ch, or the zero value if ch is closed. The test fails if none comes within Long.
func For[T any](t testing.TB, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(Long):
		t.Fatalf("not within %v: %s", Long, what)
	}
	return v
}

// Until asks ok again and again until it returns nil, and returns how long that took. The test fails with ok's last error if limit is over or the
// test has ended.
func Until(t testing.TB, limit time.Duration, what string, ok func() error) time.Duration {
	t.Helper()
	start := time.Now()
	var err error
	for pause := 5 * time.Millisecond; time.Since(start) < limit; pause = min(2*pause, 250*time.Millisecond) {
		if err = ok(); err == nil {
			return time.Since(start)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: %v", what, errors.Join(err, t.Context().Err()))
		case <-time.After(pause):
		}
	}
	t.Fatalf("%s: not within %v: %v", what, limit, err)
	return 0
}

// Holds turns a condition into a question of Until.
func Holds(ok func() bool) func() error {
	return func() error {
		if !ok() {
			return errors.New("condition is false")
		}
		return nil
	}
}
