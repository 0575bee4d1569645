// Package oem is the factory area of a robot, folder factory/ below its root: logs of the factory at its top, cloud/ with the certificates
// (certs/devicecert), nvStorage/ with .nvdata files, and playpen/ with what the playpen test saw, kept for later comparison (VEC-STOR-07,
// VEC-STOR-08). It is written in factory mode only; a robot at home and recovery read it.
//
// What is inside an .nvdata file is not known: its bytes are kept as they are.
package oem

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"kennel/infra/atomicfile"
)

// Folders of the area, below the robot's root. Kennel's own folder factory/kennel is certs/devicecert's.
const (
	Dir        = "factory"
	CloudDir   = Dir + "/cloud"
	NVDir      = Dir + "/nvStorage"
	PlaypenDir = Dir + "/playpen"
)

const (
	nvEnd = ".nvdata"
	// maxFile bounds one file: the partition of the original has 16 MB.
	maxFile = 16 << 20
)

// ErrReadOnly is in the chain of every refusal to write outside factory mode.
var ErrReadOnly = errors.New("the factory area is read-only outside factory mode")

// Mode says what may be done with the area.
type Mode uint8

// The modes. Only Factory writes.
const (
	Home Mode = iota
	Recovery
	Factory
)

var modeNames = [...]string{"home", "recovery", "factory"}

func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// Area is the factory area of one robot. It is a plain value.
type Area struct {
	root *os.Root
	mode Mode
}

// New returns the area below root.
func New(root *os.Root, mode Mode) Area { return Area{root, mode} }

// File is one file of the area.
type File struct {
	Name string
	Size int64
	Time time.Time
}

// namePattern: names that are safe on any robot. No leading dot: those are temporary files.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$`)

// Logs lists the logs at the top of the area.
func (a Area) Logs() ([]File, error) { return a.list(Dir, "") }

// ReadLog reads a log.
func (a Area) ReadLog(name string) ([]byte, error) { return a.read(Dir, name) }

// WriteLog writes a log, whole.
func (a Area) WriteLog(name string, data []byte) error { return a.write(Dir, name, data) }

// NV lists the stored values, without the ending of their files.
func (a Area) NV() ([]string, error) {
	files, err := a.list(NVDir, nvEnd)
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name, nvEnd))
	}
	return names, err
}

// ReadNV reads a stored value. fs.ErrNotExist is in the error's chain if there is none.
func (a Area) ReadNV(name string) ([]byte, error) { return a.read(NVDir, name+nvEnd) }

// WriteNV stores a value, whole.
func (a Area) WriteNV(name string, data []byte) error { return a.write(NVDir, name+nvEnd, data) }

// Playpen lists what the playpen test left: images and results.
func (a Area) Playpen() ([]File, error) { return a.list(PlaypenDir, "") }

// ReadPlaypen reads one of them.
func (a Area) ReadPlaypen(name string) ([]byte, error) { return a.read(PlaypenDir, name) }

// WritePlaypen keeps one.
func (a Area) WritePlaypen(name string, data []byte) error { return a.write(PlaypenDir, name, data) }

// list returns the plain files of a folder by name; none if there is no such folder.
func (a Area) list(dir, end string) ([]File, error) {
	entries, err := fs.ReadDir(a.root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	var out []File
	for _, e := range entries {
		if !e.Type().IsRegular() || !namePattern.MatchString(e.Name()) || !strings.HasSuffix(e.Name(), end) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it went in between
		}
		out = append(out, File{e.Name(), info.Size(), info.ModTime().UTC()})
	}
	slices.SortFunc(out, func(x, y File) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}

func (a Area) read(dir, name string) ([]byte, error) {
	if err := check(name); err != nil {
		return nil, err
	}
	full := path.Join(dir, name)
	f, err := a.root.OpenFile(full, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe might take for ever
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is not a file of at most %d bytes", full, maxFile)
	}
	return io.ReadAll(io.LimitReader(f, maxFile)) // it may grow
}

func (a Area) write(dir, name string, data []byte) error {
	if a.mode != Factory {
		return fmt.Errorf("write %s/%s in mode %s: %w", dir, name, a.mode, ErrReadOnly)
	}
	if err := check(name); err != nil {
		return err
	}
	if len(data) > maxFile {
		return fmt.Errorf("write %s/%s: %d bytes: want at most %d", dir, name, len(data), maxFile)
	}
	return atomicfile.Write(a.root, path.Join(dir, name), data, 0o644, 0o755)
}

func check(name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("name %.80q: want 1 to 128 letters, digits, . _ -, not starting with a dot", name)
	}
	return nil
}
