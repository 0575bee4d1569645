package release

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"kennel/cloud/api/ack"
	"kennel/infra/errs"
	"kennel/ota"
)

// cloud answers with wish, and keeps what it is told.
type cloud struct {
	wish ota.Desired
	err  error
	got  []ota.Status
}

func (c *cloud) Do(context.Context, string, string, []byte) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	return c.wish.Encode()
}

func (c *cloud) publish(_ context.Context, name string, b []byte) error {
	s, err := ota.ParseStatus(b)
	if err == nil && name == "ota" {
		c.got = append(c.got, s)
	}
	return err
}

func TestReportsUntilConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{wish: ota.Desired{Release: "2.0.1.6076"}, err: errs.New(errs.Unavailable, "down")}
		a := New("2.0.0.6074", c, c.publish, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()

		a.Connected(true)
		synctest.Wait()
		if len(c.got) != 0 {
			t.Fatal("reported without knowing the wish")
		}
		c.err = nil
		time.Sleep(time.Minute) // the cloud is back; nobody confirms yet
		synctest.Wait()
		if n := len(c.got); n < 2 || c.got[0].ID != c.got[n-1].ID {
			t.Fatalf("reports %+v: want the same one again and again", c.got)
		}
		first := c.got[0]
		if first.Phase != ota.Pending || first.Reason == "" || first.Release != "2.0.1.6076" {
			t.Errorf("report %+v", first)
		}
		if a.HandleAck(ack.Ack{Batch: "other", Status: ack.Stored}) || !a.HandleAck(ack.Ack{Batch: first.ID, Status: ack.Stored}) {
			t.Error("acks are not told apart")
		}
		time.Sleep(5 * time.Minute)
		n := len(c.got)
		time.Sleep(10 * time.Hour)
		if len(c.got) != n {
			t.Error("a confirmed report was repeated")
		}
		c.wish.Release = "2.0.0.6074"
		a.Hint(nil)
		synctest.Wait()
		if last := c.got[len(c.got)-1]; last.Phase != ota.Current {
			t.Errorf("after the wish became what runs: %+v", last)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
