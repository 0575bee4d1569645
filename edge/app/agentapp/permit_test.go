package agentapp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/agent/info/platform"
	"kennel/edge/corelink"
	"kennel/edge/sim"
)

// TestPermit: a part that uses the cloud runs while that is allowed, says goodbye before it is ended, and is started again; a refusal lapses
// unless it is repeated.
func TestPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p permit
		ctx, cancel := context.WithCancel(t.Context())
		var begun, left, over atomic.Int32
		done := make(chan error, 1)
		broken := errors.New("broken")
		breaks := make(chan struct{})
		go func() {
			done <- p.while(ctx, func(ctx context.Context) error {
				begun.Add(1)
				select {
				case <-ctx.Done():
					over.Add(1)
					return ctx.Err()
				case <-breaks:
					return broken
				}
			}, func() {
				if left.Add(1) == over.Load() {
					t.Error("told to leave after it was over")
				}
			})
		}()
		is := func(what string, b, l, o int32) {
			t.Helper()
			if synctest.Wait(); begun.Load() != b || left.Load() != l || over.Load() != o {
				t.Errorf("%s: begun %d, left %d, over %d times; want %d, %d, %d", what, begun.Load(), left.Load(), over.Load(), b, l, o)
			}
		}
		is("allowed from the start", 1, 0, 0)
		if p.set(true, time.Second) {
			t.Error("what was so is news")
		}
		is("allowed again", 1, 0, 0)
		if !p.set(false, time.Second) || p.set(false, time.Second) {
			t.Error("a refusal is news once")
		}
		is("refused", 1, 1, 1)
		time.Sleep(900 * time.Millisecond)
		p.set(false, time.Second) // it lasts from here
		time.Sleep(900 * time.Millisecond)
		is("refused all the time", 1, 1, 1)
		time.Sleep(200 * time.Millisecond)
		is("lapsed", 2, 1, 1)
		p.set(false, time.Second)
		p.set(true, time.Second)
		is("back before it lapsed", 3, 2, 2)
		time.Sleep(time.Minute)
		is("long after", 3, 2, 2)
		close(breaks)
		if err := <-done; err != broken {
			t.Errorf("it ended with %v, want its own error", err)
		}
		cancel()
		p.set(false, time.Second)
		if err := p.while(ctx, func(context.Context) error { return broken }, silently); err != nil {
			t.Errorf("refused and over: %v", err)
		}
		time.Sleep(2 * time.Second) // the timer's end
	})
}

// TestLowBatteryNoCloud: VEC-PWR-07: robotd says that the battery leaves nothing for the cloud, and agentd goes away from it until it says otherwise.
func TestLowBatteryNoCloud(t *testing.T) {
	dir := t.TempDir()
	var e platform.Endpoints
	e.Kennel.API, e.Kennel.MQTT = "https://cloud.test:1", "ssl://cloud.test:2"
	if err := sim.Make(dir, sim.Birth{Thing: "vic:00e20100", Secret: "unused", Endpoints: e, RootPEM: rootPEM(t), OSVersion: "2.0.0.6074"}); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	core, err := corelink.Listen(dir, corelink.Hello{Program: "robotd"})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	dials, hang := make(chan struct{}, 100), make(chan struct{})
	a, err := New(root, Config{Root: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Dial: func(context.Context, string, string) (net.Conn, error) {
			dials <- struct{}{}
			<-hang // so that no part calls again by itself
			return nil, errors.New("nobody answers")
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2) // one each
	go func() { done <- core.Serve(ctx, corelink.Handlers{}) }()
	go func() { done <- a.Run(ctx) }()
	limit := time.After(time.Minute)
	calls := func(what string) {
		t.Helper()
		select {
		case <-dials:
		case <-limit:
			t.Fatalf("%s: nobody calls the cloud", what)
		}
	}
	calls("at first")
	if err := core.Publish(&corelink.Power{Cloud: false, Shed: "talk"}); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for problem := ""; problem == ""; {
		select {
		case <-tick.C:
			st, _ := a.Identity()
			problem = st.Problem
		case <-limit:
			t.Fatal("who called the cloud still waits for it, with a low battery")
		}
	}
	if err := core.Publish(&corelink.Power{Cloud: true}); err != nil {
		t.Fatal(err)
	}
	calls("charged")
	close(hang)
	cancel()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
