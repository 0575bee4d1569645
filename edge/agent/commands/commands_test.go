package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/commandwire"
	"kennel/infra/errs"
	"kennel/infra/testwait"
)

// cloud keeps the first result of each command, and loses what it is told to lose.
type cloud struct {
	mu      sync.Mutex
	open    []commandwire.Command
	results map[string]commandwire.Result
	told    int // results heard, copies too
	away    bool
	lose    int // so many answers from now on
}

func (c *cloud) Do(_ context.Context, service, method string, body []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return nil, errs.New(errs.Unavailable, "no connection")
	}
	switch service + "/" + method {
	case "command/pull":
		var p commandwire.Pull
		for _, o := range c.open {
			if _, done := c.results[o.ID]; !done {
				p.Commands = append(p.Commands, o)
			}
		}
		return c.answer(p.Encode())
	case "command/result":
		r, err := commandwire.ParseResult(body)
		if err != nil {
			return nil, errs.New(errs.Invalid, "%w", err)
		}
		c.told++
		if _, done := c.results[r.ID]; !done {
			c.results[r.ID] = r
		}
		return c.answer(commandwire.Answer{ID: r.ID, State: "done"}.Encode())
	}
	return nil, errs.Coded(errs.NotFound, "unknown_method", "no %s/%s", service, method)
}

func (c *cloud) answer(b []byte, err error) ([]byte, error) {
	if c.lose > 0 {
		c.lose--
		return nil, errs.New(errs.Unavailable, "the answer is lost")
	}
	return b, err
}

func (c *cloud) result(id string) commandwire.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.results[id]
	return commandwire.Result{Status: r.Status, Detail: r.Detail}
}

// world is one robot's disk with what stays when its agent dies, and the cloud.
type world struct {
	t     *testing.T
	dir   string
	cloud *cloud
	runs  map[string]int // by what the executor was told to count
	after int
	fail  error

	now     func() (time.Time, bool) // the cloud's time
	gate    chan struct{}            // a hold waits here, if there is one
	stopped chan struct{}            // stops and holds that ran
	agent   *Agent
	cancel  context.CancelFunc
	ended   chan struct{}
	dieAt   atomic.Pointer[string]
}

func newWorld(t *testing.T) *world {
	return &world{t: t, dir: t.TempDir(), cloud: &cloud{results: map[string]commandwire.Result{}}, runs: map[string]int{}, stopped: make(chan struct{}, 100)}
}

