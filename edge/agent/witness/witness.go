// Package witness lets agentd ask where a simulated robot really is. Its simulator answers on a socket below the robot's root; a real robot has
// no such socket, and its agent says nothing of a world.
//
//	simulator: Serve ─ run/sim-world/socket ─ Client: agentd, while somebody looks at the robot
//
// A call is one question: the revision of the map that the asker has, and a line break. Its answer is a live.World as JSON, with the map if it is
// another one, and the end of the connection.
package witness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"kennel/cloud/api/live"
	"kennel/infra/logging"
	"kennel/infra/sockpath"
)

// SocketPath is where the simulator listens, below the robot's root. Its folder is for its user and root alone.
const SocketPath = "run/sim-world/socket"

// Our own limits.
const (
	pace      = 100 * time.Millisecond // between two answers, whoever asks
	patience  = 2 * time.Second        // for one call; its other end is on the same machine
	maxAsk    = 64                     // bytes
	maxAnswer = live.MaxFrame          // bytes
)

// See says where the robot is, with the map unless rev names it.
type See func(rev string) live.World

// Serve answers who asks, until ctx ends: one after the other, and no more often than ten times a second, so that whoever asks too much waits. It
// does nothing between questions.
func Serve(ctx context.Context, root *os.Root, see See, log *slog.Logger) error {
	ln, err := sockpath.ListenPrivate(root, SocketPath)
	if err != nil {
		return fmt.Errorf("witness: %s: %w", SocketPath, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() }) // ends Accept; it may be closed already
	defer stop()
	defer func() { _ = ln.Close() }() // as above
	for {
		conn, err := ln.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("witness: %s: %w", SocketPath, err)
		}
		if err := answer(conn, see); err != nil {
			log.DebugContext(ctx, "where the robot is was not told", logging.Err, err) // who asked asks again
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pace):
		}
	}
}

func answer(conn *net.UnixConn, see See) error {
	defer conn.Close() // what was not written is an error of Write
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	rev, err := bufio.NewReader(io.LimitReader(conn, maxAsk)).ReadString('\n')
	if err != nil {
		return fmt.Errorf("question %.40q: %w", rev, err)
	}
	b, err := json.Marshal(see(strings.TrimSuffix(rev, "\n")))
	if err == nil {
		_, err = conn.Write(b)
	}
	return err
}

// Client asks. Safe for concurrent use.
type Client struct {
	root *os.Root

	mu  sync.Mutex
	m   *live.Map // newest
	rev string
}

// NewClient returns a client for the robot below root, which must stay open.
func NewClient(root *os.Root) *Client { return &Client{root: root} }

// Ask returns where the robot is, always with the map; nil without an error on a robot that is not simulated, or is nowhere. What the simulator
// says is checked as the cloud checks it. The caller must not change it.
func (c *Client) Ask(ctx context.Context) (*live.World, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var conn net.Conn
	err := sockpath.Below(c.root, SocketPath, func(path string) (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", path)
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED): // the latter: a simulator that was killed
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("ask where the robot is: %w", err)
	}
	defer conn.Close() // all is read
	c.mu.Lock()
	defer c.mu.Unlock()
	w, err := c.call(ctx, conn)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) { // a simulator that ends just now
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask where the robot is: %w", err)
	}
	return w, nil
}

func (c *Client) call(ctx context.Context, conn net.Conn) (*live.World, error) {
	until, _ := ctx.Deadline()
	if err := conn.SetDeadline(until); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, c.rev+"\n"); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(conn, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxAnswer {
		return nil, fmt.Errorf("an answer of more than %d bytes", maxAnswer)
	}
	var w live.World
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, err
	}
	if err := w.Check(); err != nil {
		return nil, err
	}
	switch {
	case w.Map != nil:
		c.m, c.rev = w.Map, w.Rev
	case w.Rev != c.rev:
		return nil, fmt.Errorf("map %.16q is not in the answer, and %.16q is known", w.Rev, c.rev)
	default:
		w.Map = c.m
	}
	return &w, nil
}
