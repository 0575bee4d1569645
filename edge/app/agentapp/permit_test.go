package agentapp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"kennel/edge/core/corelink"
	"kennel/edge/env/platform"
	"kennel/edge/sim"
)

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
			return nil, errors.New("no answer")
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
