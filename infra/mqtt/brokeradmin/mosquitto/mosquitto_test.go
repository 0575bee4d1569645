package mosquitto_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/errs"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokeradmin/brokeradmintest"
	"kennel/infra/mqtt/brokeradmin/mosquitto"
	"kennel/infra/mqtt/brokeradmin/mosquitto/mosquittotest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

func TestContract(t *testing.T) {
	brokeradmintest.Run(t, func(t *testing.T) *brokeradmintest.Broker {
		b := mosquittotest.Start(t)
		return &brokeradmintest.Broker{
			Things: b.Things, Services: b.Services, Admin: b.Admin(t), Stop: b.Kill, Start: func() { b.Start(t) }, RenamesClient: true, BlockedLogsIn: true,
		}
	})
}

// TestLearnsTheFleet: a Mosquitto that lost its file, or has an older version's, is told again; what it knows stays through a kill.
func TestLearnsTheFleet(t *testing.T) {
	b := mosquittotest.Start(t)
	var fleet []thing.ID
	for i := range 130 { // several batches
		fleet = append(fleet, thing.ID(fmt.Sprintf("vic:%08x", i)))
	}
	a := b.Admin(t, fleet...)
	in := func(id thing.ID) func() bool {
		return func() bool {
			return verdict(t, b.Things, b.Things.Device.Issue(t, string(id)), func(ctx context.Context, c *mqtt.Client) error {
				return c.Subscribe(ctx, 1, topics.ThingFilters(id)...)
			}) == nil
		}
	}
	first, last := in(fleet[0]), in(fleet[len(fleet)-1])
	began := time.Now()
	testwait.Until(t, testwait.Long, "the last thing is let in", testwait.Holds(last))
	t.Logf("%d things told within %v", len(fleet), time.Since(began).Round(time.Millisecond))
	b.Kill()
	b.Start(t)
	if !last() || !first() {
		t.Error("forgotten after a kill")
	}
	b.Kill()
	raw, err := os.ReadFile(b.Config.SecurityFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes of security file", len(raw))
	if err := os.Remove(b.Config.SecurityFile); err != nil {
		t.Fatal(err)
	}
	b.Start(t)
	testwait.Until(t, testwait.Long, "a thing is let in by a broker that knew nobody", testwait.Holds(last))
	if !first() {
		t.Error("the last is let in, the first is not")
	}
	// An older version's role, which allowed nothing.
	b.Kill()
	if raw, err = os.ReadFile(b.Config.SecurityFile); err != nil {
		t.Fatal(err)
	}
	old := bytes.ReplaceAll(raw, []byte("thing/1/"+string(fleet[7])+`"`), []byte("thing/0/"+string(fleet[7])+`"`))
	old = bytes.ReplaceAll(old, []byte("/"+string(fleet[7])+"/down"), []byte("/nothing/down"))
	if err := os.WriteFile(b.Config.SecurityFile, old, 0o600); err != nil {
		t.Fatal(err)
	}
	b.Start(t)
	testwait.Until(t, testwait.Long, "a thing with an old role is let in", testwait.Holds(in(fleet[7])))
	testwait.Until(t, testwait.Long, "ready", func() error { return a.Ready(t.Context()) })
}

// TestRepairsBlocks: what the database says of blocked things holds at every connection, whatever the plugin's file says.
func TestRepairsBlocks(t *testing.T) {
	b := mosquittotest.Start(t)
	fleet := []thing.ID{"vic:stolen", "vic:returned", "vic:other"}
	first := b.Admin(t, fleet...)
	testwait.Until(t, testwait.Long, "ready", func() error { return first.Ready(t.Context()) })
	if err := first.Provision(t.Context(), fleet...); err != nil {
		t.Fatal(err)
	}
	if err := first.Block(t.Context(), "vic:returned", "stolen"); err != nil {
		t.Fatal(err)
	}
	in := func(id thing.ID) func() bool {
		return func() bool {
			return verdict(t, b.Things, b.Things.Device.Issue(t, string(id)), func(ctx context.Context, c *mqtt.Client) error {
				return c.Subscribe(ctx, 1, topics.ThingFilters(id)...)
			}) == nil
		}
	}
	stolen, returned, other := in("vic:stolen"), in("vic:returned"), in("vic:other")
	if !stolen() || returned() || !other() {
		t.Fatal("not as ordered")
	}
	second, err := mosquitto.New(mosquitto.Config{
		MQTT:   mqtt.Config{URL: b.Services.URL, TLS: b.Services.Cloud(t), MinBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond},
		Things: func(context.Context) ([]thing.ID, error) { return fleet, nil },
		Blocked: func(context.Context) (map[thing.ID]string, error) {
			return map[thing.ID]string{"vic:stolen": "stolen"}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- second.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	testwait.Until(t, testwait.Long, "what returned is let in", testwait.Holds(returned))
	if stolen() || !other() {
		t.Error("the stolen one is let in, or the other is not")
	}
	// A broker that lost its file, told by one that knows and by one that does not.
	b.Kill()
	if err := os.Remove(b.Config.SecurityFile); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	done <- nil
	b.Start(t)
	testwait.Until(t, testwait.Long, "the other is let in again", testwait.Holds(other))
	if err := first.Block(t.Context(), "vic:stolen", "stolen"); err != nil { // what brokeradmin.Keep does
		t.Fatal(err)
	}
	if stolen() {
		t.Error("the stolen one is let in")
	}
}

// TestLargeFleet: a new broker is told of ten thousand things by the file that it starts with.
func TestLargeFleet(t *testing.T) {
	b := mosquittotest.New(t)
	var fleet []thing.ID
	for i := range 10_000 {
		fleet = append(fleet, thing.ID(fmt.Sprintf("vic:%08x", i)))
	}
	if _, err := b.Config.Write(b.Dir, fleet...); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	b.Start(t)
	started := time.Since(began)
	a := b.Admin(t, fleet...)
	testwait.Until(t, testwait.Long, "ready", func() error { return a.Ready(t.Context()) })
	began = time.Now()
	if err := a.Provision(t.Context(), "vic:new"); err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v, one more thing in %v", started.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	for _, id := range []thing.ID{fleet[0], fleet[len(fleet)-1], "vic:new"} {
		if err := verdict(t, b.Things, b.Things.Device.Issue(t, string(id)), func(ctx context.Context, c *mqtt.Client) error {
			return c.Subscribe(ctx, 1, topics.ThingFilters(id)...)
		}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestNotAnAdmin: a service that the plugin does not know learns that it is not answered.
func TestNotAnAdmin(t *testing.T) {
	b := mosquittotest.New(t)
	b.Config.Admins = []string{"kenneld-other"}
	b.Start(t)
	a := b.Admin(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := a.Ready(ctx); err == nil {
		t.Error("ready without rights")
	}
	if err := a.Provision(ctx, "vic:1"); errs.KindOf(err) == errs.Internal && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("provision without rights: %v", err)
	}
}

// TestStrangersFillTheRobotsListener: connections that fill the robots' listener take none of the cloud's places (issue 16, finding 1).
func TestStrangersFillTheRobotsListener(t *testing.T) {
	b := mosquittotest.New(t)
	b.Config.MaxThings = 20
	b.Start(t)
	ended := make(chan struct{}, 60) // one for each
	for range 60 {
		conn, err := net.Dial("tcp", b.Config.Things)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		go func() { _, _ = io.Copy(io.Discard, conn); ended <- struct{}{} }() // ends with the connection
	}
	for range 40 {
		testwait.For(t, ended, "a connection beyond the limit is refused")
	}
	if err := verdict(t, b.Services, b.Services.Service.Issue(t, "kenneld"), func(context.Context, *mqtt.Client) error { return nil }); err != nil {
		t.Errorf("the cloud is not let in: %v", err)
	}
}

// TestFrozenShows (issue 16, finding 6): a Mosquitto that no longer answers, although the connection is up, shows within 5 s.
func TestFrozenShows(t *testing.T) {
	b := mosquittotest.Start(t)
	c, err := mqtt.New(mqtt.Config{URL: b.Services.URL, ClientID: "kenneld-probe", TLS: b.Services.Cloud(t), ProbeEvery: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	testwait.Until(t, 30*time.Second, "an answer", c.Answers)
	thaw := b.Freeze(t)
	t.Cleanup(thaw)
	testwait.Until(t, 5*time.Second, "silence that shows", func() error {
		if err := c.Answers(); errs.CodeOf(err) != "broker_silent" || !c.Connected() {
			return fmt.Errorf("%v, connected %v", err, c.Connected())
		}
		return nil
	})
	thaw()
	testwait.Until(t, 30*time.Second, "an answer again", c.Answers)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
