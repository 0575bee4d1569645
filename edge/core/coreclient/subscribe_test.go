package coreclient_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/robot"
	"kennel/infra/api/live"
)

// changed writes what changed in u.
func changed(u core.Update) (out []string) {
	for _, x := range u.Values {
		v := "unknown"
		if n, ok := x.Number(); ok {
			v = fmt.Sprint(n)
		}
		if x.Changed {
			out = append(out, strings.TrimPrefix(x.Device, "robot.body.")+"."+x.Slot.Name+" "+v)
		}
	}
	return out
}

// older is the connection to a robotd of before Speaks: it takes no typed orders and no subscriptions.
type older struct{ coreclient.Core }

func (o older) Send(m corelink.Message) error {
	switch m.(type) {
	case *corelink.Order, *corelink.Subscribe, *corelink.GetBoard:
		return nil // as it ignores what it does not know
	}
	return o.Core.Send(m)
}

// TestSubscribe: all values first, then each that changes, and that nothing knows it (GOSTAI-OPEN-02); the same of a robotd of before subscriptions.
func TestSubscribe(t *testing.T) {
	for _, release := range []string{"this", "the one before"} {
		t.Run(release, func(t *testing.T) {
			root, ctx := t.TempDir(), within(t)
			b, _ := robotd(t, root)
			c := connect(t, root, "one")
			if release != "this" {
				c = connectOlder(t, root)
			}
			enough := errors.New("enough")
			n := 0
			names := []string{"laser", "battery.voltage", "body.wheel[left].speed", "wheelR.speed"}
			err := c.Subscribe(ctx, 50, func(u core.Update) error {
				want := [][]string{{"laser.distance 0.4", "battery.voltage 3.9", "wheel[left].speed unknown", "wheel[right].speed unknown"},
					{"laser.distance 0.5"}, {"wheel[right].speed 2"}}[n]
				if got := changed(u); !slices.Equal(got, want) || u.Missed != 0 || u.At == 0 || len(u.Values) != 4 {
					t.Errorf("update %d: told %q of %+v, want %q", n, got, u, want)
				}
				switch n++; n {
				case 1:
					b.Measure("laser.distance", 0.5)
				case 2:
					b.Measure("wheelR.speed", 2)
				case 3:
					return enough
				}
				return nil
			}, names...)
			if !errors.Is(err, enough) {
				t.Errorf("the subscription ended with %v", err)
			}
			if err := c.Subscribe(ctx, 50, nil, "laser", "wing"); !errors.Is(err, robot.ErrNotFound) {
				t.Errorf("subscription to no such part: %v", err)
			}
			if err := c.Subscribe(ctx, 0, nil, "laser"); err == nil {
				t.Error("a subscription without a rate")
			}
			values, err := c.Read(ctx, names...)
			if got := changed(core.Update{Values: values}); err != nil || got[0] != "laser.distance 0.5" || got[3] != "wheel[right].speed 2" {
				t.Errorf("read %q, %v", got, err)
			}
		})
	}
}

// counting counts what is sent of each type.
type counting struct {
	coreclient.Core
	sent chan string
}

func (x counting) Send(m corelink.Message) error {
	switch m.(type) {
	case *corelink.GetBoard, *corelink.Subscribe, *corelink.Unsubscribe:
		x.sent <- corelink.Name(m)
	}
	return x.Core.Send(m)
}

// TestFlows: without a board, subscribers to the same slots at the same rate share one subscription at robotd. Each is told all values first, then what changes, and one that leaves
// takes it from no other; the last one ends it.
func TestFlows(t *testing.T) {
	root, ctx := t.TempDir(), within(t)
	b, _ := robotd(t, root)
	link := corelink.NewClient(root)
	sent := make(chan string, 10)
	c := coreclient.New(counting{link, sent})
	run(t, link, c, func(m corelink.Message) {
		if s, ok := m.(*corelink.Speaks); ok {
			m = &corelink.Speaks{Messages: slices.DeleteFunc(slices.Clone(s.Messages), func(name string) bool { return name == "get_board" })}
		}
		c.Handle(m)
	})
	follow := func(name string) (told chan []string, end func()) {
		ctx, cancel := context.WithCancel(ctx)
		told, ended := make(chan []string, 10), make(chan struct{})
		go func() {
			defer close(ended)
			_ = c.Subscribe(ctx, 50, func(u core.Update) error { told <- changed(u); return nil }, name) // it ends with ctx
		}()
		return told, func() { cancel(); <-ended }
	}
	first, endFirst := follow("laser")
	want := func(told chan []string, value string) {
		t.Helper()
		if got := await(t, ctx, told); !slices.Equal(got, []string{"laser.distance " + value}) {
			t.Errorf("told %q, want %s", got, value)
		}
	}
	want(first, "0.4")
	b.Measure("laser.distance", 0.5)
	want(first, "0.5")
	second, endSecond := follow("laser")
	want(second, "0.5")
	other, endOther := follow("battery.voltage")
	await(t, ctx, other)
	b.Measure("laser.distance", 0.6)
	want(first, "0.6")
	want(second, "0.6")
	endFirst()
	b.Measure("laser.distance", 0.7)
	want(second, "0.7")
	endOther()
	endSecond()
	third, endThird := follow("laser")
	want(third, "0.7")
	endThird()
	var all []string
	for len(sent) > 0 {
		all = append(all, <-sent)
	}
	if got := strings.Join(all, " "); got != "subscribe subscribe unsubscribe unsubscribe subscribe unsubscribe" {
		t.Errorf("robotd was sent %s", got)
	}
}

