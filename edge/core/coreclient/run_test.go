package coreclient_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/control"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/core/coreserver/coreservertest"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/infra/testwait"
)

// moving waits until the body moves by its so manieth motion, and returns the order.
func moving(t *testing.T, b *coreservertest.Body, n int) (o control.Order) {
	t.Helper()
	testwait.Until(t, patience, "a motion", testwait.Holds(func() bool {
		var all []control.Order
		for _, x := range b.Orders() {
			if x.Kind == control.Go || x.Kind == control.Turn || x.Kind == control.Set {
				all = append(all, x)
			}
		}
		if len(all) >= n {
			o = all[n-1]
		}
		return len(all) >= n
	}))
	return o
}

// free waits until another program can have the wheels.
func free(t *testing.T, ctx context.Context, other *coreclient.Client) {
	t.Helper()
	testwait.Until(t, patience, "the wheels to be free", testwait.Holds(func() bool {
		lease, err := other.Claim(ctx, 0, claim.Idle, "robot.go")
		if err == nil {
			lease.Release()
		}
		return err == nil
	}))
}

// TestRun: claim, order, end and release are one call, and whatever ends it the devices are free afterwards.
func TestRun(t *testing.T) {
	root, ctx := t.TempDir(), within(t)
	b, end := robotd(t, root)
	c, other := connect(t, root, "one"), connect(t, root, "two")
	begin := func(ctx context.Context, c *coreclient.Client, o core.Order) <-chan error {
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, claim.Program, o) }()
		return done
	}
	done := begin(ctx, c, core.Go(0.1).For(5*time.Second))
	if o := moving(t, b, 1); o.A != 0.1 || o.For != 5*time.Second {
		t.Errorf("the loop heard %+v", o)
	}
	b.End(motion.Done, 0.1)
	if err := <-done; err != nil {
		t.Error(err)
	}
	free(t, ctx, other)

	var unfinished *coreclient.Unfinished
	done = begin(ctx, c, core.Turn(1))
	moving(t, b, 2)
	b.End(motion.Blocked, 0)
	if err := <-done; !errors.As(err, &unfinished) || unfinished.Outcome != "blocked" {
		t.Errorf("a motion that was blocked: %v", err)
	}
	free(t, ctx, other)

	var refused *coreclient.Refused
	if err := c.Run(ctx, claim.Program, core.Set("laser.distance", 1)); !errors.As(err, &refused) || refused.Code != "invalid" {
		t.Errorf("what cannot be claimed: %v", err)
	}
	if err := c.Run(ctx, claim.Program, core.Go(0).Then(core.Set("wheelL.turn", 1))); !errors.As(err, &refused) || refused.Code != "unable" {
		t.Errorf("what no part does: %v", err)
	}
	free(t, ctx, other)
	sound := core.Order{Steps: [][]robot.Line{{{Name: "robot.body.speaker.val", Verb: robot.Put, Value: robot.Value{Type: robot.Bytes, Handle: "sounds/bark"}}}}}
	if err := c.Run(ctx, claim.Program, sound); !errors.As(err, &refused) || refused.Code != "unable" {
		t.Errorf("a sound on a body that plays none: %v", err)
	}
	lease, err := other.Claim(ctx, 0, claim.Person, "wheelL")
	if err != nil {
		t.Fatal(err)
	}
	heard := len(b.Orders())
	if err := c.Run(ctx, claim.Program, core.Go(1)); !errors.As(err, &refused) || refused.Code != "busy" || slices.ContainsFunc(b.Orders()[heard:],
		func(o control.Order) bool { return o.Kind == control.Go }) {
		t.Errorf("devices of another program: %v", err)
	}
	lease.Release()
	if err := c.Run(ctx, claim.Program, core.Set("headPitch", 0.25).And(core.Set("led.val", 1))); err != nil {
		t.Errorf("what is done at once: %v", err)
	}

	cancelled, cancel := context.WithCancel(ctx)
	done = begin(cancelled, c, core.Go(1))
	moving(t, b, 4)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	free(t, ctx, other)

	killed, kill := connectUntil(t, root, "killed")
	done = begin(ctx, killed, core.Go(1))
	moving(t, b, 5)
	kill()
	if err := <-done; !errors.Is(err, coreclient.ErrLost) {
		t.Errorf("a program whose connection ended: %v", err)
	}
	free(t, ctx, other)

	done = begin(ctx, c, core.Go(1))
	moving(t, b, 6)
	end()
	if err := <-done; !errors.Is(err, coreclient.ErrLost) {
		t.Errorf("robotd ended: %v", err)
	}
}