// start starts an agent that dies at the step dieAt, once.
func (w *world) start(dieAt string) {
	w.t.Helper()
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	w.dieAt.Store(&dieAt)
	ctx, cancel := context.WithCancel(context.Background())
	count := func(_ context.Context, args json.RawMessage) (Outcome, error) {
		i, err := commandwire.ParseIntent(args)
		w.runs[i.Intent]++
		return Outcome{Detail: "ran " + i.Intent, After: func() { w.after++ }}, errors.Join(err, w.fail)
	}
	w.agent, err = New(Config{Root: root, Moves: func(args json.RawMessage) bool { return strings.Contains(string(args), "forward") }, Ask: w.cloud, Time: w.now, Log: slog.New(slog.DiscardHandler), Executors: map[string]Executor{
		commandwire.Intent: count,
		commandwire.RobotStop: func(context.Context, json.RawMessage) (Outcome, error) {
			w.stopped <- struct{}{}
			return Outcome{Detail: "at rest"}, nil
		},
		commandwire.RobotHold: func(context.Context, json.RawMessage) (Outcome, error) {
			w.stopped <- struct{}{}
			if w.gate != nil {
				<-w.gate
			}
			return Outcome{Detail: "held"}, nil
		},
		commandwire.RobotRelease: func(context.Context, json.RawMessage) (Outcome, error) {
			return Outcome{Detail: "released"}, nil
		},
		commandwire.RobotDo: func(context.Context, json.RawMessage) (Outcome, error) { return Outcome{Detail: "begun"}, nil },
		commandwire.Ping:    func(context.Context, json.RawMessage) (Outcome, error) { panic("a bug") },
		commandwire.Sync: func(ctx context.Context, _ json.RawMessage) (Outcome, error) {
			<-ctx.Done()
			return Outcome{}, ctx.Err()
		},
	}, step: func(point string) {
		if at := w.dieAt.Load(); at != nil && *at == point && w.dieAt.CompareAndSwap(at, nil) {
			cancel()
			runtime.Goexit()
		}
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.cancel, w.ended = cancel, make(chan struct{})
	go func() {
		defer close(w.ended)
		defer root.Close()
		_ = w.agent.Run(ctx) // nil by contract
	}()
	w.agent.Connected(true)
}

func (w *world) stop() {
	w.cancel()
	<-w.ended
}

func uuid(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

func intent(n int) commandwire.Command {
	return commandwire.Command{V: 1, ID: uuid(n), Kind: commandwire.Intent, ExpiresInMS: 3_600_000, Args: json.RawMessage(fmt.Sprintf(`{"intent":"i%d"}`, n))}
}

func (w *world) deliver(c commandwire.Command) {
	w.t.Helper()
	b, err := c.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	w.agent.Handle(b)
}

func (w *world) want(id string, status commandwire.Status, detail string) {
	w.t.Helper()
	if got := w.cloud.result(id); got != (commandwire.Result{Status: status, Detail: detail}) {
		w.t.Errorf("%s: got %+v, want %s %q", id, got, status, detail)
	}
}

func TestOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("")
		defer w.stop()
		for range 3 { // copies
			w.deliver(intent(1))
		}
		w.deliver(commandwire.Command{ID: uuid(2), Kind: "dance", ExpiresInMS: 1000})
		w.deliver(commandwire.Command{ID: uuid(3), Kind: commandwire.Ping, ExpiresInMS: 1000})
		late := intent(4)
		late.ExpiresInMS = 0
		w.deliver(late)
		w.deliver(commandwire.Command{ID: uuid(5), Kind: commandwire.Intent, ExpiresInMS: 1000, Args: json.RawMessage(`{"intent":"","x":1}`)})
		w.deliver(commandwire.Command{ID: uuid(6), Kind: commandwire.Sync, ExpiresInMS: 1000})
		waits := intent(7) // expires while the one before it runs
		waits.ExpiresInMS = 20_000
		w.deliver(waits)
		w.agent.Handle([]byte("rubbish"))
		time.Sleep(time.Minute)
		synctest.Wait()
		w.want(uuid(1), commandwire.Done, "ran i1")
		w.want(uuid(2), commandwire.Unknown, "this robot does not know dance")
		w.want(uuid(3), commandwire.Failed, "panic: a bug")
		w.want(uuid(4), commandwire.Expired, "it came too late")
		w.want(uuid(5), commandwire.Failed, `intent: unknown field "x"; want intent and params`)
		w.want(uuid(6), commandwire.Failed, "context deadline exceeded")
		w.want(uuid(7), commandwire.Expired, "it came too late")
		if w.runs["i1"] != 1 || w.after != 1 || len(w.runs) != 1 {
			t.Errorf("runs %v, after %d; want i1 once", w.runs, w.after)
		}
		// The cloud was restored from a backup and asks for what it has forgotten.
		delete(w.cloud.results, uuid(1))
		w.deliver(intent(1))
		synctest.Wait()
		w.want(uuid(1), commandwire.Done, "ran i1")
		if w.runs["i1"] != 1 {
			t.Errorf("ran %d times", w.runs["i1"])
		}
	})
}

// TestOvertaken: a command whose message was longer on its way than the cloud waited does not follow its successor, before and after a restart.
func TestOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		given := func(n int, us int64) commandwire.Command {
			c := intent(n)
			c.GivenUS = us
			return c
		}
		w.start("")
		w.deliver(given(1, 1000))
		w.deliver(given(3, 3000))
		w.deliver(given(2, 2000))
		time.Sleep(time.Minute)
		synctest.Wait()
		w.stop()
		w.start("")
		defer w.stop()
		w.deliver(given(4, 2500))
		w.deliver(given(5, 3001))
		time.Sleep(time.Minute)
		synctest.Wait()
		w.want(uuid(1), commandwire.Done, "ran i1")
		w.want(uuid(2), commandwire.Expired, "received after a later command")
		w.want(uuid(3), commandwire.Done, "ran i3")
		w.want(uuid(4), commandwire.Expired, "received after a later command")
		w.want(uuid(5), commandwire.Done, "ran i5")
	})
}

