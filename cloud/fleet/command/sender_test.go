package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/commandwire"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/infra/wake"
)

// outbox hands out the commands in due, and counts the calls.
type outbox struct {
	mu    sync.Mutex // for everything in the test
	due   []Outgoing
	err   error
	asked int
	wake  wake.Signal
}

func (o *outbox) Due(_ context.Context, limit int) ([]Outgoing, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	n := min(limit, len(o.due))
	out := o.due[:n]
	o.due = o.due[n:]
	return out, o.err
}

func (o *outbox) Follow(ctx context.Context, _ *slog.Logger, every time.Duration, send func(context.Context) error) error {
	o.wake.Each(ctx, every, func() { _ = send(ctx) }) // o.err
	return nil
}

func TestSenderSendsAtOnceAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{wake: wake.New()}
		var sent []string
		ready, fails := true, 0
		s := NewSender(o, func(_ context.Context, id thing.ID, name string, payload []byte) error {
			o.mu.Lock()
			defer o.mu.Unlock()
			c, err := commandwire.ParseCommand(payload)
			if err != nil {
				t.Errorf("%s: %v", payload, err)
			}
			if fails > 0 {
				fails--
				return errs.New(errs.Unavailable, "not connected")
			}
			sent = append(sent, fmt.Sprintf("%s %s %s", id, name, c.Kind))
			return nil
		}, func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			return ready
		}, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()

		one := func(kind string) Outgoing {
			return Outgoing{ID: "0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11", Thing: "vic:00e20100", Kind: kind, Args: json.RawMessage("{}"), Expire: time.Minute}
		}
		set := func(f func()) {
			o.mu.Lock()
			defer o.mu.Unlock()
			f()
		}
		set(func() { o.due = []Outgoing{one(commandwire.Ping), one(commandwire.Intent)} })
		o.wake.Set()
		synctest.Wait()
		if fmt.Sprint(sent) != "[vic:00e20100 cmd ping vic:00e20100 intent intent]" {
			t.Errorf("sent %v", sent)
		}
		// More than a batch goes without waiting; a notification that is lost costs a second.
		set(func() {
			sent = nil
			for range 3*batch + 1 {
				o.due = append(o.due, one(commandwire.Ping))
			}
		})
		time.Sleep(look)
		synctest.Wait()
		if len(sent) != 3*batch+1 {
			t.Errorf("sent %d, want %d", len(sent), 3*batch+1)
		}
		// Without a broker nothing is taken from the outbox: another process may have one.
		set(func() { ready, o.asked = false, 0 })
		time.Sleep(time.Minute)
		synctest.Wait()
		if o.asked != 0 {
			t.Errorf("asked %d times without a broker", o.asked)
		}
		// An unreachable database is asked at most once a second.
		set(func() { ready, o.err = true, errors.New("away") })
		time.Sleep(time.Minute)
		synctest.Wait()
		if o.asked < 59 || o.asked > 61 {
			t.Errorf("asked %d times in a minute", o.asked)
		}
		set(func() {
			o.err, sent, fails = nil, nil, 1
			o.due = []Outgoing{one(commandwire.Ping), one(commandwire.Sync)}
		})
		time.Sleep(look)
		synctest.Wait()
		if len(sent) != 1 || s.Stats() != (SenderStats{Sent: 2 + 3*batch + 1 + 1, Unsent: 1}) {
			t.Errorf("sent %v, %+v", sent, s.Stats())
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestHoldSaysWho: the person of a hold is the caller, whatever the arguments say.
func TestHoldSaysWho(t *testing.T) {
	for _, tc := range []struct{ by, want string }{{"op@example.org", "op@example.org"}, {strings.Repeat("x", 200), strings.Repeat("x", 90)}} {
		d := Draft{Kind: commandwire.RobotHold, Args: json.RawMessage(`{"reason":"wet floor","by":"the owner"}`), By: tc.by}
		if err := d.Check(); err != nil {
			t.Fatal(err)
		}
		if got, want := string(d.Args), `{"by":"`+tc.want+`","reason":"wet floor"}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	d := Draft{Kind: commandwire.RobotHold, By: "op@example.org"}
	if err := d.Check(); err == nil {
		t.Error("a hold without a reason was taken")
	}
}
