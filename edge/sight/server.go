package sight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/infra/sockpath"
)

// SocketPath is where robotd serves the pictures, and DevicePath where a camera does, below the robot's root. Their folders are for its user and root alone.
const (
	SocketPath = "run/camera/socket"
	DevicePath = "dev/camera/socket"
)

// Our own limits.
const (
	maxListeners = 8
	patience     = 2 * time.Second // for a listener that does not read
	sayAgain     = time.Second     // why there is no picture
)

// Server hands frames to listeners. Its methods are safe for concurrent use.
type Server struct {
	ln *net.UnixListener

	mu        sync.Mutex
	listeners []*listener
	changed   chan struct{} // one slot: a listener came, left or wants something else
	seq       uint64
}

// listener is one end of a connection. The server puts the newest frame into next; the goroutine that writes takes it out.
type listener struct {
	conn  *net.UnixConn
	ready chan struct{} // one slot: next or off is there

	mu   sync.Mutex
	wish Wish
	due  time.Duration // when it wants the next frame
	next Frame
	full bool // next was not sent yet
	off  string
}

// Listen creates a socket below root, at SocketPath or DevicePath. It replaces one that a killed server left.
func Listen(root *os.Root, path string) (*Server, error) {
	ln, err := sockpath.ListenPrivateAs("unix", root, path)
	if err != nil {
		return nil, fmt.Errorf("sight: %s: %w", path, err)
	}
	return &Server{ln: ln, changed: make(chan struct{}, 1)}, nil
}

// Run serves listeners until ctx ends. While there is any that wants pictures, it runs look, which gives frames until its context ends.
func (s *Server) Run(ctx context.Context, look func(context.Context)) error {
	stop := context.AfterFunc(ctx, func() { _ = s.ln.Close() }) // ends accept
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { s.watch(ctx, look) })
	for {
		conn, err := s.ln.AcceptUnix()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				_ = conn.Close() // it has heard nothing yet
			}
			return nil
		case err != nil:
			return fmt.Errorf("sight: accept: %w", err)
		}
		l := &listener{conn: conn, ready: make(chan struct{}, 1)}
		if !s.add(l) {
			_ = conn.Close() // an end before the first frame is the refusal
			continue
		}
		ending := context.AfterFunc(ctx, func() { _ = conn.Close() })
		wg.Go(func() {
			defer ending()
			s.serve(l)
		})
	}
}

// watch runs look while any listener wants pictures.
func (s *Server) watch(ctx context.Context, look func(context.Context)) {
	for ctx.Err() == nil {
		if s.Wish().Rate > 0 {
			s.while(ctx, look)
			continue
		}
		select {
		case <-ctx.Done():
		case <-s.changed:
		}
	}
}

func (s *Server) while(ctx context.Context, look func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		look(ctx)
	}()
	for {
		select {
		case <-done:
		case <-s.changed:
			if s.Wish().Rate > 0 {
				continue
			}
		}
		break
	}
	cancel()
	<-done
}

func (s *Server) add(l *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listeners) == maxListeners {
		return false
	}
	s.listeners = append(s.listeners, l)
	return true
}

func (s *Server) tell() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// serve reads wishes and writes frames until the listener is gone.
func (s *Server) serve(l *listener) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		l.write()
		_ = l.conn.Close() // ends the reader too
	}()
	b := make([]byte, wishSize)
	for read(l.conn, b) == nil {
		w, err := parseWish(b)
		if err != nil {
			break
		}
		l.mu.Lock()
		l.wish, l.due = w, 0
		l.mu.Unlock()
		s.tell()
	}
	_ = l.conn.Close() // it is gone
	l.mu.Lock()
	l.wish = Wish{}
	l.mu.Unlock()
	close(l.ready)
	s.mu.Lock()
	s.listeners = slices.DeleteFunc(s.listeners, func(x *listener) bool { return x == l })
	s.mu.Unlock()
	s.tell()
	<-gone
}

// write sends what is ready until the listener does not take it in time.
func (l *listener) write() {
	var f Frame
	b := make([]byte, 0, headSize)
	for range l.ready {
		l.mu.Lock()
		off, full := l.off, l.full
		if full {
			f, l.next = l.next, f // its memory is the next frame's
			off = ""
		}
		l.full, l.off = false, ""
		l.mu.Unlock()
		_ = l.conn.SetWriteDeadline(time.Now().Add(patience)) // a closed one fails in Write
		var err error
		switch {
		case full:
			parts := net.Buffers{f.head(b[:0]), f.Pix}
			_, err = parts.WriteTo(l.conn)
		case off != "":
			_, err = l.conn.Write(noFrame(b[:0], off))
		}
		if err != nil {
			return // a frame may be cut: nothing can follow
		}
	}
}

// Wish returns what the listeners want together: the highest of their rates, and the rest as the newest of those who want pictures does.
func (s *Server) Wish() (all Wish) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		l.mu.Lock()
		if l.wish.Rate > 0 {
			rate := max(all.Rate, l.wish.Rate)
			all = l.wish
			all.Rate = rate
		}
		l.mu.Unlock()
	}
	return all
}

// Give hands f to each listener that is due one, in place of one that was not sent yet. It copies f and does not wait. A frame without a number, or with one
// not above the last frame's, gets the next.
func (s *Server) Give(f *Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Seq <= s.seq {
		f.Seq = s.seq + 1
	}
	s.seq = f.Seq
	now := monoclock.Now()
	for _, l := range s.listeners {
		l.mu.Lock()
		if every := interval(l.wish.Rate); l.wish.Rate > 0 && now >= l.due-every/4 {
			if l.due += every; l.due < now {
				l.due = now + every
			}
			l.next.copyFrom(f)
			l.full = true
			l.wake()
		}
		l.mu.Unlock()
	}
}

// wake lets the writer look; l.mu is held.
func (l *listener) wake() {
	if l.wish.Rate == 0 {
		return // it may be gone
	}
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// Refuse tells the listeners why there is no picture.
func (s *Server) Refuse(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		l.mu.Lock()
		l.off = reason
		l.wake()
		l.mu.Unlock()
	}
}

func interval(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }
