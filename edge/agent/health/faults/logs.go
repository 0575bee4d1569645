package faults

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/infra/logging"
)

// ReportsDir is where the log of a fault is made, and stays on a development robot (VEC-FLT-09).
const ReportsDir = "data/fault-reports"

// The captured logs: the system's log, or the logs of the robot's programs if there is no system log; 500 lines, as for a crash (VEC-CRS-02).
const (
	systemLog   = "var/log/messages"
	programLogs = robotfs.Cache + "/vic-logmgr"
	tailLines   = 500
	tailBytes   = 256 << 10 // of one log, whatever its lines; own default
	mostLogs    = 16        // of programs; own default
)

// capture writes the ends of the robot's logs as one file below ReportsDir, if that is wanted and allowed, and returns its name; "": nothing was.
func (h *Handler) capture(code faultcode.Code) (name string, err error) {
	if h.cfg.Handler.UploadLog <= 0 || !h.cfg.Allowed() {
		return "", nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if n, err := Logs(h.cfg.Root, z); n == 0 {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	if err := h.makeRoom(ReportsDir, int64(b.Len())); err != nil {
		return "", err
	}
	name = ReportsDir + "/fault-" + code.String() + "-" + h.cfg.Now().UTC().Format("2006-01-02-15-04-05") + ".log.gz"
	return name, robotfs.WriteFile(h.cfg.Root, name, b.Bytes(), 0o600)
}

// Logs writes the ends of the robot's logs, and returns of how many; an error says why not of more.
func Logs(root *os.Root, w io.Writer) (n int, err error) {
	for _, log := range logs(root) {
		end, terr := tail(root, log)
		if terr == nil {
			_, terr = fmt.Fprintf(w, "==> %s <==\n%s\n", log, end)
			n++
		}
		err = errors.Join(err, terr)
	}
	if n == 0 {
		err = errors.Join(fmt.Errorf("no log: want %s, or logs in %s", systemLog, programLogs), err)
	}
	return n, err
}

// queue moves the captured logs to the folder of logs to upload. On a development robot they stay (seed lines 15202-15203).
func (h *Handler) queue(report string) error {
	if report == "" || h.cfg.Stay {
		return nil
	}
	info, err := h.cfg.Root.Lstat(report)
	if err != nil {
		return err
	}
	dir, err := h.cfg.Logs.Outgoing(h.cfg.Root)
	if err != nil {
		h.cfg.Log.Warn("configured log folder unknown; using the default", "folder", dir, logging.Err, err)
	}
	if err := h.cfg.Root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := h.makeRoom(dir, info.Size()); err != nil {
		return err
	}
	if err := h.cfg.Root.Rename(report, dir+"/"+path.Base(report)); err != nil {
		return err
	}
	return errors.Join(robotfs.SyncDir(h.cfg.Root, dir), robotfs.SyncDir(h.cfg.Root, ReportsDir))
}

// logs lists the robot's existing logs.
func logs(root *os.Root) (names []string) {
	if info, err := root.Stat(systemLog); err == nil && info.Mode().IsRegular() {
		names = append(names, systemLog)
	}
	entries, _ := fs.ReadDir(root.FS(), programLogs) // no folder: no logs
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".log") && len(names) < mostLogs {
			names = append(names, programLogs+"/"+e.Name())
		}
	}
	return names
}

// tail returns the last lines of a log.
func tail(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, max(0, size-tailBytes), tailBytes))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if size > tailBytes { // the first line is cut
		b = b[bytes.IndexByte(b, '\n')+1:]
	}
	if lines := bytes.SplitAfter(b, []byte("\n")); len(lines) > tailLines+1 { // after the last newline comes an empty one
		b = bytes.Join(lines[len(lines)-tailLines-1:], nil)
	}
	return bytes.TrimRight(b, "\n"), nil
}

// makeRoom removes the oldest files of a folder until as much more fits into the uploader's quota (VEC-LOG-03).
func (h *Handler) makeRoom(dir string, more int64) error {
	quota := int64(h.cfg.Logs.QuotaMB) * 1_000_000
	if more > quota {
		return fmt.Errorf("%s: %d bytes exceed its quota of %d", dir, more, quota)
	}
	entries, err := fs.ReadDir(h.cfg.Root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	type file struct {
		name string
		size int64
		at   time.Time
	}
	var files []file
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() { // gone, or nothing that waits
			continue
		}
		files = append(files, file{dir + "/" + e.Name(), info.Size(), info.ModTime()})
		more += info.Size()
	}
	slices.SortStableFunc(files, func(a, b file) int { return a.at.Compare(b.at) })
	for _, f := range files {
		if more <= quota {
			break
		}
		if err := h.cfg.Root.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		h.cfg.Log.Warn("queued log dropped for a newer one", "file", f.name)
		more -= f.size
	}
	return nil
}
