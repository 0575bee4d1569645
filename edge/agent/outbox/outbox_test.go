package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/events"
	"kennel/infra/errs"
	"kennel/infra/runner"
	"kennel/infra/testwait"
)

// robot is a folder with an outbox, and a cloud that answers as the test says.
type robot struct {
	*testing.T
	dir     string
	cfg     Config
	allowed atomic.Bool

	mu     sync.Mutex
	answer func(name string) error
	tried  []string
	stored map[string]string
	events []events.Event
}

func newRobot(t *testing.T) *robot {
	r := &robot{T: t, dir: t.TempDir(), stored: map[string]string{}, answer: func(string) error { return nil }}
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	r.allowed.Store(true)
	r.cfg = Config{Kind: "logs", Root: root, Dir: "cache/outgoing", Quota: 100, Every: 30 * time.Second, Allowed: r.allowed.Load, Send: r.send,
		Unwatched: true, Emit: func(e events.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, e)
		}, Log: slog.New(slog.DiscardHandler)}
	return r
}

func (r *robot) send(_ context.Context, f *os.File, name string) error {
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried = append(r.tried, name)
	err = r.answer(name)
	if err == nil {
		r.stored[name] = string(b)
	}
	return err
}

func (r *robot) answers(f func(name string) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

// add adds a file that is as old as it is late in the alphabet.
func (r *robot) add(name, content string) {
	r.Helper()
	file := filepath.Join(r.dir, r.cfg.Dir, name)
	err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o600))
	at := time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC).Add(-time.Duration(name[0]) * time.Hour)
	if err := errors.Join(err, os.Chtimes(file, at, at)); err != nil {
		r.Fatal(err)
	}
}

// left returns what is in the folder.
func (r *robot) left() string {
	r.Helper()
	entries, err := os.ReadDir(filepath.Join(r.dir, r.cfg.Dir))
	if err != nil {
		r.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func (r *robot) told() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		out = append(out, fmt.Sprintf("%s %s %s %v %v of %v", e.S1, e.S2, e.S3, e.I1.N, e.I2.N, e.I3.N))
	}
	return out
}

// run runs the outbox until the returned function is called, as agentd does.
func (r *robot) run() (o *Outbox, stop func()) {
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan struct{})
	o = New(r.cfg)
	go func() {
		defer close(done)
		if err := runner.Run(ctx, r.cfg.Log, runner.Config{}, o.Services()...); err != nil {
			r.Error(err)
		}
	}()
	return o, func() { cancel(); <-done }
}

func (r *robot) want(what, left string, tried ...string) {
	r.Helper()
	r.mu.Lock()
	got := r.tried
	r.tried = nil
	r.mu.Unlock()
	if !slices.Equal(got, tried) || r.left() != left {
		r.Errorf("%s: tried %q and left %q; want %q and %q", what, got, r.left(), tried, left)
	}
}

// TestOldestFirst: what waited over a reboot is sent, the oldest first, and removed; folders, links, hidden and unfinished files are not (VEC-LOG-02).
func TestOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t)
		r.add("a.log", "newest")
		r.add("c.log", "oldest")
		r.add("b.log", "second")
		r.add(".hidden", "x")
		r.add("folder/d.log", "x")
		if err := os.Symlink("a.log", filepath.Join(r.dir, r.cfg.Dir, "link")); err != nil {
			t.Fatal(err)
		}
		r.add("e.log.1.1.kennel-tmp", "half")
		_, stop := r.run()
		synctest.Wait()
		stop()
		r.want("at start", ".hidden folder link", "c.log", "b.log", "a.log")
		if r.stored["c.log"] != "oldest" || len(r.told()) > 0 {
			t.Errorf("stored %q, events %q", r.stored, r.told())
		}
	})
}

// TestQuota: the oldest files go first until the rest fits, and an event counts them (VEC-LOG-03); of crashes the newest stay (VEC-CRS-04). Both hold
// while the way is switched off (VEC-LOG-01).
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t)
		var gone []string
		r.cfg.Send, r.cfg.Removed = nil, func(name string) { gone = append(gone, name) }
		r.add("a", strings.Repeat("x", 60))
		_, stop := r.run()
		synctest.Wait()
		r.want("full to the brim", "a")
		r.add("c", strings.Repeat("x", 30))
		r.add("d", strings.Repeat("x", 30))
		r.add("b", strings.Repeat("x", 40))
		time.Sleep(r.cfg.Every)
		synctest.Wait()
		stop()
		r.want("over quota", "a b")
		if got := r.told(); !slices.Equal(got, []string{"d quota logs 2 60 of 2"}) || !slices.Equal(gone, []string{"d", "c"}) {
			t.Errorf("events %q, removed %q", got, gone)
		}
		r.cfg.Keep = 1
		_, stop = r.run()
		synctest.Wait()
		stop()
		r.want("one too many", "a")
	})
}

