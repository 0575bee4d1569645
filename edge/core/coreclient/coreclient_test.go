package coreclient_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/control"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/core/coreserver/coreservertest"
	"kennel/edge/core/coreserver/robotdtest"
	"kennel/edge/motion"
	"kennel/edge/robot/claim"
)

// patience bounds how long a test waits for an event that must come.
const patience = 20 * time.Second

// robotd serves below root.
func robotd(t *testing.T, root string) (b *coreservertest.Body, end func()) {
	t.Helper()
	return robotdtest.Start(t, root)
}

// connect returns a client of the robotd below root.
func connect(t *testing.T, root, program string) *coreclient.Client {
	c, _ := connectUntil(t, root, program)
	return c
}

// connectUntil is connect for a client whose connection ends with end.
func connectUntil(t *testing.T, root, program string) (c *coreclient.Client, end func()) {
	t.Helper()
	link := corelink.NewClient(root, corelink.WithHello(corelink.Hello{Program: program}))
	c = coreclient.New(link)
	return c, run(t, link, c, c.Handle)
}

// connectOlder is connect for a client that finds a robotd of before Speaks.
func connectOlder(t *testing.T, root string) *coreclient.Client {
	t.Helper()
	link := corelink.NewClient(root)
	c := coreclient.New(older{link})
	run(t, link, c, func(m corelink.Message) {
		if _, ok := m.(*corelink.Speaks); !ok {
			c.Handle(m)
		}
	})
	return c
}

func run(t *testing.T, link *corelink.Client, c *coreclient.Client, handle func(corelink.Message)) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- link.Run(ctx, handle) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	ready, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if err := c.Ready(ready); err != nil {
		t.Fatal(err)
	}
	return end
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// do gives a person's line to c.
func do(ctx context.Context, c *coreclient.Client, line string, most time.Duration) (*coreclient.Motion, error) {
	o, err := core.Parse(line)
	if err != nil {
		return nil, err
	}
	return c.Do(ctx, o.For(most))
}

// TestMotion: a motion has a claim, a beginning and an end; what is refused is a Refused with robotd's words (GOSTAI-OPEN-11).
func TestMotion(t *testing.T) {
	root, ctx := t.TempDir(), within(t)
	b, _ := robotd(t, root)
	c, other := connect(t, root, "one"), connect(t, root, "two")
	var refused *coreclient.Refused
	if _, err := do(ctx, c, "robot.go(1)", time.Second); !errors.As(err, &refused) || refused.Code != "not_held" || !strings.Contains(err.Error(),
		"was not claimed") {
		t.Errorf("go without a claim: %v", err)
	}
	lease, err := c.Claim(ctx, 0, claim.Program, "robot.go")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Claim(ctx, 0, claim.Program, "wheelL"); !errors.As(err, &refused) || refused.Code != "busy" ||
		!strings.HasPrefix(refused.Detail, "wheelL belongs to one with priority 40") {
		t.Errorf("a second claim: %v", err)
	}
	m, err := do(ctx, c, "robot.go(1) speed:0.1", 5*time.Second)
	if err != nil || !m.Underway {
		t.Fatalf("%+v, %v", m, err)
	}
	soon, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := m.Wait(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait for what lasts: %v", err)
	}
	then := make(chan string, 2)
	m.Then(func() { then <- "before" })
	b.End(motion.Stopped, 0.011)
	if end, err := m.Wait(ctx); err != nil || end.Words() != "stopped after 0.011 m of 1 m: its loop was late" {
		t.Errorf("%s, %v", end.Words(), err)
	}
	first := <-then
	m.Then(func() { then <- "after" })
	if got := []string{first, <-then}; !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("then %v", got)
	}
	if o := b.Orders(); o[len(o)-1].Kind != control.Go || o[len(o)-1].For != 5*time.Second || o[len(o)-1].Speed != 0.1 {
		t.Errorf("the loop heard %+v", o[len(o)-1].Kind)
	}
	if m, err = do(ctx, c, "laser; robot.type", 0); err != nil || m.Value != `0.4; "wheeled"` || m.Underway {
		t.Errorf("%+v, %v", m, err)
	}
	if end, err := m.Wait(ctx); err != nil || end.Outcome != corelink.Done {
		t.Errorf("what is done at once ended %+v, %v", end, err)
	}
	if m, err = do(ctx, c, "headPitch = 12", 0); err != nil || m.Value != "1" || m.Note != "headPitch: 12 is beyond its range, taken 1" {
		t.Errorf("%+v, %v", m, err)
	}
	if end, err := m.Wait(ctx); err != nil || end.Words() != "done" {
		t.Errorf("%+v, %v", end, err)
	}
	if m, err = do(ctx, c, "robot.turn(1)", time.Second); err != nil {
		t.Fatal(err)
	}
	if err := other.Stop(ctx); err != nil {
		t.Error(err)
	}
	if end, err := m.Wait(ctx); err != nil || end.Outcome != "cancelled" {
		t.Errorf("%+v, %v", end, err)
	}
	lease.Release()
	if err := lease.Renew(ctx, time.Second); !errors.As(err, &refused) {
		t.Errorf("renewal of what was released: %v", err)
	}
	if _, err := other.Claim(ctx, time.Second, claim.Program, "wheelL"); err != nil {
		t.Errorf("claim of what was released: %v", err)
	}
}

