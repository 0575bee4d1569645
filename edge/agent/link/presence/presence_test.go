package presence

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/status"
)

func TestConnectSeqNeverRepeats(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for want := uint64(1); want < 4; want++ {
		if got, err := NextConnectSeq(root); err != nil || got != want {
			t.Errorf("got %d, %v; want %d", got, err, want)
		}
	}
	f, err := root.Create(seqFile)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString("rubbish")
	_ = f.Close()
	if got, err := NextConnectSeq(root); err != nil || got != 1 {
		t.Errorf("after damage: %d, %v", got, err)
	}
}

// TestRun: at once, soon after a change but not in a flood, and at intervals, whether publishing works or not.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		var last status.Message
		r := New("boot", func() status.Message { return status.Message{Agent: "1"} })
		publish := func(_ context.Context, name string, b []byte) error {
			m, err := status.Parse(b)
			if err != nil || name != "status" {
				t.Errorf("%s: %v", name, err)
			}
			last = m
			at = append(at, time.Since(start))
			return errors.New("no network")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		go func() {
			time.Sleep(3 * time.Second)
			for range 100 {
				r.Changed()
			}
		}()
		if err := r.Run(ctx, 7, publish); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, 3 * time.Second, 10 * time.Second, 20 * time.Second}
		if len(at) != len(want) && len(at) != len(want)+1 {
			t.Fatalf("published at %v, want about %v", at, want)
		}
		if at[1] != want[1] || last.ConnectSeq != 7 || last.State != status.Online || last.Lease == 0 {
			t.Errorf("at %v, last %+v", at, last)
		}
		slow := New("boot", r.collect, Every(time.Minute), Clock(func() time.Time { return time.UnixMilli(5) }))
		ctx, cancel = context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		at = nil
		if err := slow.Run(ctx, 8, publish); err != nil {
			t.Fatal(err)
		}
		if len(at) != 2 || time.Duration(last.Lease) != 185*time.Second || last.TS != 5 {
			t.Errorf("once a minute: published at %v, last %+v", at, last)
		}
		b, err := r.Will(7)
		m, perr := status.Parse(b)
		if err != nil || perr != nil || m.State != status.Gone || m.ConnectSeq != 7 {
			t.Errorf("will %s, %v, %v", b, err, perr)
		}
	})
}
