package onebox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"kennel/infra/errs"
)

// lock is an exclusive flock: the kernel gives it back however this process ends. The file exists only while the lock is held.
type lock struct{ f *os.File }

func takeLock(p Paths) (*lock, error) {
	name := p.lockFile()
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock of the data folder: %w", err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			b, _ := os.ReadFile(name) // only to name the holder
			f.Close()
			if !errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, fmt.Errorf("lock %s: %w", name, err)
			}
			return nil, errs.Coded(errs.Conflict, "locked", "data folder %s is in use by %s: stop it, or choose another folder with -data",
				p.Root, describe(strings.TrimSpace(string(b))))
		}
		// The holder before us may have removed the file between our open and our lock: then we hold a lock on nothing.
		mine, err1 := f.Stat()
		there, err2 := os.Stat(name)
		if err1 != nil || err2 != nil || !os.SameFile(mine, there) {
			f.Close()
			continue
		}
		if err := errors.Join(f.Truncate(0), writeAt(f, strconv.Itoa(os.Getpid())+"\n")); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		return &lock{f}, nil
	}
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

func (l *lock) release() error {
	err := os.Remove(l.f.Name()) // while still held
	return errors.Join(err, l.f.Close())
}

// describe names the process of a pid for people: "kenneld (pid 12)".
func describe(pid string) string {
	if pid == "" {
		return "another process"
	}
	name, err := os.ReadFile("/proc/" + pid + "/comm")
	if err != nil {
		return "pid " + pid
	}
	return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), pid)
}
