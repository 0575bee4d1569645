package ctl

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"kennel/cloud/page"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// destination is the flag that says where a downloaded file goes. Without it that is standard output, unless a person would see it there: no file appears
// anywhere unasked.
type destination struct{ to string }

func (d *destination) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.to, "to", "", "write to a new `FILE`, or into a folder; -: standard output, the default if that is not a terminal")
	_ = cmd.MarkFlagFilename("to")
}

// onTerminal reports whether a person sees what is written.
var onTerminal = func(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// check refuses a download that would fill a terminal.
func (d *destination) check(cmd *cobra.Command) error {
	if d.to == "" && onTerminal(cmd.OutOrStdout()) {
		return cli.Usage("missing -to FILE; -to - writes to the terminal")
	}
	return nil
}

// named returns the file for a download that is called name where only a folder is given.
func (d *destination) named(name string) string {
	if info, err := os.Stat(d.to); err == nil && info.IsDir() {
		return filepath.Join(d.to, name)
	}
	return cmp.Or(d.to, "-")
}

// download saves what path answers in a new file, or writes it to standard output if to is "-", and says so. It returns the trailer of the answer.
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
			return nil, errs.New(errs.Unavailable, "the download broke off: %w", err)
		}
		return resp.Trailer, nil
	}
	n, err := saveNew(to, resp.Body, resp.ContentLength)
	if err != nil {
		return nil, err
	}
	events, err := strconv.ParseInt(resp.Trailer.Get("Kennel-Events"), 10, 64)
	saved := struct {
		File   string `json:"file"`
		Bytes  int64  `json:"bytes"`
		Events *int64 `json:"events,omitempty"`
	}{File: to, Bytes: n}
	if err == nil {
		saved.Events = &events
	}
	return resp.Trailer, cli.Print(cmd, saved, func(t *cli.Table) {
		if saved.Events != nil {
			t.Text(fmt.Sprintf("%s: %s, %s", to, cli.Count(events, "event"), page.Bytes(n)))
			return
		}
		t.Text(to + ": " + page.Bytes(n))
	})
}

// saveNew writes a new file for this user alone, whole or not at all; want is its size, -1 if unknown.
func saveNew(name string, r io.Reader, want int64) (n int64, err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return 0, cli.Usage("%s already exists: give another name with -to", name)
	}
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(f, r)
	if err == nil && want >= 0 && n != want {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		err = errs.New(errs.Unavailable, "the download broke off after %d of %d bytes, and no file was kept: %w", n, want, err)
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
	if out := cmd.ErrOrStderr(); onTerminal(out) {
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
