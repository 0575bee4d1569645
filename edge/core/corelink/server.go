package corelink

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"kennel/edge/body/rawfd"
)

// Limits of the server; our own defaults.
const (
	maxPeers     = 16
	ringSize     = 256              // messages kept for a peer that does not read: over half a minute of them
	helloTimeout = 5 * time.Second  // for a peer's first message
	writeTimeout = 10 * time.Second // for one message to a peer that does not read; then it is disconnected
	byeTimeout   = time.Second

	// The loop shares its process, memory and collector with the answers: the work for peers must not grow without bound. Each peer has its own
	// share of these, so that one that floods delays no other.
	readRate  = 400 // messages of all peers a second: two for each step of the loop
	readBurst = 200

	maxFresh  = 64 // subscriptions of a peer with a frame that may wait
	maxEvents = 64 // kept for peers that join later
	joinRate  = 10 // connections a second
	joinBurst = 2 * maxPeers
)

// Handlers are the callbacks of the server. All may be nil; calls for one peer come in order from one goroutine, for several peers at once.
type Handlers struct {
	Joined  func(peer Peer)
	Message func(peer Peer, m Message) // not Hello, Bye, Ping, Pong: those the server deals with
	Left    func(peer Peer, err error) // err is nil for one that left in order; its Hello is empty if it never said it
}

// Peer is the program at the other end of a connection.
type Peer struct {
	Hello
	ID uint32 // of the connection, from 1; the same program has another one when it connects again
}

// Server is robotd's end. Its methods are safe for concurrent use, and none waits for a peer.
type Server struct {
	root *os.Root
	lock *os.File
	ln   *net.UnixListener

	patience time.Duration // writeTimeout
	began    time.Time

	mu     sync.Mutex
	hello  Hello
	closed bool
	latest map[string][]byte // sent to a new peer after Hello: the newest frame of each type published
	order  []string          // of latest, as first published
	events [][]byte          // the newest maxEvents, as replayed
	peers  map[*peer]struct{}
	drops  uint64 // of peers past and present
	lastID uint32 // of a peer
}

type peer struct {
	id    uint32
	conn  *rawfd.Conn
	out   chan *waiting // a ring: Publish drops the oldest when it is full
	quit  chan struct{}
	fresh map[uint32]*waiting // the newest of each subscription, by its request; mu
	turns *rate.Limiter       // to read a message

	heard atomic.Int64 // when its newest message was read, since Server.began
	asked int64        // when it was last asked for an answer; mu
}

// waiting is a whole frame that waits to be sent, and may be replaced as long as it does; nil: it was sent or dropped.
type waiting struct {
	atomic.Pointer[[]byte]
	file *os.File // that goes with it; nil: none
}

func waits(b []byte) *waiting {
	f := &waiting{}
	f.Store(&b)
	return f
}

// Listen creates the socket below root. hello is the first message to each peer. The error names another server of the same root by its pid.
func Listen(root string, hello Hello) (*Server, error) {
	s := &Server{hello: hello, patience: writeTimeout, began: time.Now(), latest: map[string][]byte{}, peers: map[*peer]struct{}{}}
	if _, err := AppendFrame(nil, &hello); err != nil {
		return nil, fmt.Errorf("corelink: %w", err)
	}
	var err error
	if s.root, err = os.OpenRoot(root); err != nil {
		return nil, fmt.Errorf("corelink: root: %w", err)
	}
	if s.lock, err = lock(s.root); err == nil {
		if s.ln, err = listen(s.root); err == nil {
			return s, nil
		}
		_ = s.lock.Close() // nothing buffered
	}
	_ = s.root.Close() // nothing buffered
	return nil, fmt.Errorf("corelink: %s below %s: %w", SocketPath, root, err)
}

// Serve takes peers until ctx ends; then it says Bye to them, waits for its goroutines and returns nil.
func (s *Server) Serve(ctx context.Context, h Handlers) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	joins := rate.NewLimiter(joinRate, joinBurst)
	defer context.AfterFunc(ctx, func() { _ = s.ln.SetDeadline(time.Unix(1, 0)) })() // it cannot fail on an open listener
	for {
		if joins.Wait(ctx) != nil {
			return nil // ctx has ended
		}
		conn, err := s.ln.AcceptUnix()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close() // nothing said yet
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // out of descriptors, or the peer is gone already
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		fast, err := rawfd.NewConn(conn)
		if err != nil {
			continue // it is closed
		}
		wg.Go(func() { s.attend(ctx, fast, h) })
	}
}

