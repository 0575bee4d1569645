package release

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kennel/ota"
)

// TestPostponed: a robot waits while the cloud says that its owner postponed the release, whatever its own clock shows, says so as a word, and begins when the
// cloud says so no longer. It reports how far the download is.
func TestPostponed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := ota.Desired{Release: "2.0.1.6076", Since: time.Now(), NotBefore: time.Now().Add(-time.Hour)} // the robot's clock is fast
		c, u := &cloud{wish: want}, &updater{end: make(chan error)}
		a := New(Config{Running: "2.0.0.6074", Ask: c, Publish: c.publish, Updater: u, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		a.Connected(true)
		if got := c.told()[0]; got.Phase != ota.Pending || got.Waits != ota.WaitOwner || got.Reason == "" {
			t.Errorf("report %+v, want that it waits for its owner", got)
		}
		if r, err := a.Report(); err != nil || r.Waits == "" {
			t.Errorf("local report %+v, %v; want why it waits", r, err)
		}
		c.ack(a)
		want.NotBefore, want.URL = time.Time{}, "https://o/1"
		c.wishFor(want)
		time.Sleep(poll + time.Minute) // no hint: it looks again by itself
		c.told()
		if u.ran() != 1 {
			t.Fatalf("%d runs, want one", u.ran())
		}
		c.ack(a)
		u.mu.Lock()
		u.bytes = 499
		u.mu.Unlock()
		time.Sleep(maxRetry + 2*progress)
		if all := c.told(); all[len(all)-1].Phase != ota.Downloading || all[len(all)-1].Percent != 40 {
			t.Errorf("report %+v, want 40 percent", all[len(all)-1])
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestPostponedTooLate: a download that runs when its owner postpones the release is finished from the address that it had, although the cloud gives no address
// any longer.
func TestPostponedTooLate(t *testing.T) {
	want := ota.Desired{Release: "2.0.1.6076", Since: time.Now(), Artifact: ota.Artifact{URL: "https://o/1"}}
	postponed := want
	postponed.URL, postponed.NotBefore = "", time.Now().Add(time.Hour)
	u := &updater{again: true, end: make(chan error, 1)} // one: its end
	u.end <- nil
	a := New(Config{Running: "2.0.0.6074", Ask: &cloud{wish: postponed}, Updater: u, Log: slog.New(slog.DiscardHandler)})
	a.try.stop = func() {}
	a.install(t.Context(), want)
	if !slices.Equal(u.urls, []string{"https://o/1", "https://o/1"}) || a.failed != nil {
		t.Errorf("addresses %q, %v; want the first one again", u.urls, a.failed)
	}
}
