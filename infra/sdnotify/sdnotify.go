// Package sdnotify speaks to the supervisor that started this process, in the way of sd_notify(3): one datagram a message, to the socket
// that NOTIFY_SOCKET names. Robot and cloud programs use it with systemd and with anything else that listens there.
package sdnotify

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Messages, as sd_notify(3) has them.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	Watchdog = "WATCHDOG=1"
)

// sayTime bounds one message. A supervisor that does not read learns from the silence.
const sayTime = 125 * time.Millisecond

// Notifier is safe for concurrent use. Without a supervisor it says nothing.
type Notifier struct{ conn *net.UnixConn }

// Open returns a Notifier for the socket addr, the value of NOTIFY_SOCKET: a path, or @name in the abstract namespace. "": no supervisor.
func Open(addr string) (*Notifier, error) {
	if addr == "" {
		return &Notifier{}, nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: addr, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET %q: %w", addr, err)
	}
	return &Notifier{conn: conn}, nil
}

// Supervisor is how to reach who started this process.
type Supervisor struct {
	Addr  string        // for Open
	Every time.Duration // for Run
}

// Claim reads the supervisor's variables and takes them out of the environment, so that no child speaks in our name.
func Claim() (Supervisor, error) {
	every, err := Interval(os.Getenv)
	s := Supervisor{Addr: os.Getenv("NOTIFY_SOCKET"), Every: every}
	for _, k := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		_ = os.Unsetenv(k) // fails for names that no system has
	}
	return s, err
}

// Interval returns how often to send Watchdog: half of what the supervisor allows (WATCHDOG_USEC, if WATCHDOG_PID is ours or unset);
// 0 if it does not watch.
func Interval(getenv func(string) string) (time.Duration, error) {
	usec := getenv("WATCHDOG_USEC")
	if usec == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(usec, 10, 64)
	if err != nil || n <= 0 || n > (365*24*time.Hour).Microseconds() {
		return 0, fmt.Errorf("WATCHDOG_USEC %.40q: want microseconds above 0", usec)
	}
	if pid := getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0, nil // meant for a parent of ours
	}
	return time.Duration(n) * time.Microsecond / 2, nil
}

// Say sends one message and does not wait for anybody.
func (n *Notifier) Say(message string) {
	if n.conn == nil {
		return
	}
	_ = n.conn.SetWriteDeadline(time.Now().Add(sayTime)) // a closed one fails in Write
	_, _ = n.conn.Write([]byte(message))                 // the supervisor is the only one to tell
}

// Status tells people how it goes: one line, shown by systemctl status.
func (n *Notifier) Status(line string) {
	n.Say("STATUS=" + strings.ReplaceAll(line, "\n", " "))
}

// Run says Ready, then Watchdog each time the interval passed and healthy says so, then Stopping when ctx ends. every 0: no watchdog.
func (n *Notifier) Run(ctx context.Context, every time.Duration, healthy func() bool) error {
	n.Say(Ready)
	defer n.Say(Stopping)
	if every <= 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if healthy() {
			n.Say(Watchdog)
		}
	}
}

// Close gives the socket back; nothing is buffered.
func (n *Notifier) Close() error {
	if n.conn == nil {
		return nil
	}
	return n.conn.Close()
}