func await[T any](t *testing.T, ctx context.Context, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-ctx.Done():
		t.Fatal("nothing was told")
	}
	return v
}

// TestRate: who is fast gets about as many updates as it asked for and none twice; that the loop publishes far more of them does not matter.
func TestRate(t *testing.T) {
	root, ctx := t.TempDir(), within(t)
	b, _ := robotd(t, root)
	c := connect(t, root, "one")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for v := 0.0; ctx.Err() == nil; v++ {
			b.Measure("laser.distance", v)
			time.Sleep(time.Millisecond) // the rhythm of a body, which is no wait of the test
		}
	}()
	const rate, updates = 50, 50
	var began time.Time
	last, n, missed := -1.0, 0, uint64(0)
	enough := errors.New("enough")
	err := c.Subscribe(ctx, rate, func(u core.Update) error {
		if n == 0 {
			began = time.Now()
		}
		v, _ := u.Values[0].Number()
		if v <= last {
			t.Errorf("update %d: %v after %v", n, v, last)
		}
		last, missed = v, missed+u.Missed
		if n++; n > updates {
			return enough
		}
		return nil
	}, "laser.distance")
	took := time.Since(began)
	made := float64(n-1) + float64(missed)
	if hz := made / took.Seconds(); !errors.Is(err, enough) || hz > rate*1.1 || hz < rate/5 {
		t.Errorf("%d updates and %d missed in %v, %.1f a second, %v; want about %d", n, missed, took, hz, err, rate)
	}
	if most := updates * 5 * time.Second / rate; took > most {
		t.Errorf("%d updates took %v, want at most %v", updates, took, most)
	}
}

// TestSlow: who is slow gets the newest, and how many it did not get.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slots{said: make(chan corelink.Message, 10)}
		c := coreclient.New(d)
		d.handle = c.Handle
		c.Handle(&corelink.Hello{})
		c.Handle(&corelink.Speaks{Messages: []string{"subscribe"}})
		told, free := make(chan core.Update), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- c.Subscribe(ctx, 50, func(u core.Update) error { told <- u; <-free; return nil }, "laser")
		}()
		m := (<-d.said).(*corelink.Subscribe)
		if m.EveryMS != 20 || !slices.Equal(m.Slots, []int{7}) {
			t.Errorf("asked for %+v", m)
		}
		update := func(seq uint64) {
			v := float64(seq)
			c.Handle(&corelink.Update{Request: m.Request, Seq: seq, Values: []live.Value{{Slot: 7, Number: &v}}})
		}
		update(1)
		first := <-told
		for seq := uint64(2); seq <= 9; seq++ {
			if seq != 5 { // which robotd replaced
				update(seq)
			}
		}
		free <- struct{}{}
		second := <-told
		if v, ok := second.Values[0].Number(); first.Missed != 0 || v != 9 || !ok || second.Missed != 7 || !second.Values[0].Changed {
			t.Errorf("%+v, then %+v; want the ninth, and that 7 were missed", first, second)
		}
		close(free)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if u, ok := (<-d.said).(*corelink.Unsubscribe); !ok || u.Request != m.Request {
			t.Errorf("%+v, want the end of the subscription", u)
		}
		update(10) // of a robotd that did not hear it yet
	})
}

// slots is a robotd with one slot, which answers all and tells what it was asked.
type slots struct {
	handle func(corelink.Message)
	said   chan corelink.Message
}

func (d *slots) Hello() (corelink.Hello, bool) { return corelink.Hello{}, true }

func (d *slots) Send(m corelink.Message) error {
	switch m := m.(type) {
	case *corelink.GetTree:
		go d.handle(&corelink.Tree{Request: m.Request, Tree: live.Tree{Nodes: []live.Node{{Full: "robot.body.laser", Compact: "laser", Slots: []live.Slot{{ID: 7, Name: "distance"}}}}}})
	case *corelink.Subscribe:
		go d.handle(&corelink.Reply{Request: m.Request, Code: "ok"})
		d.said <- m
	default:
		d.said <- m
	}
	return nil
}
