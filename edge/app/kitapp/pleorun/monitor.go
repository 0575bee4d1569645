package pleorun

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/sim/uart"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

const (
	maxLine      = 256             // bytes that a terminal sends before its line ends
	writeTimeout = 2 * time.Second // a terminal that does not read is disconnected
	maxTyped     = 16              // lines that wait for the next tick
	realTick     = 10 * time.Millisecond
	maxLag       = 10 * time.Second // a host that was asleep does not catch up on more
)

// sensorUSB tells a Pleo whether a host is connected.
const sensorUSB lifeos.Sensor = 32

// terminal is Pleo's serial line.
type terminal interface {
	write(text string)
	connected() int32
	lines() <-chan string // that were typed
	poll() error          // looks for typed bytes, once in a tick
	Close()
}

// ptyLine is the line on a pseudo-terminal. It cannot tell whether a peer has it open.
type ptyLine struct {
	pty   *uart.PTY
	wire  *uart.Wire
	link  string
	typed chan string
	piece []byte
}

// openPTY opens the line and makes a symbolic link to it, which must not be there yet. Close it.
func openPTY(link string) (*ptyLine, error) {
	p, err := uart.OpenPTY()
	if err != nil {
		return nil, errs.New(errs.Unavailable, "%w", err)
	}
	w, err := uart.NewWire(p.Master)
	if err == nil {
		err = os.Symlink(p.SlavePath, link)
	}
	if err != nil {
		_ = p.Close() // err says more
		return nil, openError(err)
	}
	return &ptyLine{pty: p, wire: w, link: link, typed: make(chan string, maxTyped)}, nil
}

func (l *ptyLine) write(text string) { _, _ = l.wire.Write([]byte(text)) } // what the line does not take is lost, as on a wire

func (l *ptyLine) connected() int32 { return 1 }

func (l *ptyLine) lines() <-chan string { return l.typed }

func (l *ptyLine) poll() error {
	in, err := l.wire.Read()
	if err != nil {
		return fmt.Errorf("pseudo-terminal: %w", err)
	}
	l.piece = append(l.piece, in...)
	for {
		i := bytes.IndexAny(l.piece, "\r\n")
		if i < 0 {
			if len(l.piece) > maxLine {
				l.piece = nil
			}
			return nil
		}
		select {
		case l.typed <- string(l.piece[:i]):
		default: // it types faster than a Pleo reads
			l.write("busy\n" + lifeos.Prompt)
		}
		if strings.HasPrefix(string(l.piece[i:]), "\r\n") {
			i++
		}
		l.piece = l.piece[i+1:]
	}
}

// Close removes the line.
func (l *ptyLine) Close() {
	_ = os.Remove(l.link) // a user may have done so
	_ = l.pty.Close()     // nothing is lost
}

func (l *line) lines() <-chan string { return l.typed }

func (l *line) poll() error { return nil }

// line is the line over TCP: one terminal at a time talks to the monitor.
type line struct {
	listener net.Listener
	typed    chan string
	done     sync.WaitGroup

	mu   sync.Mutex
	conn net.Conn // nil: no terminal
}

// listen opens the line. Close it.
func listen(address string) (*line, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "listen for the monitor: %w", err)
	}
	out := &line{listener: l, typed: make(chan string, maxTyped)}
	out.done.Go(out.serve)
	return out, nil
}

// Close disconnects the terminal and waits until the line is quiet.
func (l *line) Close() {
	_ = l.listener.Close() // nothing is lost
	l.drop()
	l.done.Wait()
}

func (l *line) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close() // the terminal has gone
		l.conn = nil
	}
}

// serve takes one terminal after the other.
func (l *line) serve() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		l.conn = conn
		l.mu.Unlock()
		l.write(lifeos.Prompt)
		lines := bufio.NewScanner(conn)
		lines.Buffer(make([]byte, maxLine), maxLine)
		for lines.Scan() {
			select {
			case l.typed <- strings.TrimRight(lines.Text(), "\r"):
			default: // it types faster than a Pleo reads
				l.write("busy\n" + lifeos.Prompt)
			}
		}
		l.drop()
	}
}

// write sends text to the terminal, if there is one.
func (l *line) write(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return
	}
	_ = l.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // the write tells
	if _, err := l.conn.Write([]byte(text)); err != nil {
		_ = l.conn.Close() // serve takes the next one
	}
}

// connected returns 1 if a terminal is connected.
func (l *line) connected() int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return 0
	}
	return 1
}

// live runs in real time, until the power is off, the time is over (0: never) or the user interrupts. Terminals of l talk to the monitor.
func (p *player) live(cmd *cobra.Command, l terminal, events []event, lasts time.Duration) error {
	clock := time.NewTicker(realTick)
	defer clock.Stop()
	begin := time.Now().Add(-p.os.Now())
	for p.os.Power() == lifeos.On && (lasts == 0 || p.os.Now() < lasts) && p.failed == nil {
		select {
		case <-cmd.Context().Done():
			return nil
		case text := <-l.lines():
			l.write(p.os.Terminal(text) + lifeos.Prompt)
		case <-clock.C:
			now := time.Since(begin)
			if now-p.os.Now() > maxLag {
				begin = begin.Add(now - p.os.Now() - maxLag)
				now = p.os.Now() + maxLag
			}
			if err := l.poll(); err != nil {
				return err
			}
			p.body.Set(sensorUSB, l.connected())
			for len(events) > 0 && events[0].at <= p.os.Now() {
				events[0].do(p)
				events = events[1:]
			}
			p.body.Run(p.os, now)
		}
	}
	return p.failed
}

// String returns the line of an entry for people.
func (e entry) String() string {
	return fmt.Sprintf("%9.3f s  %-12s %s", float64(e.MS)/1000, e.what(), e.Text)
}

// what is the subject of an entry, and its level if it is not an ordinary one.
func (e entry) what() string {
	if e.Level != "info" && e.Level != "debug" {
		return e.Level + " " + e.Type
	}
	return e.Type
}

// serveMonitor runs with a monitor on a line, and prints messages as they come.
func (p *player) serveMonitor(cmd *cobra.Command, f flags, start func(), events []event, lasts time.Duration) error {
	if f.monitor != "" && f.pty != "" {
		return cli.Usage("-monitor and -pty: want one of them")
	}
	var l terminal
	where := f.pty
	if f.pty != "" {
		pty, err := openPTY(f.pty)
		if err != nil {
			return err
		}
		l = pty
	} else {
		tcp, err := listen(f.monitor)
		if err != nil {
			return err
		}
		l, where = tcp, tcp.listener.Addr().String()
	}
	defer l.Close()
	p.told = func(m lifeos.Message, e entry) {
		if m.Shown {
			l.write(m.String() + "\n")
		}
		if err := cli.PrintLine(cmd, e, e.String); err != nil && p.failed == nil {
			p.failed = err
		}
	}
	start()
	p.body.Run(p.os, realTick) // the first readings: what changes later is a trigger
	if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "monitor: %s\n", where); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return p.live(cmd, l, events, lasts)
}
