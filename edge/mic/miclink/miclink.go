// Package miclink hands the microphones of a robot from robotd to its other programs (VEC-MIC-01).
//
//	real-time loop ─ Tap ─► ring ─ Server.Run ─► run/mic/socket ─ Conn.Next: agentd, robotkit mic
//
// The loop copies each frame into a ring and never waits; it does nothing while no program listens. A goroutine sends what is in the ring every
// 20 ms. A listener that does not read loses the frames that find no room in its socket, about a second of them, and learns how many.
//
// A packet is 1 to 16 frames, little endian:
//
//	0   u64  number of the frame
//	8   i64  when it came, CLOCK_MONOTONIC in ns
//	16       320 samples of 16 bits: sample 0 of the four microphones, then sample 1, and so on, 15,625 a second
package miclink

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/rawfd"
	"kennel/edge/mic/geometry"
	"kennel/infra/sockpath"
)

// SocketPath is where robotd serves the microphones, below the robot's root. Its folder is for its user and root alone.
const SocketPath = "run/mic/socket"

// Our own limits.
const (
	every        = 20 * time.Millisecond // between two packets
	ringSize     = 128                   // frames, 0.65 s
	mostFrames   = 16                    // in a packet
	maxListeners = 8
	mostMissed   = 1000 // frames that the body's own count may skip; beyond that the body has begun to count again
	headSize     = 16
	frameSize    = headSize + 2*geometry.Samples*geometry.Mics
)

// Frame is 5.12 ms of sound.
type Frame struct {
	Seq  uint64        // grows by one with each frame of the body, also across its restarts
	At   time.Duration // when it came, CLOCK_MONOTONIC
	Lost uint64        // frames that are missing between the one before and this one
	Mics geometry.Frame
}

// Server hands frames out. Tap is the loop's, the other methods are safe for concurrent use.
type Server struct {
	ln *net.UnixListener

	listening  atomic.Bool
	head, tail atomic.Uint64 // frames put into the ring, and taken from it
	ring       [ringSize]slot
	seq        uint64 // the loop's: of the newest frame
	body       uint32 // the loop's: the body's own number of it

	mu    sync.Mutex
	wake  chan struct{} // there are listeners
	peers []*rawfd.Conn
}

type slot struct {
	seq  uint64
	at   time.Duration
	mics geometry.Frame
}

// Listen creates the socket below root. It replaces one that a killed server left.
func Listen(root *os.Root) (*Server, error) {
	ln, err := sockpath.ListenPrivateAs("unixpacket", root, SocketPath)
	if err != nil {
		return nil, fmt.Errorf("miclink: %s: %w", SocketPath, err)
	}
	return &Server{ln: ln, wake: make(chan struct{}, 1)}, nil
}

// Tap takes one frame, which has the body's number, and came at a time. It neither blocks nor allocates; a frame that finds the ring full is lost.
func (s *Server) Tap(number uint32, at time.Duration, mics *geometry.Frame) {
	step := number - s.body
	if step == 0 || step > mostMissed {
		step = 1
	}
	s.body = number
	s.seq += uint64(step)
	if !s.listening.Load() {
		return
	}
	head := s.head.Load()
	if head-s.tail.Load() == ringSize {
		return // its number tells that it is missing
	}
	e := &s.ring[head%ringSize]
	e.seq, e.at, e.mics = s.seq, at, *mics
	s.head.Store(head + 1)
}

// Run serves listeners until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.ln.Close() }) // ends accept
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { s.send(ctx) })
	for {
		conn, err := s.ln.AcceptUnix()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				_ = conn.Close() // it has heard nothing yet
			}
			return nil
		case err != nil:
			return fmt.Errorf("miclink: accept: %w", err)
		}
		if fast, err := rawfd.NewConn(conn); err == nil { // else it is closed
			s.join(fast)
		}
	}
}

