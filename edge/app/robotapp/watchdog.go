package robotapp

import (
	"context"
	"fmt"
	"net"
	"time"
)

// kickEvery is the watchdog's period (VEC-WDOG-02).
const kickEvery = 250 * time.Millisecond

// watchdog speaks to the supervisor that started robotd, in the way of sd_notify: one datagram a message. With no address it says nothing.
type watchdog struct{ conn *net.UnixConn }

func openWatchdog(addr string) (*watchdog, error) {
	if addr == "" {
		return &watchdog{}, nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: addr, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	return &watchdog{conn: conn}, nil
}

// run says READY, then WATCHDOG each time healthy says so, then STOPPING when ctx ends.
func (w *watchdog) run(ctx context.Context, healthy func() bool) error {
	w.say("READY=1")
	defer w.say("STOPPING=1")
	tick := time.NewTicker(kickEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if healthy() {
			w.say("WATCHDOG=1")
		}
	}
}

// say does not wait: a supervisor that does not read learns from the silence.
func (w *watchdog) say(what string) {
	if w.conn == nil {
		return
	}
	_ = w.conn.SetWriteDeadline(time.Now().Add(kickEvery / 2)) // a closed one fails in Write
	_, _ = w.conn.Write([]byte(what))                          // nobody else to tell
}

func (w *watchdog) close() {
	if w.conn != nil {
		_ = w.conn.Close() // datagrams: nothing is buffered
	}
}
