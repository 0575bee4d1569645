package claim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/owners"
	"kennel/infra/errs"
)

// cloud answers as cloud/identity/owner does.
type cloud struct {
	mu     sync.Mutex
	owner  string
	codes  map[string]string // by key
	ends   time.Time
	dead   bool   // the code was tried too often
	next   string // the owner from the answer after the next
	keys   []string
	err    error
	looks  int
	answer string // in place of a code
	refuse error  // codes
}

func (c *cloud) Do(_ context.Context, service, method string, body []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	switch service + "/" + method {
	case "owner/status":
		c.looks++
		s := owners.Status{Owned: c.owner != "", UserID: c.owner, DataCollection: true}
		if d := time.Until(c.ends); d > 0 && !c.dead && c.owner == "" {
			s.CodeExpiresInMS, s.CodeTriesLeft = d.Milliseconds(), 5
		}
		if c.next != "" {
			c.owner, c.next = c.next, ""
		}
		return owners.Encode(s)
	case "owner/code":
		k, err := owners.ParseKeyed(body)
		if err != nil {
			return nil, err
		}
		c.keys = append(c.keys, k.Key)
		if c.refuse != nil {
			return nil, c.refuse
		}
		if c.answer != "" {
			return []byte(c.answer), nil
		}
		if c.owner != "" {
			return nil, errs.Coded(errs.Conflict, "owned", "the robot has an owner")
		}
		if c.codes[k.Key] == "" {
			c.codes[k.Key] = fmt.Sprintf("K7QM-%04d", len(c.codes))
			c.ends, c.dead = time.Now().Add(10*time.Minute), false
		}
		return owners.Encode(owners.Code{Code: c.codes[k.Key], ExpiresInMS: time.Until(c.ends).Milliseconds()})
	}
	return nil, errors.New("asked " + service + "/" + method)
}

func (c *cloud) set(f func(c *cloud)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

type screen struct {
	mu    sync.Mutex
	now   string
	shown []string
	err   error
}

func (s *screen) Show(code string, _ time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.now, s.shown = code, append(s.shown, code)
	return nil
}

func (s *screen) Hide() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = ""
	return nil
}

func (s *screen) is() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func run(t *testing.T, auto bool, f func(t *testing.T, c *cloud, s *screen, a *Agent, heard func() []bool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, s := &cloud{codes: map[string]string{}}, &screen{}
		var mu sync.Mutex
		var heard []bool
		a, err := New(Config{Ask: c, Display: s, Auto: auto, Log: slog.New(slog.DiscardHandler), OnStatus: func(st owners.Status) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, st.Owned)
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		synctest.Wait()
		f(t, c, s, a, func() []bool { mu.Lock(); defer mu.Unlock(); return slices.Clone(heard) })
		cancel()
		if err := <-done; err != nil || s.is() != "" {
			t.Errorf("ended with %v, and %q is shown", err, s.is())
		}
	})
}

// The owner asks for a code at the robot, types it, and it disappears.
func TestClaimed(t *testing.T) {
	run(t, false, func(t *testing.T, c *cloud, s *screen, a *Agent, heard func() []bool) {
		a.Connected()
		synctest.Wait()
		if s.is() != "" || len(heard()) != 1 {
			t.Errorf("shown %q without anybody asking, heard %v", s.is(), heard())
		}
		code, until, err := a.Want(t.Context())
		if err != nil || code != "K7QM-0000" || s.is() != code || time.Until(until) != 10*time.Minute {
			t.Fatalf("%q until %v, %v", code, until, err)
		}
		if again, _, err := a.Want(t.Context()); err != nil || again != code || len(c.keys) != 1 {
			t.Errorf("wanted twice: %q, %v, asked %d times", again, err, len(c.keys))
		}
		c.set(func(c *cloud) { c.owner = "alice" })
		time.Sleep(6 * time.Second) // simulated
		synctest.Wait()
		if h := heard(); s.is() != "" || !h[len(h)-1] || !a.State().Owned {
			t.Errorf("claimed, and %q is shown; heard %v", s.is(), h)
		}
		if _, _, err := a.Want(t.Context()); errs.CodeOf(err) != "owned" {
			t.Errorf("wanted while owned: %v", err)
		}
		time.Sleep(5 * time.Second)
		looks := func() (n int) { c.set(func(c *cloud) { n = c.looks }); return n }
		n := looks()
		time.Sleep(50 * time.Minute)
		if looks() != n {
			t.Errorf("asked %d times with nothing shown", looks()-n)
		}
	})
}

