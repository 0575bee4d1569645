package vitals

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/status"
	"kennel/infra/thing"
)

const rex = thing.ID("vic:00e20100")

// kept is a Store that remembers what it was given.
type kept struct {
	err  error
	fine []Sample
	all  int
}

func (k *kept) Add(_ context.Context, g Grain, s []Sample) error {
	if k.err != nil {
		return k.err
	}
	k.all += len(s)
	if g == Fine {
		k.fine = append(k.fine, s...)
	}
	return nil
}
func (k *kept) List(context.Context, thing.ID, Grain, time.Time, time.Time) ([]Sample, error) {
	return k.fine, nil
}
func (k *kept) Forget(context.Context) error { return nil }

func said(volts, warm, late float64, fault int, problems ...string) status.Message {
	return status.Message{State: status.Online, BootID: "b", Problems: problems, Body: &status.Body{BatteryVolts: volts, TemperatureC: warm, Fault: fault}, Loop: &status.Loop{LateP99: late}}
}

func TestRecorderGathersSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kept{}
		r := NewRecorder(k, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		begin := time.Now().UTC().Truncate(time.Hour) // the bubble's clock begins at midnight
		r.Take(rex, said(3.9, 30, 100, 0))
		r.Take(rex, said(3.6, 45, 900, 905, "no network"))
		r.Take(rex, said(3.7, 40, 200, 0))
		r.Take(rex, status.Message{State: status.Online}) // says nothing of itself
		time.Sleep(FlushEvery + time.Second)
		synctest.Wait()
		if len(k.fine) != 1 || k.all != len(Grains) {
			t.Fatalf("%d rows, %d of them fine", k.all, len(k.fine))
		}
		s := k.fine[0]
		if s.Thing != rex || !s.At.Equal(begin) || *s.Volts != 3.7 || *s.Low != 3.6 || *s.Temperature != 45 || *s.LateP99 != 900 || s.Problems != 2 {
			t.Errorf("%+v volts %v low %v warm %v late %v", s, *s.Volts, *s.Low, *s.Temperature, *s.LateP99)
		}
		k.err = errors.New("away")
		r.Take(rex, said(3.5, 20, 50, 0))
		time.Sleep(FlushEvery)
		synctest.Wait()
		k.err = nil
		r.Take(rex, said(3.4, 20, 50, 0))
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(k.fine) != 2 || *k.fine[1].Volts != 3.4 || *k.fine[1].Low != 3.4 || *k.fine[1].LateP99 != 50 {
			t.Errorf("after an outage, at the end: %+v", k.fine)
		}
	})
}

func TestHandlePassesOn(t *testing.T) {
	k := &kept{}
	r := NewRecorder(k, slog.New(slog.DiscardHandler))
	var passed []string
	h := r.Handle(func(_ context.Context, _ thing.ID, payload []byte, _ func(ack.Ack)) {
		passed = append(passed, string(payload))
	})
	good, err := said(3.9, 0, 1, 0).Encode()
	if err != nil {
		t.Fatal(err)
	}
	will := said(3.9, 0, 1, 0)
	will.State = status.Gone
	last, err := will.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"nonsense", string(last), string(good)} {
		h(t.Context(), rex, []byte(p), nil)
	}
	if !slices.Equal(passed, []string{"nonsense", string(last), string(good)}) {
		t.Errorf("passed on %q", passed)
	}
	r.flush(t.Context())
	if k.all != len(Grains) {
		t.Errorf("%d rows, want those of one status", k.all)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	r := NewRecorder(&kept{err: errors.New("away")}, slog.New(slog.DiscardHandler))
	m := said(3.9, 1, 1, 0)
	for i := range maxWaiting {
		r.open[slot{grain: 0, at: int64(-i - 1)}] = &Sample{}
	}
	r.Take(rex, m)
	if len(r.open) != maxWaiting || r.lost != 1 {
		t.Errorf("%d samples, %d lost", len(r.open), r.lost)
	}
}