// attend serves one peer to its end.
func (s *Server) attend(ctx context.Context, conn *rawfd.Conn, h Handlers) {
	p := &peer{conn: conn, out: make(chan *waiting, ringSize), quit: make(chan struct{}), fresh: map[uint32]*waiting{}, turns: rate.NewLimiter(readRate, readBurst)}
	err := sameUser(conn)
	if err == nil {
		err = s.join(p)
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.send(s.patience) })
	var who Hello
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) }) // on a closed connection this fails harmlessly
		who, err = s.receive(ctx, p, h)
		stop()
		if ctx.Err() != nil {
			err = errors.New("robotd is stopping")
		}
	}
	s.leave(p)
	if err != nil {
		s.offer(p, mustFrame(&Bye{Reason: clip(err.Error())}))
	}
	close(p.quit)
	wg.Wait()
	if h.Left != nil && ctx.Err() == nil {
		h.Left(Peer{who, p.id}, err)
	}
}

// join subscribes p to all published messages, after Hello and the newest message of each type.
func (s *Server) join(p *peer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.peers) >= maxPeers {
		return fmt.Errorf("%d peers connected, want at most %d", len(s.peers), maxPeers)
	}
	p.out <- waits(mustFrame(&s.hello))
	for _, t := range s.order {
		p.out <- waits(s.latest[t])
	}
	for _, event := range s.events {
		p.out <- waits(event)
	}
	s.lastID++
	p.id = s.lastID
	s.peers[p] = struct{}{}
	s.share()
	return nil
}

// share sets each peer's share of the reading rate; mu is held.
func (s *Server) share() {
	for p := range s.peers {
		p.turns.SetLimit(readRate / rate.Limit(len(s.peers)))
		p.turns.SetBurst(readBurst / len(s.peers))
	}
}

func (s *Server) leave(p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.peers, p)
	s.share()
}

// readUntil sets the deadline of reading. The end of ctx sets one of its own, at any moment: it must not be written over.
func (p *peer) readUntil(ctx context.Context, t time.Time) error {
	if err := p.conn.SetReadDeadline(t); err != nil {
		return err
	}
	return ctx.Err()
}

// receive passes on the peer's messages until it leaves (nil) or sends an invalid one.
func (s *Server) receive(ctx context.Context, p *peer, h Handlers) (Hello, error) {
	r := bufio.NewReader(p.conn)
	if err := p.readUntil(ctx, time.Now().Add(helloTimeout)); err != nil {
		return Hello{}, err
	}
	m, err := readFrame(r)
	if err != nil {
		return Hello{}, fmt.Errorf("first message: %w", err)
	}
	hello, ok := m.(*Hello)
	if !ok {
		return Hello{}, fmt.Errorf("first message is %v, want hello", Name(m))
	}
	who := *hello
	if err := p.readUntil(ctx, time.Time{}); err != nil {
		return who, err
	}
	if h.Joined != nil {
		h.Joined(Peer{who, p.id})
	}
	for {
		if err := p.turns.Wait(ctx); err != nil {
			return who, err
		}
		m, err := readFrame(r)
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return who, nil
		}
		if err != nil {
			return who, err
		}
		p.heard.Store(int64(time.Since(s.began)))
		switch m := m.(type) {
		case *Bye:
			return who, nil
		case *Ping:
			s.offer(p, mustFrame(&Pong{Nonce: m.Nonce}))
		case *Hello, *Pong: // once is enough; that it answers is the news
		default:
			if h.Message != nil {
				h.Message(Peer{who, p.id}, m)
			}
		}
	}
}

// send writes the queued messages until the peer leaves, then the rest within a second, and closes.
func (p *peer) send(timeout time.Duration) {
	defer p.conn.Close() // nothing to lose
	for {
		var next *waiting
		select {
		case next = <-p.out:
		case <-p.quit:
			timeout = byeTimeout
			select {
			case next = <-p.out:
			default:
				return
			}
		}
		_ = p.conn.SetWriteDeadline(time.Now().Add(timeout)) // a closed one fails in Write
		write := p.conn.Write
		if next.file != nil {
			write = func(b []byte) (int, error) { return p.conn.WriteFile(b, next.file) }
		}
		if _, err := write(*next.Swap(nil)); err != nil {
			// A frame may be cut: nothing can follow. Closing ends the reader too.
			return
		}
	}
}

