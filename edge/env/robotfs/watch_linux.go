package robotfs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// errUnwatched: the folder is no longer the one that was watched.
var errUnwatched = errors.New("folder was moved or removed")

// Notified calls changed after each completed write, rename or removal in dir, and once at the start. It returns when ctx ends or the
// watch is lost.
func Notified(ctx context.Context, root *os.Root, dir string, changed func()) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close() // read only
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("inotify: %w", err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer events.Close() // read only; closing it twice is harmless
	// By way of the open folder, so that the watch cannot leave the robot's root.
	at := fmt.Sprintf("/proc/self/fd/%d", d.Fd())
	const mask = unix.IN_CLOSE_WRITE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	if _, err := unix.InotifyAddWatch(fd, at, mask); err != nil {
		return fmt.Errorf("inotify: watch %s: %w", dir, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = events.Close() }) // ends the Read below
	defer stop()
	changed()
	buf := make([]byte, 4096)
	for {
		n, err := events.Read(buf)
		if err != nil {
			return err
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			// struct inotify_event: wd, mask, cookie, len, 4 bytes each, then len bytes of name.
			mask, size := binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[12:])
			if mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED) != 0 {
				return errUnwatched
			}
			b = b[min(len(b), unix.SizeofInotifyEvent+int(size)):]
		}
		changed()
	}
}
