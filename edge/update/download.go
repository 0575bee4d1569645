package update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"kennel/infra/backoff"
	"kennel/ota"
)

// download reads an archive from an HTTP server, and continues where it was when the connection breaks. It serves one goroutine.
type download struct {
	ctx      context.Context
	client   *http.Client
	address  func(context.Context) (string, error) // asked again for each connection: a signed address ends
	quiet    time.Duration                         // without data until the connection is given up
	patience time.Duration                         // without data until the update is given up
	stalled  func(at int64)
	rate     int64 // bytes a second at most; 0: any
	pause    backoff.Pause

	at      int64  // bytes given out
	size    int64  // of the archive; -1: not said
	tag     string // of the server for this content; "": it gave none
	since   time.Time
	reached bool   // once
	name    string // the address without what signs it
	body    io.ReadCloser
	end     func()      // of the connection
	timer   *time.Timer // ends the connection
}

// errQuiet ends a connection on which nothing came.
var errQuiet = errors.New("no data received")

// open connects, and reads from offset at on; tag belongs to the download that is continued; "": it is a new one.
func (d *download) open(at int64, tag string) error {
	d.at, d.tag, d.size, d.since = at, tag, -1, time.Now()
	return d.ready()
}

// ready returns when there is a connection.
func (d *download) ready() error {
	for d.body == nil {
		if err := d.connect(); err != nil {
			if err := d.again(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// Read implements io.Reader. Each error but io.EOF carries a code.
func (d *download) Read(p []byte) (int, error) {
	for {
		if err := d.ready(); err != nil {
			return 0, err
		}
		if d.rate > 0 {
			p = p[:min(int64(len(p)), max(d.rate/4, 1))] // four pieces a second
		}
		n, err := d.body.Read(p)
		switch {
		case n > 0:
			d.at, d.since = d.at+int64(n), time.Now()
			d.timer.Reset(d.quiet)
			d.pause.Reset()
			if d.rate > 0 && backoff.Sleep(d.ctx, time.Duration(n)*time.Second/time.Duration(d.rate)) != nil {
				return n, ota.Fail(ota.Other, "stopped: %w", context.Cause(d.ctx))
			}
			return n, nil // an error comes again
		case d.at == d.size, err == io.EOF && d.size < 0:
			return 0, io.EOF
		case err != nil:
			d.close()
			if err := d.again(err); err != nil {
				return 0, err
			}
		}
	}
}

// again waits before the next connection, or says that there is none any more.
func (d *download) again(err error) error {
	if f, ok := errors.AsType[*ota.Failure](err); ok {
		return f
	}
	if d.ctx.Err() != nil {
		return ota.Fail(ota.Other, "stopped: %w", context.Cause(d.ctx))
	}
	switch quiet := time.Since(d.since); {
	case quiet > d.patience && !d.reached:
		return ota.Fail(ota.BadURL, "server not reached for %s: %w", quiet.Round(time.Second), err)
	case quiet > d.patience:
		return ota.Fail(ota.TimedOut, "no data for %s at byte %d: %w", quiet.Round(time.Second), d.at, err)
	}
	d.stalled(d.at)
	if backoff.Sleep(d.ctx, d.pause.Next(nil)) != nil {
		return ota.Fail(ota.Other, "stopped: %w", context.Cause(d.ctx))
	}
	return nil
}

// connect asks for what is left. Of its errors those without a code may pass.
func (d *download) connect() error {
	address, err := d.address(d.ctx)
	if err != nil {
		return err
	}
	d.name = withoutQuery(address)
	ctx, cancel := context.WithCancelCause(d.ctx)
	timer := time.AfterFunc(d.quiet, func() { cancel(errQuiet) })
	fail := func(err error) error {
		timer.Stop()
		cancel(nil)
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fail(ota.Fail(ota.BadURL, "address %.200q: %w", d.name, err))
	}
	req.Header.Set("Accept-Encoding", "identity")
	if d.at > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.at))
		if d.tag != "" {
			req.Header.Set("If-Range", d.tag)
		}
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return fail(err)
	}
	if err := d.check(resp); err != nil {
		_ = resp.Body.Close() // err says more
		return fail(err)
	}
	d.reached, d.body, d.timer, d.end = true, resp.Body, timer, func() { _ = fail(nil) }
	return nil
}

// check reads the head of an answer.
func (d *download) check(resp *http.Response) error {
	tag := resp.Header.Get("ETag")
	if strings.HasPrefix(tag, "W/") { // says nothing about bytes
		tag = ""
	}
	changed := d.tag != "" && tag != "" && tag != d.tag
	switch code := resp.StatusCode; {
	case changed, d.at > 0 && code == http.StatusRequestedRangeNotSatisfiable:
		return ota.Fail(ota.BadArchive, "the archive changed while it was downloaded, at byte %d", d.at)
	case code == http.StatusOK:
		if d.size >= 0 && resp.ContentLength >= 0 && resp.ContentLength != d.size {
			return ota.Fail(ota.BadArchive, "the archive changed while it was downloaded: it had %d bytes and has %d", d.size, resp.ContentLength)
		}
		d.size, d.tag = resp.ContentLength, tag
		if _, err := io.CopyN(io.Discard, resp.Body, d.at); err != nil { // a server that knows no ranges
			return fmt.Errorf("the first %d bytes again: %w", d.at, err)
		}
		return nil
	case d.at > 0 && code == http.StatusPartialContent:
		var from, to, size int64
		if _, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &size); err != nil || from != d.at {
			return ota.Fail(ota.BadArchive, "the server sent the range %.64q, want the one from byte %d", resp.Header.Get("Content-Range"), d.at)
		}
		if d.size >= 0 && size != d.size {
			return ota.Fail(ota.BadArchive, "the archive changed while it was downloaded: it had %d bytes and has %d", d.size, size)
		}
		d.size, d.tag = size, tag
		return nil
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return fmt.Errorf("the server answered %s", resp.Status)
	default:
		return ota.Fail(ota.BadURL, "the server answered %s", resp.Status)
	}
}

// close ends the connection; the next Read opens another.
func (d *download) close() {
	if d.body != nil {
		d.end()
		_ = d.body.Close() // read only
		d.body = nil
	}
}
