// Package atomicfile writes files that are whole or absent: temporary file, sync, rename, sync of the folder. Robot and cloud keep their
// state this way (style guide, section 14).
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// tmpSuffix marks a file that was being written; CleanTemp removes what a kill left.
const tmpSuffix = ".kennel-tmp"

var tmpSeq atomic.Int64

// Write replaces name with data. After it returned nil the new content survives a power cut; if it fails or the process dies, the old
// content remains. It makes missing folders with mode dirPerm. Safe for concurrent use; the last rename wins.
func Write(root *os.Root, name string, data []byte, perm, dirPerm fs.FileMode) error {
	dir := path.Dir(name)
	if err := root.MkdirAll(dir, dirPerm); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	tmp := fmt.Sprintf("%s.%d.%d%s", name, os.Getpid(), tmpSeq.Add(1), tmpSuffix)
	err := writeSynced(root, tmp, data, perm)
	if err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		_ = root.Remove(tmp) // the first error is the one to tell
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := SyncDir(root, dir); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// WriteFile is Write by a path, in a folder that is there.
func WriteFile(file string, data []byte, perm fs.FileMode) error {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer root.Close() // nothing is buffered
	return Write(root, filepath.Base(file), data, perm, 0o700)
}

// Sync makes what was written to a file, or renamed in a folder, durable.
func Sync(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Read reads a file of at most most bytes. A missing file is fs.ErrNotExist.
func Read(root *os.Root, name string, most int64) ([]byte, error) {
	b, _, err := ReadInfo(root, name, most)
	return b, err
}

// ReadInfo is Read that also returns what the file was right before it was read. A look at the name may be one at another file.
func ReadInfo(root *os.Root, name string, most int64) ([]byte, fs.FileInfo, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(b)) > most {
		return nil, nil, fmt.Errorf("read %s: larger than %d bytes", name, most)
	}
	return b, info, nil
}

func writeSynced(root *os.Root, name string, data []byte, perm fs.FileMode) error {
	// A process of the same number may have left such a file, with wider permissions than this one asks for.
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// SyncDir makes renames and new files in dir durable.
func SyncDir(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Unfinished reports whether name is of a file that Write has not renamed yet.
func Unfinished(name string) bool { return strings.HasSuffix(name, tmpSuffix) }

// CleanTemp removes what interrupted writes left in dir. A missing folder is fine.
func CleanTemp(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	_ = d.Close() // read only
	for _, n := range names {
		if Unfinished(n) {
			err = errors.Join(err, root.Remove(path.Join(dir, n)))
		}
	}
	return err
}
