package wake

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestEachLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s, looks := New(), atomic.Int32{}
		go s.Each(ctx, time.Minute, func() { looks.Add(1) })
		saw := func(want int32, when string) {
			t.Helper()
			synctest.Wait()
			if got := looks.Load(); got != want {
				t.Errorf("%s: %d looks, want %d", when, got, want)
			}
		}
		saw(1, "at once")
		s.Set()
		saw(2, "when set")
		time.Sleep(time.Minute)
		saw(3, "after a while")
		stop()
		synctest.Wait()
		s.Set()
		s.Set() // never waits
		saw(3, "after the end")
	})
}
