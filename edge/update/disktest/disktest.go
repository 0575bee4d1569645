// Package disktest is a disk in memory whose power can be cut at each call that changes it. What was not synced before the cut is lost, kept or
// torn, as real disks do.
package disktest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"kennel/edge/update/disk"
)

// ErrCut is the error of every call after the power was cut, and of the one at which it was.
var ErrCut = errors.New("the power is cut")

// Loss says what a cut makes of changes that were not synced.
type Loss int

// The ways to lose.
const (
	Lost Loss = iota // none of them arrived
	Kept             // all of them arrived
	Torn             // names arrived, and the first half of each file's data
)

// Losses are all ways.
var Losses = []Loss{Lost, Kept, Torn}

// Disk is the disk. Safe for concurrent use.
type Disk struct {
	mu     sync.Mutex
	now    map[string]*file // what a program sees
	synced map[string]*file // the names that a cut leaves
	on     bool
	calls  int // that changed something
	cutAt  int // the call at which the power is cut; 0: never
	fail   error
	match  string
}

type file struct{ now, synced []byte }

var _ disk.Disk = (*Disk)(nil)

// New returns an empty disk with power.
func New() *Disk {
	return &Disk{now: map[string]*file{}, synced: map[string]*file{}, on: true}
}

// CutAt cuts the power at the nth changing call from now, which does not happen; 0: never.
func (d *Disk) CutAt(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls, d.cutAt = 0, n; n == 0 {
		d.cutAt = 0
	}
}

// Calls returns how many changing calls there were since CutAt.
func (d *Disk) Calls() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// Fail makes each changing call for a file whose name contains match fail with err; nil: none.
func (d *Disk) Fail(match string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.match, d.fail = match, err
}

// Power gives the disk power again after a cut, with what the cut left of it. Files below the folders in volatile are gone: a RAM disk.
func (d *Disk) Power(loss Loss, volatile ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := d.now
	if loss == Lost {
		names = d.synced
	}
	next := map[string]*file{}
	for name, f := range names {
		if slices.ContainsFunc(volatile, func(v string) bool { return strings.HasPrefix(name, v+"/") }) {
			continue
		}
		left := f.synced
		switch loss {
		case Kept:
			left = f.now
		case Torn:
			left = slices.Clone(f.synced)
			half := len(f.now) / 2
			if len(left) < half {
				left = append(left, make([]byte, half-len(left))...)
			}
			copy(left, f.now[:half])
		}
		next[name] = &file{slices.Clone(left), slices.Clone(left)}
	}
	d.now, d.synced, d.on, d.calls, d.cutAt = next, maps.Clone(next), true, 0, 0
}

// Names lists the files.
func (d *Disk) Names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.now))
}

// change is called, with the lock held, before each change.
func (d *Disk) change(name string) error {
	if !d.on {
		return ErrCut
	}
	d.calls++
	if d.calls == d.cutAt {
		d.on = false
		return ErrCut
	}
	if d.fail != nil && strings.Contains(name, d.match) {
		return fmt.Errorf("%s: %w", name, d.fail)
	}
	return nil
}

// Open implements disk.Disk.
func (d *Disk) Open(name string) (disk.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.on {
		return nil, ErrCut
	}
	f, ok := d.now[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &handle{d, name, f}, nil
}

// Write implements disk.Disk.
func (d *Disk) Write(name string) (disk.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.now[name]
	if !ok {
		if err := d.change(name); err != nil {
			return nil, err
		}
		f = &file{}
		d.now[name] = f
	} else if !d.on {
		return nil, ErrCut
	}
	return &handle{d, name, f}, nil
}

// Rename implements disk.Disk.
func (d *Disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.change(to); err != nil {
		return err
	}
	f, ok := d.now[from]
	if !ok {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	d.now[to] = f
	delete(d.now, from)
	return nil
}

// Remove implements disk.Disk.
func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.now[name]; !ok && d.on {
		return nil
	}
	if err := d.change(name); err != nil {
		return err
	}
	delete(d.now, name)
	return nil
}

// SyncDir implements disk.Disk.
func (d *Disk) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.change(dir); err != nil {
		return err
	}
	maps.DeleteFunc(d.synced, func(name string, _ *file) bool { return path.Dir(name) == dir })
	for name, f := range d.now {
		if path.Dir(name) == dir {
			d.synced[name] = f
		}
	}
	return nil
}

type handle struct {
	d    *Disk
	name string
	f    *file
}

func (h *handle) ReadAt(p []byte, at int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if !h.d.on {
		return 0, ErrCut
	}
	if at >= int64(len(h.f.now)) {
		return 0, io.EOF
	}
	n := copy(p, h.f.now[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt(p []byte, at int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.change(h.name); err != nil {
		return 0, err
	}
	if end := int(at) + len(p); end > len(h.f.now) {
		h.f.now = append(h.f.now, make([]byte, end-len(h.f.now))...)
	}
	return copy(h.f.now[at:], p), nil
}

func (h *handle) Truncate(size int64) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.change(h.name); err != nil {
		return err
	}
	if int(size) <= len(h.f.now) {
		h.f.now = slices.Clone(h.f.now[:size])
	} else {
		h.f.now = append(h.f.now, make([]byte, int(size)-len(h.f.now))...)
	}
	return nil
}

func (h *handle) Sync() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.change(h.name); err != nil {
		return err
	}
	h.f.synced = slices.Clone(h.f.now)
	return nil
}

func (h *handle) Size() (int64, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if !h.d.on {
		return 0, ErrCut
	}
	return int64(len(h.f.now)), nil
}

func (h *handle) Close() error { return nil }