// Publish sends m to every peer without waiting for any, and keeps it for newcomers: the newest of its type, and of events the newest 64. It fails
// only for a message that the protocol cannot carry (AppendFrame). Peers that do not read lose their oldest messages; Peers counts them.
func (s *Server) Publish(m Message) error {
	frame, err := AppendFrame(nil, m)
	if err != nil {
		return fmt.Errorf("corelink: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := m.(*Event); ok {
		old := *e
		old.Replayed = true
		s.events = append(s.events, mustFrame(&old))
		s.events = slices.Delete(s.events, 0, max(0, len(s.events)-maxEvents))
	} else {
		name := Name(m)
		if _, ok := s.latest[name]; !ok {
			s.order = append(s.order, name)
		}
		s.latest[name] = frame
	}
	for p := range s.peers {
		s.push(p, frame)
	}
	return nil
}

// Tell sends m to the peer of that ID alone, without waiting for it; nothing happens if it has left. It fails as Publish does.
func (s *Server) Tell(id uint32, m Message) error { return s.TellFile(id, m, nil) }

// TellFile sends a message as Tell does, together with a file, which stays open.
func (s *Server) TellFile(id uint32, m Message, f *os.File) error {
	frame, err := AppendFrame(nil, m)
	if err != nil {
		return fmt.Errorf("corelink: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		if p.id == id {
			next := waits(frame)
			next.file = f
			s.queue(p, next)
		}
	}
	return nil
}

// Update sends m as Tell does, in place of an update of the same subscription that still waits: a peer that does not read finds the newest of each
// subscription, and everything else.
func (s *Server) Update(id uint32, m *Update) error {
	b, err := AppendFrame(nil, m)
	if err != nil {
		return fmt.Errorf("corelink: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		if p.id != id {
			continue
		}
		if f := p.fresh[m.Request]; f != nil {
			if older := f.Load(); older != nil && f.CompareAndSwap(older, &b) {
				return nil
			}
		}
		if len(p.fresh) >= maxFresh { // some may be of subscriptions that have ended
			maps.DeleteFunc(p.fresh, func(_ uint32, f *waiting) bool { return f.Load() == nil })
		}
		f := waits(b)
		p.fresh[m.Request] = f
		s.queue(p, f)
	}
	return nil
}

// Unanswered asks the peer of that ID whether it still listens, unless it has not answered yet since it was last asked: then it returns for how
// long. Any message is an answer. A peer that has left is not missed.
func (s *Server) Unanswered(id uint32) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := int64(time.Since(s.began))
	for p := range s.peers {
		switch {
		case p.id != id:
		case p.heard.Load() < p.asked:
			return time.Duration(now - p.asked)
		default:
			p.asked = now
			s.push(p, mustFrame(&Ping{}))
		}
	}
	return 0
}

// SetBody changes the body in Hello, and sends Hello to all peers again: a body was opened.
func (s *Server) SetBody(b BodyInfo) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hello
	h.Body = b
	frame, err := AppendFrame(nil, &h)
	if err != nil {
		return fmt.Errorf("corelink: %w", err)
	}
	s.hello = h
	for p := range s.peers {
		s.push(p, frame)
	}
	return nil
}

// Peers returns how many peers are connected, and how many messages were dropped since Listen because peers did not read.
func (s *Server) Peers() (connected int, drops uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.peers), s.drops
}

func (s *Server) offer(p *peer, frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push(p, frame)
}

func (s *Server) push(p *peer, b []byte) { s.queue(p, waits(b)) }

// queue adds f to p's ring; mu is held, so no other goroutine adds.
func (s *Server) queue(p *peer, f *waiting) {
	for {
		select {
		case p.out <- f:
			return
		default:
		}
		select {
		case old := <-p.out:
			old.Store(nil)
			s.drops++
		default: // the peer just read one
		}
	}
}

// Close removes the socket and releases the root. End Serve first.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	err := errors.Join(s.ln.Close(), s.root.Remove(SocketPath))
	return errors.Join(err, s.lock.Close(), s.root.Close())
}

// mustFrame encodes a message of our own that was checked, or is always in bounds.
func mustFrame(m Message) []byte {
	b, err := AppendFrame(nil, m)
	if err != nil {
		panic(err)
	}
	return b
}
