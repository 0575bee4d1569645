package wake

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestEachLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s, looks := New(), 0
		go s.Each(ctx, time.Minute, func() { looks++ })
		saw := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			if looks != want {
				t.Errorf("%s: %d looks, want %d", when, looks, want)
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
