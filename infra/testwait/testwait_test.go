package testwait

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failing notes the failure of a test, and ends its goroutine as a failure does.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

// said returns the failure of wait; "" if it succeeds.
func said(t *testing.T, wait func(t testing.TB)) string {
	f := &failing{TB: t}
	defer func() {
		if r := recover(); r != nil && r != f {
			panic(r)
		}
	}()
	func() {
		defer func() { _ = recover() }()
		wait(f)
	}()
	return f.said
}

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ch := make(chan int, 1)
		time.AfterFunc(Long-time.Second, func() { ch <- 7 })
		if got := For(t, ch, "seven"); got != 7 {
			t.Errorf("got %d, want 7", got)
		}
		if got := said(t, func(t testing.TB) { For(t, ch, "another") }); got != "not within 30s: another" {
			t.Errorf("failed with %q", got)
		}
	})
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		took := Until(t, time.Minute, "ten seconds", Holds(func() bool { return time.Since(start) >= 10*time.Second }))
		if took < 10*time.Second || took > 10*time.Second+250*time.Millisecond {
			t.Errorf("it took %v, want ten seconds and at most a pause", took)
		}
		never := func() error { return errors.New("not yet") }
		if got := said(t, func(t testing.TB) { Until(t, time.Second, "never", never) }); got != "never: not within 1s: not yet" {
			t.Errorf("failed with %q", got)
		}
		if got := said(t, func(t testing.TB) { Until(t, time.Second, "never", Holds(func() bool { return false })) }); !strings.Contains(got, "condition is false") {
			t.Errorf("failed with %q", got)
		}
	})
}
