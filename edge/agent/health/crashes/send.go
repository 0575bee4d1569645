package crashes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"time"

	"kennel/edge/agent/das"
	"kennel/edge/agent/link/mqttlink"
	"kennel/edge/crash"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/files"
	"kennel/infra/errs"
)

// Uploader sends a request to the cloud (cloud.Upload).
type Uploader func(ctx context.Context, req *http.Request) (*http.Response, error)

// uploadTime bounds an upload to a configured URL.
const uploadTime = 15 * time.Minute

// send sends one dump (outbox.Config.Send), after its event is on disk.
func (c *Collector) send(ctx context.Context, f *os.File, name string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	switch size := info.Size(); {
	case size == 0:
		return errs.New(errs.Unavailable, "%s is empty: may still be written", name)
	case size > files.MaxDump:
		return errs.New(errs.Invalid, "%s has %d bytes: want at most %d", name, size, files.MaxDump)
	}
	select { // a record of which agentd died halfway must not be made again after it was sent
	case <-c.seen:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	err = c.tell(ctx, name)
	if _, lerr := c.cfg.Robot.Root.Lstat(c.logOf(name)); errors.Is(lerr, fs.ErrNotExist) && err == nil {
		err = c.companion(name)
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	before, after, kind, err := c.form(f, name)
	if err != nil {
		return err
	}
	to := c.cfg.Conf.URL
	if to == "" {
		to = files.Crash
	}
	body := io.MultiReader(bytes.NewReader(before), io.NewSectionReader(f, 0, info.Size()), bytes.NewReader(after))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, io.NopCloser(body)) // f is the caller's
	if err != nil {
		return err
	}
	req.ContentLength = int64(len(before)+len(after)) + info.Size()
	req.Header.Set("Content-Type", kind)
	if c.cfg.Conf.URL != "" {
		return elsewhere(req)
	}
	resp, err := c.cfg.Upload(ctx, req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // read
	c.cfg.step("sent")
	return mqttlink.Refusal(resp)
}

// form returns what goes before and after the dump: the parts that VEC-CRS-05 names.
func (c *Collector) form(f io.ReaderAt, name string) (before, after []byte, kind string, err error) {
	r := c.cfg.Robot
	head := make([]byte, 8<<10)
	n, _ := f.ReadAt(head, 0) // a short one has no header of ours
	record, err := crash.Parse(head[:n])
	release, version := r.OS, firstLine(r.Root, platform.VersionFile)
	if err == nil && record.OSVersion != "" {
		release = record.OSVersion // the robot may have another one meanwhile
	}
	if version == "" {
		version = record.Version
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if log, lerr := c.attached(name); lerr != nil {
		return nil, nil, "", lerr
	} else if log != nil {
		part, perr := w.CreateFormFile("attachment_messages.log", strings.TrimSuffix(name, crash.Done)+".log")
		if perr == nil {
			_, perr = part.Write(log)
		}
		if perr != nil {
			return nil, nil, "", perr
		}
	}
	at := ""
	if !record.At.IsZero() {
		at = record.At.UTC().Format(time.RFC3339)
	}
	for _, p := range []struct{ key, value string }{
		{"hostname", c.cfg.Host()}, {"robot.esn", r.Thing.Serial()}, {"robot.os_version", release}, {"robot.anki_version", version},
		{files.CrashProgram, record.Program}, {files.CrashBootID, record.BootID}, {files.CrashTime, at}, {files.CrashTold, "1"},
	} {
		if p.value == "" && strings.HasPrefix(p.key, "kennel.") {
			continue
		}
		if err := w.WriteField(p.key, p.value); err != nil {
			return nil, nil, "", err
		}
	}
	if _, err := w.CreateFormFile("upload_file", name); err != nil {
		return nil, nil, "", err
	}
	n = b.Len()
	if err := w.Close(); err != nil {
		return nil, nil, "", err
	}
	return b.Bytes()[:n], b.Bytes()[n:], w.FormDataContentType(), nil
}

// attached returns the companion log if it may go along: VIC_CRASH_UPLOAD_LOG asks for it, and the owner allows it (VEC-CRS-05).
func (c *Collector) attached(name string) ([]byte, error) {
	if !c.cfg.Conf.UploadLog || !c.cfg.Allowed() {
		return nil, nil
	}
	if _, err := c.cfg.Robot.Root.Stat(das.AllowFile); err != nil {
		return nil, nil
	}
	b, err := robotfs.ReadFile(c.cfg.Robot.Root, c.logOf(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// elsewhere sends to another server than the cloud, without the robot's certificate.
func elsewhere(req *http.Request) error {
	resp, err := (&http.Client{Timeout: uploadTime}).Do(req)
	if err != nil {
		return errs.New(errs.Unavailable, "upload: %w", err)
	}
	defer resp.Body.Close()
	switch s := resp.StatusCode; {
	case s/100 == 2:
		return nil
	case s == http.StatusBadRequest, s == http.StatusRequestEntityTooLarge, s == http.StatusUnprocessableEntity:
		return errs.New(errs.Invalid, "%s answered %s", req.URL.Host, resp.Status)
	}
	return errs.New(errs.Unavailable, "%s answered %s", req.URL.Host, resp.Status)
}

func firstLine(root *os.Root, name string) string {
	b, _ := robotfs.ReadFile(root, name) // none: ""
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return fmt.Sprintf("%.64s", line)
}
