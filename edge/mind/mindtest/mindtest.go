// Package mindtest runs a robot's character for the tests of its peers.
package mindtest

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/infra/testwait"
)

// patience bounds the wait for robotd and the socket.
const patience = time.Minute

// None has no motions.
func None(*os.Root, *corelink.Client, *coreclient.Client) mind.Motions { return nil }

// Start runs the character of the robot in dir, whose robotd runs, until the end of the test. It returns when it answers.
func Start(t testing.TB, dir string, motions mind.NewMotions) *mindlink.Client {
	t.Helper()
	return With(t, dir, mind.Own{Seed: 1, Motions: motions})
}

// With is Start with more of its own.
func With(t testing.TB, dir string, own mind.Own) *mindlink.Client {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mind.Serve(ctx, slog.New(slog.DiscardHandler), root, own) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = root.Close() // nothing buffered
	})
	c := mindlink.NewClient(dir)
	testwait.Until(t, patience, "mindd", func() error { _, err := c.List(ctx); return err })
	return c
}
