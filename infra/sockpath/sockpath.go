// Package sockpath reaches Unix sockets by paths of any length. A socket address has room for 107 bytes and a robot's root may be deeper, so
// sockets are named by way of their folder, held open, in /proc/self/fd.
package sockpath

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// In returns a path to name in folder. It is good while folder is open, in this process.
func In(folder *os.File, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(int(folder.Fd())) + "/" + name
}

// Below calls f with a path to file, which is below root, and returns what f does. Its folder must be there; file itself need not.
func Below(root *os.Root, file string, f func(path string) error) error {
	folder, err := root.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return in(folder, file, f)
}

// To is Below for a file wherever it is.
func To(file string, f func(path string) error) error {
	folder, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return in(folder, file, f)
}

func in(folder *os.File, file string, f func(path string) error) error {
	defer folder.Close() // read only
	return f(In(folder, filepath.Base(file)))
}

// ListenPrivate listens at file, below root, in a folder of its own that only this user and root can enter. What an
// earlier process left at file is replaced, and the file stays when the listener closes.
func ListenPrivate(root *os.Root, file string) (*net.UnixListener, error) {
	return ListenPrivateAs("unix", root, file)
}

// ListenPrivateAs is ListenPrivate on a network of Unix sockets, such as unixpacket.
func ListenPrivateAs(network string, root *os.Root, file string) (ln *net.UnixListener, err error) {
	dir := filepath.Dir(file)
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := root.Chmod(dir, 0o700); err != nil { // an existing folder may be open to others
		return nil, err
	}
	if err := root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that was killed
		return nil, err
	}
	err = Below(root, file, func(path string) (err error) {
		ln, err = net.ListenUnix(network, &net.UnixAddr{Name: path, Net: network})
		return err
	})
	if ln != nil {
		ln.SetUnlinkOnClose(false) // that path is another file's, or none, by then
	}
	return ln, err
}
