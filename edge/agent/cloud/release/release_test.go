package release

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/errs"
	"kennel/ota"
)

// cloud answers with wish, and keeps what it is told.
type cloud struct {
	mu   sync.Mutex
	wish ota.Desired
	err  error
	got  []ota.Status
}

func (c *cloud) Do(context.Context, string, string, []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	return c.wish.Encode()
}

func (c *cloud) publish(_ context.Context, name string, b []byte) error {
	s, err := ota.ParseStatus(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && name == "ota" {
		c.got = append(c.got, s)
	}
	return err
}

// say changes what the cloud answers from now on.
func (c *cloud) say(wish ota.Version, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wish.Release, c.err = wish, err
}

// told returns what the cloud was told so far.
func (c *cloud) told() []ota.Status {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

func TestReportsUntilConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{wish: ota.Desired{Release: "2.0.1.6076"}, err: errs.New(errs.Unavailable, "down")}
		a := New("2.0.0.6074", c, c.publish, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()

		a.Connected(true)
		if len(c.told()) != 0 {
			t.Fatal("reported without knowing the wish")
		}
		c.say("2.0.1.6076", nil)
		time.Sleep(time.Minute) // the cloud is back; no confirmation yet
		got := c.told()
		if n := len(got); n < 2 || got[0].ID != got[n-1].ID {
			t.Fatalf("reports %+v: want the same one again and again", got)
		}
		first := got[0]
		if first.Phase != ota.Pending || first.Reason == "" || first.Release != "2.0.1.6076" {
			t.Errorf("report %+v", first)
		}
		if a.HandleAck(ack.Ack{Batch: "other", Status: ack.Stored}) || !a.HandleAck(ack.Ack{Batch: first.ID, Status: ack.Stored}) {
			t.Error("acks are not told apart")
		}
		time.Sleep(5 * time.Minute)
		n := len(c.told())
		time.Sleep(10 * time.Hour)
		if len(c.told()) != n {
			t.Error("a confirmed report was repeated")
		}
		c.say("2.0.0.6074", nil)
		a.Hint(nil)
		got = c.told()
		if last := got[len(got)-1]; last.Phase != ota.Current {
			t.Errorf("after the wish became what runs: %+v", last)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
