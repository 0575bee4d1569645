// Package robotdtest is a robotd with the body of coreservertest, for tests of its peers.
package robotdtest

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"kennel/edge/core/corelink"
	"kennel/edge/core/coreserver"
	"kennel/edge/core/coreserver/coreservertest"
	"kennel/edge/env/envtest"
	"kennel/edge/robot"
)

// Start serves below root until end or the end of the test. more are parts that the body has beside its own.
func Start(t testing.TB, root string, more ...robot.Part) (b *coreservertest.Body, end func()) {
	t.Helper()
	link, err := corelink.Listen(root, corelink.Hello{Program: "robotd"})
	if err != nil {
		t.Fatal(err)
	}
	if b, err = coreservertest.New(more...); err != nil {
		t.Fatal(err)
	}
	s, err := coreserver.New(coreserver.Config{Root: root, Hardware: envtest.Hardware{}, Log: slog.New(slog.DiscardHandler), Link: link, Control: b,
		Loop: coreservertest.Loop{Body: b}})
	if err == nil {
		err = s.Opened(t.Context(), corelink.BodyInfo{Species: "toy"})
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{func(ctx context.Context) error { return link.Serve(ctx, s.Handlers(ctx)) }, s.Run, s.Report} {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	end = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		if err := link.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return b, end
}
