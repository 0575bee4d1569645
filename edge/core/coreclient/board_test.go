package coreclient_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/robot"
)

// TestBoard: a program asks for the board once, however often it subscribes to numbers, and sends nothing else. A text still needs a subscription at robotd.
func TestBoard(t *testing.T) {
	root, ctx := t.TempDir(), within(t)
	b, _ := robotd(t, root)
	link := corelink.NewClient(root)
	sent := make(chan string, 20)
	c := coreclient.New(counting{link, sent})
	run(t, link, c, c.Handle)
	enough := errors.New("enough")
	for i, names := range [][]string{{"laser"}, {"laser", "battery.voltage"}, {"robot.type"}} {
		n := 0
		err := c.Subscribe(ctx, 50, func(u core.Update) error {
			if n++; n == 2 || i == 2 {
				return enough
			}
			b.Measure("laser.distance", float64(i+1))
			return nil
		}, names...)
		if !errors.Is(err, enough) {
			t.Errorf("%s: %v", names, err)
		}
	}
	var all []string
	for len(sent) > 0 {
		all = append(all, <-sent)
	}
	if want := []string{"get_board", "subscribe", "unsubscribe"}; !slices.Equal(all, want) {
		t.Errorf("robotd was sent %s, want %s", all, want)
	}
}

// TestBoardValues: values out of range are marked. A slow subscriber gets the newest values, and how many updates it missed. The subscription ends with robotd.
func TestBoardValues(t *testing.T) {
	root, ctx := t.TempDir(), within(t)
	b, end := robotd(t, root)
	c := connect(t, root, "one")
	told, free, ended := make(chan core.Update), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- c.Subscribe(ctx, 50, func(u core.Update) error { told <- u; <-free; return nil }, "laser.distance", "battery.voltage")
	}()
	first := await(t, ctx, told)
	laser, battery := &first.Values[0], &first.Values[1]
	if n, ok := laser.Number(); !ok || n != 0.4 || laser.Value.AgeMS < 0 || !laser.Changed || !battery.Changed || first.Missed != 0 {
		t.Errorf("%+v", first)
	}
	b.Measure("laser.distance", math.Inf(1))
	const late = 10
	select {
	case <-told:
		t.Fatal("told before the last was taken")
	case <-time.After((late + 1) * 20 * time.Millisecond): // the time is the event
	}
	free <- struct{}{}
	second := await(t, ctx, told)
	if n, _ := second.Values[0].Number(); !math.IsInf(n, 1) || second.Values[0].Value.Infinite != 1 || second.Values[1].Changed || second.Missed < late-2 {
		t.Errorf("%+v, want nothing in range and %d updates missed", second, late)
	}
	close(free)
	select {
	case u := <-told:
		t.Errorf("told %+v, of which nothing changed", u)
	case <-time.After(5 * 20 * time.Millisecond): // likewise
	}
	end()
	if err := await(t, ctx, ended); !errors.Is(err, coreclient.ErrLost) {
		t.Errorf("robotd ended: %v", err)
	}
}

// TestPlace: the pose of the loop's last step comes with each update, and can be read alone.
func TestPlace(t *testing.T) {
	root, ctx := t.TempDir(), within(t)
	b, end := robotd(t, root)
	c := connect(t, root, "one")
	enough := errors.New("enough")
	n := 0
	err := c.Subscribe(ctx, 50, func(u core.Update) error {
		if n++; n == 1 {
			b.SetPlace(robot.Place{X: 1, Y: -2, Theta: 0.5, Moving: true})
			b.Measure("laser.distance", 0.6)
			return nil
		}
		if p := u.Place; p == nil || p.X != 1 || p.Y != -2 || p.Theta != 0.5 || !p.Moving || p.At > u.At || p.At < u.At-patience {
			t.Errorf("%+v", u.Place)
		}
		return enough
	}, "laser.distance")
	if !errors.Is(err, enough) {
		t.Error(err)
	}
	b.SetPlace(robot.Place{X: 3})
	if p, ok := c.Place(ctx); !ok || p.X != 3 || p.Moving {
		t.Errorf("%+v, %v", p, ok)
	}
	end()
	for ok := true; ok; { // the connection ends soon after robotd does
		if _, ok = c.Place(ctx); ctx.Err() != nil {
			t.Fatal("a robotd that has ended has a place")
		}
	}
}

// boardless is the connection to a robotd that cannot share memory.
type boardless struct {
	coreclient.Core
	c *coreclient.Client
}

func (x *boardless) Send(m corelink.Message) error {
	if m, ok := m.(*corelink.GetBoard); ok {
		go x.c.Handle(&corelink.Reply{Request: m.Request, Code: "invalid"})
		return nil
	}
	return x.Core.Send(m)
}

// TestBoardless: a robotd that shares no memory, or sends no file, sends the values.
func TestBoardless(t *testing.T) {
	root, ctx := t.TempDir(), within(t)
	robotd(t, root)
	link := corelink.NewClient(root)
	x := &boardless{Core: link}
	x.c = coreclient.New(x)
	run(t, link, x.c, x.c.Handle)
	enough := errors.New("enough")
	subscribe := func() {
		t.Helper()
		err := x.c.Subscribe(ctx, 50, func(u core.Update) error {
			if got := changed(u); !slices.Equal(got, []string{"laser.distance 0.4"}) {
				t.Errorf("told %q", got)
			}
			return enough
		}, "laser.distance")
		if !errors.Is(err, enough) {
			t.Errorf("the subscription ended with %v", err)
		}
	}
	subscribe()
	x.c.Handle(&corelink.Board{})
	subscribe()
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if err := x.c.Subscribe(ctx, 50, nil, "laser.distance"); !errors.Is(err, context.Canceled) {
		t.Errorf("a subscription that was ended before: %v", err)
	}
}

// forgetful is the connection to a robotd that is lost, and found again, when it is first asked for its board.
type forgetful struct {
	coreclient.Core
	c    *coreclient.Client
	lost bool
}

func (x *forgetful) Send(m corelink.Message) error {
	if _, ok := m.(*corelink.GetBoard); ok && !x.lost {
		x.lost = true
		go func() {
			for _, m := range []corelink.Message{&corelink.Bye{Reason: "test"}, &corelink.Hello{}, &corelink.Speaks{Messages: []string{"get_board"}}} {
				x.c.Handle(m)
			}
		}()
		return nil
	}
	return x.Core.Send(m)
}

// TestBoardAfterLoss: a robotd that was lost before it answered is asked for its board again.
func TestBoardAfterLoss(t *testing.T) {
	root, ctx := t.TempDir(), within(t)
	robotd(t, root)
	link := corelink.NewClient(root)
	x := &forgetful{Core: link}
	x.c = coreclient.New(x)
	run(t, link, x.c, x.c.Handle)
	if _, err := x.c.Tree(ctx); err != nil { // by then robotd has said what it takes
		t.Fatal(err)
	}
	if _, ok := x.c.Place(ctx); ok {
		t.Error("a place of a robotd that was lost")
	}
	for ok := false; !ok; { // it is found again soon
		if _, ok = x.c.Place(ctx); ctx.Err() != nil {
			t.Fatal("its board was not asked for again")
		}
	}
}