// TestStopDoesNotWait: a stop is executed beside what takes its time, and drives that were given before it are not begun after it, nor after a
// restart; anything else is.
func TestStopDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("")
		command := func(n int, kind string, us int64, args string) {
			w.deliver(commandwire.Command{V: 1, ID: uuid(n), Kind: kind, ExpiresInMS: 3_600_000, GivenUS: us, Args: json.RawMessage(args)})
		}
		command(1, commandwire.Sync, 1000, "{}") // takes as long as it may
		time.Sleep(5 * time.Second)              // less than what may move the robot waits
		command(2, commandwire.RobotDo, 2000, `{"line":"robot.go(1)"}`)
		command(3, commandwire.Intent, 3000, `{"intent":"i3"}`)
		command(9, commandwire.Intent, 3500, `{"intent":"forward"}`)
		command(4, commandwire.RobotStop, 4000, "{}")
		time.Sleep(time.Second)
		synctest.Wait()
		w.want(uuid(4), commandwire.Done, "at rest")
		w.want(uuid(1), "", "")
		time.Sleep(time.Minute)
		synctest.Wait()
		w.want(uuid(2), commandwire.Expired, "received after a later command")
		w.want(uuid(3), commandwire.Done, "ran i3")
		w.want(uuid(9), commandwire.Expired, "received after a later command")
		w.stop()
		w.start("")
		defer w.stop()
		command(5, commandwire.RobotDo, 3500, `{"line":"robot.go(1)"}`)
		command(6, commandwire.RobotDo, 4500, `{"line":"robot.go(1)"}`)
		command(7, commandwire.RobotStop, 3600, "{}") // late, and still a stop
		time.Sleep(time.Minute)
		synctest.Wait()
		w.want(uuid(5), commandwire.Expired, "received after a later command")
		w.want(uuid(6), commandwire.Done, "begun")
		w.want(uuid(7), commandwire.Done, "at rest")
	})
}

// command delivers one.
func (w *world) command(n int, kind string, us int64, args string) {
	w.t.Helper()
	w.deliver(commandwire.Command{ID: uuid(n), Kind: kind, ExpiresInMS: 20_000, GivenUS: us, Args: json.RawMessage(args)})
}

const because = `{"by":"op","reason":"its wheel is off"}`

// TestStopAlways: a stop and a hold are done at once and told, however many commands wait, whatever the executors do, and whether or not the disk takes
// their record (issue 28, what must hold 2).
func TestStopAlways(t *testing.T) {
	for name, burden := range map[string]func(*world){
		"idle":          func(*world) {},
		"busy executor": func(w *world) { w.command(1, commandwire.Sync, 1, "{}") },
		"1,000 commands": func(w *world) {
			w.command(1, commandwire.Sync, 1, "{}")
			for n := range 1000 {
				w.deliver(intent(1000 + n))
				w.command(3000+n, commandwire.RobotRelease, 1, "{}")
			}
		},
		"hold that takes its time": func(w *world) {
			w.gate = make(chan struct{})
			w.command(1, commandwire.RobotHold, 1, because)
		},
		"full disk": func(w *world) {
			if err := errors.Join(os.MkdirAll(filepath.Join(w.dir, path.Dir(Dir)), 0o755), os.WriteFile(filepath.Join(w.dir, Dir), nil, 0o644)); err != nil {
				w.t.Fatal(err)
			}
		},
		"results that the cloud did not hear": func(w *world) {
			w.agent.Connected(false)
			for n := range maxUntold + 5 {
				w.deliver(intent(1000 + n))
				synctest.Wait()
			}
			w.agent.Connected(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start("")
				defer w.stop()
				burden(w)
				w.command(10, commandwire.RobotStop, 10, "{}")
				w.command(11, commandwire.RobotHold, 11, because)
				synctest.Wait()
				w.want(uuid(10), commandwire.Done, "at rest")
				if w.gate != nil {
					close(w.gate)
					synctest.Wait()
				}
				w.want(uuid(11), commandwire.Done, "held")
			})
		})
	}
}

// TestStopDespiteAHangingDisk: a disk that does not answer delays no stop and no hold either, the second as little as the first, and not those that come
// while a release is recorded, which the hold then ends.
func TestStopDespiteAHangingDisk(t *testing.T) {
	w := newWorld(t)
	w.start("")
	defer w.stop()
	w.agent.disk.Lock() // as a write does that hangs
	unlock := sync.OnceFunc(w.agent.disk.Unlock)
	defer unlock()
	w.deliver(commandwire.Command{ID: uuid(100), Kind: commandwire.RobotStop}) // too late
	w.command(101, commandwire.RobotRelease, 1, "{}")
	testwait.Until(t, testwait.Long, "the record of the release", testwait.Holds(func() bool {
		w.agent.mu.Lock()
		defer w.agent.mu.Unlock()
		return w.agent.busy[releases] == 1
	}))
	for n := range int64(2) {
		w.command(int(2*n), commandwire.RobotStop, 0, "{}")
		testwait.For(t, w.stopped, "a stop")
		w.command(int(2*n+1), commandwire.RobotHold, 2+n, because)
		testwait.For(t, w.stopped, "a hold")
	}
	unlock()
	testwait.Until(t, testwait.Long, "the end of the release", testwait.Holds(func() bool { return w.cloud.result(uuid(101)).Status == commandwire.Expired }))
}