// TestLost: a robotd that ends ends everything with a clear error, and the next one is used as soon as it is there.
func TestLost(t *testing.T) {
	root, ctx := t.TempDir(), within(t)
	_, end := robotd(t, root)
	c := connect(t, root, "one")
	if _, err := c.Claim(ctx, 0, claim.Program, "robot.go"); err != nil {
		t.Fatal(err)
	}
	m, err := do(ctx, c, "robot.go(1)", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Tree(ctx)
	if again, aerr := c.Tree(ctx); err != nil || aerr != nil || again != first {
		t.Errorf("the tree was asked for again: %v, %v", err, aerr)
	}
	watched := make(chan error, 1)
	told := make(chan struct{}, 100)
	go func() {
		watched <- c.Subscribe(ctx, 50, func(core.Update) error { told <- struct{}{}; return nil }, "laser")
	}()
	<-told
	end()
	if _, err := m.Wait(ctx); !errors.Is(err, coreclient.ErrLost) || !strings.Contains(err.Error(), "robotd is stopping") {
		t.Errorf("a motion of the robotd before: %v", err)
	}
	if err := <-watched; !errors.Is(err, coreclient.ErrLost) && !errors.Is(err, coreclient.ErrNotConnected) {
		t.Errorf("a subscription of the robotd before: %v", err)
	}
	if _, err := do(ctx, c, "laser", 0); !errors.Is(err, coreclient.ErrNotConnected) {
		t.Errorf("a line without a robotd: %v", err)
	}
	robotd(t, root)
	if err := c.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	if m, err := do(ctx, c, "laser", 0); err != nil || m.Value != "0.4" {
		t.Errorf("the next robotd: %+v, %v", m, err)
	}
	if tree, err := c.Tree(ctx); err != nil || tree == first {
		t.Errorf("the tree of the next robotd is that of the one before: %v", err)
	}
}

// TestTogether: many goroutines of one program ask at once.
func TestTogether(t *testing.T) {
	root, ctx := t.TempDir(), within(t)
	robotd(t, root)
	c := connect(t, root, "one")
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 5 {
				want := fmt.Sprint(float64(i) / 16)
				if m, err := do(ctx, c, "headPitch = "+want, 0); err != nil || m.Value != want {
					t.Errorf("%+v, %v; want %s", m, err, want)
				} else if end, err := m.Wait(ctx); err != nil || end.Outcome != corelink.Done {
					t.Errorf("%+v, %v", end, err)
				}
			}
		})
	}
	wg.Wait()
}

// dumb is a robotd that answers nothing.
type dumb struct{ said chan corelink.Message }

func (d dumb) Hello() (corelink.Hello, bool) { return corelink.Hello{}, true }
func (d dumb) Send(m corelink.Message) error { d.said <- m; return nil }

// TestStopAmongQuestions: a stop and a hold are sent when as many questions wait as may (issue 28, build 3).
func TestStopAmongQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dumb{make(chan corelink.Message, 1000)}
		c := coreclient.New(d)
		ask := func(f func() error) { go func() { _ = f() }() } // robotd answers nothing
		for range 200 {
			ask(func() error { _, err := c.Values(t.Context()); return err })
		}
		synctest.Wait()
		waiting := len(d.said)
		ask(func() error { return c.Stop(t.Context()) })
		ask(func() error {
			_, err := c.Ask(t.Context(), func(n uint32) corelink.Message { return &corelink.Hold{Request: n} })
			return err
		})
		synctest.Wait()
		if waiting == 200 || len(d.said) != waiting+2 {
			t.Errorf("%d questions of 200 were sent, then %d of a stop and a hold", waiting, len(d.said)-waiting)
		}
		time.Sleep(coreclient.Patience)
		synctest.Wait()
	})
}