// A code that is over, or was guessed at too often, is not shown; without an owner there is another if that is wished.
func TestShownNoLongerThanGood(t *testing.T) {
	run(t, false, func(t *testing.T, c *cloud, s *screen, a *Agent, _ func() []bool) {
		if _, _, err := a.Want(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		if s.is() != "" {
			t.Error("shown after its end")
		}
		if _, _, err := a.Want(t.Context()); err != nil || len(c.codes) != 2 || c.keys[0] == c.keys[1] {
			t.Errorf("another: %v, %v", err, c.codes)
		}
		c.set(func(c *cloud) { c.dead = true })
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if s.is() != "" {
			t.Error("shown although it is worth nothing")
		}
	})
	run(t, true, func(t *testing.T, c *cloud, s *screen, a *Agent, _ func() []bool) {
		a.Connected()
		time.Sleep(35 * time.Minute)
		synctest.Wait()
		if len(s.shown) != 4 || s.is() != s.shown[3] {
			t.Errorf("shown %q, now %q", s.shown, s.is())
		}
		c.set(func(c *cloud) { c.owner = "alice" })
		time.Sleep(time.Hour)
		synctest.Wait()
		if s.is() != "" || len(s.shown) != 4 {
			t.Errorf("owned: shown %q", s.shown)
		}
	})
}

// A status that was read while the robot was being claimed may know that the code is used, and not yet by whom.
func TestUsedBeforeItsOwnerIsKnown(t *testing.T) {
	run(t, true, func(t *testing.T, c *cloud, s *screen, a *Agent, heard func() []bool) {
		a.Connected()
		synctest.Wait()
		c.set(func(c *cloud) { c.dead, c.next = true, "alice" })
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if h := heard(); s.is() != "" || !h[len(h)-1] || !a.State().Owned {
			t.Errorf("claimed, and %q is shown; heard %v", s.is(), h)
		}
	})
	run(t, true, func(t *testing.T, c *cloud, s *screen, a *Agent, _ func() []bool) {
		a.Connected()
		synctest.Wait()
		c.set(func(c *cloud) { c.dead = true })
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if len(s.shown) != 2 || s.is() != s.shown[1] {
			t.Errorf("guessed at too often: shown %q, now %q; want another", s.shown, s.is())
		}
	})
}

// A cloud that is away is asked again with the same key, and a connection hurries it.
func TestAwayCloud(t *testing.T) {
	run(t, false, func(t *testing.T, c *cloud, s *screen, a *Agent, _ func() []bool) {
		c.set(func(c *cloud) { c.err = errs.New(errs.Unavailable, "away") })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, _, err := a.Want(ctx); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("got %v", err)
		}
		if st := a.State(); !strings.Contains(st.Problem, "away") {
			t.Errorf("state %+v", st)
		}
		c.set(func(c *cloud) { c.err = nil })
		a.Connected()
		synctest.Wait()
		if s.is() == "" || len(slices.Compact(slices.Clone(c.keys))) != 1 || a.State().Problem != "" {
			t.Errorf("shown %q, keys %q, %+v", s.is(), c.keys, a.State())
		}
	})
	run(t, false, func(t *testing.T, c *cloud, s *screen, a *Agent, _ func() []bool) {
		c.set(func(c *cloud) { c.answer = `{"code":""}` })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, _, err := a.Want(ctx); err == nil || s.is() != "" {
			t.Errorf("an answer without a code: %v", err)
		}
	})
	run(t, false, func(t *testing.T, _ *cloud, s *screen, a *Agent, _ func() []bool) {
		s.mu.Lock()
		s.err = errors.New("display is dark")
		s.mu.Unlock()
		if _, _, err := a.Want(t.Context()); err == nil || !strings.Contains(err.Error(), "display is dark") {
			t.Errorf("got %v", err)
		}
	})
}

// A cloud that refuses for good is not asked without end.
func TestRefused(t *testing.T) {
	run(t, true, func(t *testing.T, c *cloud, s *screen, a *Agent, _ func() []bool) {
		c.set(func(c *cloud) { c.refuse = errs.New(errs.Denied, "no") })
		a.Connected()
		time.Sleep(time.Hour)
		synctest.Wait()
		n := 0
		c.set(func(c *cloud) { n = len(c.keys) })
		if n < 10 || n > 100 {
			t.Errorf("asked %d times in an hour", n)
		}
	})
}

func TestFileDisplay(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	d := FileDisplay{root}
	if err := errors.Join(d.Hide(), d.Show("K7QM-3XW9", time.Minute)); err != nil {
		t.Fatal(err)
	}
	if b, err := root.ReadFile(CodeFile); err != nil || string(b) != "K7QM-3XW9\n" {
		t.Errorf("%q, %v", b, err)
	}
	if err := d.Hide(); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Stat(CodeFile); err == nil {
		t.Error("still shown")
	}
}
