package corelink

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"syscall"

	"kennel/infra/sockpath"

	"golang.org/x/sys/unix"
)

// SocketPath is where robotd listens, below the robot's root.
const SocketPath = socketDir + "/" + socketName

const (
	socketDir  = "dev/socket"
	socketName = "kennel_core_"
	lockPath   = SocketPath + ".lock"
	freshName  = socketName + ".new"
)

// lock makes this process the only server below root. The file stays open, and so locked, until the process ends.
func lock(root *os.Root) (*os.File, error) {
	if err := root.MkdirAll(socketDir, 0o755); err != nil {
		return nil, err
	}
	f, err := root.OpenFile(lockPath, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		who := make([]byte, 20)
		n, _ := f.Read(who) // may be empty: then the error names no process
		_ = f.Close()       // nothing written
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another process (pid %s) serves this robot: stop it first", who[:n])
		}
		return nil, fmt.Errorf("lock %s: %w", lockPath, err)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	if err != nil {
		_ = f.Close() // the write's error says more
		return nil, fmt.Errorf("write %s: %w", lockPath, err)
	}
	return f, nil
}

// listen binds the socket under another name and moves it in place when it has its mode: a peer finds a working socket or none, also where a
// killed server left one.
func listen(root *os.Root) (*net.UnixListener, error) {
	if err := root.Remove(socketDir + "/" + freshName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ln *net.UnixListener
	err := sockpath.Below(root, socketDir+"/"+freshName, func(path string) (err error) {
		ln, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false) // the name is another by then
	if err = root.Chmod(socketDir+"/"+freshName, 0o600); err == nil {
		err = root.Rename(socketDir+"/"+freshName, SocketPath)
	}
	if err != nil {
		_ = ln.Close() // the error before says more
		return nil, err
	}
	return ln, nil
}

// sameUser refuses peers that connected before the socket had its mode: a peer must run as our user or root.
func sameUser(conn syscall.Conn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil {
		return cerr
	}
	if err != nil {
		return err
	}
	if cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("peer (pid %d) is user %d, want %d or root", cred.Pid, cred.Uid, os.Geteuid())
	}
	return nil
}
