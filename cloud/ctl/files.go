package ctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"kennel/infra/cli"
	"kennel/infra/errs"
)

// download saves what path answers in a new file, or writes it to standard output if to is "-". It returns the trailer of the answer.
func (a *app) download(cmd *cobra.Command, path, to string) (http.Header, error) {
	c, err := a.connect(cmd.Context())
	if err != nil {
		return nil, err
	}
	resp, err := c.send(cmd.Context(), http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if to == "-" {
		if _, err := io.Copy(cmd.OutOrStdout(), resp.Body); err != nil {
			return nil, errs.New(errs.Unavailable, "the file is not complete: %w", err)
		}
		return resp.Trailer, nil
	}
	n, err := saveNew(to, resp.Body, resp.ContentLength)
	if err != nil {
		return nil, err
	}
	return resp.Trailer, cli.Print(cmd, struct {
		File  string `json:"file"`
		Bytes int64  `json:"bytes"`
	}{to, n}, func(t *cli.Table) { t.Text(fmt.Sprintf("%s: %d bytes", to, n)) })
}

// saveNew writes a new file for this user alone, whole or not at all; want is its size, -1 if unknown.
func saveNew(name string, r io.Reader, want int64) (n int64, err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return 0, cli.Usage("%s exists; give another name with -to", name)
	}
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(f, r)
	if err == nil && want >= 0 && n != want {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		err = errs.New(errs.Unavailable, "the download broke off after %d of %d bytes; nothing is kept: %w", n, want, err)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(name) // the first error is the one to tell
	}
	return n, err
}

// storeTime is how long the cloud may take to answer once it has a whole archive.
const storeTime = 5 * time.Minute

// upload sends a file, and says on a terminal how far it is.
func upload[T any](a *app, cmd *cobra.Command, method, path, media, name string) (r reply[T], err error) {
	f, err := os.Open(name)
	if err != nil {
		return r, errs.New(errs.Invalid, "%w", err)
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return r, err
	}
	c, err := a.connect(cmd.Context())
	if err != nil {
		return r, err
	}
	if c, err = newConn(c.s, storeTime); err != nil {
		return r, err
	}
	body := &uploading{Reader: f, size: info.Size(), name: filepath.Base(name), out: io.Discard}
	if out, ok := cmd.ErrOrStderr().(*os.File); ok && term.IsTerminal(int(out.Fd())) {
		body.out = out
	}
	defer body.end()
	resp, err := c.send(cmd.Context(), method, path, body, http.Header{"Accept": {"application/json"}, "Content-Type": {media}})
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	if r.Raw, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20)); err != nil {
		return r, unreachable(c.s.Server, err)
	}
	return r, json.Unmarshal(r.Raw, &r.Value)
}

// uploading is a body that says how much of it was sent.
type uploading struct {
	io.Reader
	size, sent int64
	name       string
	out        io.Writer
	said       time.Time
}

// Read implements io.Reader.
func (u *uploading) Read(b []byte) (int, error) {
	n, err := u.Reader.Read(b)
	u.sent += int64(n)
	if time.Since(u.said) > 200*time.Millisecond || u.sent == u.size {
		u.said = time.Now()
		fmt.Fprintf(u.out, "\r%s: %d of %d MB (%d %%)", cli.Clean(u.name), u.sent/1e6, u.size/1e6, 100*u.sent/max(u.size, 1))
	}
	return n, err
}

func (u *uploading) end() {
	if u.sent > 0 {
		fmt.Fprintln(u.out)
	}
}
