package sdnotify

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// supervisor listens as systemd does.
func supervisor(t *testing.T, addr string) func() string {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: addr, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return func() string {
		t.Helper()
		b := make([]byte, 4096)
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

func TestLife(t *testing.T) {
	for _, addr := range []string{filepath.Join(t.TempDir(), "notify"), "@kennel-sdnotify-" + strconv.Itoa(os.Getpid())} {
		hear := supervisor(t, addr)
		n, err := Open(addr)
		if err != nil {
			t.Fatal(err)
		}
		var healthy atomic.Bool
		healthy.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx, time.Millisecond, healthy.Load) }()
		for _, want := range []string{Ready, Watchdog, Watchdog} {
			if got := hear(); got != want {
				t.Errorf("heard %q, want %q", got, want)
			}
		}
		healthy.Store(false)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		n.Status("two\nlines")
		last := hear()
		for last == Watchdog {
			last = hear()
		}
		if last != Stopping {
			t.Errorf("heard %q, want %q", last, Stopping)
		}
		if got := hear(); got != "STATUS=two lines" {
			t.Errorf("heard %q", got)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	n, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	n.Say(Ready)
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "nobody")); err == nil {
		t.Error("opened a socket that is not there")
	}
}

func TestInterval(t *testing.T) {
	for name, tc := range map[string]struct {
		usec, pid string
		want      time.Duration
		bad       bool
	}{
		"not watched":  {"", "", 0, false},
		"watched":      {"30000000", strconv.Itoa(os.Getpid()), 15 * time.Second, false},
		"any process":  {"500000", "", 250 * time.Millisecond, false},
		"another's":    {"30000000", "1", 0, false},
		"not a number": {"soon", "", 0, true},
		"negative":     {"-1", "", 0, true},
		"huge":         {"9000000000000000000", "", 0, true},
	} {
		got, err := Interval(func(k string) string { return map[string]string{"WATCHDOG_USEC": tc.usec, "WATCHDOG_PID": tc.pid}[k] })
		if got != tc.want || (err != nil) != tc.bad {
			t.Errorf("%s: %v %v, want %v", name, got, err, tc.want)
		}
	}
}

func TestClaim(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "@x")
	t.Setenv("WATCHDOG_USEC", "1000000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	want := Supervisor{"@x", 500 * time.Millisecond}
	if got, err := Claim(); err != nil || got != want {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
	if got, err := Claim(); err != nil || got != (Supervisor{}) {
		t.Errorf("a child would hear of %+v (%v)", got, err)
	}
}
