package simulator

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/infra/api/live"
	"kennel/infra/api/poke"
	"kennel/infra/sockpath"
)

var quiet = slog.New(slog.DiscardHandler)

// deep is a robot's folder whose name alone is longer than a socket address.
func deep(t *testing.T) *os.Root {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() }) // nothing buffered
	return root
}

// room is a body in a room; it notes which maps its askers had and what was done to it.
type room struct {
	mu    sync.Mutex
	rev   string // "": it is nowhere
	known []string
	pokes []string
}

func (s *room) Poke(p poke.Poke) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pokes = append(s.pokes, p.String()); p.Verb == poke.Shake {
		return p.Refused()
	}
	return nil
}

func (s *room) See(rev string) *live.World {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = append(s.known, rev)
	if s.rev == "" {
		return nil
	}
	w := &live.World{Rev: s.rev, Posture: "on treads", Pose: live.Place{1, 2, 3}, Things: []live.Thing{}}
	if rev != s.rev {
		w.Map = &live.Map{Name: s.rev, Charger: &live.Place{0.5}}
	}
	return w
}

// serve serves until the returned function is called.
func serve(t *testing.T, root *os.Root, body Body) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, root, body, quiet) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// ask asks until it gets an answer.
func ask(t *testing.T, c *Client) *live.World {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; {
		w, err := c.Ask(t.Context())
		if w != nil && err == nil {
			return w
		}
		if err != nil || time.Now().After(until) {
			t.Fatalf("nobody answers: %v", err)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestAsk: the map comes once, and again when it is another; each answer has it. A simulator that is started again is found again.
func TestAsk(t *testing.T) {
	root := deep(t)
	c := NewClient(root)
	if w, err := c.Ask(t.Context()); w != nil || err != nil {
		t.Fatalf("a real robot is at %+v, %v", w, err)
	}
	s := &room{rev: "a"}
	stop := serve(t, root, s)
	began := time.Now() // before the first answer, from which on it waits
	first := ask(t, c)
	again := ask(t, c)
	if took := time.Since(began); took < pace {
		t.Errorf("two answers within %v, want %v between them", took, pace)
	}
	if !reflect.DeepEqual(first, again) || first.Map.Name != "a" || first.Pose != (live.Place{1, 2, 3}) {
		t.Errorf("%+v, then %+v", first, again)
	}
	s.mu.Lock()
	s.rev = "b"
	s.mu.Unlock()
	if w := ask(t, c); w.Map.Name != "b" || w.Rev != "b" {
		t.Errorf("another map: %+v", w)
	}
	stop()
	if want := []string{"", "a", "a"}; !reflect.DeepEqual(s.known, want) {
		t.Errorf("the asker had the maps %q, want %q", s.known, want)
	}
	if w, err := c.Ask(t.Context()); w != nil || err != nil { // the socket is there and no listener behind it
		t.Errorf("a simulator that is gone: %+v, %v", w, err)
	}
	stop = serve(t, root, s)
	ask(t, c)
	s.mu.Lock()
	s.rev = ""
	s.mu.Unlock()
	if w, err := c.Ask(t.Context()); w != nil || err != nil {
		t.Errorf("a body that is nowhere is at %+v, %v", w, err)
	}
	stop()
	if i, err := root.Stat(filepath.Dir(SocketPath)); err != nil || i.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v: others may come in", i.Mode(), err)
	}
}

// TestRubbish: an answer that no simulator of ours gives is an error, and is bounded; a silent peer delays the caller only briefly.
func TestRubbish(t *testing.T) {
	for says, want := range map[string]string{
		"": "unexpected end", "x": "invalid character", `{"rev":"1","posture":"ok","pose":[1e9,0,0],"map":{}}`: "out of bounds",
		`{"rev":"1","posture":"ok"}`: `map "1" is not in the answer`, strings.Repeat(" ", maxAnswer+1): "more than",
	} {
		root := deep(t)
		ln, err := sockpath.ListenPrivate(root, SocketPath)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := ln.Accept()
			if err != nil {
				return // the test is over
			}
			_, _ = bufio.NewReader(conn).ReadString('\n')
			_, _ = io.WriteString(conn, says) // who has heard enough hangs up
			_ = conn.Close()
		}()
		if w, err := NewClient(root).Ask(t.Context()); w != nil || err == nil || !strings.HasPrefix(err.Error(), "ask for the robot's position: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %+v, %v; want an error that says %q", says, w, err, want)
		}
		_ = ln.Close() // no caller waits
	}
	root := deep(t)
	ln, err := sockpath.ListenPrivate(root, SocketPath)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() // no caller waits
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if w, err := NewClient(root).Ask(ctx); w != nil || err == nil {
		t.Errorf("a simulator that says nothing: %+v, %v", w, err)
	}
}

// TestPoke: the body takes a poke with its defaults. It is an error if the body refuses it, if the table does not have it, or if the robot is not
// simulated.
func TestPoke(t *testing.T) {
	root := deep(t)
	c := NewClient(root)
	touch := poke.Poke{Verb: poke.Touch}
	if err := c.Poke(t.Context(), touch); err != ErrNone {
		t.Errorf("a real robot: %v", err)
	}
	s := &room{rev: "a"}
	stop := serve(t, root, s)
	ask(t, c)
	for _, tc := range []struct {
		p    poke.Poke
		want string
	}{
		{touch, ""}, {poke.Poke{Verb: poke.Shake}, "this body cannot be shaken"}, {poke.Poke{Verb: "kick"}, `verb "kick": want one of`},
	} {
		if err := c.Poke(t.Context(), tc.p); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.20s: %v, want %q", tc.p, err, tc.want)
		}
	}
	stop()
	if want := []string{"touch -for 2s", "shake -for 2s"}; !reflect.DeepEqual(s.pokes, want) {
		t.Errorf("got %q, want %q", s.pokes, want)
	}
	if err := c.Poke(t.Context(), touch); err != ErrNone {
		t.Errorf("a simulator that is gone: %v", err)
	}
}

// TestLongQuestion: a question that does not end is no question, and the next one is answered.
func TestLongQuestion(t *testing.T) {
	root := deep(t)
	s := &room{rev: "a"}
	stop := serve(t, root, s)
	defer stop()
	ask(t, NewClient(root))
	var conn net.Conn
	if err := sockpath.Below(root, SocketPath, func(path string) (err error) {
		conn, err = net.Dial("unix", path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer conn.Close() // the end of the call is under test
	if _, err := io.WriteString(conn, strings.Repeat("a", maxAsk)); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(conn); len(b) > 0 {
		t.Errorf("answered %q, %v", b, err)
	}
	ask(t, NewClient(root))
}
