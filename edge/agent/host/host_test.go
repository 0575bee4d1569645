package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/commandwire"
	"kennel/infra/api/status"
	"kennel/infra/runner"
)

// poked and asked are events.
type (
	poked struct{ n int }
	asked struct{ n int }
)

func newHost(log *bytes.Buffer) *Host {
	return New(Robot{Log: slog.New(slog.NewTextHandler(log, nil)), Uptime: func() time.Duration { return time.Minute }})
}

// add adds parts.
func add(t *testing.T, h *Host, parts ...Part) {
	t.Helper()
	for _, p := range parts {
		if err := h.Add(p); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPublish: a part hears the events of its types at once and in the order of the list, also one that is published while another is.
func TestPublish(t *testing.T) {
	var got []string
	h := newHost(&bytes.Buffer{})
	add(t, h,
		Part{Name: "first", Hears: []Hearing{On(func(poked) {
			got = append(got, "first hears poked")
			h.Publish(asked{})
		})}},
		Part{Name: "second", Hears: []Hearing{On(func(any) { got = append(got, "second hears all") }), On(func(asked) { got = append(got, "second hears asked") })}})
	h.Publish(poked{})
	if want := []string{"first hears poked", "second hears all", "second hears asked", "second hears all"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestQueue: a slow part holds no other up; what finds its queue full is lost, and log and status say by which part. A queue whose function failed
// continues with the next event.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := newHost(&log)
		var slow, quick []int
		next, wrong := make(chan struct{}), errors.New("wrong")
		add(t, h,
			Part{Name: "slow", Hears: []Hearing{Queue(2, func(_ context.Context, e poked) error {
				<-next
				if slow = append(slow, e.n); e.n == 2 {
					return wrong
				}
				return nil
			})}},
			Part{Name: "quick", Hears: []Hearing{Queue(2, func(_ context.Context, e poked) error { quick = append(quick, e.n); return nil })}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- runner.Run(ctx, h.Log, runner.Config{}, h.Services()...) }()
		for n := range 6 {
			h.Publish(poked{n})
			h.Publish(asked{n})
			synctest.Wait()
		}
		for range 3 {
			next <- struct{}{}
			time.Sleep(time.Second) // in the bubble: the restart after 2
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if want := []int{0, 1, 2}; !slices.Equal(slow, want) || len(quick) != 6 {
			t.Errorf("slow %v, want %v; quick %v", slow, want, quick)
		}
		m := h.Status()
		if got := m.Told(); len(got) != 1 || got[0] != (status.Problem{Kind: status.KindOther, Text: "agentd's part slow lost 3 events"}) {
			t.Errorf("status %+v", got)
		}
		if s := log.String(); strings.Count(s, "part too slow") != 2 || !strings.Contains(s, "part=slow event=host.poked lost=2") || !strings.Contains(s, "service=slow err=wrong") {
			t.Errorf("log\n%s", s)
		}
	})
}

// TestAdd: a part has a name of its own, and no two answer the same.
func TestAdd(t *testing.T) {
	h := newHost(&bytes.Buffer{})
	add(t, h, Part{Name: "one", Local: map[string]http.Handler{"POST /x": nil}, Down: map[string]func([]byte){"x": nil}})
	for _, p := range []Part{{}, {Name: "one"}, {Name: "two", Local: map[string]http.Handler{"POST /x": nil}}, {Name: "three", Down: map[string]func([]byte){"x": nil}}} {
		if err := h.Add(p); err == nil {
			t.Errorf("%q is added", p.Name)
		}
	}
}

// TestLife: parts begin in their order before any service runs, services stop in reverse, and the command to restart ends all with its reason.
func TestLife(t *testing.T) {
	var got []string
	h := newHost(&bytes.Buffer{})
	runs := make(chan struct{}, 2)
	for _, name := range []string{"one", "two"} {
		add(t, h, Part{Name: name, Begin: func() { got = append(got, name+" begins") }, Services: []runner.Service{{Name: name, Run: func(ctx context.Context) error {
			runs <- struct{}{}
			<-ctx.Done()
			got = append(got, name+" ends")
			return nil
		}}}})
	}
	services := h.Services()
	if want := []string{"one begins", "two begins"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	out, err := h.Commands()[commandwire.RestartAgent](t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-runs
		<-runs
		out.After()
		out.After() // twice is once
	}()
	if err := runner.Run(t.Context(), h.Log, runner.Config{}, services...); !Ended(err) || !strings.Contains(err.Error(), "requested by the cloud") {
		t.Errorf("it ended with %v", err)
	}
	if want := []string{"one begins", "two begins", "two ends", "one ends"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