// TestStopIsRecorded: a stop that was done and not told is told by the next agent, which does not do it again.
func TestStopIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("")
		w.agent.Connected(false)
		w.command(1, commandwire.RobotStop, 1, "{}")
		synctest.Wait()
		w.stop()
		w.start("")
		defer w.stop()
		w.command(1, commandwire.RobotStop, 1, "{}")
		synctest.Wait()
		w.want(uuid(1), commandwire.Done, "at rest")
		if n := len(w.stopped); n != 1 {
			t.Errorf("stopped %d times, want 1", n)
		}
	})
}

// TestReleases: a release does not wait for slow commands, and what needs it waits for it. A hold goes before a release that waits, and ends it.
func TestReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("")
		defer w.stop()
		w.command(1, commandwire.Sync, 1, "{}")
		w.command(2, commandwire.RobotRelease, 2, "{}")
		synctest.Wait()
		w.want(uuid(2), commandwire.Done, "released")
		time.Sleep(time.Minute)
		w.gate = make(chan struct{})
		w.command(3, commandwire.RobotHold, 3, because)
		synctest.Wait()
		w.command(4, commandwire.RobotRelease, 4, "{}")
		w.command(5, commandwire.RobotDo, 5, `{"line":"robot.go(1)"}`)
		synctest.Wait()
		w.want(uuid(4), "", "")
		w.want(uuid(5), "", "")
		close(w.gate)
		synctest.Wait()
		w.want(uuid(3), commandwire.Done, "held")
		w.want(uuid(4), commandwire.Done, "released")
		w.want(uuid(5), commandwire.Done, "begun")
		w.command(9, commandwire.RobotDo, 7, `{"line":"robot.go(1)"}`)
		synctest.Wait()
		w.command(10, commandwire.RobotRelease, 6, "{}") // given before the drive that has begun
		synctest.Wait()
		w.want(uuid(10), commandwire.Done, "released")
		w.gate = make(chan struct{})
		w.command(6, commandwire.RobotHold, 8, because)
		synctest.Wait()
		w.command(7, commandwire.RobotRelease, 9, "{}")
		w.command(8, commandwire.RobotHold, 10, because)
		close(w.gate)
		synctest.Wait()
		w.want(uuid(8), commandwire.Done, "held")
		w.want(uuid(7), commandwire.Expired, "received after a later command")
	})
}

// TestLate: nothing that may move the robot begins later than 30 s after it was given by the cloud's clock, whenever it arrived, whatever expiry it came
// with and whatever the robot's clock says, which is a quarter of a century behind here. A stop is done, however late (issue 28, build 3).
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
		w, known := newWorld(t), true
		w.now = func() (time.Time, bool) { return cloud, known }
		w.start("")
		defer w.stop()
		n := 0
		given := func(kind string, ago time.Duration, args string, status commandwire.Status, detail string) {
			t.Helper()
			n++
			w.deliver(commandwire.Command{ID: uuid(n), Kind: kind, ExpiresInMS: commandwire.MaxTTL.Milliseconds(), GivenUS: cloud.Add(-ago).UnixMicro() + int64(n), Args: json.RawMessage(args)})
			synctest.Wait()
			w.want(uuid(n), status, detail)
		}
		const line, late = `{"line":"robot.go(1)"}`, "it came too late"
		given(commandwire.RobotDo, 31*time.Second, line, commandwire.Expired, late)
		given(commandwire.Intent, 31*time.Second, `{"intent":"forward"}`, commandwire.Expired, late)
		given(commandwire.RobotRelease, 31*time.Second, "{}", commandwire.Expired, late)
		given(commandwire.RobotStop, time.Hour, "{}", commandwire.Done, "at rest")
		given(commandwire.RobotHold, time.Hour, because, commandwire.Done, "held")
		given(commandwire.RobotDo, 29*time.Second, line, commandwire.Done, "begun")
		given(commandwire.RobotDo, -time.Hour, line, commandwire.Done, "begun") // a database whose clock is ahead
		known = false
		given(commandwire.RobotDo, -2*time.Hour, line, commandwire.Done, "begun")
		given(commandwire.Sync, -2*time.Hour, "{}", "", "") // busy
		w.deliver(commandwire.Command{ID: uuid(100), Kind: commandwire.RobotDo, ExpiresInMS: commandwire.MaxTTL.Milliseconds(), GivenUS: cloud.Add(3 * time.Hour).UnixMicro(), Args: json.RawMessage(line)})
		time.Sleep(time.Minute)
		synctest.Wait()
		w.want(uuid(100), commandwire.Expired, late)
	})
}