// TestTrajectory: steps follow each other under one claim, and the first that does not end well is the last.
func TestTrajectory(t *testing.T) {
	root, ctx := t.TempDir(), within(t)
	b, _ := robotd(t, root)
	c, other := connect(t, root, "one"), connect(t, root, "two")
	square := core.Go(0.1).Then(core.Set("headPitch", 0.25).And(core.Set("led.val", 1))).Then(core.Turn(math.Pi / 2)).Then(core.Set("led.val", 0))
	begin := func() <-chan error {
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, claim.Program, square) }()
		return done
	}
	done := begin()
	moving(t, b, 1)
	b.End(motion.Done, 0.1)
	if o := moving(t, b, 3); o.Kind != control.Turn || math.Abs(o.A+math.Pi/2) > 1e-9 {
		t.Errorf("third %+v", o)
	}
	b.End(motion.Done, 0.1)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if o := moving(t, b, 4); o.N != 6 || o.Goals[0].Value != 0 {
		t.Errorf("last %+v", o)
	}
	free(t, ctx, other)
	for _, tc := range []struct {
		name, want string
		end        func()
	}{
		{"blocked", "blocked", func() { b.End(motion.Blocked, 0) }},
		{"stopped by another", "cancelled", func() {
			if err := other.Stop(ctx); err != nil {
				t.Error(err)
			}
		}},
	} {
		before := 0
		for _, o := range b.Orders() {
			if o.Kind == control.Go || o.Kind == control.Turn || o.Kind == control.Set {
				before++
			}
		}
		done = begin()
		moving(t, b, before+1)
		tc.end()
		var unfinished *coreclient.Unfinished
		if err := <-done; !errors.As(err, &unfinished) || unfinished.Outcome != tc.want {
			t.Errorf("%s: %v, want %s", tc.name, err, tc.want)
		}
		free(t, ctx, other)
	}
}

// TestOlder: a robotd that takes no typed orders gets them as text, and no order of several steps.
func TestOlder(t *testing.T) {
	root, ctx := t.TempDir(), within(t)
	robotd(t, root)
	c := connectOlder(t, root)
	if err := c.Run(ctx, claim.Program, core.Set("headPitch", 1.0/3).And(core.Set("led.val", 1))); err != nil {
		t.Error(err)
	}
	if v, err := c.Read(ctx, "robot.type"); err != nil || *v[0].Value.Text != "wheeled" {
		t.Errorf("%+v, %v", v, err)
	}
	var refused *coreclient.Refused
	if err := c.Run(ctx, claim.Program, core.Go(1).Then(core.Go(1))); !errors.As(err, &refused) || refused.Code != "unable" {
		t.Errorf("several steps: %v", err)
	}
}

// TestLateClaim: a claim that is granted after its program stopped waiting is given back.
func TestLateClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dumb{make(chan corelink.Message, 10)}
		c := coreclient.New(d)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, claim.Program, core.Go(1)) }()
		asked := (<-d.said).(*corelink.Claim)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		c.Handle(&corelink.Reply{Request: asked.Request, Code: "ok", Lease: 5})
		if m, ok := (<-d.said).(*corelink.Release); !ok || m.Lease != 5 {
			t.Errorf("%+v, want the release", m)
		}
	})
}
