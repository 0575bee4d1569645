package sight

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"kennel/infra/sockpath"
)

// Conn is a listener's end. Next is for one goroutine; Ask may be called beside it.
type Conn struct {
	conn *net.UnixConn
	stop func() bool
	head [headSize]byte
	rest [maxReason]byte
}

// Dial connects to the socket at path, such as ROOT/run/camera/socket. The connection ends with ctx. There are no frames before Ask.
func Dial(ctx context.Context, path string) (*Conn, error) {
	var c net.Conn
	err := sockpath.To(path, func(p string) (err error) {
		c, err = new(net.Dialer).DialContext(ctx, "unix", p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("camera: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // it may be closed already
	return &Conn{conn: c.(*net.UnixConn), stop: stop}, nil
}

// Ask says what pictures are wanted from now on.
func (c *Conn) Ask(w Wish) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(patience)) // a closed one fails in Write
	_, err := c.conn.Write(w.append(make([]byte, 0, wishSize)))
	return err
}

// Next blocks until the next frame, and fills f in its own memory. *Off says why there is none; the connection lasts. Any other error ends it: io.EOF is a
// server that ended, or has as many listeners as it takes.
func (c *Conn) Next(f *Frame) error {
	if err := read(c.conn, c.head[:]); err != nil {
		return fmt.Errorf("camera: %w", err)
	}
	n, off, err := f.parseHead(c.head[:])
	if err != nil {
		return err
	}
	var to []byte
	if off {
		to = c.rest[:n]
	} else {
		f.Shape(f.Width, f.Height)
		to = f.Pix
	}
	if err := read(c.conn, to); err != nil {
		return fmt.Errorf("camera: picture cut: %w", err)
	}
	if off {
		return &Off{string(to)}
	}
	return nil
}

// Close ends the connection.
func (c *Conn) Close() error {
	c.stop()
	return c.conn.Close()
}

func read(c *net.UnixConn, b []byte) error {
	_, err := io.ReadFull(c, b)
	return err
}
