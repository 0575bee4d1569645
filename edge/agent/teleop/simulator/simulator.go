// Package simulator lets others speak to the simulator of a robot's body: ask where the robot really is, and touch or move it by hand. The simulator
// answers on a socket below the robot's root; a real robot has no such socket.
//
//	simulator: Serve ─ run/simulator/socket ─ Client: agentd for the cloud, robotsim poke for a person at a desk
//
// A call is one line, its answer is JSON and the end of the connection:
//
//	see REV     where the robot is: a live.World, with the map unless it is the one that the asker has; null if the body is nowhere
//	poke JSON   {}, or {"refused": "why"}
//	sound       how far it is with what it plays to the microphones: a Sound; null if the body has none
package simulator

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

	"kennel/infra/api/live"
	"kennel/infra/api/poke"
	"kennel/infra/backoff"
	"kennel/infra/logging"
	"kennel/infra/sockpath"
)

// SocketPath is where the simulator listens, below the robot's root. Its folder is for its user and root alone.
const SocketPath = "run/simulator/socket"

// SoundDir holds the sounds that can be played to the robot, below its root.
const SoundDir = "run/simulator/sounds"

// Our own limits.
const (
	pace      = 100 * time.Millisecond // between two answers
	patience  = 2 * time.Second        // for one call on the same machine
	maxAsk    = 1 << 10                // bytes
	maxAnswer = live.MaxFrame          // bytes
)

// Body is a simulated body and its surroundings.
type Body interface {
	// See returns where the robot is, with the map unless rev names it; nil if it is nowhere.
	See(rev string) *live.World
	// Poke pokes the body as a person beside it would; p is complete. It returns an error if that is not possible now.
	Poke(p poke.Poke) error
}

// Sound says when the newest sound was played to the microphones, in nanoseconds of the simulator's CLOCK_MONOTONIC.
type Sound struct {
	Playing bool  `json:"playing"`
	Began   int64 `json:"began"` // 0: not yet
	Ended   int64 `json:"ended"` // 0: not yet
}

// Hearing is a Body with microphones.
type Hearing interface {
	// Sound returns how far the newest sound is; nil if the body has no microphones.
	Sound() *Sound
}

// Serve answers calls until ctx ends, one after the other and at most ten a second. It does nothing between calls.
func Serve(ctx context.Context, root *os.Root, body Body, log *slog.Logger) error {
	ln, err := sockpath.ListenPrivate(root, SocketPath)
	if err != nil {
		return fmt.Errorf("simulator: %s: %w", SocketPath, err)
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
			return fmt.Errorf("simulator: %s: %w", SocketPath, err)
		}
		if err := answer(conn, body); err != nil {
			log.DebugContext(ctx, "simulator call not answered", logging.Err, err) // the caller asks again
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pace):
		}
	}
}

// done is the answer to a poke.
type done struct {
	Refused string `json:"refused,omitempty"`
}

func answer(conn *net.UnixConn, body Body) error {
	defer conn.Close() // a failed write is an error of Write
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	line, err := bufio.NewReader(io.LimitReader(conn, maxAsk)).ReadString('\n')
	if err != nil {
		return fmt.Errorf("request %.40q: %w", line, err)
	}
	var said any
	switch verb, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); verb {
	case "see":
		said = body.See(rest)
	case "poke":
		p, err := poke.Parse([]byte(rest))
		if err == nil {
			err = body.Poke(p)
		}
		d := done{}
		if err != nil {
			d.Refused = err.Error()
		}
		said = d
	case "sound":
		var heard *Sound
		if h, ok := body.(Hearing); ok {
			heard = h.Sound()
		}
		said = heard
	default:
		return fmt.Errorf("request %.40q: want see, poke or sound", line)
	}
	b, err := json.Marshal(said)
	if err == nil {
		_, err = conn.Write(b)
	}
	return err
}

// ErrNone is the error of a poke where no simulator listens.
var ErrNone = errors.New("not a simulated robot")

// Client asks. Safe for concurrent use.
type Client struct {
	root *os.Root

	mu  sync.Mutex
	m   *live.Map // newest
	rev string
}

// Present reports whether the robot below root is simulated.
func (c *Client) Present() bool {
	_, err := c.root.Lstat(SocketPath)
	return err == nil
}

// NewClient returns a client for the robot below root, which must stay open.
func NewClient(root *os.Root) *Client { return &Client{root: root} }

// Poke does p to the robot's body. It returns ErrNone on a robot that is not simulated, and the body's own error if it refuses.
func (c *Client) Poke(ctx context.Context, p poke.Poke) error {
	b, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("poke the robot: %w", err)
	}
	var d done
	switch err := c.call(ctx, "poke "+string(b), &d); {
	case errors.Is(err, ErrNone):
		return err
	case err != nil:
		return fmt.Errorf("poke the robot: %w", err)
	case d.Refused != "":
		return errors.New(d.Refused)
	}
	return nil
}

// Play puts a WAV file among the sounds of the simulator under p.File, plays it to the robot's microphones as p says, and waits for
// its end. It returns nil if the body does not tell when that is.
func (c *Client) Play(ctx context.Context, p poke.Poke, wav []byte) (*Sound, error) {
	err := c.root.MkdirAll(SoundDir, 0o700)
	if err == nil {
		err = c.root.WriteFile(SoundDir+"/"+p.File, wav, 0o600)
	}
	if err == nil {
		err = c.Poke(ctx, p)
	}
	for err == nil {
		var s *Sound
		if err = c.call(ctx, "sound", &s); err != nil || s == nil || !s.Playing {
			return s, err
		}
		err = backoff.Sleep(ctx, pace)
	}
	return nil, err
}

// Ask returns where the robot is, always with the map; nil without an error on a robot that is not simulated, or is nowhere. The
// simulator's answer is checked as the cloud checks it. The caller must not change it.
func (c *Client) Ask(ctx context.Context) (*live.World, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var w *live.World
	err := c.call(ctx, "see "+c.rev, &w)
	if err == nil && w != nil {
		err = c.complete(w)
	}
	switch {
	case errors.Is(err, ErrNone):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("ask for the robot's position: %w", err)
	}
	return w, nil
}

// complete checks w and sees that it has its map.
func (c *Client) complete(w *live.World) error {
	if err := w.Check(); err != nil {
		return err
	}
	switch {
	case w.Map != nil:
		c.m, c.rev = w.Map, w.Rev
	case w.Rev != c.rev:
		return fmt.Errorf("map %.16q is not in the answer; the known one is %.16q", w.Rev, c.rev)
	default:
		w.Map = c.m
	}
	return nil
}

// call sends a question and reads its answer. It returns ErrNone if no simulator listens, or it ends just now.
func (c *Client) call(ctx context.Context, question string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	b, err := c.exchange(ctx, question)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return ErrNone
	}
	if err == nil {
		err = json.Unmarshal(b, answer)
	}
	return err
}

func (c *Client) exchange(ctx context.Context, question string) ([]byte, error) {
	var conn net.Conn
	err := sockpath.Below(c.root, SocketPath, func(path string) (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", path)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer conn.Close() // all is read
	until, _ := ctx.Deadline()
	if err := conn.SetDeadline(until); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, question+"\n"); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(conn, maxAnswer+1))
	if len(b) > maxAnswer {
		return nil, fmt.Errorf("answer of more than %d bytes", maxAnswer)
	}
	return b, err
}
