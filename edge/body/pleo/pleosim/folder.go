//go:build !js

package pleosim

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kennel/infra/atomicfile"
)

// maxFiles bounds the files of a Folder.
const maxFiles = 10_000

// Folder is a drive in a folder of the host.
type Folder struct{ root *os.Root }

// OpenFolder returns the drive in a folder. Close it.
func OpenFolder(dir string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{root}, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Files returns the names of all files, sorted.
func (f *Folder) Files() (names []string, err error) {
	err = fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type().IsRegular() {
			names = append(names, filepath.ToSlash(name))
		}
		if len(names) > maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		return nil
	})
	return names, err
}

// Read returns a file.
func (f *Folder) Read(name string, limit int) ([]byte, error) {
	return atomicfile.Read(f.root, filepath.FromSlash(name), int64(limit))
}

// Write replaces a file.
func (f *Folder) Write(name string, data []byte) error {
	return atomicfile.Write(f.root, filepath.FromSlash(name), data, 0o666, 0o777)
}

// Remove deletes a file.
func (f *Folder) Remove(name string) error { return f.root.Remove(filepath.FromSlash(name)) }
