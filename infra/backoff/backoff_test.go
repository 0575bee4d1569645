package backoff

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/errs"
)

func TestPauseDoublesWithinItsBounds(t *testing.T) {
	p := Pause{Min: time.Second, Max: 10 * time.Second}
	for range 2 {
		for i, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
			want *= time.Second
			if got := p.Next(nil); got < want/2 || got > want/2+want {
				t.Errorf("pause %d: %v, want %v give or take a half", i, got, want)
			}
		}
		p.Reset()
	}
	if got := p.Next(errs.RetryLater(time.Minute, "busy", nil)); got != time.Minute {
		t.Errorf("%v, want the minute that was asked for", got)
	}
}

func TestSuccessShortensThePause(t *testing.T) {
	p := Pause{Min: time.Second, Max: time.Minute}
	near := func(want time.Duration) {
		t.Helper()
		if got := p.Next(nil); got < want/2 || got > want/2+want {
			t.Errorf("pause of %v, want %v give or take a half", got, want)
		}
	}
	p.Lasted(time.Hour) // before any failure
	for _, want := range []time.Duration{1, 2, 4, 8, 16} {
		near(want * time.Second)
	}
	p.Lasted(20 * time.Second) // of 32
	near(12 * time.Second)
	p.Lasted(0)
	near(24 * time.Second)
	p.Lasted(time.Hour)
	near(time.Second)
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Sleep(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute+time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
