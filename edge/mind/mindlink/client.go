package mindlink

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"

	"kennel/infra/api/motionwire"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/sockpath"
)

// Client asks the mindd of one robot. It is safe for concurrent use and keeps no connection between two calls.
type Client struct{ http http.Client }

// NewClient returns a client of the mindd of the robot in the folder dir.
func NewClient(dir string) *Client {
	path := filepath.Join(dir, SocketPath)
	dial := func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		return conn, sockpath.To(path, func(p string) error {
			conn, err = new(net.Dialer).DialContext(ctx, "unix", p)
			return err
		})
	}
	return &Client{http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: dial}}}
}

// List returns what the robot can play.
func (c *Client) List(ctx context.Context) (l List, err error) {
	return l, c.ask(ctx, "/list", struct{}{}, &l)
}

// Show shows a picture.
func (c *Client) Show(ctx context.Context, i Image) error {
	return c.ask(ctx, "/show", i, &struct{}{})
}

// Page shows a page, or takes it away.
func (c *Client) Page(ctx context.Context, p Page) error { return c.ask(ctx, "/page", p, &struct{}{}) }

// Eyes gives the eyes a colour.
func (c *Client) Eyes(ctx context.Context, e Eyes) error { return c.ask(ctx, "/eyes", e, &struct{}{}) }

// Body returns how the robot's body is made, and the motions of its own library.
func (c *Client) Body(ctx context.Context) (b motionwire.Body, err error) {
	return b, c.ask(ctx, "/body", struct{}{}, &b)
}

// Judge checks a motion for the robot's body.
func (c *Client) Judge(ctx context.Context, d Draft) (v motionwire.Verdict, err error) {
	return v, c.ask(ctx, "/judge", d, &v)
}

// Play plays an animation and blocks until it has ended. tell hears its beginning and its progress; an error of tell, and the end of ctx, end it. An error
// that has a code is a refusal.
func (c *Client) Play(ctx context.Context, r Request, tell func(Progress) error) (Ended, error) {
	return c.follow(ctx, "/play", r, tell)
}

// Say says a text, as Play plays.
func (c *Client) Say(ctx context.Context, s Say, tell func(Progress) error) (Ended, error) {
	return c.follow(ctx, "/say", s, tell)
}

// Sound plays a sound, as Play plays an animation.
func (c *Client) Sound(ctx context.Context, s Sound, tell func(Progress) error) (Ended, error) {
	return c.follow(ctx, "/sound", s, tell)
}

