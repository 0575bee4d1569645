package proc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// RemoveAfterDeath starts a small process that removes dir as soon as this process ends, for any
// reason, or the returned value is closed. It notices the end by a pipe that only this process
// holds. It tries for ten seconds, because children that die with this process may still write into
// dir for a moment.
func RemoveAfterDeath(dir string) (io.Closer, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	const script = `read -r x
n=0; while [ -e "$0" ] && [ $n -lt 100 ]; do rm -rf -- "$0" 2>/dev/null || sleep 0.1; n=$((n+1)); done`
	cmd := exec.Command("/bin/sh", "-c", script, dir)
	cmd.Stdin, cmd.Dir = r, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals to our group are not for it
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("janitor of %s: %w", dir, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait()
		runtime.KeepAlive(w) // a garbage-collected file gets closed, and the caller may drop the returned value
	}()
	return &janitor{w, done}, nil
}

type janitor struct {
	pipe *os.File
	done chan struct{}
}

// Close has the folder removed now and waits for it.
func (j *janitor) Close() error {
	err := j.pipe.Close()
	<-j.done
	return err
}
