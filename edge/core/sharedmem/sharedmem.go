// Package sharedmem makes memory that one program writes and others read. Its size never changes, so that no reader loses what it has mapped.
package sharedmem

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Make returns size bytes of memory, all 0 and all present, and the file by which other programs Map it; they cannot write to it. The memory lasts as long as the process.
// It needs memfd_create (Linux 3.17) and /proc.
func Make(name string, size int) (mem []byte, f *os.File, err error) {
	fail := func(err error) ([]byte, *os.File, error) { return nil, nil, fmt.Errorf("memory to share: %w", err) }
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd) // the mapping stays
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return fail(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return fail(err)
	}
	if f, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil { // to read only
		return fail(err)
	}
	if mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fail(errors.Join(err, f.Close()))
	}
	clear(mem)
	return mem, f, nil
}

// Memory is a mapping of another program's memory, to read. It stays mapped while the Memory is reachable.
type Memory struct{ Bytes []byte }

// Map maps a file of Make, at most most bytes, and closes it.
func Map(f *os.File, most int) (*Memory, error) {
	defer f.Close() // the mapping stays
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	if info.Size() < 1 || info.Size() > int64(most) {
		return nil, fmt.Errorf("shared memory of %d bytes, want 1 to %d", info.Size(), most)
	}
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 { // a file could be truncated, and to read beyond its end kills the reader
		return nil, errors.Join(errors.New("shared memory whose size may change"), err)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	m := &Memory{mem}
	runtime.AddCleanup(m, func(mem []byte) { _ = unix.Munmap(mem) }, mem) // it cannot fail on a mapping
	return m, nil
}
