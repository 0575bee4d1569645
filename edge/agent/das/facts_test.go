package das

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"file that allows uploads (VEC-DAS-08)": {AllowFile, "run/das_allow_upload"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}

// TestOutage: VEC-DAS-07: the first publish that fails is reported, and those that follow are not.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, c := testRoot(t), newCloud(t)
		m := newManager(t, root, "boot-1")
		c.m = m
		ctx, cancel := context.WithCancel(t.Context())
		var failing atomic.Int32
		done := make(chan error, 1)
		go func() {
			done <- m.Run(ctx, func(ctx context.Context, name string, payload []byte) error {
				if failing.Add(-1) >= 0 {
					return errors.New("no connection")
				}
				return c.publish(ctx, name, payload)
			})
		}()
		for i, n := range []int32{1, 5} {
			failing.Store(n)
			emit(t, m, "a")
			time.Sleep(24 * time.Hour)
			reports := 0
			c.set(func() {
				for _, e := range c.stored {
					if strings.HasPrefix(e, "dasmgr.upload.failed ") {
						reports++
					}
				}
			})
			if reports != i+1 {
				t.Errorf("%d reports after %d outages", reports, i+1)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
