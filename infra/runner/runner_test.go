package runner

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestStopsInReverseAndRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var stopped []string
		runs := 0
		wait := func(name string) Service {
			return Service{Name: name, Run: func(ctx context.Context) error {
				<-ctx.Done()
				mu.Lock()
				defer mu.Unlock()
				stopped = append(stopped, name)
				return nil
			}}
		}
		flaky := Service{Name: "flaky", Run: func(ctx context.Context) error {
			if runs++; runs < 3 {
				if runs == 1 {
					panic("boom")
				}
				return errors.New("no")
			}
			<-ctx.Done()
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := Run(ctx, slog.New(slog.DiscardHandler), Config{}, wait("a"), flaky, wait("b")); err != nil {
			t.Fatal(err)
		}
		if runs != 3 {
			t.Errorf("flaky ran %d times, want 3", runs)
		}
		if want := []string{"b", "a"}; !slices.Equal(stopped, want) {
			t.Errorf("stopped %v, want %v", stopped, want)
		}
	})
}

func TestFatalEndsAll(t *testing.T) {
	want := errors.New("port in use")
	err := Run(t.Context(), slog.New(slog.DiscardHandler), Config{},
		Service{Name: "x", Run: func(ctx context.Context) error { <-ctx.Done(); return nil }},
		Service{Name: "listen", Fatal: true, Run: func(context.Context) error { return want }})
	if !errors.Is(err, want) {
		t.Errorf("err = %v, want %v", err, want)
	}
}
