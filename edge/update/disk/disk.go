// Package disk is the flash that an update writes, with the calls that make data durable. The updater and the slots write through Disk
// alone, so that a test can cut the power at each of its calls (edge/update/disktest).
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"kennel/infra/atomicfile"
)

// Disk is a folder of files; names have slashes. A file's data are durable after its Sync; a new name, a rename and a removal after SyncDir of
// their folder. Safe for concurrent use.
type Disk interface {
	// Open opens a file for reading. A missing one is fs.ErrNotExist.
	Open(name string) (File, error)
	// Write opens a file for reading and writing, and makes it and its folders where they are missing. What is in it stays.
	Write(name string) (File, error)
	Rename(from, to string) error
	// Remove removes a file; a missing one is fine.
	Remove(name string) error
	SyncDir(dir string) error
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Truncate(size int64) error
	Sync() error
}

// Put replaces a file: after nil the new content survives a power cut, after an error or a cut it is the old or the new one, whole.
func Put(d Disk, name string, data []byte) error {
	next := name + ".new"
	f, err := d.Write(next)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt(data, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.Rename(next, name)
	}
	if err == nil {
		err = d.SyncDir(path.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Get reads a file of at most most bytes. A missing one is fs.ErrNotExist.
func Get(d Disk, name string, most int64) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if size > most {
		return nil, fmt.Errorf("read %s: %d bytes, want at most %d", name, size, most)
	}
	return io.ReadAll(io.NewSectionReader(f, 0, size))
}

// Of is the folder root of the machine's own file system.
func Of(root *os.Root) Disk { return osDisk{root} }

type osDisk struct{ root *os.Root }

func (d osDisk) Open(name string) (File, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d osDisk) Write(name string) (File, error) {
	if err := d.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d osDisk) Rename(from, to string) error { return d.root.Rename(from, to) }

func (d osDisk) Remove(name string) error {
	if err := d.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d osDisk) SyncDir(dir string) error { return atomicfile.SyncDir(d.root, dir) }

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
