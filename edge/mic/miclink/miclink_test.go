package miclink

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/edge/mic/geometry"
	"kennel/infra/testwait"
)

// serve serves below a folder until the test ends or stop is called.
func serve(t *testing.T) (s *Server, path string, stop func()) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() // read only
	if s, err = Listen(root); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(stop)
	return s, filepath.Join(dir, SocketPath), stop
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testwait.Until(t, testwait.Long, what, func() error {
		if !ok() {
			return errors.New("not yet")
		}
		return nil
	})
}

func dial(t *testing.T, s *Server, path string) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // read only
	until(t, "the listener", s.listening.Load)
	return c
}

// frameOf is a frame whose samples tell its number.
func frameOf(n int) *geometry.Frame {
	var f geometry.Frame
	for i := range f {
		f[i] = int16(n + i)
	}
	return &f
}

// TestFrames: two listeners get each frame with its number, time and samples (VEC-MIC-01); a gap in the body's count is told, and so is the end.
func TestFrames(t *testing.T) {
	s, path, stop := serve(t)
	s.Tap(7, time.Second, frameOf(7)) // before anyone listens
	a := dial(t, s, path)
	b := dial(t, s, path)
	until(t, "both", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.peers) == 2
	})
	for _, n := range []uint32{8, 9, 12, 13, 1} { // at last it has begun to count again
		s.Tap(n, time.Duration(n), frameOf(int(n)))
	}
	for _, c := range []*Conn{a, b} {
		for i, want := range []Frame{{8, 8, 0, *frameOf(8)}, {9, 9, 0, *frameOf(9)}, {12, 12, 2, *frameOf(12)}, {13, 13, 0, *frameOf(13)}, {14, 1, 0, *frameOf(1)}} {
			if f, err := c.Next(); err != nil || f != want {
				t.Fatalf("frame %d: %d at %v, lost %d, %v; want %d at %v, lost %d", i, f.Seq, f.At, f.Lost, err, want.Seq, want.At, want.Lost)
			}
		}
	}
	stop()
	if _, err := a.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if _, err := Dial(t.Context(), path); err == nil {
		t.Error("a server that has ended was reached")
	}
}

// TestSlowListener: one that does not read loses frames and is told how many; the other one loses none, and the loop does not allocate.
func TestSlowListener(t *testing.T) {
	s, path, _ := serve(t)
	slow, quick := dial(t, s, path), dial(t, s, path)
	n := uint32(0)
	some := func() {
		for range 50 {
			n++
			s.Tap(n, time.Duration(n), f0)
		}
		for range 50 {
			if f, err := quick.Next(); err != nil || f.Lost != 0 {
				t.Fatalf("frame %d: lost %d, %v", f.Seq, f.Lost, err)
			}
		}
	}
	for n < 1000 { // 5 s: more than a socket holds
		some()
	}
	for got := uint64(0); ; {
		some()
		for range 50 {
			f, err := slow.Next()
			if got++; err != nil || f.Seq != got+f.Lost {
				t.Fatalf("frame %d after %d, lost %d, %v", f.Seq, got-1, f.Lost, err)
			}
			if f.Lost > 0 {
				if a := testing.AllocsPerRun(100, func() { n++; s.Tap(n, 0, f0) }); a != 0 {
					t.Errorf("Tap allocates %v times", a)
				}
				return
			}
		}
		if got == uint64(n) {
			t.Fatal("nothing was lost")
		}
	}
}

var f0 = frameOf(0)

// TestTooMany: a listener beyond the last place hears the end at once; a place that is left is free again.
func TestTooMany(t *testing.T) {
	s, path, _ := serve(t)
	var all []*Conn
	for range maxListeners {
		all = append(all, dial(t, s, path))
	}
	if _, err := dial(t, s, path).Next(); !errors.Is(err, io.EOF) {
		t.Errorf("one too many: %v", err)
	}
	_ = all[0].Close() // read only
	n := uint32(0)
	until(t, "its place", func() bool { // it is missed at the next frame
		n++
		s.Tap(n, 0, f0)
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.peers) < maxListeners
	})
}

func BenchmarkTap(b *testing.B) {
	s := &Server{}
	s.listening.Store(true)
	n := uint32(0)
	b.ReportAllocs()
	for b.Loop() {
		n++
		s.Tap(n, 0, f0)
		s.tail.Store(s.head.Load())
	}
}