func (s *Server) join(conn *rawfd.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.peers) == maxListeners {
		_ = conn.Close() // an end before the first packet is the refusal
		return
	}
	s.peers = append(s.peers, conn)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// send empties the ring to the listeners while there are any.
func (s *Server) send(ctx context.Context) {
	packet := make([]byte, 0, mostFrames*frameSize)
	tick := time.NewTimer(0)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.mu.Lock()
		some := len(s.peers) > 0
		s.mu.Unlock()
		if s.listening.Load() != some {
			s.tail.Store(s.head.Load()) // frames of before the first listener
			s.listening.Store(some)
		}
		var again <-chan time.Time
		if some {
			tick.Reset(every - monoclock.Now()%every) // when subscriptions are due that are as fast: one wake of each program serves both
			again = tick.C
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-again:
		}
		for more := true; more; {
			packet, more = s.take(packet[:0])
			if len(packet) > 0 {
				s.spread(packet)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.peers {
		_ = c.Close() // nothing buffered
	}
	s.peers = nil
}

// take moves frames from the ring into a packet.
func (s *Server) take(packet []byte) (_ []byte, more bool) {
	tail, head := s.tail.Load(), s.head.Load()
	for ; tail != head && len(packet) < mostFrames*frameSize; tail++ {
		e := &s.ring[tail%ringSize]
		packet = binary.LittleEndian.AppendUint64(packet, e.seq)
		packet = binary.LittleEndian.AppendUint64(packet, uint64(e.at))
		for _, v := range e.mics {
			packet = binary.LittleEndian.AppendUint16(packet, uint16(v))
		}
		s.tail.Store(tail + 1)
	}
	return packet, tail != head
}

// spread sends the packet to every listener that has room for it, and forgets those that are gone.
func (s *Server) spread(packet []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers = slices.DeleteFunc(s.peers, func(c *rawfd.Conn) bool {
		if c.Offer(packet) == nil {
			return false
		}
		_ = c.Close() // it is gone
		return true
	})
}

// Conn is a listener's end.
type Conn struct {
	conn *rawfd.Conn
	stop func() bool
	buf  []byte
	rest []byte
	last uint64 // Seq of the frame before; 0: none
}

// Dial connects to the socket at path, such as ROOT/run/mic/socket. The connection ends with ctx.
func Dial(ctx context.Context, path string) (*Conn, error) {
	var c *rawfd.Conn
	err := sockpath.To(path, func(p string) error {
		any, err := new(net.Dialer).DialContext(ctx, "unixpacket", p)
		if err == nil {
			c, err = rawfd.NewConn(any.(*net.UnixConn))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("microphones: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // it may be closed already
	return &Conn{conn: c, stop: stop, buf: make([]byte, mostFrames*frameSize)}, nil
}

// Next blocks until the next frame. It returns io.EOF when robotd ends, or has as many listeners as it takes.
func (c *Conn) Next() (f Frame, err error) {
	if len(c.rest) == 0 {
		n, err := c.conn.Read(c.buf)
		if err != nil {
			return f, fmt.Errorf("microphones: %w", err)
		}
		c.rest = c.buf[:n]
	}
	if len(c.rest) < frameSize {
		return f, fmt.Errorf("microphones: %d bytes of a frame, want %d", len(c.rest), frameSize)
	}
	b := c.rest[:frameSize]
	c.rest = c.rest[frameSize:]
	f.Seq, f.At = binary.LittleEndian.Uint64(b), time.Duration(binary.LittleEndian.Uint64(b[8:]))
	for i := range f.Mics {
		f.Mics[i] = int16(binary.LittleEndian.Uint16(b[headSize+2*i:]))
	}
	if c.last != 0 && f.Seq > c.last {
		f.Lost = f.Seq - c.last - 1
	}
	c.last = f.Seq
	return f, nil
}

// Close ends the connection.
func (c *Conn) Close() error {
	c.stop()
	return c.conn.Close()
}