// Stream plays samples of 16 bits, the low byte first, that next returns in chunks of at most MaxChunk bytes until it returns io.EOF; another error ends the sound at once.
// It returns when they were heard, as Play. next is not called any longer when ctx ends.
func (c *Client) Stream(ctx context.Context, s Stream, next func() ([]byte, error), tell func(Progress) error) (Ended, error) {
	head, err := json.Marshal(s)
	if err != nil {
		return Ended{}, err
	}
	r, w := io.Pipe()
	defer r.Close() // ends the writer
	go func() {
		_, err := w.Write(append(head, '\n'))
		for err == nil {
			var chunk []byte
			if chunk, err = next(); errors.Is(err, io.EOF) {
				_, err = w.Write([]byte{0, 0})
				_ = w.CloseWithError(err) // nil is the end
				return
			}
			if err == nil && len(chunk) > MaxChunk {
				err = errs.New(errs.Invalid, "chunk: expected at most %d bytes, found %d", MaxChunk, len(chunk))
			}
			if err == nil && len(chunk) > 0 {
				_, err = w.Write(append(binary.LittleEndian.AppendUint16(nil, uint16(len(chunk))), chunk...))
			}
		}
		_ = w.CloseWithError(err) // the request fails, and what plays with it
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := c.send(ctx, "/stream", r)
	if err != nil {
		return Ended{}, err
	}
	return follow(ctx, body, tell)
}

// Hush silences the robot.
func (c *Client) Hush(ctx context.Context, program string) error {
	return c.ask(ctx, "/hush", Hush{program}, &struct{}{})
}

// Feel tells the robot's mood of what happened.
func (c *Client) Feel(ctx context.Context, f Feel) error {
	return c.ask(ctx, "/feel", f, &struct{}{})
}

// Feelings calls give with what the robot feels, at first and after each change, until give fails, ctx ends or mindd does. The error says which.
func (c *Client) Feelings(ctx context.Context, give func(Feeling) error) error {
	body, err := c.post(ctx, "/mood", struct{}{})
	if err != nil {
		return err
	}
	defer body.Close() // nothing buffered
	lines := json.NewDecoder(body)
	for {
		var f Feeling
		if err := lines.Decode(&f); err != nil {
			return lost(ctx, err)
		}
		if err := give(f); err != nil {
			return err
		}
	}
}

// Listen calls give with what the robot plays, until give fails, ctx ends or mindd does. The error says which. The first piece has no samples: it says that the
// robot is heard from now on.
func (c *Client) Listen(ctx context.Context, give func(Piece) error) error {
	body, err := c.post(ctx, "/listen", struct{}{})
	if err != nil {
		return err
	}
	defer body.Close() // nothing buffered
	var b []byte
	for {
		var p Piece
		if p, b, err = readPiece(body, b); err != nil {
			return lost(ctx, err)
		}
		if err := give(p); err != nil {
			return err
		}
	}
}

// follow posts a request and reads the lines of its progress.
func (c *Client) follow(ctx context.Context, path string, r any, tell func(Progress) error) (Ended, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // leaving ends what plays
	body, err := c.post(ctx, path, r)
	if err != nil {
		return Ended{}, err
	}
	return follow(ctx, body, tell)
}

// follow reads the lines of a progress.
func follow(ctx context.Context, body io.ReadCloser, tell func(Progress) error) (Ended, error) {
	defer body.Close() // nothing buffered
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxBody)
	for lines.Scan() {
		var p Progress
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return Ended{}, errs.New(errs.Corrupt, "answer of mindd: %w", err)
		}
		if p.Ended != nil {
			return *p.Ended, nil
		}
		if err := tell(p); err != nil {
			return Ended{}, err
		}
	}
	return Ended{}, lost(ctx, lines.Err())
}

// Watch calls give with frames of the display, at most rate a second, until give fails, ctx ends or mindd does. The error says which.
func (c *Client) Watch(ctx context.Context, rate float64, give func(Frame) error) error {
	body, err := c.post(ctx, "/screen", Watch{rate})
	if err != nil {
		return err
	}
	defer body.Close() // nothing buffered
	b := make([]byte, frameHead+ImageSize)
	for {
		if _, err := io.ReadFull(body, b); err != nil {
			return lost(ctx, err)
		}
		if err := give(parseFrame(b)); err != nil {
			return err
		}
	}
}

// Frame returns what the display shows now. An error with code "unable": the body has none.
func (c *Client) Frame(ctx context.Context) (f Frame, err error) {
	err = c.Watch(ctx, MaxRate, func(seen Frame) error {
		f = seen
		return errSeen
	})
	if errors.Is(err, errSeen) {
		err = nil
	}
	return f, err
}

var errSeen = errors.New("seen")

// lost says why an answer ended too early.
func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return errs.Coded(errs.Unavailable, "mind_lost", "connection to the robot's character (mindd) lost: %w", err)
}

// ask posts a request and reads the one answer.
func (c *Client) ask(ctx context.Context, path string, req, resp any) error {
	body, err := c.post(ctx, path, req)
	if err != nil {
		return err
	}
	defer body.Close() // nothing buffered
	if err := json.NewDecoder(io.LimitReader(body, 4*maxBody)).Decode(resp); err != nil {
		return lost(ctx, err)
	}
	return nil
}

// post returns the body of an answer that is good.
func (c *Client) post(ctx context.Context, path string, body any) (io.ReadCloser, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return c.send(ctx, path, bytes.NewReader(b))
}

// send is post with a body as it is.
func (c *Client) send(ctx context.Context, path string, body io.Reader) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://mindd"+path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errs.Coded(errs.Unavailable, "mind_lost", "the robot's character (mindd) does not run: %w", errors.Unwrap(err))
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close() // read to its end below
	var p kithttp.Problem
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil || p.Kind == "" {
		return nil, fmt.Errorf("mindd answered %s", resp.Status)
	}
	return nil, &errs.Error{Kind: errs.ParseKind(p.Kind), Code: p.Code, Msg: p.Error}
}