// TestConsent: a no removes what waits and ends the upload under way; nothing is sent, and no event says so (VEC-LOG-08, VEC-DAS-08).
func TestConsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t)
		r.add("a", "1")
		r.add("b", "2")
		under := false
		r.cfg.Send = func(ctx context.Context, _ *os.File, _ string) error {
			under = true
			<-ctx.Done()
			return ctx.Err()
		}
		o, stop := r.run()
		synctest.Wait()
		if !under {
			t.Fatal("no upload began")
		}
		r.allowed.Store(false)
		o.Look()
		synctest.Wait()
		r.want("after the no", "")
		r.cfg.Send = r.send
		stop()
		r.add("c", "3") // by a program that has not heard of it
		_, stop = r.run()
		synctest.Wait()
		stop()
		r.want("while no", "")
		if len(r.told()) > 0 {
			t.Errorf("events %q", r.told())
		}
	})
}

// TestAnswers: only what the cloud refuses for good is dropped, with its words; everything else waits, and holds up no other file.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t)
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			r.add(name, name)
		}
		r.answers(func(name string) error {
			return map[string]error{"e": errs.New(errs.Denied, "its owner allows no uploads"), "d": errs.New(errs.Invalid, "name: want a word"),
				"b": errs.New(errs.Internal, "oops")}[name]
		})
		_, stop := r.run()
		defer func() { stop() }()
		synctest.Wait()
		r.want("at start", "a b", "e", "d", "c", "b")
		if got := r.told(); !slices.Equal(got, []string{"e consent logs 1 1 of 1", "d refused logs 1 1 of 2"}) || r.events[1].S4 != "name: want a word" {
			t.Errorf("events %q, %q", got, r.events[1].S4)
		}
		time.Sleep(minRetry + minRetry/2) // one pause, however it is spread
		synctest.Wait()
		r.want("second time", "b", "a", "b")
		r.answers(func(string) error { return errs.RetryLater(time.Hour, "busy", nil) })
		time.Sleep(maxRetry * 2)
		synctest.Wait()
		r.want("busy", "b", "b")
		r.add("z", "z") // a new one waits too
		time.Sleep(time.Hour - maxRetry*3)
		synctest.Wait()
		r.want("still busy", "b z")
		r.answers(func(string) error { return nil })
		time.Sleep(maxRetry * 3)
		synctest.Wait()
		r.want("no longer", "", "z", "b")
	})
}

// TestOffline: without a connection the pauses grow, and a connection ends them at once.
func TestOffline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t)
		r.add("a", "1")
		r.answers(func(string) error { return errs.New(errs.Unavailable, "no connection") })
		o, stop := r.run()
		defer func() { stop() }()
		time.Sleep(24 * time.Hour)
		r.mu.Lock()
		n := len(r.tried)
		r.tried = nil
		r.mu.Unlock()
		if n < 24*60/8 || n > 24*60/2 { // every five minutes, give or take a half
			t.Errorf("%d attempts in a day", n)
		}
		r.answers(func(string) error { return nil })
		o.Look()
		synctest.Wait()
		r.want("online", "", "a")
	})
}

// TestKilled: a robot that died after the cloud stored the file sends the same again; one whose file changed under way sends it whole.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t)
		r.add("a", "1")
		ctx, kill := context.WithCancel(t.Context())
		o := New(r.cfg)
		o.cfg.Send = func(_ context.Context, f *os.File, name string) error {
			kill()
			return errors.Join(r.send(ctx, f, name), errors.New("killed before it heard the answer"))
		}
		_, _ = o.pass(ctx, "")
		r.want("killed", "a", "a")
		r.answers(func(string) error {
			r.add("a", "12")
			r.answer = func(string) error { return nil }
			return nil
		})
		_, stop := r.run()
		synctest.Wait()
		r.want("changed", "a", "a")
		time.Sleep(2 * minRetry)
		synctest.Wait()
		stop()
		r.want("whole", "", "a")
		if r.stored["a"] != "12" {
			t.Errorf("stored %q", r.stored["a"])
		}
	})
}

// TestErrorsNameTheFile: the error in the log names the file that is stuck.
func TestErrorsNameTheFile(t *testing.T) {
	r := newRobot(t)
	r.add("a", "1")
	r.answers(func(string) error { return errs.New(errs.Unavailable, "no connection") })
	o := New(r.cfg)
	if _, err := o.pass(t.Context(), ""); err == nil || err.Error() != "cache/outgoing/a: no connection" {
		t.Errorf("got %v", err)
	}
	if err := os.RemoveAll(filepath.Join(r.dir, "cache")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "cache"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.keep(t.Context()); err == nil || !strings.Contains(err.Error(), "cache") || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("folder that cannot be made: got %v", err)
	}
}

// TestWatched: a file that is renamed into the folder is sent without waiting for the period.
func TestWatched(t *testing.T) {
	r := newRobot(t)
	r.cfg.Unwatched, r.cfg.Every = false, time.Hour
	_, stop := r.run()
	defer stop()
	testwait.Until(t, time.Minute, "the folder", func() error {
		_, err := os.Stat(filepath.Join(r.dir, r.cfg.Dir))
		return err
	})
	if err := os.WriteFile(filepath.Join(r.dir, "a"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(r.dir, "a"), filepath.Join(r.dir, r.cfg.Dir, "a")); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, 5*time.Minute, "the upload", testwait.Holds(func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.stored["a"] == "1"
	}))
}
