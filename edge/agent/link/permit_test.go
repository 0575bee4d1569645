package link

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestPermit: a part that uses the cloud runs while that is allowed, says goodbye before it is ended, and is started again; a refusal lapses
// unless it is repeated.
func TestPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p permit
		ctx, cancel := context.WithCancel(t.Context())
		var begun, left, over atomic.Int32
		done := make(chan error, 1)
		broken := errors.New("broken")
		breaks := make(chan struct{})
		go func() {
			done <- p.while(ctx, func(ctx context.Context) error {
				begun.Add(1)
				select {
				case <-ctx.Done():
					over.Add(1)
					return ctx.Err()
				case <-breaks:
					return broken
				}
			}, func() {
				if left.Add(1) == over.Load() {
					t.Error("told to leave after it was over")
				}
			})
		}()
		is := func(what string, b, l, o int32) {
			t.Helper()
			if synctest.Wait(); begun.Load() != b || left.Load() != l || over.Load() != o {
				t.Errorf("%s: begun %d, left %d, over %d times; want %d, %d, %d", what, begun.Load(), left.Load(), over.Load(), b, l, o)
			}
		}
		is("allowed from the start", 1, 0, 0)
		if p.set(true, time.Second) {
			t.Error("what was so is news")
		}
		is("allowed again", 1, 0, 0)
		if !p.set(false, time.Second) || p.set(false, time.Second) {
			t.Error("a refusal is news once")
		}
		is("refused", 1, 1, 1)
		time.Sleep(900 * time.Millisecond)
		p.set(false, time.Second) // it lasts from here
		time.Sleep(900 * time.Millisecond)
		is("refused all the time", 1, 1, 1)
		time.Sleep(200 * time.Millisecond)
		is("lapsed", 2, 1, 1)
		p.set(false, time.Second)
		p.set(true, time.Second)
		is("back before it lapsed", 3, 2, 2)
		time.Sleep(time.Minute)
		is("long after", 3, 2, 2)
		close(breaks)
		if err := <-done; err != broken {
			t.Errorf("it ended with %v, want its own error", err)
		}
		cancel()
		p.set(false, time.Second)
		if err := p.while(ctx, func(context.Context) error { return broken }, silently); err != nil {
			t.Errorf("refused and over: %v", err)
		}
		time.Sleep(2 * time.Second) // the timer's end
	})
}
