package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kennel/infra/errs"
	"kennel/infra/proc"
)

// Players are programs that play samples from standard input, in the order in which FindPlayer looks for them.
var Players = []string{"pw-play", "aplay"}

// ErrPlayer is given to a Program's Changed when its program died or does not take samples.
var ErrPlayer = errors.New("sink: player does not play")

// playerArgs returns the arguments of a program of Players: raw samples of 16 bits, one channel, and a buffer as short as Run needs.
func playerArgs(name string, rate int) []string {
	if name == "pw-play" {
		return []string{"--rate=" + strconv.Itoa(rate), "--channels=1", "--format=s16", "--latency=100ms", "-"}
	}
	return []string{"-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", strconv.Itoa(rate), "--buffer-time=150000", "-"}
}

// FindPlayer returns the path and the arguments of the first of Players that this machine has. An error names the packages that have them.
func FindPlayer(rate int) (path string, args []string, err error) {
	for _, name := range Players {
		if path, err := exec.LookPath(name); err == nil {
			return path, playerArgs(name, rate), nil
		}
	}
	return "", nil, errs.New(errs.Unavailable, "no program that plays sound: install pipewire-bin (pw-play) or alsa-utils (aplay)")
}

const (
	pipeBytes = 4096                   // in the pipe to the program: 128 ms at 16,000 samples a second; a block is written as a whole or not at all
	stuck     = 500 * time.Millisecond // after which a program that takes nothing is killed
)

// Program is a sink that is another program, kept running: its death is told, it is started again after a pause that grows (proc.Restart), and samples are dropped
// meanwhile.
type Program struct {
	changed func(error)
	pipe    *os.File
	fd      int // of pipe
	end     context.CancelFunc
	done    chan error
	close   sync.Once

	mu      sync.Mutex
	pid     int // 0: not running
	down    bool
	scratch []byte
	dropped int64
}

// NewProgram starts a program that plays samples of 16 bits from its standard input. changed, if set, is called with ErrPlayer when it stops to play and with nil when it
// plays again. An error says that the program cannot be started at all.
func NewProgram(log *slog.Logger, path string, args []string, changed func(error)) (*Program, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fd := int(w.Fd())
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeBytes); err != nil {
		return nil, errors.Join(fmt.Errorf("sink: pipe of %d bytes: %w", pipeBytes, err), r.Close(), w.Close())
	}
	if err := unix.SetNonblock(fd, true); err != nil { // each call of Fd makes it blocking again: there is one
		return nil, errors.Join(fmt.Errorf("sink: pipe: %w", err), r.Close(), w.Close())
	}
	if changed == nil {
		changed = func(error) {}
	}
	ctx, end := context.WithCancel(context.Background())
	p := &Program{changed: changed, pipe: w, fd: fd, end: end, done: make(chan error, 1)}
	started := make(chan struct{})
	var once sync.Once
	spec := proc.Spec{Name: "player", Path: path, Args: args, Stdin: r, StopTimeout: time.Second, Log: logged{log},
		OnStart: func(pid int) {
			p.set(pid, false)
			once.Do(func() { close(started) })
		},
		OnExit: func(e proc.Exit) {
			drain(r)
			p.set(0, !e.Asked)
		}}
	go func() {
		defer r.Close()
		p.done <- proc.Keep(ctx, log, spec)
	}()
	select {
	case <-started:
		return p, nil
	case err := <-p.done:
		end()
		return nil, errors.Join(fmt.Errorf("sink: %w", err), w.Close())
	}
}

// logged passes on what the program says.
type logged struct{ log *slog.Logger }

func (l logged) Write(b []byte) (int, error) {
	l.log.Info("player output", "text", string(b[:min(len(b), 500)]))
	return len(b), nil
}

// drain drops what a dead program left in the pipe, so that the next one does not begin with old sound.
func drain(r *os.File) {
	n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
	if err == nil && n > 0 {
		_, _ = r.Read(make([]byte, n))
	}
}

// set notes that the program runs or not, and tells changes. down: it died.
func (p *Program) set(pid int, down bool) {
	p.mu.Lock()
	p.pid = pid
	tell := down != p.down
	p.down = down
	p.mu.Unlock()
	switch {
	case tell && down:
		p.changed(ErrPlayer)
	case tell:
		p.changed(nil)
	}
}

// Dropped returns how many samples were not played because the program was not running or did not take them.
func (p *Program) Dropped() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// Write implements Sink. It returns no error: what cannot be played is dropped.
func (p *Program) Write(pcm []int16) error {
	for len(pcm) > 0 {
		n := min(len(pcm), pipeBytes/4) // such a write is whole or not at all
		p.write(pcm[:n])
		pcm = pcm[n:]
	}
	return nil
}

func (p *Program) write(pcm []int16) {
	p.mu.Lock()
	pid := p.pid
	p.mu.Unlock()
	p.scratch = appendPCM(p.scratch[:0], pcm)
	for until := time.Now().Add(stuck); pid != 0; {
		_, err := unix.Write(p.fd, p.scratch)
		if err == nil {
			return
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			break
		}
		if time.Now().After(until) {
			_ = syscall.Kill(-pid, syscall.SIGKILL) // Keep starts it again
			break
		}
		time.Sleep(2 * time.Millisecond)
		p.mu.Lock()
		pid = p.pid
		p.mu.Unlock()
	}
	p.mu.Lock()
	p.dropped += int64(len(pcm))
	p.mu.Unlock()
}

// Close implements Sink: it ends the program. Closing again does nothing.
func (p *Program) Close() (err error) {
	p.close.Do(func() {
		p.end()
		<-p.done
		err = p.pipe.Close()
	})
	return err
}
