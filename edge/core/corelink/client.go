package corelink

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kennel/edge/body/rawfd"
	"kennel/infra/sockpath"
)

// ErrNotConnected: robotd is not there at the moment; Run is trying.
var ErrNotConnected = errors.New("corelink: robotd is not connected")

// Limits of the client; our own defaults.
const (
	silenceTimeout = 5 * time.Second // robotd speaks five times a second; one that is silent hangs
	sendTimeout    = time.Second
	minBackoff     = 50 * time.Millisecond
	maxBackoff     = 2 * time.Second
)

// Option changes a Client.
type Option func(*Client)

// WithHello sets what the client says about itself; by default its program's name and pid.
func WithHello(h Hello) Option { return func(c *Client) { c.me = h } }

// Client is a peer's end: it finds robotd below a root, and again whenever one of them was restarted. Send and Hello are safe for concurrent
// use; Run is called once.
type Client struct {
	root string
	me   Hello

	mu    sync.Mutex
	conn  *rawfd.Conn
	r     *bufio.Reader // of conn by files; Run's
	files *files
	hello *Hello // robotd's, while connected
}

// files reads a connection and keeps the newest file that came with its bytes.
type files struct {
	conn *rawfd.Conn
	got  *os.File // nil: none
}

func (x *files) Read(b []byte) (int, error) {
	n, f, err := x.conn.ReadFile(b)
	if f != nil {
		_ = x.take().Close() // no Board came with it
		x.got = f
	}
	return n, err
}

// take returns the file and forgets it.
func (x *files) take() *os.File {
	f := x.got
	x.got = nil
	return f
}

// NewClient makes a client that is not connected yet; Run connects it.
func NewClient(root string, opts ...Option) *Client {
	c := &Client{root: root, me: Hello{Program: strings.ToValidUTF8(filepath.Base(os.Args[0]), "?"), PID: uint32(os.Getpid())}}
	for _, o := range opts {
		o(c)
	}
	return c
}

// Run calls handle with every message of robotd, Hello first and Bye last on each connection, until ctx ends; then it returns nil. A lost
// connection is made again, with back-off; its Bye says why it was lost. handle is called by one goroutine; while it works, robotd keeps a bounded
// number of messages for it.
func (c *Client) Run(ctx context.Context, handle func(Message)) error {
	defer c.drop()
	pause := minBackoff
	for ctx.Err() == nil {
		err := c.connect(ctx)
		if err == nil {
			pause = minBackoff
			err = c.receive(ctx, handle)
			c.drop()
			handle(&Bye{Reason: clip(err.Error())})
		}
		if ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, maxBackoff)
	}
	return nil
}

// Send sends m now: ErrNotConnected, or an error that says why it could not.
func (c *Client) Send(m Message) error {
	frame, err := AppendFrame(nil, m)
	if err != nil {
		return fmt.Errorf("corelink: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return ErrNotConnected
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(sendTimeout)) // a closed one fails in Write
	if _, err := c.conn.Write(frame); err != nil {
		_ = c.conn.Close() // a frame may be cut; Run notices and connects again
		return fmt.Errorf("corelink: send %v: %w", Name(m), err)
	}
	return nil
}

// Hello returns robotd's Hello about itself and its body; false while it is not connected.
func (c *Client) Hello() (Hello, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hello == nil {
		return Hello{}, false
	}
	return *c.hello, true
}

// connect does nothing if there is a connection. Otherwise it makes one and exchanges Hello.
func (c *Client) connect(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		return nil
	}
	root, err := os.OpenRoot(c.root)
	if err != nil {
		return fmt.Errorf("corelink: root: %w", err)
	}
	defer root.Close() // nothing buffered
	var conn *rawfd.Conn
	err = sockpath.Below(root, SocketPath, func(path string) error {
		any, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err == nil {
			conn, err = rawfd.NewConn(any.(*net.UnixConn))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("corelink: no robotd at %s below %s: %w", SocketPath, c.root, err)
	}
	from := &files{conn: conn}
	r := bufio.NewReader(from)
	hello, err := c.greet(ctx, conn, r)
	if err != nil {
		_ = conn.Close() // nothing said that matters
		return fmt.Errorf("corelink: greet robotd: %w", err)
	}
	c.conn, c.r, c.files, c.hello = conn, r, from, hello
	return nil
}

func (c *Client) greet(ctx context.Context, conn *rawfd.Conn, r *bufio.Reader) (*Hello, error) {
	frame, err := AppendFrame(nil, &c.me)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // blocked calls then end with an error
	if err := conn.SetDeadline(time.Now().Add(helloTimeout)); err != nil {
		return nil, err
	}
	_, werr := conn.Write(frame)
	m, err := readFrame(r) // also if that failed: a peer that refuses us sent the reason before it closed
	if err != nil {
		return nil, err
	}
	switch m := m.(type) {
	case *Hello:
		if werr != nil {
			return nil, werr
		}
		return m, conn.SetDeadline(time.Time{})
	case *Bye:
		return nil, fmt.Errorf("refused: %s", m.Reason)
	}
	return nil, fmt.Errorf("%w: first message is %v, want hello", ErrMalformed, Name(m))
}

// receive hands on messages until the connection ends; it never returns nil.
func (c *Client) receive(ctx context.Context, handle func(Message)) error {
	c.mu.Lock()
	conn, r, from, hello := c.conn, c.r, c.files, *c.hello
	c.mu.Unlock()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // its reader ends with an error
	handle(&hello)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(silenceTimeout)) // a closed one fails in Read
		m, err := readFrame(r)
		if err != nil {
			return fmt.Errorf("corelink: %w", err)
		}
		switch m := m.(type) {
		case *Bye:
			return fmt.Errorf("corelink: connection closed by robotd: %s", m.Reason)
		case *Ping:
			_ = c.Send(&Pong{Nonce: m.Nonce}) // a connection that cannot be written to ends, and is read no further
		case *Hello:
			c.mu.Lock()
			c.hello = m
			c.mu.Unlock()
			h := *m
			handle(&h)
		case *Board:
			m.File = from.take()
			handle(m)
		default:
			handle(m)
		}
	}
}

func (c *Client) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close() // all messages have been sent
		_ = c.files.take().Close()
	}
	c.conn, c.r, c.files, c.hello = nil, nil, nil, nil
}

// clip makes s fit for a Bye.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > 512 {
		s = strings.ToValidUTF8(s[:512], "") + "…"
	}
	return s
}
