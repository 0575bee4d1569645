package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"kennel/infra/proc"
)

// Program is a running child that is spoken to by lines: what it prints is awaited, what it reads is said. It dies with this process.
// Safe for concurrent use.
type Program struct {
	name  string
	pid   int
	stdin *os.File
	stop  context.CancelFunc
	ended chan struct{}
	err   error // set before ended is closed

	mu     sync.Mutex
	part   []byte   // of a line
	unread []string // whole lines not awaited yet
	more   chan struct{}
}

// keepLines bounds the lines kept for Await; a program that says more forgets the oldest.
const keepLines = 4096

// Start runs s; s.Log and s.Stdin are taken. Stop ends it.
func Start(s proc.Spec) (*Program, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Program{name: s.Name, stdin: w, stop: stop, ended: make(chan struct{}), more: make(chan struct{})}
	started := make(chan int, 1)
	s.Log, s.Stdin, s.OnStart = p, r, func(pid int) { r.Close(); started <- pid }
	go func() {
		defer close(p.ended)
		p.err = proc.Once(ctx, s)
	}()
	select {
	case p.pid = <-started:
		return p, nil
	case <-p.ended:
		stop()
		return nil, errors.Join(p.err, r.Close(), w.Close())
	}
}

// errNoError is the end of a program that should keep running.
var errNoError = errors.New("exited without an error")

// Pid returns the program's pid, also after its end.
func (p *Program) Pid() int { return p.pid }

// Ended is closed when the program has ended.
func (p *Program) Ended() <-chan struct{} { return p.ended }

// Say writes one line to the program's standard input.
func (p *Program) Say(line string) error {
	_, err := io.WriteString(p.stdin, line+"\n")
	return err
}

// Await returns the rest of the next line that has prefix somewhere in it, and forgets the lines before. The error says so when the
// program ends first.
func (p *Program) Await(ctx context.Context, prefix string) (string, error) {
	for {
		p.mu.Lock()
		for i, line := range p.unread {
			if _, rest, ok := strings.Cut(line, prefix); ok {
				p.unread = p.unread[i+1:]
				p.mu.Unlock()
				return strings.TrimSpace(rest), nil
			}
		}
		more := p.more
		p.mu.Unlock()
		select {
		case <-more:
		case <-p.ended:
			return "", fmt.Errorf("%s ended before it printed %q: %w", p.name, prefix, cmp.Or(p.err, errNoError))
		case <-ctx.Done():
			return "", fmt.Errorf("%s did not print %q: %w", p.name, prefix, context.Cause(ctx))
		}
	}
}

// Ask says line and awaits the answer.
func (p *Program) Ask(ctx context.Context, line, prefix string) (string, error) {
	if err := p.Say(line); err != nil {
		return "", fmt.Errorf("%s: %w", p.name, err)
	}
	return p.Await(ctx, prefix)
}

// Stop asks the program to stop, and waits for its end.
func (p *Program) Stop() {
	p.stop()
	<-p.ended
	_ = p.stdin.Close() // it is no longer read
}

// Write takes the program's output.
func (p *Program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part = append(p.part, b...)
	for {
		line, rest, ok := bytes.Cut(p.part, []byte("\n"))
		if !ok {
			break
		}
		p.unread, p.part = append(p.unread, string(line)), rest
	}
	if n := len(p.unread) - keepLines; n > 0 {
		p.unread = p.unread[n:]
	}
	close(p.more)
	p.more = make(chan struct{})
	return len(b), nil
}
